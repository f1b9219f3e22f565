"""The framework of apply: positions, the journal, and entries that fail."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from spur.events.cluster import HostRemoved
from spur.events.codec import encode_envelope
from spur.events.declare import EVENTS, Event, event
from spur.events.envelope import Actor, Entry, EntryKind, RequestMark
from spur.events.runs import RunSignalled
from spur.projections.apply import ApplyFailed, At, apply, follow
from spur.projections.digest import state_digest
from spur.projections.react import Effect, reactions_to, reacts
from spur.projections.requests import StoredAnswer, lookup
from spur.projections.state import State
from spur.projections.undo import forget_undo, undo_to
from spur.testing.builders import Cluster, newborn
from spur.values.ids import JobId
from spur.values.states import Reach
from spur.wire.cluster import RemoveHost

ACTOR = Actor(0, 0, 0, "cluster", "clock")


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


def test_following_gives_the_same_state_as_applying() -> None:
    """A follower reads what the leader applied for trial: no difference but the means to undo."""
    cluster = Cluster(commits=False)
    cluster.configure()
    cluster.add_host("login1", "login")
    state = newborn()
    follow(state, cluster.entries)
    assert (state_digest(state), state.chain, state.time_ns, state.index, state.term) == (
        state_digest(cluster.state),
        cluster.state.chain,
        cluster.state.time_ns,
        cluster.state.index,
        cluster.state.term,
    )
    assert len(state.undo) == 0
    with pytest.raises(ValueError, match="entries from 1 on are not committed"):
        follow(cluster.state, [])


def test_following_stops_at_an_entry_that_fails() -> None:
    """A committed entry that cannot be applied is named; the replica stops there."""
    cluster = Cluster()
    cluster.configure()
    state = newborn()
    follow(state, cluster.entries)
    with pytest.raises(ApplyFailed, match="entry 1 cannot be applied: the state is at 2"):
        follow(state, cluster.entries)
    with pytest.raises(ApplyFailed, match="no such kind of entry: 7"):
        follow(state, [Entry(3, 1, 7, b"")])


def test_a_failing_reaction_undoes_the_entry() -> None:
    """A reaction has a fault: the request is refused, and the state is as it was."""

    @reacts(HostRemoved)
    def fail(state: State, at: At, event: HostRemoved) -> Iterator[Effect]:
        raise RuntimeError("a planted fault")
        yield

    try:
        cluster = Cluster()
        cluster.add_host("login1", "login")
        before = state_digest(cluster.state)
        with pytest.raises(ApplyFailed, match="a planted fault"):
            cluster.ask(RemoveHost("login1"))
        assert state_digest(cluster.state) == before
    finally:
        reactions = reactions_to(HostRemoved)
        assert reactions is not None
        reactions.remove(fail)


def test_an_event_without_an_arm_stops() -> None:
    """Someone declared an event and forgot its arm; nothing is skipped."""

    class Forgotten(Event, frozen=True):
        """An event of this test."""

    event("test.forgotten")(Forgotten)
    try:
        with pytest.raises(ApplyFailed, match="Forgotten has no arm"):
            Cluster().record(Forgotten())
    finally:
        del EVENTS["test.forgotten"]


def test_an_ignorable_event_touches_nothing() -> None:
    """A signal is in the log for those who ask, and in no row."""
    cluster = Cluster()
    before = state_digest(cluster.state)
    cluster.record(RunSignalled(JobId(1), 0, 1, 9, Reach.ALL))
    assert state_digest(cluster.state) == before
