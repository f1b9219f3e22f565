"""What a partition's nodes could ever give, whatever is held or out of use: for submissions.

A job that no state of these nodes could start is refused at once instead of waiting for ever.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from spur.projections.partitions import PartitionRow
from spur.projections.resources import UNUSED
from spur.projections.state import State
from spur.scheduling.choose import choose
from spur.scheduling.filters import Sorting, is_plainly_enough, kind_passes
from spur.scheduling.need import Need
from spur.scheduling.sites import Kind, Site, kind_of
from spur.values.hostlist import parse_hostlist
from spur.values.ids import NodeName
from spur.values.tres import Per

__all__ = ["Capacity", "Lack", "capacity_of", "lack_of"]


class Lack(StrEnum):
    """What a job asks that the nodes do not have."""

    CPUS = "cpus"
    """On one node."""
    MEMORY = "memory"
    DISK = "disk"
    SHAPE = "shape"
    """Sockets, cores or threads."""
    NODES = "nodes"
    """Anything else: enough of such nodes together, GPUs, features, names."""


class Capacity(NamedTuple):
    """The nodes of a partition as they are configured."""

    kinds: dict[Kind, int]
    """How many nodes there are of each kind."""
    sites: tuple[Site, ...]
    """All of them idle, in the order in which they are tried."""
    cpus: int
    """Of all together."""


def capacity_of(state: State, partition: PartitionRow) -> Capacity:
    """Return what a partition's nodes have."""
    return state.of_hardware.get(
        ("capacity", partition.block.name), lambda: _capacity(state, partition)
    )


def _capacity(state: State, partition: PartitionRow) -> Capacity:
    kinds: dict[str, Kind] = {}
    sites = []
    for order, name in enumerate(parse_hostlist(partition.block.nodes)):
        key = state.block_of_node.key(name)
        if key is None:
            continue
        if key not in kinds:
            row = state.node_blocks[key]
            kinds[key] = kind_of(row.number, row.block)
        sites.append(Site(NodeName(name), kinds[key], order, UNUSED, is_usable=True))
    sites.sort(key=lambda site: (site.kind.block.weight, site.order))
    return Capacity(
        dict(Counter(site.kind for site in sites)),
        tuple(sites),
        sum(site.kind.block.cpus for site in sites),
    )


class _Question(NamedTuple):
    """One row: whether one node of a kind has what the job asks of each node."""

    lack: Lack
    passes: Callable[[Need, Kind], bool]


def _has_memory(need: Need, kind: Kind) -> bool:
    return need.memory_per is Per.GPU or need.memory_mib <= kind.block.memory_mib


def _has_shape(need: Need, kind: Kind) -> bool:
    ask, block = need.ask, kind.block
    return (
        block.sockets >= ask.sockets_per_node
        and block.cores_per_socket >= ask.cores_per_socket
        and block.threads_per_core >= ask.threads_per_core
    )


def _cpus_of_node(need: Need) -> int:
    tasks = 1 if need.overcommits else max(need.tasks_per_node_min, 1)
    return max(need.cpus_min, need.cpus_per_task * tasks)


_QUESTIONS = (
    _Question(Lack.CPUS, lambda need, kind: _cpus_of_node(need) <= kind.block.cpus),
    _Question(Lack.MEMORY, _has_memory),
    _Question(Lack.DISK, lambda need, kind: need.ask.disk_mib <= kind.block.disk_mib),
    _Question(Lack.SHAPE, _has_shape),
)
"""Slurm looks at these before anything else of a node, and names the last that fails."""


def lack_of(capacity: Capacity, need: Need) -> Lack | None:
    """Return why a job could not start even if all nodes were idle; None when it could."""
    fitting = {kind: count for kind, count in capacity.kinds.items() if kind_passes(need, kind)}
    if fitting and _could_start(capacity, need, fitting):
        return None
    return _named(capacity, need)


def _could_start(capacity: Capacity, need: Need, fitting: dict[Kind, int]) -> bool:
    if not need.excluded:
        sorting = Sorting(kinds={kind: (count, 0) for kind, count in fitting.items()})
        if is_plainly_enough(need, sorting, with_out=False):
            return True
    usable = [
        site for site in capacity.sites if site.kind in fitting and site.name not in need.excluded
    ]
    return choose(need, usable) is not None


def _named(capacity: Capacity, need: Need) -> Lack:
    """Return which question no node passes; NODES when some node passes all."""
    found = Lack.NODES
    for kind in capacity.kinds:
        failed = [row.lack for row in _QUESTIONS if not row.passes(need, kind)]
        if not failed:
            return Lack.NODES
        found = failed[-1]
    return found
