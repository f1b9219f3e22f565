"""Declaring an event: one class, one row of the registry.

    @event("job.held", version=1)
    class JobHeld(Event):
        job_id: JobId

Payloads are arrays: order is the format. A released class never changes; an appended field is a
new version, and the old class moves to `upcasts.py` with one function (ADR-0003).

Strictness is msgspec's own: surplus elements are refused at every depth by
`forbid_unknown_fields`, and missing ones because no stored struct has defaults. `event` refuses a
class for which that would not hold, so the check costs the replay nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

__all__ = [
    "EVENTS",
    "IGNORABLE",
    "NEWEST_CLUSTER_VERSION",
    "Event",
    "EventType",
    "IgnoredEvent",
    "Stored",
    "check_storable",
    "event",
    "structs_within",
]

IGNORABLE = 1
"""Flag bit: a reader that does not know the event may step over it; it touches no table."""


class Stored(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """Base of every struct that lies inside an event; it may not have defaults."""


class Event(Stored, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """Base of every event payload."""


class IgnoredEvent(Event, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """What decoding yields for an ignorable event that this release does not know."""

    type: str
    version: int


@dataclass(frozen=True, kw_only=True, slots=True)
class EventType:
    """What the registry knows of one declared event."""

    name: str
    version: int
    flags: int
    since: int
    """The `cluster.version` from which this version may be written."""
    cls: type[Event]


EVENTS: dict[str, EventType] = {}
"""Current version of every event, by stored name."""

NEWEST_CLUSTER_VERSION = 1
"""The newest `cluster.version` whose events this release reads; no event's `since` is above."""

E = TypeVar("E", bound=type[Event])


def event(
    name: str,
    *,
    version: int = 1,
    since: int = 1,
    ignorable: bool = False,
    registry: dict[str, EventType] = EVENTS,
) -> Callable[[E], E]:
    """Register a class as the current version of the named event.

    Raises: ValueError when the name is declared twice, or when the class holds a type that cannot
    be stored strictly.
    """

    def register(cls: E) -> E:
        if name in registry:
            raise ValueError(f"event {name!r} is declared twice")
        check_storable(name, cls)
        row = EventType(
            name=name,
            version=version,
            flags=IGNORABLE if ignorable else 0,
            since=since,
            cls=cls,
        )
        registry[name] = row
        return cls

    return register


def structs_within(cls: type[msgspec.Struct]) -> Iterator[msgspec.inspect.StructType]:
    """Yield the struct itself and every struct reachable from its fields, each once."""
    found: dict[type, msgspec.inspect.StructType] = {}
    waiting: list[Any] = [msgspec.inspect.type_info(cls)]
    while waiting:
        info = waiting.pop()
        if isinstance(info, msgspec.inspect.StructType):
            if info.cls not in found:
                found[info.cls] = info
                waiting.extend(field.type for field in info.fields)
        elif isinstance(info, msgspec.inspect.UnionType):
            waiting.extend(info.types)
        elif isinstance(info, msgspec.inspect.TupleType):
            waiting.extend(info.item_types)
        elif isinstance(info, msgspec.inspect.VarTupleType):
            waiting.append(info.item_type)
    yield from found.values()


_SCALARS = (
    msgspec.inspect.IntType,
    msgspec.inspect.BoolType,
    msgspec.inspect.StrType,
    msgspec.inspect.BytesType,
    msgspec.inspect.NoneType,
    msgspec.inspect.EnumType,
    msgspec.inspect.LiteralType,
)


def check_storable(name: str, cls: type[msgspec.Struct]) -> None:
    """Raise ValueError unless every depth of the class is of the log's own few types.

    Source: LOG-CONTRACT 1.3.
    """
    for struct in structs_within(cls):
        config = struct.cls.__struct_config__
        where = f"event {name!r}: {struct.cls.__name__}"
        if not (config.frozen and config.array_like and config.forbid_unknown_fields):
            raise ValueError(f"{where} must be frozen, array_like and forbid unknown fields")
        for field in struct.fields:
            if not field.required:
                raise ValueError(f"{where}.{field.name} must not have a default")
            waiting: list[Any] = [field.type]
            while waiting:
                info = waiting.pop()
                if isinstance(info, msgspec.inspect.UnionType):
                    waiting.extend(info.types)
                elif isinstance(info, msgspec.inspect.TupleType):
                    waiting.extend(info.item_types)
                elif isinstance(info, msgspec.inspect.VarTupleType):
                    waiting.append(info.item_type)
                elif not isinstance(info, (*_SCALARS, msgspec.inspect.StructType)):
                    raise ValueError(f"{where}.{field.name} has a type that the log cannot hold")
