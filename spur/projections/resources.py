"""What runs hold on nodes: an index over the runs, so it is stored nowhere a second time.

A running run holds all its shares. A stopping one holds the shares of those nodes that have not
yet reported it dead: a hung node keeps its own resources from others, not those of its siblings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import compress
from typing import NamedTuple

from spur.projections.runrows import FINAL, RunRow
from spur.values.ids import JobId, NodeName
from spur.values.states import Phase
from spur.values.tres import NodeShare

__all__ = ["Allocations", "NodeUse", "held_flags", "held_shares"]


class NodeUse(NamedTuple):
    """What all runs together hold on one node."""

    cpus: int
    memory_mib: int
    gpus: int
    """Mask of the devices that are held."""
    jobs: frozenset[JobId]


UNUSED = NodeUse(0, 0, 0, frozenset())


_HELD_BY_STATE = bytes(0 if state in FINAL else 1 for state in range(256))
"""Maps the state of a share to 1 while a stopping run still holds it."""


def held_flags(run: RunRow) -> bytes:
    """Return for each share 1 when the run holds it now, else 0."""
    started = run.started
    if started is None:
        return b""
    if run.phase is Phase.RUNNING:
        return b"\1" * len(started.shares)
    if run.phase is Phase.STOPPING:
        return started.states.translate(_HELD_BY_STATE)
    return bytes(len(started.shares))


def held_shares(run: RunRow) -> Iterator[NodeShare]:
    """Yield what the run holds now."""
    if run.started is not None:
        yield from compress(run.started.shares, held_flags(run))


def _holds_the_same(old: RunRow | None, new: RunRow | None) -> bool:
    """Whether a change is a report while all shares are held: the commonest of all."""
    return (
        old is not None
        and new is not None
        and old.phase is Phase.RUNNING
        and new.phase is Phase.RUNNING
        and old.started is not None
        and new.started is not None
        and old.started.shares is new.started.shares
    )


class Allocations:
    """Use of every node, and how many tasks of each array run; an index of the table of runs."""

    def __init__(self) -> None:
        self._nodes: dict[NodeName, NodeUse] = {}
        self._running_tasks: dict[JobId, int] = {}

    def change(self, key: JobId, old: RunRow | None, new: RunRow | None) -> None:
        """Follow one run. Raises: ValueError when a device would be held twice."""
        before = None if old is None else old.started
        after = None if new is None else new.started
        if before is None and after is None:
            return
        if _holds_the_same(old, new):
            return
        gone_flags = b"" if old is None else held_flags(old)
        come_flags = b"" if new is None else held_flags(new)
        if before is not None and after is not None and before.shares is after.shares:
            if gone_flags != come_flags:
                pairs = list(zip(before.shares, gone_flags, come_flags, strict=True))
                gone = [share for share, was, now in pairs if was > now]
                come = [share for share, was, now in pairs if now > was]
                self._exchange(key, gone, come)
        else:
            gone = [] if before is None else list(compress(before.shares, gone_flags))
            come = [] if after is None else list(compress(after.shares, come_flags))
            self._exchange(key, gone, come)
        self._count(old, -1)
        self._count(new, 1)

    def _exchange(self, key: JobId, gone: list[NodeShare], come: list[NodeShare]) -> None:
        """Take shares away and add others; all or none."""
        nodes = self._nodes
        changed: dict[NodeName, NodeUse] = {}
        for share in gone:
            use = nodes[share.node]
            changed[share.node] = NodeUse(
                use.cpus - share.cpus,
                use.memory_mib - share.memory_mib,
                use.gpus & ~share.gpus,
                use.jobs - {key},
            )
        for share in come:
            use = changed.get(share.node) or nodes.get(share.node, UNUSED)
            if use.gpus & share.gpus:
                raise ValueError(
                    f"job {key} would hold GPUs of node {share.node!r} that are held already"
                )
            changed[share.node] = NodeUse(
                use.cpus + share.cpus,
                use.memory_mib + share.memory_mib,
                use.gpus | share.gpus,
                use.jobs | {key},
            )
        for node, use in changed.items():
            if use.jobs:
                nodes[node] = use
            else:
                del nodes[node]

    def _count(self, run: RunRow | None, step: int) -> None:
        if run is None or not run.array_id or run.phase not in (Phase.RUNNING, Phase.STOPPING):
            return
        count = self._running_tasks.get(run.array_id, 0) + step
        if count:
            self._running_tasks[run.array_id] = count
        else:
            del self._running_tasks[run.array_id]

    def fill(self, rows: Mapping[JobId, RunRow]) -> None:
        """Follow every run of a table at once; the index must be empty."""
        for key, row in rows.items():
            self.change(key, None, row)

    def fresh(self) -> Allocations:
        """Return an empty index of the same declaration."""
        return Allocations()

    def contents(self) -> object:
        """Return all that the index holds."""
        return self._nodes, self._running_tasks

    def use(self, node: NodeName) -> NodeUse:
        """Return what is held on a node."""
        return self._nodes.get(node, UNUSED)

    def nodes(self) -> list[NodeName]:
        """Return the nodes on which something is held, in order."""
        return sorted(self._nodes)

    def jobs_on(self, node: NodeName) -> list[JobId]:
        """Return the jobs that hold something on a node, in order."""
        return sorted(self.use(node).jobs)

    def jobs(self) -> list[JobId]:
        """Return the jobs that hold something anywhere, in order."""
        return sorted({job_id for use in self._nodes.values() for job_id in use.jobs})

    def running_tasks(self, array_id: JobId) -> int:
        """Return how many tasks of an array hold an allocation."""
        return self._running_tasks.get(array_id, 0)
