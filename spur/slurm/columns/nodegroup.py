"""Nodes that share a line of sinfo, and the values that its columns show of them.

Source: sinfo(1); transcripts of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from spur.slurm.nodestates import compact_state, complete_state, long_state, state_rank
from spur.slurm.shownode import (
    format_free_memory,
    format_load,
    format_node_gres,
    format_over_subscribe,
)
from spur.slurm.timespec import Calendar, format_duration, format_moment
from spur.values.arrays import TaskSet, format_tasks
from spur.values.hostlist import format_hostlist
from spur.values.tres import gpu_indexes
from spur.wire.nodes import NodeInfo
from spur.wire.partitions import PartitionInfo

__all__ = [
    "UNKNOWN_UID",
    "NodeGroup",
    "allocated_memory",
    "available",
    "cpu_counts",
    "default_time",
    "features",
    "free_memory",
    "gres",
    "gres_used",
    "groups",
    "job_size",
    "least",
    "load",
    "max_cpus",
    "node_counts",
    "node_list",
    "nodes_busy_idle",
    "one",
    "over_subscribe",
    "partition_star",
    "reason",
    "reason_time",
    "reason_uid",
    "reason_user",
    "reason_user_id",
    "root",
    "sockets_cores_threads",
    "state",
    "state_compact",
    "state_long",
    "time_limit",
]

_NS = 1_000_000_000


class NodeGroup(NamedTuple):
    """One line: nodes that look the same in every column that tells them apart."""

    partition: PartitionInfo
    """The first that the nodes were met in."""
    nodes: tuple[NodeInfo, ...]
    """Each once; none for a partition without a node that is asked for."""
    calendar: Calendar
    user: Callable[[int], str]

    @property
    def rank(self) -> int:
        """The place of its state in sinfo's order; a group without nodes comes last."""
        return state_rank(self.nodes[0].state) if self.nodes else -1


# -- of the partition


def partition_star(group: NodeGroup) -> str:
    """Return the partition's name, with a star for the default one."""
    return group.partition.name + "*" * group.partition.default


def available(group: NodeGroup) -> str:
    """Return whether the partition starts jobs."""
    return group.partition.state.value.lower()


def time_limit(group: NodeGroup) -> str:
    """Return the longest that a job may run."""
    limit_s = group.partition.max_time_s
    return "infinite" if limit_s is None else format_duration(limit_s)


def default_time(group: NodeGroup) -> str:
    """Return how long a job may run that says nothing."""
    limit_s = group.partition.default_time_s
    return "n/a" if limit_s is None else format_duration(limit_s)


def job_size(group: NodeGroup) -> str:
    """Return how many nodes a job may have."""
    block = group.partition.block
    most = "infinite" if block.nodes_max is None else str(block.nodes_max)
    least = max(block.nodes_min, 1)
    return str(least) if most == str(least) else f"{least}-{most}"


def root(group: NodeGroup) -> str:
    """Return whether only root may submit."""
    return "yes" if group.partition.block.root_only else "no"


def groups(group: NodeGroup) -> str:
    """Return which groups of users may submit."""
    return ",".join(group.partition.block.allow_groups) or "all"


def over_subscribe(group: NodeGroup) -> str:
    """Return whether jobs share resources."""
    return format_over_subscribe(group.partition)


def max_cpus(group: NodeGroup) -> str:
    """Return how many CPUs of a node jobs may have together."""
    most = group.partition.block.cpus_per_node_max
    return "UNLIMITED" if most is None else str(most)


# -- of the nodes, the same for all


def one(group: NodeGroup, value: Callable[[NodeInfo], str], empty: str = "") -> str:
    """Return what the nodes have in common."""
    return value(group.nodes[0]) if group.nodes else empty


def state_compact(group: NodeGroup) -> str:
    """Return the state's short word."""
    return one(group, lambda node: compact_state(node.state), "n/a")


def state_long(group: NodeGroup) -> str:
    """Return the state's long word."""
    return one(group, lambda node: long_state(node.state), "n/a")


def state(group: NodeGroup) -> str:
    """Return the state with all its marks."""
    return one(group, lambda node: complete_state(node.state), "n/a")


def features(group: NodeGroup) -> str:
    """Return the features."""
    return one(group, lambda node: ",".join(node.features) or "(null)")


def gres(group: NodeGroup) -> str:
    """Return what there is of generic resources."""
    return one(group, lambda node: format_node_gres(node) or "(null)")


def gres_used(group: NodeGroup) -> str:
    """Return which GPUs are held."""
    return one(group, _gres_used)


