"""Late members: entries older than memory, and snapshots in chunks."""

from __future__ import annotations

import pytest

from spur.consensus.core import CoreSettings, Want, WantChunk
from spur.consensus.membership import Membership
from spur.consensus.messages import Append, AppendReply, Heartbeat, SnapshotChunk, SnapshotReply
from spur.events.envelope import Entry
from spur.testing.simulation.core_script import CoreScript, membership_of, scripted_core
from spur.values.errors import InvariantBroken

LATE = 3


def behind(*, snapshot: bool, chunk_count: int = 3) -> CoreScript:
    """Return a cluster led by 1 in which replica 3 missed entries that left the memory."""
    script = CoreScript(settings=CoreSettings(append_bytes_max=200))
    script.elect(1)
    script.crash(LATE)
    script.propose(1, *[b"%d" % number for number in range(20)])
    script.settle()
    if snapshot:
        script.snapshot(1, chunk_count)
        script.propose(1, b"after")
        script.settle()
    else:
        script.nodes[1].trim(2)
    script.restart(LATE)
    script.wire.clear()
    return script


def catch_up(script: CoreScript, ticks: int = 60) -> None:
    for _ in range(ticks):
        script.tick(1)
        script.settle()


def test_entries_older_than_memory_come_from_the_shell() -> None:
    """A controller was down for an hour; the leader's memory does not reach back so far."""
    script = behind(snapshot=False)
    assert script.core(1).first > script.core(LATE).last + 1
    catch_up(script)
    assert script.core(LATE).last == script.core(1).last
    assert script.histories[LATE] == script.histories[1][-len(script.histories[LATE]) :]


def test_wanted_entries_are_asked_for_once_and_again_when_nothing_comes() -> None:
    """The shell's disk is busy; then what it had read was dropped."""
    leader = behind(snapshot=False).core(1)
    leader.step(
        AppendReply(LATE, 1, leader.term, prev=leader.last, index=2, refused=True, hint_term=1)
    )
    assert leader.take_wants() == [Want(LATE, 2)]
    assert leader.take_wants() == []
    for _ in range(5):
        leader.tick()
    assert leader.take_wants() == [Want(LATE, 2)]


def test_supply_that_was_not_asked_for_is_ignored() -> None:
    """An answer comes when the follower has moved on, or is of other entries."""
    script = behind(snapshot=False)
    leader = script.core(1)
    old = tuple(script.nodes[1].disk.ledger[:3])
    leader.supply(LATE, old)
    leader.supply(9, old)
    leader.supply_snapshot(LATE, 5, 1, 0, 1, b"")
    assert leader.take_messages() == []


def test_supplied_entries_are_cut_to_the_limit_of_an_append() -> None:
    """The shell reads more than one append may carry."""
    script = behind(snapshot=False)
    leader = script.core(1)
    leader.step(
        AppendReply(LATE, 1, leader.term, prev=leader.last, index=2, refused=True, hint_term=1)
    )
    (want,) = leader.take_wants()
    assert isinstance(want, Want)
    leader.supply(LATE, script.nodes[1].disk.ledger[want.index - 1 :])
    (append,) = leader.take_messages()
    assert isinstance(append, Append)
    assert (append.prev, append.prev_term) == (2, 1)
    assert [entry.index for entry in append.entries] == [3, 4, 5, 6, 7, 8]


def test_single_entry_that_only_names_the_term_leads_on() -> None:
    """Entries are so big that the shell reads one at a time: the one before those needed."""
    script = behind(snapshot=False)
    leader = script.core(1)
    leader.step(
        AppendReply(LATE, 1, leader.term, prev=leader.last, index=2, refused=True, hint_term=1)
    )
    ledger = script.nodes[1].disk.ledger
    sent: list[int] = []
    for _ in range(3):
        for want in leader.take_wants():
            assert isinstance(want, Want)
            leader.supply(LATE, ledger[want.index - 1 : want.index])
        for message in leader.take_messages():
            assert isinstance(message, Append)
            sent += [entry.index for entry in message.entries]
            leader.step(AppendReply(LATE, 1, leader.term, message.prev, sent[-1]))
    assert sent == [3, 4]


def test_snapshot_serves_a_member_behind_the_ledger() -> None:
    """The leader itself joined by a snapshot, and has no older history."""
    script = behind(snapshot=True)
    catch_up(script)
    late = script.core(LATE)
    assert late.last == script.core(1).last
    assert late.first == 23
    assert script.nodes[LATE].disk.chain == script.nodes[1].disk.chain
    assert [entry.body for entry in script.histories[LATE]] == [b"after"]
    assert script.core(1).match(LATE) == late.last


