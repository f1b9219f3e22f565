"""What must hold between the rows of a configuration, whichever file they came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from spur.values.hostlist import HOSTS_MAX, format_hostlist, parse_hostlist

__all__ = ["Blame", "check_nodes", "check_partitions", "check_roles"]

Blame = Callable[[str, int, str, str], None]
"""Takes a sentence about a table, the number of its row, and a key (empty for the row)."""

Rows = Sequence[Mapping[str, Any]]


def check_nodes(blame: Blame, nodes: Rows) -> None:
    """Blame names that stand in two rows, and too many of them."""
    seen: set[str] = set()
    for number, row in enumerate(nodes):
        names = parse_hostlist(row["names"])
        twice = seen.intersection(names)
        if twice:
            text = format_hostlist(twice)
            blame("nodes", number, "names", f"nodes {text} are configured twice")
        seen.update(names)
    if len(seen) > HOSTS_MAX:
        blame("nodes", 0, "", f"{len(seen)} nodes are configured; the most is {HOSTS_MAX}")


def check_partitions(blame: Blame, partitions: Rows, nodes: Rows) -> None:
    """Blame names that stand twice, unknown nodes, a second default, and what contradicts."""
    known = {name for row in nodes for name in parse_hostlist(row["names"])}
    partition_names = {row["name"] for row in partitions}
    names: set[str] = set()
    defaults = 0
    for number, row in enumerate(partitions):
        name = row["name"]
        if name in names:
            blame("partitions", number, "name", f"partition {name!r} is configured twice")
        names.add(name)
        unknown = [node for node in parse_hostlist(row["nodes"]) if node not in known]
        if unknown:
            text = format_hostlist(unknown)
            sentence = f"partition {name!r} has nodes that are not configured: {text}"
            blame("partitions", number, "nodes", sentence)
        defaults += row["default"]
        if row["default"] and defaults > 1:
            sentence = f"partition {name!r} is the second default; one partition may be it"
            blame("partitions", number, "default", sentence)
        if row["alternate"] and row["alternate"] not in partition_names:
            sentence = f"partition {name!r} has an alternate that is none: {row['alternate']!r}"
            blame("partitions", number, "alternate", sentence)
        for least, most, words in _PAIRS:
            if row[least] is not None and row[most] is not None and row[least] > row[most]:
                sentence = f"partition {name!r} has {words}"
                blame("partitions", number, least, sentence)


_PAIRS = (
    ("default_time_s", "max_time_s", "a default time limit above its longest"),
    ("nodes_min", "nodes_max", "a smallest number of nodes above its largest"),
)


def check_roles(blame: Blame, roles: Rows) -> None:
    """Blame a second row for the same user and host."""
    seen: set[tuple[int, str]] = set()
    for number, row in enumerate(roles):
        pair = (row["uid"], row["host"])
        if pair in seen:
            sentence = f"uid {pair[0]} has a second role on host {pair[1]!r}"
            blame("roles", number, "uid", sentence)
        seen.add(pair)
