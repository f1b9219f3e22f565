"""The immutable vocabulary with its grammar: what every other room speaks in.

May import: the standard library without IO, and msgspec.

Read first: `ids.py`, `errors.py`, `states.py`.

Keeps: a value is checked where it is made, so nobody checks it again; equal values have equal
bytes.
"""
