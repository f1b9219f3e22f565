"""Facts, past tense: what the log holds. One file per subject.

May import: `spur.values`.

Read first: `declare.py` (how an event is declared), `envelope.py` (what an entry holds), `codec.py`
(strict reading).

Keeps: every shape that was ever written stays readable (`schema.lock`); a reader stops at what it
does not know.
"""
