"""Apply: the one door through which the log becomes state.

    @applies(JobHeld)
    def apply_job_held(state: State, at: At, event: JobHeld) -> None: ...

Every replica and every replay runs the same arms on the same bytes, so an arm reads nothing but
its arguments, derives nothing from time, and writes only by `put` and `delete`. The arm of a
released version never changes; a fix is a new version of the event.

The leader applies as it appends: this is the trial. An entry that raises here is undone before
the exception leaves, so a trial that fails has changed nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from spur.events.codec import decode_envelope
from spur.events.declare import Event, IgnoredEvent
from spur.events.envelope import (
    Actor,
    AttachmentRef,
    Entry,
    EntryKind,
    Envelope,
    chain_next,
)
from spur.projections.membership import MembershipRow
from spur.projections.react import Effect, reactions_to
from spur.projections.requests import remember_request
from spur.projections.undo import UndoRecord, undo_writes
from spur.values.errors import SpurError
from spur.values.limits import ENTRY_ROW_CHANGES_MAX, LimitExceeded

if TYPE_CHECKING:
    from spur.projections.state import State

__all__ = ["APPLIERS", "Applied", "ApplyFailed", "At", "applies", "apply"]


class At(msgspec.Struct, frozen=True, gc=False):
    """Where in the log an event stands, and what its envelope says."""

    index: int
    position: int
    """Place among the entry's events, from 0. (incarnation, index, position) names the event."""
    time_ns: int
    actor: Actor
    attachments: tuple[AttachmentRef, ...]


class Applied(msgspec.Struct, frozen=True, gc=False):
    """What came of one entry."""

    envelope: Envelope | None
    """None for a no-op and for a membership."""
    events: tuple[Event, ...]
    effects: tuple[Effect, ...]
    """To be released when the entry commits, on the leader alone."""


class ApplyFailed(SpurError):
    """An entry that cannot be applied; the state is as it was before it.

    On the leader's trial the request is refused; for a committed entry the replica stops.
    """

    def __init__(self, index: int, why: str, limit: LimitExceeded | None = None) -> None:
        super().__init__(f"entry {index} cannot be applied: {why}")
        self.index = index
        self.why = why
        self.limit = limit
        """The named limit that the entry exceeds, which is the request's fault; else None."""

    def __reduce__(self) -> tuple[type[ApplyFailed], tuple[int, str, LimitExceeded | None]]:
        return (ApplyFailed, (self.index, self.why, self.limit))


Arm = Callable[[Any, At, Any], None]

APPLIERS: dict[type[Event], Arm] = {}
"""The arm of every declared event that is not ignorable."""

A = TypeVar("A", bound=Arm)


def applies(cls: type[Event]) -> Callable[[A], A]:
    """Register the arm that writes what an event says."""

    def register(arm: A) -> A:
        if cls in APPLIERS:
            raise ValueError(f"{cls.__name__} is applied twice")
        APPLIERS[cls] = arm
        return arm

    return register


def _ignore(state: Any, at: At, event: Any) -> None:
    """Touch nothing: the event is ignorable, and this release does not know it."""


APPLIERS[IgnoredEvent] = _ignore


def apply(state: State, entry: Entry, *, effects: bool = True) -> Applied:
    """Move the state on by one entry; return what it held and the effects that it owes.

    With `effects` off no reaction is asked: followers and replays release none.

    Raises: ApplyFailed, after undoing what the entry wrote; UnreadableRecord before it wrote.
    """
    index = entry.index
    if index != state.index + 1:
        raise ApplyFailed(index, f"the state is at {state.index}, so {state.index + 1} is next")
    kind = entry.kind
    envelope: Envelope | None = None
    events: tuple[Event, ...] = ()
    if kind == EntryKind.EVENTS:
        envelope, events = decode_envelope(entry.body, index)
    record = UndoRecord(index, state.term, state.chain, state.time_ns, [])
    journal = state.journal
    journal.open = record.writes
    try:
        if envelope is not None:
            _apply_envelope(state, index, envelope, events)
        elif kind == EntryKind.MEMBERSHIP:
            state.membership.put(1, MembershipRow(index, entry.body))
        elif kind != EntryKind.NOOP:
            raise ApplyFailed(index, f"no such kind of entry: {kind}")
        if entry.term < state.term:
            raise ApplyFailed(index, f"its term {entry.term} is below {state.term}")
    except Exception as error:
        journal.open = None
        undo_writes(record.writes)
        state.time_ns = record.time_ns
        if isinstance(error, ApplyFailed):
            raise
        limit = error if isinstance(error, LimitExceeded) else None
        raise ApplyFailed(index, f"{type(error).__name__}: {error}", limit) from error
    journal.open = None
    state.index = index
    state.term = entry.term
    state.chain = chain_next(record.chain, entry)
    state.undo.append(record)
    if not effects or envelope is None:
        return Applied(envelope, events, ())
    owed: list[Effect] = []
    for position, event in enumerate(events):
        if reactions := reactions_to(type(event)):
            at = At(index, position, envelope.time_ns, envelope.actor, envelope.attachments)
            for reaction in reactions:
                owed.extend(reaction(state, at, event))
    return Applied(envelope, events, tuple(owed))


def _apply_envelope(
    state: State, index: int, envelope: Envelope, events: tuple[Event, ...]
) -> None:
    """Run the arm of each event, then remember the request."""
    time_ns = envelope.time_ns
    if time_ns <= state.time_ns:
        raise ApplyFailed(index, f"its stamp {time_ns} does not rise above {state.time_ns}")
    state.time_ns = time_ns
    actor, attachments = envelope.actor, envelope.attachments
    for position, event in enumerate(events):
        APPLIERS[type(event)](state, At(index, position, time_ns, actor, attachments), event)
    writes = state.journal.open
    if writes is not None and len(writes) > ENTRY_ROW_CHANGES_MAX:
        raise LimitExceeded("entry-row-changes-max", ENTRY_ROW_CHANGES_MAX, len(writes))
    remember_request(state, index, envelope)
