"""Facts, past tense: what the log holds. Imports values alone.

Start with `declare.py` (how an event is declared), `envelope.py` (what an entry holds) and
`codec.py` (strict reading). One file per subject; `schema.lock` fixes every shape that was ever
written.
"""
