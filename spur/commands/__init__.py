"""Judging requests: one file per subject. Importing the room registers every command. Pure.

May import: `spur.scheduling` (only to explain what it does), `spur.projections`, `spur.events`,
`spur.wire`, `spur.values`.

Read first: `decide.py`, `permissions.py`, `cluster.py`.

Keeps: a command writes nothing; a refusal says that nothing was changed; every command has a
permission.
"""

from spur.commands import (
    accounts,
    agents,
    callers,
    clock,
    cluster,
    controllers,
    crontabs,
    factors,
    forecasts,
    hetjobs,
    history,
    jobs,
    jobupdates,
    joining,
    licenses,
    nodes,
    partitions,
    placement,
    runs,
    statistics,
    steps,
    texts,
    why,
)

__all__ = ["SUBJECTS"]

SUBJECTS = (
    accounts,
    agents,
    callers,
    clock,
    cluster,
    controllers,
    crontabs,
    factors,
    forecasts,
    hetjobs,
    history,
    jobs,
    jobupdates,
    joining,
    licenses,
    nodes,
    partitions,
    placement,
    runs,
    statistics,
    steps,
    texts,
    why,
)
"""The files of this room that hold commands."""
