"""Nodes from NodeName and DownNodes lines, and what gres.conf says of them.

A line becomes one block, or several where its nodes are not alike: another host's agent, other
devices, or some of them down.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from spur.slurm.confgres import GresLine, pools_of
from spur.slurm.conflines import Place
from spur.slurm.confreading import Reading, Row
from spur.values.config import GresPool, NodeBlock, NodeStart
from spur.values.configkeys import NODE_KEYS, cpu_shape, defaults_of, gpu_summary
from spur.values.hostlist import expand_list, format_hostlist, parse_hostlist
from spur.values.ids import is_name

__all__ = ["PlacedBlock", "build_nodes"]

_DEFAULT_REASON = "Set in slurm.conf"


class PlacedBlock(NamedTuple):
    """A block and the line that it came from."""

    block: NodeBlock
    place: Place


class _Alike(NamedTuple):
    """What must be equal for nodes of a line to be one block."""

    agent: str
    start: NodeStart
    reason: str
    pools: tuple[GresPool, ...]


def build_nodes(
    reading: Reading,
    rows: Sequence[Row],
    downs: Sequence[Row],
    lines: Sequence[GresLine],
    gres_types: Sequence[str],
) -> list[PlacedBlock]:
    """Return the blocks of all lines, in order."""
    down_of = {name: row for row in downs for name in _names(reading, row)}
    found: list[PlacedBlock] = []
    known: set[str] = set()
    for row in rows:
        names = _names(reading, row)
        known.update(names)
        for count in row.values.get("gres", ()):
            if count.name not in gres_types:
                sentence = f"Gres has {count.name!r}, which GresTypes does not list"
                reading.blame(row.place_of("gres"), sentence)
        if names:
            found.extend(_blocks(reading, row, names, down_of, lines))
    for row in downs:
        unknown = [name for name in _names(reading, row) if name not in known]
        if unknown:
            reading.blame(row.place, f"nodes are not configured: {format_hostlist(unknown)}")
    return found


def _names(reading: Reading, row: Row) -> tuple[str, ...]:
    """Return the nodes of a line in the order of a host list."""
    if is_name(row.of):
        return (row.of,)
    try:
        return parse_hostlist(format_hostlist(parse_hostlist(row.of)))
    except ValueError as error:
        reading.blame(row.place, str(error))
        return ()


def _blocks(
    reading: Reading,
    row: Row,
    names: tuple[str, ...],
    down_of: Mapping[str, Row],
    lines: Sequence[GresLine],
) -> list[PlacedBlock]:
    common = _common(reading, row)
    written = names if len(names) == 1 else parse_hostlist(row.of)
    hosts = _each(reading, row, "hosts", "NodeHostname", written, written)
    addresses = _each(reading, row, "addresses", "NodeAddr", written, written)
    ports = _each(reading, row, "port", "Port", written, ("",) * len(written))
    counts = row.values.get("gres", ())
    groups: dict[_Alike, list[str]] = {}
    for name in names:
        down = down_of.get(name)
        start = row.values.get("start", NodeStart.UNKNOWN)
        reason = row.values.get("reason", "")
        if down is not None:
            start = down.values.get("start", NodeStart.DOWN)
            reason = down.values.get("reason", _DEFAULT_REASON)
        agent = "" if hosts[name] == name else hosts[name]
        pools = pools_of(reading, name, counts, lines)
        groups.setdefault(_Alike(agent, NodeStart(start), reason, pools), []).append(name)
    found = []
    for alike, members in groups.items():
        try:
            kind, gpus = gpu_summary(alike.pools)
        except ValueError as error:
            reading.blame(row.place_of("gres"), str(error))
            continue
        block = NodeBlock(
            **common,
            names=format_hostlist(members) if len(members) > 1 else members[0],
            agent=alike.agent,
            start=alike.start,
            reason=alike.reason,
            gres=alike.pools,
            gpu_kind=kind,
            gpus=gpus,
            address=_listed([addresses[name] for name in members], members),
            port=_listed([ports[name] for name in members], members),
            others=row.others,
        )
        found.append(PlacedBlock(block, row.place))
    return found


_EACH = ("names", "agent", "start", "reason", "gres", "gpus", "address", "port")
"""Fields that nodes of one line may differ in."""


def _common(reading: Reading, row: Row) -> dict[str, Any]:
    """Return the fields that all nodes of a line have in common."""
    values = row.values
    common = {key: values.get(key, default) for key, default in defaults_of(NODE_KEYS).items()}
    for key in _EACH:
        common.pop(key, None)
    if "sockets_per_board" in values:
        if "sockets" in values:
            reading.blame(row.place, "it takes either Sockets or SocketsPerBoard")
        common["sockets"] = common["boards"] * values["sockets_per_board"]
    try:
        common["cpus"], common["sockets"] = cpu_shape(
            cpus=common["cpus"],
            boards=common["boards"],
            sockets=common["sockets"],
            cores_per_socket=common["cores_per_socket"],
            threads=common["threads_per_core"],
        )
    except ValueError as error:
        reading.blame(row.place, str(error))
        return {**common, "cpus": 1, "sockets": 1}
    cores = common["sockets"] * common["cores_per_socket"]
    if common["core_spec_count"] >= cores:
        sentence = f"CoreSpecCount is {common['core_spec_count']}; the node has {cores} cores"
        reading.blame(row.place_of("core_spec_count"), sentence)
    if common["memory_spec_mib"] >= common["memory_mib"]:
        sentence = f"MemSpecLimit is not below RealMemory, which is {common['memory_mib']}"
        reading.blame(row.place_of("memory_spec_mib"), sentence)
    return common


def _each(
    reading: Reading,
    row: Row,
    field: str,
    parameter: str,
    names: Sequence[str],
    default: Sequence[str],
) -> dict[str, str]:
    """Return what a list says for each node: as many items as nodes, or one for all."""
    if field not in row.values:
        return dict(zip(names, default, strict=True))
    try:
        items = expand_list(_unbracketed(row.values[field]))
    except ValueError as error:
        reading.blame(row.place_of(field), f"{parameter}: {error}")
        items = ("",)
    if len(items) == 1:
        items = items * len(names)
    if len(items) != len(names):
        sentence = f"{parameter} has {len(items)} items for {len(names)} nodes"
        reading.blame(row.place_of(field), sentence)
        items = tuple(names)
    return dict(zip(names, items, strict=True))


def _unbracketed(text: str) -> str:
    """Return a list of bare numbers as a list with a bracket."""
    return (
        text
        if "[" in text or not text.replace("-", "").replace(",", "").isdigit()
        else (f"[{text}]")
    )


def _listed(items: Sequence[str], names: Sequence[str]) -> str:
    """Return one item for all, or a list; empty when each is the node's own name."""
    if list(items) == list(names):
        return ""
    return items[0] if len(set(items)) == 1 else ",".join(items)