def test_snapshot_chunk_that_is_lost_is_sent_again() -> None:
    """Each chunk is lost the first time."""
    script = behind(snapshot=True)
    seen: set[int] = set()

    def lose_once(message: object) -> bool:
        if isinstance(message, SnapshotChunk) and message.number not in seen:
            seen.add(message.number)
            return True
        return False

    for _ in range(60):
        script.tick(1)
        script.settle(unless=lose_once)
    assert seen == {0, 1, 2}
    assert script.core(LATE).last == script.core(1).last


def test_snapshot_chunk_that_comes_twice_is_written_once() -> None:
    """The network repeats chunks, also while they are being written."""
    core = scripted_core()
    manifest = SnapshotChunk(2, 1, 1, 50, 1, 0, 3, b"manifest")
    for _ in range(3):
        core.step(manifest)
    assert core.take_chunks() == [manifest]
    core.chunk_written(2, 50, 0)
    core.step(manifest)
    assert core.take_chunks() == []
    ready = core.ready()
    assert ready is not None
    assert ready.after == (SnapshotReply(1, 2, 1, index=50, next=1),) * 2


def test_answer_to_a_snapshot_chunk_that_is_lost_is_given_again() -> None:
    """Each answer is lost the first time, the last one too."""
    script = behind(snapshot=True)
    seen: set[tuple[int, bool]] = set()

    def lose_once(message: object) -> bool:
        if isinstance(message, SnapshotReply) and (message.next, message.done) not in seen:
            seen.add((message.next, message.done))
            return True
        return False

    for _ in range(90):
        script.tick(1)
        script.settle(unless=lose_once)
    assert len(seen) >= 4
    assert script.core(LATE).last == script.core(1).last


def test_snapshot_begins_anew_when_the_receiver_restarts() -> None:
    """The late member loses power with half of a snapshot."""
    script = behind(snapshot=True)
    for _ in range(30):
        script.tick(1)
        script.settle(unless=lambda m: isinstance(m, SnapshotChunk) and m.number == 2)
    assert len(script.nodes[LATE].disk.received) == 2
    script.crash(LATE)
    script.restart(LATE)
    catch_up(script)
    assert script.core(LATE).last == script.core(1).last


def test_snapshot_begins_anew_when_a_newer_one_replaces_it() -> None:
    """The leader keeps only its newest snapshots; the one being sent is gone."""
    script = behind(snapshot=True)
    for _ in range(30):
        script.tick(1)
        script.settle(unless=lambda m: isinstance(m, SnapshotChunk) and m.number == 2)
    newer = script.snapshot(1, 2)
    catch_up(script)
    assert script.nodes[LATE].disk.snapshot == newer
    assert script.core(LATE).last == script.core(1).last


def test_snapshot_of_a_deposed_leader_is_given_up() -> None:
    """The leader dies with half of a snapshot sent; the next one has all entries in memory."""
    script = behind(snapshot=True)
    for _ in range(30):
        script.tick(1)
        script.settle(unless=lambda m: isinstance(m, SnapshotChunk) and m.number == 2)
    script.cut = {1}
    script.elect(2)
    script.settle()
    for _ in range(10):
        script.beat(2)
    assert script.core(LATE).last == script.core(2).last
    assert script.core(LATE).first == 1


def test_snapshot_that_cannot_be_installed_is_sent_again() -> None:
    """A chunk does not match the digest that the manifest gives."""
    core = scripted_core()
    core.step(SnapshotChunk(2, 1, 1, 50, 1, 0, 1, b"manifest"))
    assert core.installing == 50
    core.chunk_written(2, 50, 0)
    core.install_failed(50)
    assert core.installing == 0
    core.step(Append(2, 1, 1, 50, 1, 50, 0, ()))
    ready = core.ready()
    assert ready is not None
    assert ready.after[-1] == AppendReply(1, 2, 1, 50, index=0, refused=True)


