"""Generic resources of nodes: what NodeName lines count, and what gres.conf says of the devices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from spur.slurm.conflines import Line, Place
from spur.slurm.confreading import Reading, Row, table_of
from spur.slurm.grammar import GresCount
from spur.slurm.parameters_nodes import GRES_PARAMETERS
from spur.values.config import GresPool
from spur.values.hostlist import format_hostlist, parse_hostlist

__all__ = ["GresLine", "pools_of", "read_gres"]

_TABLE = table_of(GRES_PARAMETERS)


class GresLine(NamedTuple):
    """One line of gres.conf."""

    place: Place
    nodes: frozenset[str] | None
    """None for every node."""
    name: str
    kind: str
    devices: int
    files: tuple[str, ...]
    cores: str
    flags: tuple[str, ...]


def read_gres(reading: Reading, lines: Sequence[Line]) -> list[GresLine]:
    """Return the lines that describe devices. Source: gres.conf(5)."""
    found = []
    for line in lines:
        row = Row(line.place, "")
        first = line.pairs[0]
        values = row.values
        if not reading.fill(_TABLE, row, line.pairs, of=f"{first.key}={first.value}"):
            continue
        if "name" not in values:
            if values:
                reading.blame(line.place, "the line has no Name")
            continue
        files = values.get("files", ())
        count = values.get("count", len(files) or 1)
        if files and count != len(files):
            sentence = f"Count is {count}, and File names {len(files)} devices"
            reading.blame(line.place, sentence)
        nodes = values.get("nodes")
        found.append(
            GresLine(
                place=line.place,
                nodes=None if nodes is None else frozenset(parse_hostlist(nodes)),
                name=values["name"],
                kind=values.get("kind", ""),
                devices=count,
                files=files,
                cores=values.get("cores", ""),
                flags=values.get("flags", ()),
            )
        )
    return found


def pools_of(
    reading: Reading, node: str, counts: Sequence[GresCount], lines: Sequence[GresLine]
) -> tuple[GresPool, ...]:
    """Return the devices of one node.

    The NodeName line says how many there are; gres.conf tells which. Where the line names no type,
    those of gres.conf stand.
    """
    mine = [line for line in lines if line.nodes is None or node in line.nodes]
    pools: list[GresPool] = []
    for count in counts:
        fitting = [
            line
            for line in mine
            if line.name == count.name and (not count.kind or line.kind in ("", count.kind))
        ]
        available = sum(line.devices for line in fitting)
        if fitting and available < count.devices:
            what = f"{count.name}:{count.kind}" if count.kind else count.name
            reading.blame(
                fitting[0].place,
                f"node {node} has {count.devices} of {what} in slurm.conf and {available} here",
            )
        pools.extend(_pools(count, tuple(fitting)))
    return tuple(pool for pool in pools if pool.count)


@lru_cache(maxsize=64)
def _pools(count: GresCount, lines: tuple[GresLine, ...]) -> tuple[GresPool, ...]:
    """Return a pool for each type, the devices that are too many left out.

    The newest are remembered: most nodes of a cluster are alike.
    """
    kinds = [count.kind] if count.kind else list(dict.fromkeys(line.kind for line in lines)) or [""]
    pools, left = [], count.devices
    for kind in kinds:
        mine = [line for line in lines if count.kind or line.kind == kind]
        taken = min(left, sum(line.devices for line in mine)) if mine else left
        left -= taken
        files = [file for line in mine for file in line.files][:taken]
        pools.append(
            GresPool(
                name=count.name,
                kind=kind,
                count=taken,
                files=format_hostlist(files),
                cores=",".join(dict.fromkeys(line.cores for line in mine if line.cores)),
                flags=tuple(sorted({flag for line in mine for flag in line.flags})),
            )
        )
    return tuple(pools)
