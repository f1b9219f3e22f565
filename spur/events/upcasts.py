"""Old versions of events and the functions that bring them one version on.

    class JobHeldV1(Event):
        job_id: JobId

    @upcast("job.held", version=1, since=1, old=JobHeldV1, defaults={"reason": ""})
    def job_held_2(old: JobHeldV1) -> JobHeld: ...

An old class keeps the shape that was released and moves here from its subject's file when a field
is appended. The default of an appended field stands in `schema.lock`, so that it cannot be changed
later either. Era 0 has released nothing yet, so the table is empty.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from spur.events.declare import Event, check_storable

__all__ = ["UPCASTS", "Upcast", "upcast"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Upcast:
    """One step of one event, from `version` to the next."""

    name: str
    version: int
    since: int
    """The `cluster.version` from which the old version was written."""
    old: type[Event]
    defaults: tuple[tuple[str, Any], ...]
    """Field and value that the step gives to what the old version did not hold."""
    to_next: Callable[[Any], Event]


UPCASTS: dict[tuple[str, int], Upcast] = {}
"""Steps by (event's name, version that they start from)."""


def upcast(
    name: str,
    *,
    version: int,
    since: int,
    old: type[Event],
    defaults: dict[str, Any],
    registry: dict[tuple[str, int], Upcast] = UPCASTS,
) -> Callable[[Callable[[Any], Event]], Callable[[Any], Event]]:
    """Register a function that turns the old class into the next version's."""

    def register(to_next: Callable[[Any], Event]) -> Callable[[Any], Event]:
        if (name, version) in registry:
            raise ValueError(f"event {name!r} version {version} is upcast twice")
        check_storable(name, old)
        registry[name, version] = Upcast(
            name=name,
            version=version,
            since=since,
            old=old,
            defaults=tuple(sorted(defaults.items())),
            to_next=to_next,
        )
        return to_next

    return register
