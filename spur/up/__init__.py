"""A whole cluster on this machine: what `spur up`, `spur env`, `spur status` and `spur down` do.

It makes directories as a person would by hand, and starts the same programs that a site starts; it
is no part of a cluster itself, and nothing in a cluster knows of it.

May import: every room of the product, the daemons' too.

Read first: `tool.py`, `layout.py`, `processes.py`.

Keeps: only processes that were started from the directory at hand are ever signalled; what runs
already is left running; a cluster is never made twice in a directory.
"""
