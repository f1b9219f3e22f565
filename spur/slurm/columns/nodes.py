"""The columns of sinfo, as one table; and which of them tell nodes apart.

A column with a key parts the nodes into lines: nodes are on one line when every such column of the
format says the same of them. The others add up, or show the least.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from spur.slurm.columns import nodegroup as at
from spur.slurm.columns.nodegroup import NodeGroup
from spur.slurm.formats import Column
from spur.slurm.nodestates import compact_state, complete_state, long_state
from spur.slurm.timespec import Moment
from spur.wire.nodes import NodeInfo
from spur.wire.partitions import PartitionInfo

__all__ = [
    "ALL_FORMAT",
    "BY_LETTER",
    "BY_NAME",
    "DEFAULT_FORMAT",
    "LONG_FORMAT",
    "NODE_COLUMNS",
    "NODE_FORMAT",
    "NODE_LONG_FORMAT",
    "REASON_FORMAT",
    "REASON_LONG_FORMAT",
    "SUMMARY_FORMAT",
    "Key",
    "NodeColumn",
]

DEFAULT_FORMAT = "%9P %.5a %.10l %.6D %.6t %N"
LONG_FORMAT = "%9P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %N"
SUMMARY_FORMAT = "%9P %.5a %.10l %.16F %N"
NODE_FORMAT = "%9N %.6D %.9P %6t"
NODE_LONG_FORMAT = "%9N %.6D %.9P %.11T %4c %.8z %.6m %.8d %.6w %.8f %20E"
REASON_FORMAT = "%20E %9u %19H %N"
REASON_LONG_FORMAT = "%20E %12U %19H %6t %N"

_MANUAL = "sinfo(1) --format, --Format"


class Key(NamedTuple):
    """What a column tells apart."""

    of_partition: Callable[[PartitionInfo], object] | None = None
    of_node: Callable[[NodeInfo], object] | None = None


class NodeColumn(NamedTuple):
    """A column, and what it tells apart."""

    column: Column[NodeGroup]
    key: Key


Value = Callable[[NodeGroup], str]


def _row(name: str, letter: str, header: str, value: Value | str, key: Key) -> NodeColumn:
    def constant(group: NodeGroup) -> str:
        return str(value)

    shown = value if callable(value) else constant
    return NodeColumn(Column(name, letter, header, shown, "", _MANUAL), key)


def _of_partition(name: str, letter: str, header: str, value: Value) -> NodeColumn:
    """Return a row that shows something of a partition, and parts lines by it."""

    def key(partition: PartitionInfo) -> object:
        return value(NodeGroup(partition, (), _NOWHEN, str))

    return _row(name, letter, header, value, Key(of_partition=key))


class _Nowhen:
    """A calendar for values that show no time."""

    def now(self) -> int:
        return 0

    def moment(self, seconds: int) -> Moment:
        raise OverflowError("no time is shown here")

    def seconds(self, moment: Moment) -> int:
        raise OverflowError("no time is shown here")


_NOWHEN = _Nowhen()


def _of_node(
    name: str, letter: str, header: str, value: Value, key: Callable[[NodeInfo], object]
) -> NodeColumn:
    """Return a row that shows something of a node, and parts lines by it."""
    return _row(name, letter, header, value, Key(of_node=key))


def _sum(name: str, letter: str, header: str, value: Value | str) -> NodeColumn:
    """Return a row that parts nothing."""
    return _row(name, letter, header, value, Key())


def _least(name: str, letter: str, header: str, value: Callable[[NodeInfo], int]) -> NodeColumn:
    """Return a row that shows the least of a number."""
    return _sum(name, letter, header, lambda group: at.least(group, value))


def _reason_s(node: NodeInfo) -> object:
    return node.reason_ns // 1_000_000_000 if node.reason else 0


NODE_COLUMNS: tuple[NodeColumn, ...] = (
    _of_partition("Available", "a", "AVAIL", at.available),
    _sum("NodeAI", "A", "NODES(A/I)", at.nodes_busy_idle),
    _of_node("Features_act", "b", "ACTIVE_FEATURES", at.features, lambda node: node.features),
    _of_partition("MaxCPUsPerNode", "B", "MAX_CPUS_PER_NODE", at.max_cpus),
    _least("CPUs", "c", "CPUS", lambda node: node.cpus),
    _sum("CPUsState", "C", "CPUS(A/I/O/T)", at.cpu_counts),
    _least("Disk", "d", "TMP_DISK", lambda node: node.block.disk_mib),
    _sum("Nodes", "D", "NODES", lambda group: str(len(group.nodes))),
    _sum("FreeMem", "e", "FREE_MEM", at.free_memory),
    _of_node("Reason", "E", "REASON", at.reason, lambda node: node.reason),
    _of_node("Features", "f", "AVAIL_FEATURES", at.features, lambda node: node.features),
    _sum("NodeAIOT", "F", "NODES(A/I/O/T)", at.node_counts),
    _of_partition("Groups", "g", "GROUPS", at.groups),
    _of_node("Gres", "G", "GRES", at.gres, lambda node: node.block.gres),
    _of_partition("OverSubscribe", "h", "OVERSUBSCRIBE", at.over_subscribe),
    _of_node("Timestamp", "H", "TIMESTAMP", at.reason_time, _reason_s),
    _of_partition(
        "PriorityJobFactor",
        "I",
        "PRIO_JOB_FACTOR",
        lambda group: str(group.partition.block.priority_job_factor),
    ),
    _sum("Reservation", "i", "RESERVATION", ""),
    _of_partition("Time", "l", "TIMELIMIT", at.time_limit),
    _of_partition("DefaultTime", "L", "DEFAULTTIME", at.default_time),
    _least("Memory", "m", "MEMORY", lambda node: node.memory_mib),
    _row(
        "PreemptMode",
        "M",
        "PREEMPT_MODE",
        lambda group: group.partition.preempt_mode,
        Key(of_partition=lambda partition: partition.block.preempt_mode),
    ),
    _of_node("NodeHost", "n", "HOSTNAMES", at.node_list, lambda node: node.name),
    _sum("NodeList", "N", "NODELIST", at.node_list),
    _of_node(
        "NodeAddr",
        "o",
        "NODE_ADDR",
        lambda group: at.one(group, lambda node: node.block.address or node.name),
        lambda node: node.block.address or node.name,
    ),
    _sum("CPUsLoad", "O", "CPU_LOAD", at.load),
    _of_partition(
        "PriorityTier",
        "p",
        "PRIO_TIER",
        lambda group: str(group.partition.block.priority_tier),
    ),
    _of_partition("Partition", "P", "PARTITION", at.partition_star),
    _of_partition("Root", "r", "ROOT", at.root),
    _of_partition("PartitionName", "R", "PARTITION", lambda group: group.partition.name),
    _of_partition("Size", "s", "JOB_SIZE", at.job_size),
    _of_partition(
        "AllocNodes", "S", "ALLOCNODES", lambda group: group.partition.block.alloc_nodes or "all"
    ),
    _of_node(
        "StateCompact", "t", "STATE", at.state_compact, lambda node: compact_state(node.state)
    ),
    _of_node("StateLong", "T", "STATE", at.state_long, lambda node: long_state(node.state)),
    _of_node("User", "u", "USER", at.reason_user, at.reason_uid),
    _of_node("UserLong", "U", "USER", at.reason_user_id, at.reason_uid),
    _sum("Version", "v", "VERSION", "N/A"),
    _sum("Cluster", "V", "CLUSTER", "N/A"),
    _least("Weight", "w", "WEIGHT", lambda node: node.block.weight),
    _least("Sockets", "X", "SOCKETS", lambda node: node.block.sockets),
    _least("Cores", "Y", "CORES", lambda node: node.block.cores_per_socket),
    _sum("SocketCoreThread", "z", "S:C:T", at.sockets_cores_threads),
    _least("Threads", "Z", "THREADS", lambda node: node.block.threads_per_core),
    # -- by name alone
    _of_node(
        "AllocMem", "", "ALLOCMEM", at.allocated_memory, lambda node: node.memory_mib_allocated
    ),
    _sum("Comment", "", "COMMENT", "(null)"),
    _sum("Extra", "", "EXTRA", "(null)"),
    _of_node(
        "GresUsed",
        "",
        "GRES_USED",
        at.gres_used,
        lambda node: (node.gpu_kind, node.gpus > 0, node.gpus_allocated),
    ),
    _sum("Port", "", "PORT", lambda group: at.one(group, lambda node: node.block.port or "0")),
    _of_node(
        "StateComplete", "", "STATECOMPLETE", at.state, lambda node: complete_state(node.state)
    ),
)

BY_LETTER: dict[str, Column[NodeGroup]] = {
    row.column.letter: row.column for row in NODE_COLUMNS if row.column.letter
}
ALL_FORMAT = "|".join(
    f"%{letter}" for letter in sorted(filter(str.islower, BY_LETTER)) if letter != "i"
)
ALL_FORMAT += "".join(f"|%{letter} " for letter in sorted(filter(str.isupper, BY_LETTER)))
"""What the name all stands for in --Format; letters of later releases than 22.05 change nothing."""

BY_NAME: dict[str, Column[NodeGroup]] = {
    row.column.name.lower(): row.column for row in NODE_COLUMNS
}
