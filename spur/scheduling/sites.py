"""Nodes as a plan sees them: what each has, and what is free of it after the plan's own starts.

CPUs are given in whole cores. A node's CPUs are numbered core by core, socket by socket; where the
configured CPUs are cores, or sockets, one of those counts as a core of one thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from spur.projections.nodes import NodeBlockRow, is_closed
from spur.projections.resources import UNUSED, NodeUse
from spur.projections.state import State
from spur.values.config import NodeBlock
from spur.values.hostlist import parse_hostlist
from spur.values.ids import JobId, NodeName, PartitionName
from spur.values.tres import NodeShare, cpu_mask

__all__ = ["Kind", "Site", "Sites", "full_cpus", "kind_of"]


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """What all nodes of one configured block have."""

    number: int
    """The block's place in the file."""
    block: NodeBlock
    threads: int
    """CPUs of one core."""
    sockets: tuple[int, ...]
    """Mask of each socket's CPUs that jobs may have."""
    cpus: int
    """Mask of all CPUs that jobs may have."""
    cores: int
    """How many cores jobs may have."""
    memory_mib: int
    gpus: dict[str, int]
    """Mask of the GPUs of each kind; that of the empty kind has all."""
    features: frozenset[str]


def kind_of(number: int, block: NodeBlock) -> Kind:
    """Return what a block's nodes have for jobs."""
    cores = block.sockets * block.cores_per_socket
    if block.cpus % cores or block.cpus < cores:
        cores = block.cpus
    threads = block.cpus // cores
    per_socket = max(1, cores // block.sockets)
    # The last cores are kept for the system. Source: slurm.conf(5) CoreSpecCount.
    usable = cores - block.core_spec_count
    cpus = (1 << usable * threads) - 1
    socket = (1 << per_socket * threads) - 1
    sockets = tuple(socket << first * threads & cpus for first in range(0, cores, per_socket))
    return Kind(
        number,
        block,
        threads,
        sockets,
        cpus,
        usable,
        block.memory_mib - block.memory_spec_mib,
        _gpu_masks(block),
        frozenset(block.features),
    )


def _gpu_masks(block: NodeBlock) -> dict[str, int]:
    """Return the GPUs of each kind; indexes go through the pools in order."""
    masks = {"": (1 << block.gpus) - 1}
    first = 0
    for pool in block.gres:
        if pool.name == "gpu":
            mask = ((1 << pool.count) - 1) << first
            masks[pool.kind] = masks.get(pool.kind, 0) | mask
            first += pool.count
    if first < block.gpus and block.gpu_kind:
        masks[block.gpu_kind] = masks[""]
    return masks


def full_cpus(use: NodeUse, jobs_per_cpu_max: int) -> int:
    """Return the CPUs that so many jobs hold already."""
    levels = [0] * jobs_per_cpu_max
    for share in use.jobs.values():
        mask = cpu_mask(share.cpu_set)
        for level in range(jobs_per_cpu_max - 1, 0, -1):
            levels[level] |= levels[level - 1] & mask
        levels[0] |= mask
    return levels[-1]


class Site:
    """One node of a plan."""

    __slots__ = (
        "cores_free",
        "cpus_free",
        "is_usable",
        "kind",
        "memory_free",
        "name",
        "order",
        "partition_of",
        "use",
    )

    def __init__(
        self, name: NodeName, kind: Kind, order: int, use: NodeUse, *, is_usable: bool
    ) -> None:
        self.name = name
        self.kind = kind
        self.order = order
        """Place among all nodes, as configured."""
        self.is_usable = is_usable
        """Whether new jobs may start here at all."""
        self.partition_of: Callable[[JobId], PartitionName | None] = _nowhere
        """Tells in which partition a job that holds something runs."""
        self.set_use(use)

    def set_use(self, use: NodeUse) -> None:
        """Take this as what is held."""
        kind = self.kind
        self.use = use
        self.cpus_free = kind.cpus & ~use.cpu_mask
        self.cores_free = self.cpus_free.bit_count() // kind.threads
        self.memory_free = kind.memory_mib - use.memory_mib

    def copy(self) -> Site:
        """Return another of the same use, which can change by itself."""
        made = Site(self.name, self.kind, self.order, self.use, is_usable=self.is_usable)
        made.partition_of = self.partition_of
        return made

    def emptied(self) -> Site:
        """Return the node as it is when nothing runs on it."""
        return Site(self.name, self.kind, self.order, UNUSED, is_usable=self.is_usable)

    def shareable(self, jobs_per_cpu_max: int) -> int:
        """Return the CPUs that a sharing job may have: free ones, and held ones with room."""
        use = self.use
        closed = use.cpu_mask & ~use.shared_mask
        if use.shared_mask:
            closed |= full_cpus(use, jobs_per_cpu_max)
        return self.kind.cpus & ~closed

    def cpus_in(self, partition: PartitionName) -> int:
        """Return how many CPUs the jobs of a partition hold."""
        return sum(
            cpu_mask(share.cpu_set).bit_count()
            for job_id, share in self.use.jobs.items()
            if self.partition_of(job_id) == partition
        )

    def gpus_free(self, kind: str) -> int:
        """Return the mask of the free GPUs of a kind."""
        return self.kind.gpus.get(kind, 0) & ~self.use.gpus


def _nowhere(job_id: JobId) -> None:
    """Know of no job."""


@dataclass(slots=True)
class Sites:
    """All nodes of a plan, and of each partition."""

    state: State
    by_name: dict[NodeName, Site] = field(default_factory=dict)
    _members: dict[PartitionName, list[Site]] = field(default_factory=dict)
    _placed: dict[JobId, PartitionName] = field(default_factory=dict)
    """Partitions of the plan's own starts."""

    @staticmethod
    def of(state: State) -> Sites:
        """Return the nodes as they are in a state."""
        sites = Sites(state)
        order = 0
        rows: list[NodeBlockRow] = sorted(
            state.node_blocks.rows.values(), key=lambda row: row.number
        )
        uses, nodes = state.allocations, state.nodes
        for row in rows:
            kind = kind_of(row.number, row.block)
            for name in parse_hostlist(row.block.names):
                node = nodes.get(NodeName(name))
                usable = node is not None and bool(node.boot_id) and not is_closed(node)
                site = Site(NodeName(name), kind, order, uses.use(NodeName(name)), is_usable=usable)
                site.partition_of = sites.partition_of
                sites.by_name[site.name] = site
                order += 1
        return sites

    def members(self, partition: PartitionName) -> list[Site]:
        """Return the nodes of a partition in the order in which they are tried.

        Source: slurm.conf(5) Weight.
        """
        known = self._members.get(partition)
        if known is None:
            row = self.state.partitions[partition]
            by_name = self.by_name
            known = [by_name[NodeName(name)] for name in parse_hostlist(row.block.nodes)]
            known.sort(key=lambda site: (site.kind.block.weight, site.order))
            self._members[partition] = known
        return known

    def partition_of(self, job_id: JobId) -> PartitionName | None:
        """Return the partition in which a job runs, or is to start by this plan."""
        placed = self._placed.get(job_id)
        if placed is not None:
            return placed
        run = self.state.runs.get(job_id)
        return None if run is None or run.started is None else run.started.partition

    def hold(self, job_id: JobId, shares: tuple[NodeShare, ...], partition: PartitionName) -> None:
        """Take shares as given away to a job that starts in a partition."""
        self._placed[job_id] = partition
        for share in shares:
            site = self.by_name[share.node]
            site.set_use(site.use.plus(job_id, share))

    def release(self, job_id: JobId, shares: tuple[NodeShare, ...]) -> None:
        """Take shares back that were given away by this plan."""
        del self._placed[job_id]
        for share in shares:
            site = self.by_name[share.node]
            site.set_use(site.use.minus(job_id, share))
