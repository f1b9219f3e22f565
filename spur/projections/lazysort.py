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
"""Items that are gone and may be left in the lists, however short these are."""

_RECENT_MAX = 2_000
"""Items that may lie beside the long list before they are sorted into it, which takes a few
milliseconds for a hundred thousand."""


_UNREAD_MAX = 4_096
"""Items that may go before the lists are looked through, though nobody reads them."""


class LazySorted(Generic[T]):
    """Items in order; `holds` says of each whether it is still there.

    The owner says what comes and how much goes, and `holds` answers from what the owner knows. An
    item that went and comes back may be listed twice; readers see it once.
    """

    __slots__ = ("_came", "_gone", "_holds", "_items", "_recent", "_start")

    def __init__(self, holds: Callable[[T], bool]) -> None:
        self._holds = holds
        #: Sorted, from `_start` on; some are gone, some are there twice.
        self._items: list[T] = []
        self._start = 0
        #: Sorted as well: what came too late to be put behind the items.
        self._recent: list[T] = []
        #: What came since the last reading.
        self._came: list[T] = []
        #: How many in all lists are gone.
        self._gone = 0

    def __len__(self) -> int:
        listed = len(self._items) - self._start + len(self._recent) + len(self._came)
        return listed - self._gone

    def add(self, item: T) -> None:
        """Take an item that is not there."""
        self._came.append(item)

    def remove(self) -> None:
        """Count one item as gone; `holds` knows which, from before this call on."""
        self._gone += 1
        if not self._gone % _UNREAD_MAX:
            self._tidy()

    def walk(self, after: T | None = None) -> Iterator[T]:
        """Yield what is there, in order, from the first or from above `after` on.

        The owner must not change meanwhile.
        """
        self._tidy()
        items, recent, holds = self._items, self._recent, self._holds
        first = self._start if after is None else bisect_right(items, after, self._start)
        other = 0 if after is None else bisect_right(recent, after)
        last: T | None = None
        while other < len(recent):
            if first == len(items) or recent[other] < items[first]:
                item = recent[other]
                other += 1
            else:
                item = items[first]
                first += 1
            if item != last and holds(item):
                last = item
                yield item
        for place in range(first, len(items)):
            item = items[place]
            if item != last and holds(item):
                last = item
                yield item

    def _tidy(self) -> None:
        """Sort in what came, and drop what is gone where that is cheap or overdue."""
        if self._came:
            self._sort_in()
        items, recent, holds = self._items, self._recent, self._holds
        while self._start < len(items) and not holds(items[self._start]):
            self._start += 1
            self._gone -= 1
        if self._start > max(_SWEEP_MIN, len(items) // 2):
            del items[: self._start]
            self._start = 0
        dead = 0
        while dead < len(recent) and not holds(recent[dead]):
            dead += 1
        del recent[:dead]
        self._gone -= dead
        if self._gone > max(_SWEEP_MIN, (len(items) - self._start + len(recent)) // 2):
            listed = sorted(dict.fromkeys(items[self._start :] + recent))
            self._items = [item for item in listed if holds(item)]
            self._start = self._gone = 0
            recent.clear()

    def _sort_in(self) -> None:
        """Put what came behind the items, or beside them for a while."""
        items, recent, came = self._items, self._recent, self._came
        came.sort()
        if not items or items[-1] < came[0]:
            items += came
        else:
            recent += came
            recent.sort()
            if len(recent) > _RECENT_MAX:
                del items[: self._start]
                self._start = 0
                items += recent
                items.sort()
                recent.clear()
        came.clear()
