"""spurctld: front, RPC, peers, the process that writes snapshots, and what reads a log at rest.

May import: every room of the product but the other daemons.

Read first: `front.py`, `net.py`, `authority.py`.

Keeps: no answer leaves, and no effect is performed, before the entries that it saw are committed;
nothing that may block runs on the front's loop.
"""
