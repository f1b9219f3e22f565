"""Declaring an event: one class, one row of the registry.

    @event("job.held", version=1)
    class JobHeld(Event):
        job_id: JobId

Payloads are arrays: order is the format. A released class never changes; an appended field is a
new version, and the old class moves to `upcasts.py` with one function (ADR-0003).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import msgspec

__all__ = ["EVENTS", "IGNORABLE", "Event", "EventType", "event", "event_type_of"]

IGNORABLE = 1
"""Flag bit: a reader that does not know the event may step over it; it touches no table."""


class Event(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """Base of every event payload."""


E = TypeVar("E", bound=type[Event])


@dataclass(frozen=True, kw_only=True, slots=True)
class EventType:
    """What the registry knows of one declared event."""

    name: str
    version: int
    flags: int
    cls: type[Event]


EVENTS: dict[str, EventType] = {}
"""Current version of every event, by stored name."""

_BY_CLASS: dict[type[Event], EventType] = {}


def event(name: str, *, version: int = 1, ignorable: bool = False) -> Callable[[E], E]:
    """Register a class as the current version of the named event.

    Raises: ValueError when the name is declared twice.
    """

    def register(cls: E) -> E:
        if name in EVENTS:
            raise ValueError(f"event {name!r} is declared twice")
        row = EventType(name=name, version=version, flags=IGNORABLE if ignorable else 0, cls=cls)
        EVENTS[name] = row
        _BY_CLASS[cls] = row
        return cls

    return register


def event_type_of(cls: type[Event]) -> EventType:
    """Return the registry's row of a declared event class."""
    return _BY_CLASS[cls]
