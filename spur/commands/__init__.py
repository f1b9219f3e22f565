"""Judging requests: one file per subject. Pure; imports projections, events, wire and values.

Importing the room registers every command. Read first: `decide.py`, `permissions.py`,
`cluster.py`. The room keeps these: a command writes nothing; a refusal says that nothing was
changed; every command has a permission.
"""

from spur.commands import clock, cluster, jobs, nodes, partitions, placement, runs

__all__ = ["SUBJECTS"]

SUBJECTS = (clock, cluster, jobs, nodes, partitions, placement, runs)
"""The files of this room that hold commands."""
