"""A sorted list that is put in order when it is read.

Ids and times mostly come in ascending order, are often gone before anyone reads them, and are read
in slices. So coming is an append and going a count; a reader sorts what came since the last one,
and steps over what is gone. Measured on a replay of jobs, a list kept sorted at every change took
a third of the time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Any, Generic, Protocol, TypeVar

__all__ = ["LazySorted", "Sortable"]


class Sortable(Protocol):
    """What has an order."""

    def __lt__(self, other: Any, /) -> bool: ...


T = TypeVar("T", bound=Sortable)

_SWEEP_MIN = 1_000
"""Items that are gone and may be left in the list, however short it is."""


class LazySorted(Generic[T]):
    """Items in order; `holds` says of each whether it is still there.

    The owner says what comes and how much goes, and `holds` answers from what the owner knows. An
    item that went and comes back may be in the list twice; readers see it once.
    """

    __slots__ = ("_came", "_gone", "_holds", "_items", "_start")

    def __init__(self, holds: Callable[[T], bool]) -> None:
        self._holds = holds
        #: Sorted, from `_start` on; some are gone, some are there twice.
        self._items: list[T] = []
        self._start = 0
        #: What came since the last reading.
        self._came: list[T] = []
        #: How many in both lists are gone.
        self._gone = 0

    def __len__(self) -> int:
        return len(self._items) - self._start + len(self._came) - self._gone

    def add(self, item: T) -> None:
        """Take an item that is not there."""
        self._came.append(item)

    def remove(self) -> None:
        """Count one item as gone; `holds` knows which."""
        self._gone += 1

    def walk(self, after: T | None = None) -> Iterator[T]:
        """Yield what is there, in order, from the first or from above `after` on.

        The owner must not change meanwhile.
        """
        self._tidy()
        items, holds = self._items, self._holds
        first = self._start if after is None else bisect_right(items, after, self._start)
        last: T | None = None
        for place in range(first, len(items)):
            item = items[place]
            if item != last and holds(item):
                last = item
                yield item

    def _tidy(self) -> None:
        """Sort in what came, and drop what is gone where that is cheap or overdue."""
        items, came, holds = self._items, self._came, self._holds
        if came:
            if self._start:
                del items[: self._start]
                self._start = 0
            came.sort()
            is_above = not items or items[-1] < came[0]
            items += came
            came.clear()
            if not is_above:
                items.sort()
        while self._start < len(items) and not holds(items[self._start]):
            self._start += 1
            self._gone -= 1
        if self._gone > max(_SWEEP_MIN, len(items) // 2):
            self._items = [item for item in dict.fromkeys(items[self._start :]) if holds(item)]
            self._start = 0
            self._gone = 0