def test_leader_sends_a_snapshot_again_that_was_not_installed() -> None:
    """All chunks arrived, and the follower says that it does not have the entry."""
    script = behind(snapshot=True, chunk_count=1)
    leader = script.core(1)
    index = script.nodes[1].disk.snapshot.index if script.nodes[1].disk.snapshot else 0
    leader.step(
        AppendReply(LATE, 1, leader.term, prev=leader.last, index=2, refused=True, hint_term=1)
    )
    script.nodes[1].pump()
    assert [chunk.number for chunk in script.sent(SnapshotChunk)] == [0]
    leader.step(SnapshotReply(LATE, 1, leader.term, index, next=1))
    for _ in range(script.settings.resend_ticks):
        leader.tick()
    (poke,) = [m for m in leader.take_messages() if isinstance(m, Append)]
    assert (poke.to, poke.prev, poke.entries) == (LATE, index, ())
    leader.step(AppendReply(LATE, 1, leader.term, prev=index, index=2, refused=True))
    assert leader.take_wants() == [WantChunk(LATE, index, 0)]


def test_log_is_left_alone_while_a_snapshot_is_installed() -> None:
    """Appends and heartbeats come while the state is being replaced."""
    core = scripted_core()
    core.step(SnapshotChunk(2, 1, 1, 50, 1, 0, 1, b"manifest"))
    core.chunk_written(2, 50, 0)
    core.step(Append(2, 1, 1, 0, 0, 1, 0, (Entry(1, 1, 0, b""),)))
    core.step(Heartbeat(2, 1, 1, commit=0, round=1))
    core.step(SnapshotChunk(2, 1, 1, 60, 1, 0, 1, b"manifest"))
    for _ in range(30):
        core.tick()
    assert (core.last, core.commit, core.installing) == (0, 0, 50)
    assert core.take_chunks() != []
    core.installed(50, 1, membership_of((1, 2, 3)))
    assert (core.first, core.last, core.last_term, core.commit, core.stable) == (51, 50, 1, 50, 50)


def test_snapshot_that_was_not_asked_for_is_not_installed() -> None:
    """The shell installs what the core knows nothing of."""
    core = scripted_core()
    with pytest.raises(InvariantBroken, match="was not to be installed"):
        core.installed(50, 1, Membership(()))
    core.step(SnapshotChunk(2, 1, 1, 50, 1, 0, 1, b"manifest"))
    with pytest.raises(InvariantBroken, match="was not to be installed"):
        core.installed(50, 2, Membership(()))


def test_snapshot_of_what_the_log_already_has_is_answered_as_done() -> None:
    """Appends were faster than the snapshot, or it comes again after it was installed."""
    core = scripted_core(entries=(Entry(1, 1, 0, b""), Entry(2, 1, 0, b"")))
    core.step(SnapshotChunk(2, 1, 1, 2, 1, 0, 3, b"manifest"))
    assert core.take_chunks() == []
    assert core.commit == 2
    ready = core.ready()
    assert ready is not None
    assert ready.after == (SnapshotReply(1, 2, 1, index=2, next=0, done=True),)


def test_write_under_way_while_a_snapshot_is_installed_does_not_count() -> None:
    """Entries of a lost history are being written when the snapshot replaces them."""
    core = scripted_core()
    core.step(Append(2, 1, 1, 0, 0, 0, 0, tuple(Entry(i, 1, 0, b"") for i in range(1, 61))))
    writing = core.ready()
    assert writing is not None
    core.step(SnapshotChunk(2, 1, 2, 50, 2, 0, 1, b"manifest"))
    core.installed(50, 2, membership_of((1, 2, 3)))
    core.step(Append(2, 1, 2, 50, 2, 50, 0, (Entry(51, 2, 0, b""),)))
    core.persisted(writing)
    assert core.stable == 50
    ready = core.ready()
    assert ready is not None
    assert [entry.index for entry in ready.entries] == [51]


def test_trim_keeps_what_is_not_committed_or_not_durable() -> None:
    """The shell asks for more than may be forgotten."""
    script = CoreScript()
    leader = script.elect(1)
    script.propose(1, b"a", b"b")
    leader.trim(99)
    assert (leader.first, leader.last) == (3, 4)
    with pytest.raises(InvariantBroken, match="entry 2 is not in memory"):
        leader.entry(2)
    with pytest.raises(InvariantBroken, match="entries 2 to 4 are not in memory"):
        leader.entries(2, 4)
    assert leader.entries(4, 3) == []


def test_memory_is_measured_in_bytes() -> None:
    """The shell keeps a few megabytes of entries for followers that are a little late."""
    script = CoreScript((1,))
    leader = script.elect(1)
    script.propose(1, *[b"x" * 968] * 10)
    script.settle()
    assert leader.bytes_in_memory > 10_000
    assert leader.index_by_bytes(3000) == leader.last - 3
    assert leader.index_by_bytes(2999) == leader.last - 2
    leader.trim(leader.index_by_bytes(3000))
    assert leader.bytes_in_memory == 3000
