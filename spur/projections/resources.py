"""What runs hold on nodes: an index over the runs, so it is stored nowhere a second time.

A running run holds all its shares. A stopping one holds the shares of those nodes that have not
yet reported it dead: a hung node keeps its own resources from others, not those of its siblings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import compress
from typing import NamedTuple

from spur.projections.runrows import FINAL, RunRow
from spur.values.config import NodeBlock
from spur.values.ids import JobId, NodeName
from spur.values.states import Phase
from spur.values.tres import NodeShare, cpu_mask, cpu_set

__all__ = ["UNUSED", "Allocations", "NodeUse", "can_hold", "held_flags", "held_shares"]


class NodeUse(NamedTuple):
    """What all runs together hold on one node."""

    cpu_mask: int
    """Bit i set: CPU i is held."""
    shared_mask: int
    """Those of them that further runs may hold as well."""
    memory_mib: int
    gpus: int
    """Mask of the devices that are held."""
    jobs: dict[JobId, NodeShare]
    """What each job holds; never changed in place."""

    @property
    def cpus(self) -> int:
        """How many CPUs are held."""
        return self.cpu_mask.bit_count()

    def plus(self, key: JobId, share: NodeShare) -> NodeUse:
        """Return the use with one more share."""
        mask = cpu_mask(share.cpu_set)
        return NodeUse(
            self.cpu_mask | mask,
            self.shared_mask | mask if share.is_shared else self.shared_mask,
            self.memory_mib + share.memory_mib,
            self.gpus | share.gpus,
            {**self.jobs, key: share},
        )

    def minus(self, key: JobId, share: NodeShare) -> NodeUse:
        """Return the use without a share that it has."""
        jobs = {job_id: held for job_id, held in self.jobs.items() if job_id != key}
        mask = cpu_mask(share.cpu_set)
        kept = 0
        if share.is_shared:
            for held in jobs.values():
                kept |= cpu_mask(held.cpu_set) & mask
        return NodeUse(
            self.cpu_mask & ~mask | kept,
            self.shared_mask & ~mask | kept,
            self.memory_mib - share.memory_mib,
            self.gpus & ~share.gpus,
            jobs,
        )


UNUSED = NodeUse(0, 0, 0, 0, {})


def can_hold(use: NodeUse, share: NodeShare, block: NodeBlock, *, jobs_per_cpu_max: int) -> bool:
    """Whether a share is sensible, and free on a node of which so much is held.

    `jobs_per_cpu_max` is how many jobs may hold one CPU, where all of them share.
    """
    mask = cpu_mask(share.cpu_set)
    if not 1 <= share.cpus <= mask.bit_count() or cpu_set(mask) != share.cpu_set:
        return False
    if mask >> block.cpus or share.memory_mib < 0 or share.gpus < 0 or share.gpus >> block.gpus:
        return False
    if use.memory_mib + share.memory_mib > block.memory_mib or use.gpus & share.gpus:
        return False
    if not mask & use.cpu_mask:
        return True
    if not share.is_shared or mask & use.cpu_mask & ~use.shared_mask:
        return False
    also = sum(1 for held in use.jobs.values() if cpu_mask(held.cpu_set) & mask)
    return also < jobs_per_cpu_max


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
        """Follow one run. Raises: ValueError when a device or CPU would be held twice."""
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
            changed[share.node] = nodes[share.node].minus(key, share)
        for share in come:
            use = changed.get(share.node) or nodes.get(share.node, UNUSED)
            if use.gpus & share.gpus:
                raise ValueError(
                    f"job {key} would hold GPUs of node {share.node!r} that are held already"
                )
            closed = use.cpu_mask & ~use.shared_mask if share.is_shared else use.cpu_mask
            if closed & cpu_mask(share.cpu_set):
                raise ValueError(
                    f"job {key} would hold CPUs of node {share.node!r} that are held already"
                )
            changed[share.node] = use.plus(key, share)
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