def _gres_used(node: NodeInfo) -> str:
    held = gpu_indexes(node.gpus_allocated)
    if not node.gpus:
        return "gpu:0"
    kind = f"gpu:{node.gpu_kind}" if node.gpu_kind else "gpu"
    return f"{kind}:{len(held)}(IDX:{format_tasks(TaskSet.of(held)) or 'N/A'})"


def allocated_memory(group: NodeGroup) -> str:
    """Return the memory that jobs hold, in MiB."""
    return one(group, lambda node: str(node.memory_mib_allocated))


def reason(group: NodeGroup) -> str:
    """Return why the nodes are out."""
    return one(group, lambda node: node.reason or "none", "none")


UNKNOWN_UID = (1 << 32) - 2
"""Stands for nobody."""


def reason_uid(node: NodeInfo) -> int:
    """Return who put a node out; root for one that was powered down."""
    return node.reason_uid if node.reason or "POWERED_DOWN" in node.state else UNKNOWN_UID


def _user(group: NodeGroup, node: NodeInfo) -> str:
    uid = reason_uid(node)
    return "Unknown" if uid == UNKNOWN_UID else group.user(uid)


def reason_user(group: NodeGroup) -> str:
    """Return who said so."""
    return one(group, lambda node: _user(group, node), "Unknown")


def reason_user_id(group: NodeGroup) -> str:
    """Return who said so, with the number."""

    def value(node: NodeInfo) -> str:
        name = _user(group, node)
        return name if reason_uid(node) == UNKNOWN_UID else f"{name}({reason_uid(node)})"

    return one(group, value, "Unknown")


def reason_time(group: NodeGroup) -> str:
    """Return when it was said."""
    return one(
        group,
        lambda node: format_moment(node.reason_ns // _NS, group.calendar, empty="Unknown"),
        "Unknown",
    )


# -- of the nodes, taken together


def node_list(group: NodeGroup) -> str:
    """Return their names."""
    return format_hostlist(node.name for node in group.nodes)


def free_memory(group: NodeGroup) -> str:
    """Return the free memory of the nodes, as from and to when it differs."""
    return _span([node.free_memory_mib for node in group.nodes], format_free_memory)


def load(group: NodeGroup) -> str:
    """Return the load of the nodes, as from and to when it differs."""
    return _span([node.load_milli for node in group.nodes], format_load)


def _span(values: list[int | None], show: Callable[[int | None], str]) -> str:
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return show(None)
    least, most = show(min(known)), show(max(known))
    return least if least == most else f"{least}-{most}"


def least(group: NodeGroup, value: Callable[[NodeInfo], int]) -> str:
    """Return the least of a number, with a plus when some nodes have more."""
    numbers = {value(node) for node in group.nodes}
    return f"{min(numbers)}{'+' if len(numbers) > 1 else ''}" if numbers else "0"


def _is_out(node: NodeInfo) -> bool:
    word, *marks = node.state.split("+")
    return word in ("DOWN", "UNKNOWN", "FUTURE") or "DRAIN" in marks


def sockets_cores_threads(group: NodeGroup) -> str:
    """Return sockets, cores of a socket and threads of a core."""
    counts = (
        least(group, lambda node: node.block.sockets),
        least(group, lambda node: node.block.cores_per_socket),
        least(group, lambda node: node.block.threads_per_core),
    )
    return ":".join(counts)


def _sum(numbers: Iterable[int]) -> int:
    return sum(numbers)


def cpu_counts(group: NodeGroup) -> str:
    """Return how many CPUs are held, idle, out, and there are."""
    held = _sum(node.cpus_allocated for node in group.nodes)
    out = _sum(node.cpus - node.cpus_allocated for node in group.nodes if _is_out(node))
    total = _sum(node.cpus for node in group.nodes)
    return f"{held}/{total - held - out}/{out}/{total}"


def _nodes(group: NodeGroup) -> tuple[int, int, int]:
    """Return how many nodes have jobs, are idle, and are out."""
    busy = _sum(node.cpus_allocated > 0 for node in group.nodes)
    out = _sum(_is_out(node) and not node.cpus_allocated for node in group.nodes)
    return busy, len(group.nodes) - busy - out, out


def node_counts(group: NodeGroup) -> str:
    """Return how many nodes have jobs, are idle, are out, and there are."""
    busy, idle, out = _nodes(group)
    return f"{busy}/{idle}/{out}/{len(group.nodes)}"


def nodes_busy_idle(group: NodeGroup) -> str:
    """Return how many nodes have jobs and how many are idle."""
    busy, idle, _ = _nodes(group)
    return f"{busy}/{idle}"
