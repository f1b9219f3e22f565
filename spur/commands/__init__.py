"""Judging requests: one file per subject. Pure; imports projections, events, wire and values.

Importing the room registers every command. Start with `decide.py`.
"""

from spur.commands import clock

__all__ = ["SUBJECTS"]

SUBJECTS = (clock,)
"""The files of this room that hold commands."""
