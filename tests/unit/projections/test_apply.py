"""The framework of apply: positions, the journal, and entries that fail."""

from __future__ import annotations

import pytest

from spur.events.codec import encode_envelope
from spur.events.envelope import Actor, Entry, EntryKind, RequestMark
from spur.projections.apply import ApplyFailed, apply
from spur.projections.digest import state_digest
from spur.projections.requests import StoredAnswer, lookup
from spur.projections.state import State, new_state
from spur.projections.undo import forget_undo, undo_to

ACTOR = Actor(0, 0, 0, "cluster", "clock")


def newborn() -> State:
    """Return the state of a cluster without entries."""
    return new_state(b"genesis", cluster_id=bytes(16), incarnation=1)


def empty_command(index: int, request_id: bytes, time_ns: int) -> Entry:
    """Return an entry that holds no events, only a remembered request."""
    mark = RequestMark("uid:1", request_id, 0, b"h" * 32, b"answer", 1, 1)
    body = encode_envelope(
        time_ns=time_ns,
        command="clock.tick",
        request=mark,
        actor=ACTOR,
        events=(),
        cluster_version=1,
    )
    return Entry(index, 1, EntryKind.EVENTS, body)


def test_apply_refuses_an_entry_out_of_its_place() -> None:
    """A driver that skips an entry is told which one is next, and nothing changes."""
    state = newborn()
    with pytest.raises(ApplyFailed, match="1 is next"):
        apply(state, Entry(2, 1, EntryKind.NOOP, b""))
    assert state.index == 0


def test_undo_brings_back_what_an_entry_wrote_over() -> None:
    """A leader that lost its lead takes its uncommitted tail back, to the byte."""
    state = newborn()
    apply(state, Entry(1, 1, EntryKind.MEMBERSHIP, b"members"))
    apply(state, empty_command(2, b"a" * 16, 1_000))
    before = (state_digest(state), state.chain, state.time_ns, state.term)
    apply(state, empty_command(3, b"b" * 16, 2_000))
    assert lookup(state, "uid:1", b"b" * 16, b"h" * 32, 0) == StoredAnswer(b"answer", 3)
    undo_to(state, 2)
    assert (state_digest(state), state.chain, state.time_ns, state.term) == before
    assert lookup(state, "uid:1", b"b" * 16, b"h" * 32, 0) is None


def test_committed_entries_cannot_be_undone() -> None:
    """What was committed is final: asking to undo it is a fault, and changes nothing."""
    state = newborn()
    apply(state, Entry(1, 1, EntryKind.MEMBERSHIP, b"members"))
    apply(state, empty_command(2, b"a" * 16, 1_000))
    forget_undo(state, 1)
    with pytest.raises(ValueError, match="1 to 2"):
        undo_to(state, 0)
    assert state.index == 2
