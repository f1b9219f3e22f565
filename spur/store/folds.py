"""Events into rows: what each event writes into the read model.

    @folds(JobHeld)
    def fold_job_held(rows: Rows, at: At, event: JobHeld) -> None: ...

An arm reads nothing but its arguments: the same log makes the same rows, in batches of any size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from spur.events.declare import Event
from spur.events.envelope import Actor
from spur.events.jobs import ArrayThrottled, JobReasonsStated, JobTasksSplit
from spur.projections.apply import At
from spur.store.rows import Rows

__all__ = ["FOLDS", "fold_event", "folds", "jobs_of", "person"]

Arm = Callable[[Rows, At, Any], None]

FOLDS: dict[type[Event], Arm] = {}
"""The arm of every event that writes a row."""

A = TypeVar("A", bound=Arm)


def folds(cls: type[Event]) -> Callable[[A], A]:
    """Register the arm that writes what an event says."""

    def register(arm: A) -> A:
        if cls in FOLDS:
            raise ValueError(f"{cls.__name__} is folded twice")
        FOLDS[cls] = arm
        return arm

    return register


def person(actor: Actor) -> int | None:
    """Return the uid of a user who asked; None when it was the cluster itself."""
    return None if actor.host_role == "cluster" else actor.uid


def fold_event(rows: Rows, at: At, event: Event) -> None:
    """Write what an event says, and note it in the story of each job that it is about."""
    arm = FOLDS.get(type(event))
    if arm is not None:
        arm(rows, at, event)
    for job_id in jobs_of(event):
        rows.note_event(job_id, at.index, at.position)


def jobs_of(event: Event) -> Iterator[int]:
    """Yield the jobs that an event is about, each once."""
    if isinstance(event, JobReasonsStated):
        yield from dict.fromkeys(single.job_id for single in event.jobs)
        return
    if isinstance(event, JobTasksSplit):
        yield event.from_id
    job_id = event.array_id if isinstance(event, ArrayThrottled) else getattr(event, "job_id", 0)
    if job_id:
        yield job_id
