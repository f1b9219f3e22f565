"""The shipped test kit: simulated disk and clusters, builders of stories, guards and checkers.

May import: every room of the product.

Read first: `builders.py`, `disk.py`, `seal.py`.

Keeps: a run is a function of its seed; a simulated part passes the contract suite of the real one.
"""
