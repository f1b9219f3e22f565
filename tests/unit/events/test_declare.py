"""Declaring events: a class that could not be read strictly is refused at once."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NewType

import msgspec
import pytest

from spur.events.declare import (
    EVENTS,
    NEWEST_CLUSTER_VERSION,
    Event,
    EventType,
    Stored,
    check_storable,
    event,
    structs_within,
)

PotId = NewType("PotId", int)


class Shade(IntEnum):
    """An enumeration, which is stored as its value."""

    DARK = 0


class Part(Stored, frozen=True):
    """A nested struct."""

    shade: Shade | None
    marks: tuple[tuple[PotId, bytes], ...]


class Good(Event, frozen=True):
    """All that may be stored."""

    id: PotId
    name: str
    is_new: bool
    part: Part
    parts: tuple[Part, ...] | None


def test_all_types_of_the_log_may_be_stored() -> None:
    """Someone declares an event of every type that the contract lists."""
    events: dict[str, EventType] = {}
    event("pot.good", registry=events)(Good)
    assert events["pot.good"].cls is Good
    assert [struct.cls for struct in structs_within(Good)] == [Good, Part]


def declare(annotation: Any, *default: Any) -> type[Event]:
    """Return an event class with one field of this type, and perhaps a default."""
    fields = [("field", annotation, *default)]
    cls = msgspec.defstruct("Bad", fields, bases=(Event,), frozen=True)
    assert issubclass(cls, Event)
    return cls


class Loose(msgspec.Struct, frozen=True, array_like=True):
    """A nested struct that would take surplus elements."""

    colour: str


class Named(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A nested struct stored as a map."""

    colour: str


@pytest.mark.parametrize(
    "annotation", [float, list[int], dict[str, int], set[int], Any, Loose, Named]
)
def test_other_types_are_refused(annotation: Any) -> None:
    """A float, a list, a map or a lenient struct slips into an event."""
    with pytest.raises(ValueError, match=r"event 'pot\.bad'"):
        event("pot.bad", registry={})(declare(annotation))


def test_other_types_are_refused_inside_containers() -> None:
    """The float hides in a tuple of a nested struct."""
    with pytest.raises(ValueError, match="cannot hold"):
        check_storable("pot.bad", declare(tuple[tuple[int, float], ...]))


def test_defaults_are_refused() -> None:
    """A default would let a record with a missing element be read."""
    with pytest.raises(ValueError, match="must not have a default"):
        check_storable("pot.bad", declare(int, 3))


def test_a_name_is_declared_once() -> None:
    """Two files declare the same event."""
    events: dict[str, EventType] = {}
    event("pot.good", registry=events)(Good)
    with pytest.raises(ValueError, match="declared twice"):
        event("pot.good", registry=events)(Good)


def test_no_event_needs_a_version_that_this_release_does_not_know() -> None:
    """Someone raises `since` and forgets the release's own number."""
    assert {row.since for row in EVENTS.values()} <= set(range(1, NEWEST_CLUSTER_VERSION + 1))
