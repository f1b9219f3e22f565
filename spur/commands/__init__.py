"""Judging requests: one file per subject. Pure; imports projections, events, wire and values.

Importing the room registers every command. Read first: `decide.py`, `permissions.py`,
`cluster.py`. The room keeps these: a command writes nothing; a refusal says that nothing was
changed; every command has a permission.
"""

from spur.commands import clock, cluster, nodes, partitions

__all__ = ["SUBJECTS"]

SUBJECTS = (clock, cluster, nodes, partitions)
"""The files of this room that hold commands."""
