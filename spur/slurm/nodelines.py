"""The lines of sinfo: nodes parted by what the columns of a format tell apart, and put in order.

Source: sinfo(1); transcripts of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from spur.slurm.columns.nodegroup import UNKNOWN_UID, NodeGroup, available, reason_uid
from spur.slurm.columns.nodes import BY_LETTER, NODE_COLUMNS
from spur.slurm.formats import Layout
from spur.slurm.timespec import Calendar
from spur.wire.nodes import NodeInfo
from spur.wire.partitions import PartitionInfo

__all__ = ["AVAILABLE", "DEFAULT_SORT", "NODE_SORT", "group_nodes", "sort_groups"]

DEFAULT_SORT = "#P,-t"
NODE_SORT = "N"

_NUMBERS = "cdmwIpXYZ"
"""Letters of columns that show a number, the least of the nodes'."""

AVAILABLE = ("inactive", "down", "drain", "up")
"""States of partitions, in the order in which sinfo sorts them."""

_ORDERS: dict[str, Callable[[NodeGroup], Any]] = {
    "a": lambda group: AVAILABLE.index(available(group)),
    "H": lambda group: group.nodes[0].reason_ns // 1_000_000_000 if group.nodes else 0,
    "E": lambda group: group.nodes[0].reason if group.nodes else "",
    "S": lambda group: group.partition.block.priority_job_factor,
    "l": lambda group: group.partition.max_time_s or 1 << 62,
    "u": lambda group: reason_uid(group.nodes[0]) if group.nodes else UNKNOWN_UID,
}
"""Letters that sort by another thing than by what is shown."""

_KEYS = {row.column.name: row.key for row in NODE_COLUMNS}


def group_nodes(
    layout: Layout[NodeGroup],
    partitions: Iterable[PartitionInfo],
    nodes: Iterable[NodeInfo],
    *,
    by_node: bool,
    calendar: Calendar,
    user: Callable[[int], str],
) -> list[NodeGroup]:
    """Return one group for each line, in the order in which they are met.

    A partition without any of the nodes has a line of its own where partitions are told apart.
    """
    names = [cell.column.name for cell in layout.cells if cell.column is not None]
    keys = [_KEYS[name] for name in names]
    of_partition = [key.of_partition for key in keys if key.of_partition is not None]
    of_node = [key.of_node for key in keys if key.of_node is not None]
    found: dict[tuple[object, ...], tuple[PartitionInfo, dict[str, NodeInfo]]] = {}
    firsts: set[tuple[object, ...]] = set()
    known = list(nodes)
    for partition in partitions:
        shared = tuple(tell(partition) for tell in of_partition)
        members = [node for node in known if partition.name in node.partitions]
        for number, node in enumerate(members):
            own = tuple(tell(node) for tell in of_node)
            place = (shared, own, node.name if by_node else "")
            if number == 0 and place not in found:
                firsts.add(place)
            found.setdefault(place, (partition, {}))[1][node.name] = node
        if not members and of_partition and not by_node:
            found.setdefault((shared, None), (partition, {}))
            firsts.add((shared, None))
    # sinfo begins with one line for each partition and puts the others behind those.
    ordered = sorted(found.items(), key=lambda item: item[0] not in firsts)
    return [
        NodeGroup(partition, tuple(members.values()), calendar, user)
        for _, (partition, members) in ordered
    ]


def sort_groups(
    groups: list[NodeGroup], text: str, partitions: Sequence[PartitionInfo]
) -> list[NodeGroup]:
    """Return the groups in order: letters of --sort, each with - to turn it round.

    #P is the order of the file. What the letters leave equal stays as it is.

    Raises: ValueError with the letter that is none.
    """
    order = {partition.name: number for number, partition in enumerate(partitions)}
    keys: list[tuple[Callable[[NodeGroup], Any], bool]] = []  # each of one comparable type
    is_down = by_file = False
    for letter in text:
        if letter in "+-":
            is_down = letter == "-"
        elif letter == "#":
            by_file = True
        elif letter in ", ":
            is_down = by_file = False
        else:
            keys.append((_sort_key(letter, order if by_file else None), is_down))
            is_down = by_file = False
    ordered = list(groups)
    for key, reverse in reversed(keys):
        ordered.sort(key=key, reverse=reverse)
    return ordered


def _sort_key(letter: str, order: dict[Any, int] | None) -> Callable[[NodeGroup], Any]:
    """Return a key of one comparable type; `order` is by names of partitions."""
    if letter in "PR" and order is not None:
        return lambda group: order[group.partition.name]
    if letter in "tT":
        return lambda group: group.rank
    if letter == "D":
        return lambda group: len(group.nodes)
    own = _ORDERS.get(letter)
    if own is not None:
        return own
    column = BY_LETTER.get(letter)
    if column is None:
        raise ValueError(letter)
    if letter in _NUMBERS:
        return lambda group: int(column.value(group).rstrip("+"))
    return column.value
