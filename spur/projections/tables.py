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
from collections.abc import Callable, Iterator
from typing import Any, Generic, Protocol, TypeVar

import msgspec
from sortedcontainers import SortedList

__all__ = ["Group", "Index", "Journal", "Ordered", "Table"]

K = TypeVar("K", int, str, bytes, tuple[Any, ...])
R = TypeVar("R", bound=msgspec.Struct)

_MASK = (1 << 256) - 1
_ENCODER = msgspec.msgpack.Encoder()


class Index(Protocol):
    """A declared pure function of (key, row), kept by the table."""

    def change(self, key: Any, old: Any, new: Any) -> None: ...

    def clear(self) -> None: ...


class Group(Generic[K, R]):
    """Keys by a value of their row; read in key order."""

    def __init__(self, of: Callable[[K, R], Any]) -> None:
        self._of = of
        self._groups: dict[Any, set[K]] = {}

    def change(self, key: K, old: R | None, new: R | None) -> None:
        before = None if old is None else self._of(key, old)
        after = None if new is None else self._of(key, new)
        if before == after:
            return
        if before is not None:
            group = self._groups[before]
            group.discard(key)
            if not group:
                del self._groups[before]
        if after is not None:
            self._groups.setdefault(after, set()).add(key)

    def clear(self) -> None:
        self._groups.clear()

    def keys(self, value: Any) -> list[K]:
        """Return the keys whose row has this value, in order."""
        return sorted(self._groups.get(value, ()))

    def count(self, value: Any) -> int:
        """Return how many rows have this value."""
        return len(self._groups.get(value, ()))

    def values(self) -> list[Any]:
        """Return the values that some row has, in order."""
        return sorted(self._groups)


class Ordered(Generic[K, R]):
    """Keys in the order of a value of their row; rows whose value is None are left out."""

    def __init__(self, of: Callable[[K, R], Any]) -> None:
        self._of = of
        self._list: SortedList[tuple[Any, K]] = SortedList()

    def change(self, key: K, old: R | None, new: R | None) -> None:
        before = None if old is None else self._of(key, old)
        after = None if new is None else self._of(key, new)
        if before == after:
            return
        if before is not None:
            self._list.remove((before, key))
        if after is not None:
            self._list.add((after, key))

    def clear(self) -> None:
        self._list.clear()

    def up_to(self, value: Any) -> Iterator[K]:
        """Yield the keys whose value is at most this one, smallest first."""
        for found, key in self._list:
            if found > value:
                return
            yield key

    def first(self) -> tuple[Any, K] | None:
        """Return the smallest (value, key), or None when no row has a value."""
        return self._list[0] if self._list else None

    def __len__(self) -> int:
        return len(self._list)


Undo = list[tuple["Table[Any, Any]", Any, Any]]


class Journal:
    """Former values of everything that one open entry writes; None when nothing is open."""

    __slots__ = ("open",)

    def __init__(self) -> None:
        self.open: Undo | None = None


class Table(Generic[K, R]):
    """Rows of one type by key. Rows are frozen; a change replaces the row."""

    def __init__(
        self, name: str, key: Any, row: type[R], journal: Journal, *indexes: Index
    ) -> None:
        self.name = name
        self.key_type = key
        self.row_type = row
        self.rows: dict[K, R] = {}
        self._journal = journal
        self._indexes = indexes
        self._sum = 0
        self._unsettled: dict[K, R | None] = {}

    # -- reading
    def get(self, key: K) -> R | None:
        return self.rows.get(key)

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
        self._change(key, row)

    def delete(self, key: K) -> None:
        """Remove a row. Raises: KeyError when there is none."""
        if key not in self.rows:
            raise KeyError(key)
        self._change(key, None)

    def _change(self, key: K, row: R | None) -> None:
        old = self.rows.get(key)
        undo = self._journal.open
        if undo is not None:
            undo.append((self, key, old))
        self.restore(key, row)

    def restore(self, key: K, row: R | None) -> None:
        """Set a row without noting its former value (undo, loading); None removes it."""
        rows = self.rows
        old = rows.get(key)
        if key not in self._unsettled:
            self._unsettled[key] = old
        for index in self._indexes:
            index.change(key, old, row)
        if row is None:
            rows.pop(key, None)
        else:
            rows[key] = row

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

    def _hash(self, key: K, row: R) -> int:
        data = _ENCODER.encode((self.name, key, row))
        return int.from_bytes(hashlib.sha256(data).digest(), "big")

    # -- indexes
    def reindexed(self) -> list[Index]:
        """Return this table's indexes, for the invariant that compares them with fresh ones."""
        return list(self._indexes)
