"""The one door to a cluster: typed calls, leader discovery, retries.

May import: `spur.wire`, `spur.values`.

Read first: `client.py`, `pursuit.py`, `stream.py`.

Keeps: a request that is tried again carries the same id; no answer is taken from a cluster other
than the one that was dialled.
"""
