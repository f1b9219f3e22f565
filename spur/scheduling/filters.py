"""What is looked at before room: of a group of jobs, and of each node. One row each.

A row of the jobs' table says why none of a group may start in a partition; a row of the nodes'
says why a node is none for them, whatever is free on it. `spur why` shows every row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from spur.projections.partitions import PartitionRow
from spur.projections.resources import UNUSED
from spur.scheduling.choose import choose, gpus_of_job
from spur.scheduling.fit import could_take
from spur.scheduling.need import Need, breaks_memory
from spur.scheduling.sites import Kind, Site, Sites
from spur.values.config import PartitionState
from spur.values.features import has_features
from spur.values.ids import PartitionName
from spur.values.states import Reason
from spur.wire.runs import RefusedCount

__all__ = [
    "JOB_FILTERS",
    "NODE_FILTERS",
    "JobFilter",
    "NodeFilter",
    "Sorter",
    "Sorting",
    "is_plainly_enough",
    "kind_passes",
    "lacking",
    "refused_group",
]


class JobFilter(NamedTuple):
    """One row: a question about a group of jobs in a partition."""

    name: str
    reason: Reason
    passes: Callable[[Need, PartitionRow, int | None], bool]
    asked: Callable[[Need, PartitionRow, int | None], str]
    available: Callable[[Need, PartitionRow, int | None], str]


class NodeFilter(NamedTuple):
    """One row: a question about a node, or all nodes of a kind."""

    name: str
    reason: Reason
    of_node: Callable[[Need, Site], bool] | None
    """None where the answer is the same for all nodes of a kind."""
    of_kind: Callable[[Need, Kind], bool] | None
    asked: Callable[[Need], str]


def _limit(seconds: int | None) -> str:
    return "no limit" if seconds is None else f"{seconds} s"


def _nodes_limit(partition: PartitionRow) -> str:
    block = partition.block
    if block.nodes_max is None:
        return f"{block.nodes_min} or more nodes" if block.nodes_min else "any number of nodes"
    return f"{block.nodes_min} to {block.nodes_max} nodes"


def _has_nodes(need: Need, partition: PartitionRow, limit_s: int | None) -> bool:
    block = partition.block
    is_below = block.nodes_max is None or max(need.nodes_min, need.nodes_max) <= block.nodes_max
    return is_below and (not need.nodes_max or need.nodes_max >= block.nodes_min)


def _has_time(need: Need, partition: PartitionRow, limit_s: int | None) -> bool:
    most = partition.block.max_time_s
    return most is None or limit_s is None or 0 < limit_s <= most


JOB_FILTERS = (
    JobFilter(
        "partition in use",
        Reason.PARTITION_DOWN,
        lambda need, partition, limit_s: partition.state is not PartitionState.DOWN,
        lambda need, partition, limit_s: "UP or DRAIN",
        lambda need, partition, limit_s: str(partition.state),
    ),
    JobFilter(
        "partition active",
        Reason.PARTITION_INACTIVE,
        lambda need, partition, limit_s: partition.state is not PartitionState.INACTIVE,
        lambda need, partition, limit_s: "UP or DRAIN",
        lambda need, partition, limit_s: str(partition.state),
    ),
    JobFilter(
        "nodes of the partition's jobs",
        Reason.PARTITION_NODE_LIMIT,
        _has_nodes,
        lambda need, partition, limit_s: f"at least {need.nodes_min} nodes",
        lambda need, partition, limit_s: _nodes_limit(partition),
    ),
    JobFilter(
        "time of the partition's jobs",
        Reason.PARTITION_TIME_LIMIT,
        _has_time,
        lambda need, partition, limit_s: _limit(limit_s or None),
        lambda need, partition, limit_s: _limit(partition.block.max_time_s),
    ),
    JobFilter(
        "memory of the partition's jobs",
        Reason.MEMORY_LIMIT,
        lambda need, partition, limit_s: not breaks_memory(need),
        lambda need, partition, limit_s: (
            f"{need.memory_mib} MiB per {need.memory_per.name.lower()}"
            if need.memory_mib >= 0
            else "all memory"
        ),
        lambda need, partition, limit_s: (
            f"up to {need.memory_limit[0]} MiB per {need.memory_limit[1].name.lower()}"
            if need.memory_limit
            else "no limit"
        ),
    ),
)
"""In the order in which they are looked at; the first that fails gives the reason."""


def _hardware(need: Need) -> str:
    ask = need.ask
    words = (
        (ask.sockets_per_node, "sockets"),
        (ask.cores_per_socket, "cores a socket"),
        (ask.threads_per_core, "threads a core"),
        (ask.disk_mib, "MiB of disk"),
    )
    return ", ".join(f"{count} {what}" for count, what in words if count) or "anything"


def _has_hardware(need: Need, kind: Kind) -> bool:
    ask, block = need.ask, kind.block
    return (
        block.sockets >= ask.sockets_per_node
        and block.cores_per_socket >= ask.cores_per_socket
        and block.threads_per_core >= ask.threads_per_core
        and block.disk_mib >= ask.disk_mib
    )


def _room(need: Need) -> str:
    words = [f"{need.cpus_per_task} CPUs a task"]
    words += [
        f"{gres.count} {gres.kind or 'any'} GPUs per {gres.per.name.lower()}" for gres in need.gpus
    ]
    if need.memory_mib < 0:
        words.append("all memory")
    else:
        words.append(f"{need.memory_mib} MiB per {need.memory_per.name.lower()}")
    return ", ".join(words)


NODE_FILTERS = (
    NodeFilter(
        "in use",
        Reason.NODE_DOWN,
        lambda need, site: site.is_usable,
        None,
        lambda need: "registered, neither drained nor down",
    ),
    NodeFilter(
        "not excluded",
        Reason.REQ_NODE_NOT_AVAIL,
        lambda need, site: site.name not in need.excluded,
        None,
        lambda need: need.ask.nodes_excluded or "nothing",
    ),
    NodeFilter(
        "features",
        Reason.BAD_CONSTRAINTS,
        None,
        lambda need, kind: any(has_features(kind.features, way.every) for way in need.ways),
        lambda need: need.ask.features or "any",
    ),
    NodeFilter("hardware", Reason.BAD_CONSTRAINTS, None, _has_hardware, _hardware),
    NodeFilter(
        "size",
        Reason.BAD_CONSTRAINTS,
        None,
        lambda need, kind: need.is_known and could_take(kind, need).tasks > 0,
        _room,
    ),
)
"""In the order in which they are looked at: whether a node could ever do for the job."""


def refused_group(need: Need, partition: PartitionRow, limit_s: int | None) -> Reason:
    """Return why no job of a group starts in a partition, whatever is free; NONE when some may."""
    for row in JOB_FILTERS:
        if not row.passes(need, partition, limit_s):
            return row.reason
    return Reason.NONE


def kind_passes(need: Need, kind: Kind) -> bool:
    """Return whether nodes of a kind could ever do."""
    return all(row.of_kind(need, kind) for row in NODE_FILTERS if row.of_kind is not None)


@dataclass(slots=True)
class Sorting:
    """The nodes of a partition by what the filters say of them."""

    usable: list[Site] = field(default_factory=list)
    """Those that could do for the job and are in use, in the order in which they are tried."""
    out: list[Site] = field(default_factory=list)
    """Those that could do and are out of use."""
    kinds: dict[Kind, tuple[int, int]] = field(default_factory=dict)
    """How many nodes of each kind are usable, and out."""
    refused: tuple[RefusedCount, ...] = ()


class Sorter:
    """Sorts the nodes of partitions, once for all groups that the same kinds of nodes do for."""

    def __init__(self, sites: Sites) -> None:
        self._sites = sites
        self._kinds: dict[PartitionName, tuple[Kind, ...]] = {}
        self._known: dict[tuple[PartitionName, frozenset[int]], Sorting] = {}

    def sort(self, need: Need, name: PartitionName) -> Sorting:
        """Return which nodes of a partition could do for the jobs of a group."""
        members = self._sites.members(name)
        kinds = self._kinds.get(name)
        if kinds is None:
            found = {site.kind.number: site.kind for site in members}
            kinds = self._kinds[name] = tuple(found.values())
        fitting = frozenset(kind.number for kind in kinds if kind_passes(need, kind))
        if need.excluded:
            return _sorted(members, fitting, need.excluded)
        key = (name, fitting)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _sorted(members, fitting, need.excluded)
        return known


def _sorted(members: Sequence[Site], fitting: frozenset[int], excluded: frozenset[str]) -> Sorting:
    found = Sorting()
    counts: dict[Kind, list[int]] = {}
    for site in members:
        if site.kind.number in fitting and site.name not in excluded:
            (found.usable if site.is_usable else found.out).append(site)
            counts.setdefault(site.kind, [0, 0])[not site.is_usable] += 1
    found.kinds = {kind: (usable, out) for kind, (usable, out) in counts.items()}
    causes = (
        (Reason.NODE_DOWN, len(found.out)),
        (Reason.BAD_CONSTRAINTS, len(members) - len(found.usable) - len(found.out)),
    )
    found.refused = tuple(RefusedCount(cause, count) for cause, count in causes if count)
    return found


def lacking(need: Need, sorting: Sorting) -> Reason:
    """Return why a job could not even start if all were idle; NONE when it could."""
    missing = set(need.required)
    if missing:
        missing -= {site.name for site in sorting.usable}
    if not missing and _is_enough_idle(need, sorting, with_out=False):
        return Reason.NONE
    if not _is_enough_idle(need, sorting, with_out=True):
        return Reason.BAD_CONSTRAINTS
    return Reason.REQ_NODE_NOT_AVAIL if missing else Reason.NODES_UNAVAILABLE


def _is_enough_idle(need: Need, sorting: Sorting, *, with_out: bool) -> bool:
    if is_plainly_enough(need, sorting, with_out=with_out):
        return True
    sites = [*sorting.usable, *(sorting.out if with_out else ())]
    if not sites or need.is_single:
        return bool(sites)
    idle = [Site(site.name, site.kind, site.order, UNUSED, is_usable=True) for site in sites]
    return choose(need, idle) is not None


def is_plainly_enough(need: Need, sorting: Sorting, *, with_out: bool) -> bool:
    """Whether kinds and their numbers alone show that idle nodes are enough."""
    if need.required or need.ask.contiguous or len(need.ways) != 1 or need.ways[0].some:
        return False
    rooms = [
        (could_take(kind, need), usable + out if with_out else usable)
        for kind, (usable, out) in sorting.kinds.items()
    ]
    rooms.sort(key=lambda pair: -pair[0].tasks)
    most = need.nodes_max or sum(count for _, count in rooms)
    nodes = tasks = gpus = 0
    for room, available in rooms:
        count = min(available, most - nodes)
        nodes += count
        tasks += count * room.tasks
        gpus += count * room.gpus
    return nodes >= need.nodes_min and tasks >= need.tasks and gpus >= gpus_of_job(need)
