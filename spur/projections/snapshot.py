"""Snapshot: the tables in chunks, out and in again.

The first chunk says where in the log the state stands and which tables follow. Rows go in order of
their keys, so the same state gives the same bytes on every replica. A snapshot stands for committed
entries alone; the manifest with the digests of the chunks is the consensus room's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import msgspec

from spur.projections.state import State
from spur.projections.tables import Table
from spur.values.errors import SpurError

__all__ = ["HEADER", "SnapshotHeader", "UnreadableSnapshot", "dump", "load"]

HEADER = "header"
"""What the first chunk is called."""

_ENCODE = msgspec.msgpack.Encoder().encode


class UnreadableSnapshot(SpurError):
    """A snapshot that this release cannot read; the state is rebuilt from the log instead."""


class SnapshotHeader(
    msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True
):
    """Where in the log a state stands, and the version of each of its tables."""

    index: int
    term: int
    chain: bytes
    time_ns: int
    tables: tuple[tuple[str, int], ...]


_HEADER = msgspec.msgpack.Decoder(SnapshotHeader)


def dump(state: State, rows_per_chunk: int) -> Iterator[tuple[str, bytes]]:
    """Yield the header, then every row, as (name, chunk), at most so many rows a chunk.

    The state must not change before the last chunk was taken.

    Raises: ValueError when some entry may still be undone.
    """
    if state.undo:
        raise ValueError(f"entries from {state.undo[0].index} on are not committed")
    header = SnapshotHeader(
        index=state.index,
        term=state.term,
        chain=state.chain,
        time_ns=state.time_ns,
        tables=tuple((table.name, table.version) for table in state.tables()),
    )
    yield HEADER, _ENCODE(header)
    for table in state.tables():
        rows = table.rows
        keys = iter(table.sorted_keys())
        while chunk := [(key, rows[key]) for key in islice(keys, rows_per_chunk)]:
            yield table.name, _ENCODE(chunk)


def load(chunks: Iterable[tuple[str, bytes]]) -> State:
    """Return the state that was dumped in these chunks.

    Raises: UnreadableSnapshot for a table, a table version or a row that this release lacks.
    """
    state = State()
    tables = {table.name: table for table in state.tables()}
    collected: dict[str, dict[Any, Any]] = {name: {} for name in tables}
    decoders: dict[str, msgspec.msgpack.Decoder[Any]] = {
        name: msgspec.msgpack.Decoder(list[tuple[table.key_type, table.row_type]])  # type: ignore[name-defined]  # made at run time
        for name, table in tables.items()
    }
    header: SnapshotHeader | None = None
    for name, data in chunks:
        try:
            if header is None:
                header = _HEADER.decode(data)
                _check_tables(header, tables)
            elif name not in decoders:
                raise UnreadableSnapshot(f"table {name!r} is not known")
            else:
                collected[name].update(decoders[name].decode(data))
        except msgspec.MsgspecError as error:
            raise UnreadableSnapshot(f"a row of {name!r} cannot be read: {error}") from error
    if header is None:
        raise UnreadableSnapshot("it has no header")
    for name, table in tables.items():
        table.fill(collected[name])
    state.index = header.index
    state.term = header.term
    state.chain = header.chain
    state.time_ns = header.time_ns
    return state


def _check_tables(header: SnapshotHeader, tables: dict[str, Table[Any, Any]]) -> None:
    """Refuse tables that are missing, unknown, or of another version."""
    known = {name: table.version for name, table in tables.items()}
    if dict(header.tables) != known:
        differing = sorted(set(header.tables) ^ set(known.items()))
        raise UnreadableSnapshot(f"its tables are not those of this release: {differing}")
