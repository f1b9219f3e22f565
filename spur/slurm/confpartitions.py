"""Partitions from PartitionName and NodeSet lines, and the network from topology.conf."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from spur.slurm.conflines import Line, Place
from spur.slurm.confnodes import PlacedBlock
from spur.slurm.confreading import Reading, Row, table_of
from spur.slurm.parameters_partitions import TOPOLOGY_PARAMETERS
from spur.values.config import PartitionBlock, PartitionState, TopologyKind, TopologyUnit
from spur.values.configchecks import check_partitions
from spur.values.configkeys import PARTITION_KEYS, defaults_of
from spur.values.hostlist import expand_list, format_hostlist, parse_hostlist
from spur.values.ids import NAME_GRAMMAR, PartitionName, is_name

__all__ = ["build_partitions", "build_topology"]

_OUTSIDE_BRACKETS = re.compile(r",(?![^\[\]]*\])")
_EXCLUSIVE = (
    ("memory_per_cpu_mib", "memory_per_node_mib", "DefMemPerCPU or DefMemPerNode"),
    ("memory_per_cpu_mib_max", "memory_per_node_mib_max", "MaxMemPerCPU or MaxMemPerNode"),
    ("allow_accounts", "deny_accounts", "AllowAccounts or DenyAccounts"),
    ("allow_qos", "deny_qos", "AllowQos or DenyQos"),
)


def build_partitions(
    reading: Reading, rows: Sequence[Row], sets: Sequence[Row], nodes: Sequence[PlacedBlock]
) -> tuple[PartitionBlock, ...]:
    """Return the partitions in order."""
    members = _sets(reading, sets, nodes)
    every = tuple(name for placed in nodes for name in parse_hostlist(placed.block.names))
    found = []
    for row in rows:
        if not is_name(row.of):
            reading.blame(row.place, f"PartitionName is {row.of!r}: it takes {NAME_GRAMMAR}")
        fields = _fields(reading, row)
        try:
            fields["nodes"] = _nodes(row.values.get("nodes", ""), members, every)
        except ValueError as error:
            reading.blame(row.place_of("nodes"), f"Nodes: {error}")
            fields["nodes"] = ""
        found.append(fields)

    def blame(_: str, number: int, key: str, sentence: str) -> None:
        reading.blame(rows[number].place_of(key), sentence)

    check_partitions(blame, found, [{"names": placed.block.names} for placed in nodes])
    return tuple(
        PartitionBlock(**fields, others=row.others) for fields, row in zip(found, rows, strict=True)
    )


def _fields(reading: Reading, row: Row) -> dict[str, Any]:
    """Return the fields of a partition but its nodes."""
    values = row.values
    fields = {key: values.get(key, default) for key, default in defaults_of(PARTITION_KEYS).items()}
    fields["name"] = PartitionName(row.of)
    fields["state"] = PartitionState(fields["state"])
    if "over_subscribe" in values:
        fields["over_subscribe"], fields["jobs_per_resource_max"] = values["over_subscribe"]
    if "priority" in values:
        fields["priority_tier"] = fields["priority_job_factor"] = values["priority"]
    if fields["alloc_nodes"].upper() == "ALL":
        fields["alloc_nodes"] = ""
    for one, other, words in _EXCLUSIVE:
        if fields[one] and fields[other]:
            reading.blame(row.place_of(other), f"it takes either {words}")
    return fields


def _sets(
    reading: Reading, rows: Sequence[Row], nodes: Sequence[PlacedBlock]
) -> dict[str, tuple[str, ...]]:
    """Return the nodes of each node set."""
    found: dict[str, tuple[str, ...]] = {}
    for row in rows:
        names = list(parse_hostlist(row.values.get("nodes", "")))
        feature = row.values.get("feature", ())
        for placed in nodes:
            if set(feature).intersection(placed.block.features):
                names.extend(parse_hostlist(placed.block.names))
        if "nodes" not in row.values and not feature:
            reading.blame(row.place, "a node set takes Feature or Nodes")
        found[row.of] = tuple(dict.fromkeys(names))
    return found


def _nodes(text: str, members: Mapping[str, tuple[str, ...]], every: tuple[str, ...]) -> str:
    """Return a partition's nodes as a host list: ALL, node sets and names."""
    if text.upper() == "ALL":
        return format_hostlist(every)
    names: list[str] = []
    for part in _OUTSIDE_BRACKETS.split(text) if text else ():
        names.extend(members[part] if part in members else parse_hostlist(part))
    return format_hostlist(names)


# -- the network -------------------------------------------------------------------------------

_TABLE = table_of(TOPOLOGY_PARAMETERS)


def build_topology(
    reading: Reading, lines: Sequence[Line], nodes: Sequence[PlacedBlock]
) -> tuple[tuple[TopologyUnit, ...], dict[str, str]]:
    """Return what joins nodes, and the parameters that are kept as written."""
    known = {name for placed in nodes for name in parse_hostlist(placed.block.names)}
    units: dict[str, tuple[TopologyUnit, Place]] = {}
    written: dict[str, str] = {}
    for line in lines:
        first = line.pairs[0]
        row = Row(line.place, first.value)
        reading.fill(_TABLE, row, line.pairs, of=f"{first.key}={first.value}")
        kind = next((kind for kind in TopologyKind if kind.value in row.values), None)
        if kind is None:
            written.update(row.written)
            continue
        unit = _unit(reading, row, kind)
        if unit.name in units:
            reading.blame(line.place, f"{kind} {unit.name!r} is there twice")
        unknown = [name for name in parse_hostlist(unit.nodes) if name not in known]
        if unknown:
            reading.blame(line.place, f"nodes are not configured: {format_hostlist(unknown)}")
        units[unit.name] = (unit, line.place)
    _check_switches(reading, units)
    return tuple(unit for unit, _ in units.values()), written


def _unit(reading: Reading, row: Row, kind: TopologyKind) -> TopologyUnit:
    try:
        switches = expand_list(row.values.get("switches", ""))
    except ValueError as error:
        reading.blame(row.place, f"Switches: {error}")
        switches = ()
    nodes = format_hostlist(parse_hostlist(row.values.get("nodes", "")))
    return TopologyUnit(kind, row.values[kind.value], nodes, switches)


def _check_switches(reading: Reading, units: Mapping[str, tuple[TopologyUnit, Place]]) -> None:
    """Blame switches that are not there, have two above them, or lie under themselves."""
    above: dict[str, str] = {}
    for unit, place in units.values():
        for name in unit.switches:
            if name not in units:
                reading.blame(place, f"there is no switch {name!r}")
            elif name in above:
                reading.blame(place, f"switch {name!r} lies under {above[name]!r} already")
            else:
                above[name] = unit.name
    for name, (_, place) in units.items():
        seen, upper = {name}, above.get(name)
        while upper is not None and upper not in seen:
            seen.add(upper)
            upper = above.get(upper)
        if upper == name:
            reading.blame(place, f"switch {name!r} lies under itself")
