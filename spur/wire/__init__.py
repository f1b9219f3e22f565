"""Requests, answers and rows as data, and the frames they travel in; no sockets.

May import: `spur.values`.

Read first: `declare.py`, `calls.py`, `frames.py`.

Keeps: every input has a limit with a name; whatever arrives is decoded or refused, and never does
more.
"""
