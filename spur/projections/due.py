"""Due: what has fallen due by now. Nothing happens by itself (LOG-CONTRACT 4.2).

    @falls_due
    def purges(state: State, now_ns: int, limit: int) -> Iterable[Due]: ...

A source yields at most `limit` items whose time has come, oldest first. The clock command turns
the oldest of all sources into events; no other way leads from time to state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from spur.events.declare import Event
from spur.values.limits import TICK_EVENTS_MAX

if TYPE_CHECKING:
    from spur.projections.state import State

__all__ = ["DUE_SOURCES", "Due", "due", "falls_due", "next_due_ns"]

_NEVER_NS = (1 << 63) - 1


class Due(msgspec.Struct, frozen=True, gc=False):
    """One consequence of time."""

    time_ns: int
    """When it fell due."""
    table: str
    key: Any
    """The row that it is about; one row has one consequence in an entry, the oldest."""
    events: tuple[Event, ...]


Source = Callable[[Any, int, int], Iterable[Due]]

DUE_SOURCES: list[Source] = []

S = TypeVar("S", bound=Source)


def falls_due(source: S) -> S:
    """Register a source of consequences of time."""
    DUE_SOURCES.append(source)
    return source


def due(state: State, now_ns: int, *, limit: int = TICK_EVENTS_MAX) -> list[Due]:
    """Return what has fallen due, oldest first, with at most `limit` events in all.

    The oldest is always there, however many events it is. A row appears once: what else it has
    due is judged again on the state that follows.
    """
    found = [item for source in DUE_SOURCES for item in source(state, now_ns, limit)]
    found.sort(key=lambda item: item.time_ns)
    chosen: list[Due] = []
    rows: set[tuple[str, Any]] = set()
    room = limit
    for item in found:
        if (item.table, item.key) in rows:
            continue
        if chosen and len(item.events) > room:
            break
        rows.add((item.table, item.key))
        room -= len(item.events)
        chosen.append(item)
    return chosen


def next_due_ns(state: State) -> int | None:
    """Return when the next thing falls due, which may be past; None when nothing ever will."""
    times = [item.time_ns for source in DUE_SOURCES for item in source(state, _NEVER_NS, 1)]
    return min(times, default=None)
