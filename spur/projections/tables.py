"""Tables: the only way state is written, with an undo journal and a running digest.

`put` and `delete` note the former value while an entry is open in the journal, so that a tail
above the commit index can be undone (LOG-CONTRACT 3.2). Secondary indexes are pure functions of a
row, kept by put, delete and their undo; they are in neither journal, snapshot nor digest.

The digest of a table is the sum mod 2^256 of SHA-256(table, key, row). A row that changes often
between two looks at the digest is hashed once: `put` only remembers what the sum still counts
(`_unsettled`), and `settle` brings the sum up to date in slices, so no look costs a long stall.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

import msgspec

from spur.events.lock import shape_hash, shape_text
from spur.projections.indexes import Index
from spur.projections.lazysort import Sortable

__all__ = ["Journal", "Row", "Table", "Undo", "replace_rows", "table_lines"]


class Row(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """Base of every row. A row that gains a field gets a new table version."""


K = TypeVar("K", bound=Sortable)
R = TypeVar("R", bound=msgspec.Struct)

_MASK = (1 << 256) - 1
_ENCODE = msgspec.msgpack.Encoder().encode

Undo = list[tuple["Table[Any, Any]", Any, Any]]


class Journal:
    """Former values of everything that one open entry writes; None when nothing is open."""

    __slots__ = ("open",)

    def __init__(self) -> None:
        self.open: Undo | None = None


class Table(Generic[K, R]):
    """Rows of one type by key. Rows are frozen; a change replaces the row."""

    __slots__ = (
        "_changes",
        "_indexes",
        "_journal",
        "_share",
        "_sum",
        "_unsettled",
        "get",
        "key_type",
        "name",
        "row_type",
        "rows",
        "version",
    )

    def __init__(
        self,
        name: str,
        key: Any,
        row: type[R],
        journal: Journal,
        *indexes: Index,
        version: int = 1,
        share: Callable[[R], R] | None = None,
    ) -> None:
        """Make an empty table.

        `share` returns an equal row made of values that other rows have too; a snapshot's rows go
        through it, since each was decoded by itself.
        """
        self.name = name
        self.version = version
        self.key_type = key
        self.row_type = row
        self.rows: dict[K, R] = {}
        self.get = self.rows.get
        self._journal = journal
        self._indexes = indexes
        self._changes = tuple((place, index.change) for place, index in enumerate(indexes))
        self._share = share
        self._sum = 0
        self._unsettled: dict[K, R | None] = {}

    # -- reading
    def __getitem__(self, key: K) -> R:
        return self.rows[key]

    def __contains__(self, key: K) -> bool:
        return key in self.rows

    def __len__(self) -> int:
        return len(self.rows)

    def sorted_keys(self) -> list[K]:
        """Return every key in order; the order of the dict itself means nothing."""
        return sorted(self.rows)

    # -- writing
    def put(self, key: K, row: R) -> None:
        """Insert or replace a row."""
        old = self.rows.get(key)
        if self._indexes:
            self._reindex(key, old, row)
        undo = self._journal.open
        if undo is not None:
            undo.append((self, key, old))
        if key not in self._unsettled:
            self._unsettled[key] = old
        self.rows[key] = row

    def delete(self, key: K) -> None:
        """Remove a row. Raises: KeyError when there is none."""
        old = self.rows[key]
        if self._indexes:
            self._reindex(key, old, None)
        undo = self._journal.open
        if undo is not None:
            undo.append((self, key, old))
        if key not in self._unsettled:
            self._unsettled[key] = old
        del self.rows[key]

    def restore(self, key: K, row: R | None) -> None:
        """Set a row to its former value without noting this as a change; None removes it."""
        old = self.rows.get(key)
        if self._indexes:
            self._reindex(key, old, row)
        if key not in self._unsettled:
            self._unsettled[key] = old
        if row is None:
            self.rows.pop(key, None)
        else:
            self.rows[key] = row

    def fill(self, rows: dict[K, R]) -> None:
        """Take over the rows of a snapshot. The table must be empty."""
        if self.rows or self._unsettled or self._sum:
            raise ValueError(f"table {self.name!r} is not empty")
        if self._share is None:
            self.rows.update(rows)
        else:
            self.rows.update((key, self._share(row)) for key, row in rows.items())
        self._unsettled.update(dict.fromkeys(rows))
        for index in self._indexes:
            index.fill(self.rows)

    def _reindex(self, key: K, old: R | None, new: R | None) -> None:
        """Tell every index; when one refuses, take back what the ones before it did."""
        place = 0
        try:
            for place, change in self._changes:  # noqa: B007  # read when one refuses
                change(key, old, new)
        except Exception:
            for _, change in reversed(self._changes[:place]):
                change(key, new, old)
            raise

    # -- digest
    @property
    def unsettled(self) -> int:
        """How many rows the running sum does not count as they are now."""
        return len(self._unsettled)

    def settle(self, limit: int) -> int:
        """Bring at most `limit` rows into the running sum; return how many were."""
        done = 0
        total = self._sum
        unsettled, rows = self._unsettled, self.rows
        while unsettled and done < limit:
            key, counted = unsettled.popitem()
            now = rows.get(key)
            if now is not counted:
                if counted is not None:
                    total -= self._hash(key, counted)
                if now is not None:
                    total += self._hash(key, now)
            done += 1
        self._sum = total & _MASK
        return done

    def digest(self) -> bytes:
        """Return the table's digest, 32 bytes, settling what is left."""
        while self._unsettled:
            self.settle(len(self._unsettled))
        return self._sum.to_bytes(32, "big")

    def fresh_digest(self) -> bytes:
        """Return the digest summed anew over every row; the running one must equal it."""
        total = sum(self._hash(key, row) for key, row in self.rows.items())
        return (total & _MASK).to_bytes(32, "big")

    def _hash(self, key: K, row: R) -> int:
        data = _ENCODE((self.name, key, row))
        return int.from_bytes(hashlib.sha256(data).digest(), "big")

    # -- indexes
    def watch(self, index: Index) -> None:
        """Let one more index follow, from the present rows on."""
        index.fill(self.rows)
        self._indexes = (*self._indexes, index)
        self._changes = tuple((place, each.change) for place, each in enumerate(self._indexes))

    def indexes(self) -> tuple[Index, ...]:
        """Return this table's indexes, for the invariant that compares them with fresh ones."""
        return self._indexes


def replace_rows(table: Table[K, R], wanted: Mapping[K, R]) -> None:
    """Make these the table's rows. Rows that stay as they are, are no change."""
    for key in table.sorted_keys():
        if key not in wanted:
            table.delete(key)
    for key, row in wanted.items():
        if table.get(key) != row:
            table.put(key, row)


def table_lines(tables: Iterable[Table[Any, Any]]) -> list[str]:
    """Return the line of each table for the lock of shapes, in order of names.

    A table whose shape changes gets the next version.
    """
    return sorted(
        f"{table.name} {table.version} key={shape_text(table.key_type)} "
        f"row={_row_hash(table.row_type)}"
        for table in tables
    )


_ROW_HASHES: dict[type[msgspec.Struct], str] = {}
"""Hashes of the shapes of rows; working one out takes a millisecond."""


def _row_hash(row_type: type[msgspec.Struct]) -> str:
    """Return the hash of a row's shape."""
    known = _ROW_HASHES.get(row_type)
    if known is None:
        known = _ROW_HASHES[row_type] = shape_hash(row_type)
    return known
