"""Secondary indexes: pure functions of a row, kept by the table they belong to.

They are told of every change, undo included, and hold nothing that their table's rows do not say.
So `fresh` plus one pass over the rows must give the same `contents`, which the invariant
"indexes-match-their-rows" checks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from spur.projections.lazysort import LazySorted, Sortable

__all__ = [
    "Counts",
    "Group",
    "Groups",
    "Index",
    "Oldest",
    "Ordered",
    "SortedGroup",
    "SortedKeys",
    "Spread",
]


K = TypeVar("K", bound=Sortable)
R = TypeVar("R", bound=msgspec.Struct)


class Index(Protocol):
    """A declared pure function of (key, row). A change that raises has changed nothing."""

    def change(self, key: Any, old: Any, new: Any) -> None:
        """Follow one row from its old to its new value; None stands for no row."""
        ...

    def fill(self, rows: Mapping[Any, Any]) -> None:
        """Follow every row of a table at once; the index must be empty."""
        ...

    def fresh(self) -> Index:
        """Return an empty index of the same declaration."""
        ...

    def contents(self) -> object:
        """Return what the index holds, in a form that compares equal for equal indexes."""
        ...


class Group(Generic[K, R]):
    """Keys by a value of their row; read in key order. Rows whose value is None are left out."""

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
            group_or_none = self._groups.get(after)
            if group_or_none is None:
                self._groups[after] = {key}
            else:
                group_or_none.add(key)

    def fill(self, rows: Mapping[K, R]) -> None:
        for key, row in rows.items():
            self.change(key, None, row)

    def fresh(self) -> Group[K, R]:
        return Group(self._of)

    def contents(self) -> object:
        return self._groups

    def keys(self, value: Any) -> list[K]:
        """Return the keys whose row has this value, in order."""
        return sorted(self._groups.get(value, ()))

    def count(self, value: Any) -> int:
        """Return how many rows have this value."""
        return len(self._groups.get(value, ()))

    def values(self) -> list[Any]:
        """Return the values that some row has, in order."""
        return sorted(self._groups)


class Groups(Generic[K, R]):
    """Keys by each of several values of their row; read in key order."""

    def __init__(self, of: Callable[[K, R], Iterable[Any]]) -> None:
        self._of = of
        self._groups: dict[Any, set[K]] = {}

    def change(self, key: K, old: R | None, new: R | None) -> None:
        before = () if old is None else tuple(self._of(key, old))
        after = () if new is None else tuple(self._of(key, new))
        if before == after:
            return
        for value in before:
            group = self._groups[value]
            group.discard(key)
            if not group:
                del self._groups[value]
        for value in after:
            self._groups.setdefault(value, set()).add(key)

    def fill(self, rows: Mapping[K, R]) -> None:
        for key, row in rows.items():
            self.change(key, None, row)

    def fresh(self) -> Groups[K, R]:
        return Groups(self._of)

    def contents(self) -> object:
        return self._groups

    def keys(self, value: Any) -> list[K]:
        """Return the keys whose row has this value, in order."""
        return sorted(self._groups.get(value, ()))

    def values(self) -> Set[Any]:
        """Return every value that some row has."""
        return self._groups.keys()


class Counts(Generic[K, R]):
    """How many rows have a value; each row has any number of values."""

    def __init__(self, of: Callable[[K, R], Iterable[Any]]) -> None:
        self._of = of
        self._counts: dict[Any, int] = {}

    def change(self, key: K, old: R | None, new: R | None) -> None:
        before = () if old is None else tuple(self._of(key, old))
        after = () if new is None else tuple(self._of(key, new))
        if before == after:
            return
        counts = self._counts
        for value in after:
            counts[value] = counts.get(value, 0) + 1
        for value in before:
            if counts[value] == 1:
                del counts[value]
            else:
                counts[value] -= 1

    def fill(self, rows: Mapping[K, R]) -> None:
        for key, row in rows.items():
            self.change(key, None, row)

    def fresh(self) -> Counts[K, R]:
        return Counts(self._of)

    def contents(self) -> object:
        return self._counts

    def values(self) -> Set[Any]:
        """Return every value that some row has."""
        return self._counts.keys()


class Spread(Generic[K, R]):
    """The one key that claims a value; each row claims any number of values.

    A value claimed by two rows is refused, so the state never holds such rows.
    """

    def __init__(self, of: Callable[[K, R], Iterable[Any]]) -> None:
        self._of = of
        self._claims: dict[Any, K] = {}

    def change(self, key: K, old: R | None, new: R | None) -> None:
        claims = self._claims
        after = () if new is None else tuple(self._of(key, new))
        for value in after:
            if claims.get(value, key) != key:
                raise ValueError(f"{value!r} is claimed by {claims[value]!r} and {key!r}")
        if old is not None:
            for value in self._of(key, old):
                del claims[value]
        for value in after:
            claims[value] = key

    def fill(self, rows: Mapping[K, R]) -> None:
        for key, row in rows.items():
            self.change(key, None, row)

    def fresh(self) -> Spread[K, R]:
        return Spread(self._of)

    def contents(self) -> object:
        return self._claims

    def key(self, value: Any) -> K | None:
        """Return the key that claims the value, or None."""
        return self._claims.get(value)

    def values(self) -> list[Any]:
        """Return every claimed value, in order."""
        return sorted(self._claims)

    def __len__(self) -> int:
        return len(self._claims)


class Ordered(Generic[K, R]):
    """Keys in the order of a value of their row; rows whose value is None are left out."""

    def __init__(self, of: Callable[[K, R], Any]) -> None:
        self._of = of
        self._values: dict[K, Any] = {}
        self._pairs: LazySorted[tuple[Any, K]] = LazySorted(self._holds)

    def _holds(self, pair: tuple[Any, K]) -> bool:
        return bool(self._values.get(pair[1]) == pair[0])

    def change(self, key: K, old: R | None, new: R | None) -> None:
        before = self._values.get(key)
        after = None if new is None else self._of(key, new)
        if before == after:
            return
        if before is not None:
            del self._values[key]
            self._pairs.remove()
        if after is not None:
            self._values[key] = after
            self._pairs.add((after, key))

    def fill(self, rows: Mapping[K, R]) -> None:
        for key, row in rows.items():
            self.change(key, None, row)

    def fresh(self) -> Ordered[K, R]:
        return Ordered(self._of)

    def contents(self) -> object:
        return list(self._pairs.walk())

    def up_to(self, value: Any) -> Iterator[K]:
        """Yield the keys whose value is at most this one, smallest first."""
        for found, key in self._pairs.walk():
            if found > value:
                return
            yield key

    def first(self) -> tuple[Any, K] | None:
        """Return the smallest (value, key), or None when no row has a value."""
        return next(self._pairs.walk(), None)

    def __len__(self) -> int:
        return len(self._values)


class Oldest(Generic[K, R]):
    """Keys in the order of a number that each new row has higher than all before it.

    Rows come at the high end and go at the low end; their undo does the reverse. All four are
    constant in time, which a sorted list is not. Anything else is refused.
    """

    def __init__(self, of: Callable[[K, R], int]) -> None:
        self._of = of
        self._queue: deque[tuple[int, K]] = deque()

    def change(self, key: K, old: R | None, new: R | None) -> None:
        queue = self._queue
        if old is None and new is not None:
            pair = (self._of(key, new), key)
            if not queue or pair > queue[-1]:
                queue.append(pair)
            elif pair < queue[0]:
                queue.appendleft(pair)
            else:
                raise ValueError(f"{key!r} would come between older and newer rows")
        elif old is not None and new is None:
            pair = (self._of(key, old), key)
            if queue[0] == pair:
                queue.popleft()
            elif queue[-1] == pair:
                queue.pop()
            else:
                raise ValueError(f"{key!r} is neither the oldest nor the newest row")
        elif old is not None and new is not None and self._of(key, old) != self._of(key, new):
            raise ValueError(f"{key!r} would change its place among older and newer rows")

    def fill(self, rows: Mapping[K, R]) -> None:
        self._queue = deque(sorted((self._of(key, row), key) for key, row in rows.items()))

    def fresh(self) -> Oldest[K, R]:
        return Oldest(self._of)

    def contents(self) -> object:
        return list(self._queue)

    def first(self) -> tuple[int, K] | None:
        """Return the smallest (number, key), or None when there is no row."""
        return self._queue[0] if self._queue else None


class SortedKeys(Generic[K, R]):
    """Every key of the table, to be walked in order from any point on."""

    def __init__(self) -> None:
        self._known: set[K] = set()
        self._keys: LazySorted[K] = LazySorted(self._known.__contains__)

    def change(self, key: K, old: R | None, new: R | None) -> None:
        if old is None:
            if new is not None:
                self._known.add(key)
                self._keys.add(key)
        elif new is None:
            self._known.remove(key)
            self._keys.remove()

    def fill(self, rows: Mapping[K, R]) -> None:
        for key, row in rows.items():
            self.change(key, None, row)

    def fresh(self) -> SortedKeys[K, R]:
        return SortedKeys()

    def contents(self) -> object:
        return list(self._keys.walk())

    def after(self, key: K) -> Iterator[K]:
        """Yield the keys above this one, in order; the table must not change meanwhile."""
        return self._keys.walk(key)

    def __len__(self) -> int:
        return len(self._known)


class SortedGroup(Generic[K, R]):
    """Keys by a value of their row, each group to be walked in order from any point on.

    Unlike `Group` it does not sort a whole group at each reading; for groups of thousands that
    are read in slices. Rows whose value is None are left out.
    """

    def __init__(self, of: Callable[[K, R], Any]) -> None:
        self._of = of
        self._values: dict[K, Any] = {}
        self._groups: dict[Any, LazySorted[K]] = {}

    def change(self, key: K, old: R | None, new: R | None) -> None:
        before = self._values.get(key)
        after = None if new is None else self._of(key, new)
        if before == after:
            return
        if before is not None:
            del self._values[key]
            group = self._groups[before]
            group.remove()
            if not group:
                del self._groups[before]
        if after is not None:
            self._values[key] = after
            known = self._groups.get(after)
            if known is None:
                known = self._groups[after] = self._group(after)
            known.add(key)

    def _group(self, value: Any) -> LazySorted[K]:
        values = self._values
        return LazySorted(lambda key: bool(values.get(key) == value))

    def fill(self, rows: Mapping[K, R]) -> None:
        for key, row in rows.items():
            self.change(key, None, row)

    def fresh(self) -> SortedGroup[K, R]:
        return SortedGroup(self._of)

    def contents(self) -> object:
        return {value: list(group.walk()) for value, group in self._groups.items()}

    def after(self, value: Any, key: K) -> Iterator[K]:
        """Yield the keys of this group above the given one, in order."""
        group = self._groups.get(value)
        return iter(()) if group is None else group.walk(key)

    def count(self, value: Any) -> int:
        """Return how many rows have this value."""
        group = self._groups.get(value)
        return 0 if group is None else len(group)
