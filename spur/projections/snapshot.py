"""Snapshot: the tables in chunks, out and in again.

Rows go in order of their keys, so the same state gives the same bytes on every replica. A
snapshot stands for committed entries alone; the manifest that describes it is the consensus
room's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import msgspec

from spur.projections.state import State
from spur.values.errors import SpurError

__all__ = ["Position", "UnreadableSnapshot", "dump", "load", "position_of", "table_versions"]

_ENCODE = msgspec.msgpack.Encoder().encode


class UnreadableSnapshot(SpurError):
    """A snapshot that this release cannot read; the state is rebuilt from the log instead."""


class Position(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """How far along the log a state is."""

    index: int
    term: int
    chain: bytes
    time_ns: int


def position_of(state: State) -> Position:
    """Return how far along the log the state is."""
    return Position(state.index, state.term, state.chain, state.time_ns)


def table_versions(state: State) -> tuple[tuple[str, int], ...]:
    """Return each table's name and version, for the manifest."""
    return tuple((table.name, table.version) for table in state.tables())


def dump(state: State, rows_per_chunk: int) -> Iterator[tuple[str, bytes]]:
    """Yield every row as (table name, chunk), tables in order, at most so many rows a chunk.

    The state must not change before the last chunk was taken.

    Raises: ValueError when some entry may still be undone.
    """
    if state.undo:
        raise ValueError(f"entries from {state.undo[0].index} on are not committed")
    for table in state.tables():
        rows = table.rows
        keys = iter(table.sorted_keys())
        while chunk := [(key, rows[key]) for key in islice(keys, rows_per_chunk)]:
            yield table.name, _ENCODE(chunk)


def load(
    position: Position,
    versions: Mapping[str, int],
    chunks: Iterable[tuple[str, bytes]],
) -> State:
    """Return the state that was dumped in these chunks.

    Raises: UnreadableSnapshot for a table, a table version or a row that this release lacks.
    """
    state = State()
    tables = {table.name: table for table in state.tables()}
    for name, version in versions.items():
        if name not in tables or tables[name].version != version:
            raise UnreadableSnapshot(f"table {name!r} version {version} is not known")
    collected: dict[str, dict[Any, Any]] = {name: {} for name in tables}
    decoders = {
        name: msgspec.msgpack.Decoder(list[tuple[table.key_type, table.row_type]])  # type: ignore[name-defined]  # types made at run time
        for name, table in tables.items()
    }
    for name, data in chunks:
        if name not in decoders:
            raise UnreadableSnapshot(f"table {name!r} is not known")
        try:
            rows = decoders[name].decode(data)
        except msgspec.MsgspecError as error:
            raise UnreadableSnapshot(f"a row of table {name!r} cannot be read: {error}") from error
        collected[name].update(rows)
    for name, table in tables.items():
        table.fill(collected[name])
    state.index = position.index
    state.term = position.term
    state.chain = position.chain
    state.time_ns = position.time_ns
    return state
