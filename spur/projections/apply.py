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

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from spur.events.codec import decode_envelope
from spur.events.declare import EVENTS, IGNORABLE, Event, IgnoredEvent
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

__all__ = ["APPLIERS", "Applied", "ApplyFailed", "At", "applies", "apply", "follow"]


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

_ARMS: dict[type[Event], Arm] = {}
"""The same, and an arm that does nothing for each ignorable event that was met."""

A = TypeVar("A", bound=Arm)


def applies(cls: type[Event]) -> Callable[[A], A]:
    """Register the arm that writes what an event says."""

    def register(arm: A) -> A:
        if cls in APPLIERS:
            raise ValueError(f"{cls.__name__} is applied twice")
        APPLIERS[cls] = _ARMS[cls] = arm
        return arm

    return register


def _ignore(state: Any, at: At, event: Any) -> None:
    """Touch nothing: ignorable events change no row."""


def _arm_of_ignorable(cls: type[Event]) -> Arm:
    """Return the arm of an event that has none of its own. Raises: KeyError if it needs one."""
    ignorable = {row.cls for row in EVENTS.values() if row.flags & IGNORABLE}
    if cls is not IgnoredEvent and cls not in ignorable:
        raise KeyError(f"{cls.__name__} has no arm")
    _ARMS[cls] = _ignore
    return _ignore


def apply(state: State, entry: Entry, *, effects: bool = True) -> Applied:
    """Move the state on by one entry; return what it held and the effects that it owes.

    What it wrote can be undone until `forget_undo`. With `effects` off no reaction is asked.

    Raises: ApplyFailed, after undoing what the entry wrote; UnreadableRecord before it wrote.
    """
    index = entry.index
    envelope, events = _read(state, entry)
    record = UndoRecord(index, state.term, state.chain, state.time_ns, [])
    journal = state.journal
    journal.open = writes = record.writes
    owed: tuple[Effect, ...] = ()
    try:
        if envelope is None:
            _apply_plain(state, entry)
        else:
            _apply_events(state, index, envelope, events)
            if len(writes) > ENTRY_ROW_CHANGES_MAX:
                raise LimitExceeded("entry-row-changes-max", ENTRY_ROW_CHANGES_MAX, len(writes))
            remember_request(state, index, envelope)
            if effects:
                owed = _effects_of(state, index, envelope, events)
    except Exception as error:
        journal.open = None
        undo_writes(writes)
        state.time_ns = record.time_ns
        raise _failure(index, error) from error
    journal.open = None
    state.index = index
    state.term = entry.term
    state.chain = chain_next(record.chain, entry)
    state.undo.append(record)
    return Applied(envelope, events, owed)


def follow(state: State, entries: Iterable[Entry]) -> None:
    """Move the state on by entries that are committed, so that nothing need be undone.

    It does what `apply` does without effects and undo, and is what a replay lives of.

    Raises: ApplyFailed or UnreadableRecord; the state is then worth nothing, and the replica
    stops at that entry.
    """
    if state.undo:
        raise ValueError(f"entries from {state.undo[0].index} on are not committed")
    for entry in entries:
        index = entry.index
        envelope, events = _read(state, entry)
        try:
            if envelope is None:
                _apply_plain(state, entry)
            else:
                _apply_events(state, index, envelope, events)
                remember_request(state, index, envelope)
        except Exception as error:
            raise _failure(index, error) from error
        state.index = index
        state.term = entry.term
        state.chain = chain_next(state.chain, entry)


def _read(state: State, entry: Entry) -> tuple[Envelope | None, tuple[Event, ...]]:
    """Return what an entry holds, if it is the next of the state."""
    if entry.index != state.index + 1:
        raise ApplyFailed(
            entry.index, f"the state is at {state.index}, so {state.index + 1} is next"
        )
    if entry.term < state.term:
        raise ApplyFailed(entry.index, f"its term {entry.term} is below {state.term}")
    if entry.kind == EntryKind.EVENTS:
        return decode_envelope(entry.body, entry.index)
    return None, ()


def _apply_plain(state: State, entry: Entry) -> None:
    """Apply an entry that holds no events."""
    if entry.kind == EntryKind.MEMBERSHIP:
        state.membership.put(1, MembershipRow(entry.index, entry.body))
    elif entry.kind != EntryKind.NOOP:
        raise ValueError(f"no such kind of entry: {entry.kind}")


def _apply_events(state: State, index: int, envelope: Envelope, events: tuple[Event, ...]) -> None:
    """Run the arm of each event."""
    time_ns = envelope.time_ns
    if time_ns <= state.time_ns:
        raise ValueError(f"its stamp {time_ns} does not rise above {state.time_ns}")
    state.time_ns = time_ns
    actor, attachments = envelope.actor, envelope.attachments
    for position, event in enumerate(events):
        cls = type(event)
        arm = _ARMS.get(cls) or _arm_of_ignorable(cls)
        arm(state, At(index, position, time_ns, actor, attachments), event)


def _effects_of(
    state: State, index: int, envelope: Envelope, events: tuple[Event, ...]
) -> tuple[Effect, ...]:
    """Return what follows from each event, on the state after all of them."""
    owed: list[Effect] = []
    for position, event in enumerate(events):
        if reactions := reactions_to(type(event)):
            at = At(index, position, envelope.time_ns, envelope.actor, envelope.attachments)
            for reaction in reactions:
                owed.extend(reaction(state, at, event))
    return tuple(owed)


def _failure(index: int, error: Exception) -> ApplyFailed:
    """Return the failure that an error in an arm is told as."""
    limit = error if isinstance(error, LimitExceeded) else None
    return ApplyFailed(index, f"{type(error).__name__}: {error}", limit)
