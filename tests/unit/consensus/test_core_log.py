"""Replication: what a log keeps, what is cut, what counts as committed."""

from __future__ import annotations

import pytest

from spur.consensus.core import Core, CoreSettings, HardState, Role
from spur.consensus.messages import (
    Append,
    AppendReply,
    Heartbeat,
    PreVote,
    PreVoteReply,
    TimeoutNow,
    Vote,
    VoteReply,
)
from spur.consensus.port import Refusal
from spur.events.envelope import Entry
from spur.testing.simulation.core_script import CoreScript, scripted_core
from spur.values.errors import InvariantBroken, PeerFault


def entries(*terms: int, first: int = 1) -> tuple[Entry, ...]:
    return tuple(
        Entry(index, term, 2, b"%d/%d" % (index, term)) for index, term in enumerate(terms, first)
    )


def append(
    prev: int, prev_term: int, *terms: int, term: int = 0, commit: int = 0, acked: int = 0
) -> Append:
    return Append(
        sender=2,
        to=1,
        term=term or max((*terms, prev_term)),
        prev=prev,
        prev_term=prev_term,
        commit=commit,
        acked=acked,
        entries=entries(*terms, first=prev + 1),
    )


def answers(core: Core) -> list[AppendReply]:
    ready = core.ready()
    if ready is None:
        return []
    core.persisted(ready)
    assert all(isinstance(message, AppendReply) for message in ready.after)
    return [message for message in ready.after if isinstance(message, AppendReply)]


def terms(core: Core) -> list[int]:
    return [entry.term for entry in core.entries(core.first, core.last)]


# -- the follower


def test_append_is_acknowledged_with_the_write_that_makes_it_durable() -> None:
    """A follower whose power fails after its acknowledgement must still have the entries."""
    core = scripted_core()
    core.step(append(0, 0, 1, 1))
    ready = core.ready()
    assert ready is not None
    assert ready.hard == HardState(1, 0)
    assert (ready.first, ready.entries) == (1, entries(1, 1))
    assert ready.after == (AppendReply(sender=1, to=2, term=1, prev=0, index=2),)
    assert core.take_messages() == []
    assert core.stable == 0
    core.persisted(ready)
    assert core.stable == 2


def test_append_that_comes_twice_does_not_truncate() -> None:
    """The network repeats the first append, long after others followed: nothing may be lost."""
    core = scripted_core()
    first = append(0, 0, 1)
    core.step(first)
    core.step(append(1, 1, 1, 1, 1, commit=4))
    answers(core)
    core.step(first)
    core.step(append(2, 1))
    assert core.last == 4
    assert terms(core) == [1, 1, 1, 1]
    assert answers(core)[0].index == 4


def test_late_append_with_entries_of_an_earlier_term_does_not_truncate() -> None:
    """Entries of term 1 come again from the leader of term 3; comparing with 3 would cut them."""
    core = scripted_core(hard=HardState(3, 0), entries=entries(1, 1, 2, 3))
    core.step(append(0, 0, 1, 1, term=3))
    assert terms(core) == [1, 1, 2, 3]
    assert answers(core)[-1].index == 2


def test_log_is_cut_exactly_where_it_conflicts() -> None:
    """A follower has a tail of a deposed leader; the new leader's begins two entries earlier."""
    core = scripted_core(hard=HardState(2, 0), entries=entries(1, 1, 2, 2, 2))
    core.step(append(1, 1, 1, 3, 3, term=3))
    ready = core.ready()
    assert ready is not None
    assert (ready.first, ready.entries) == (3, entries(3, 3, first=3))
    assert terms(core) == [1, 1, 3, 3]


def test_conflict_at_a_committed_entry_stops_the_replica() -> None:
    """A leader without a committed entry: somebody's disk lied, and nobody may go on."""
    core = scripted_core(hard=HardState(1, 0), entries=entries(1, 1, 1), commit=3)
    for message in (append(1, 1, 2, 2), append(3, 2, 2), append(2, 2, 2)):
        with pytest.raises(InvariantBroken, match="is committed here with term 1"):
            core.step(message)
    assert terms(core) == [1, 1, 1]


def test_append_below_the_commit_index_is_answered_with_it() -> None:
    """A leader probes far behind what its follower knows to be committed."""
    core = scripted_core(hard=HardState(1, 0), entries=entries(1, 1, 1), commit=2)
    core.step(append(0, 0, 1, term=1))
    assert answers(core) == [AppendReply(sender=1, to=2, term=1, prev=0, index=2)]


def test_refusal_names_the_prev_index_and_skips_the_terms_that_cant_agree() -> None:
    """The leader's entry 5 is of term 2; this log has nothing of term 2 and ends in term 3."""
    core = scripted_core(hard=HardState(3, 0), entries=entries(1, 1, 3, 3, 3, 3))
    core.step(append(5, 2, 4))
    assert answers(core) == [
        AppendReply(sender=1, to=2, term=4, prev=5, index=2, refused=True, hint_term=1)
    ]


def test_append_beyond_the_end_is_refused_with_the_end() -> None:
    """The appends before this one were lost."""
    core = scripted_core(hard=HardState(1, 0), entries=entries(1, 1))
    core.step(append(7, 1, 1))
    assert answers(core) == [
        AppendReply(sender=1, to=2, term=1, prev=7, index=2, refused=True, hint_term=1)
    ]


def test_acknowledgements_that_leave_together_are_one() -> None:
    """Several appends came while the disk was busy: the highest acknowledgement says it all."""
    core = scripted_core()
    for prev in range(5):
        core.step(append(prev, min(prev, 1), 1))
    assert answers(core) == [AppendReply(sender=1, to=2, term=1, prev=4, index=5)]


def test_entries_replaced_during_their_write_do_not_count_as_durable() -> None:
    """A new leader replaces entries while the disk still writes the former ones."""
    core = scripted_core()
    core.step(append(0, 0, 1, 1, 1))
    writing = core.ready()
    assert writing is not None
    core.step(append(1, 1, 2, 2, term=2))
    core.persisted(writing)
    assert core.stable == 0
    following = core.ready()
    assert following is not None
    assert (following.first, [entry.term for entry in following.entries]) == (2, [2, 2])
    core.persisted(following)
    assert core.stable == 3


def test_commit_index_of_an_append_covers_only_what_it_compared() -> None:
    """A follower has uncommitted entries of its own behind those that the leader compared."""
    core = scripted_core(hard=HardState(1, 0), entries=entries(1, 1, 1, 1))
    core.step(append(1, 1, 1, term=2, commit=4))
    assert core.commit == 2


def test_append_whose_entries_do_not_follow_each_other_is_a_peers_fault() -> None:
    """A peer sends nonsense: none of it is taken."""
    core = scripted_core()
    gap = Append(2, 1, 1, 0, 0, 0, 0, (*entries(1), *entries(1, first=3)))
    falling = Append(2, 1, 2, 0, 0, 0, 0, entries(2, 1))
    for message in (gap, falling):
        with pytest.raises(PeerFault, match="can't stand at 2"):
            core.step(message)
    assert core.last == 0


def test_start_without_committed_entries_is_refused() -> None:
    """The disk says that entry 3 is committed, and holds only two."""
    with pytest.raises(InvariantBroken, match="committed entries are missing"):
        scripted_core(entries=entries(1, 1), commit=3)


def test_start_with_a_log_that_does_not_follow_its_base_is_refused() -> None:
    """Ledger and log were put together from two directories."""
    with pytest.raises(InvariantBroken, match="does not follow"):
        scripted_core(entries=entries(1, first=4))


# -- what becomes durable


def test_one_ready_is_outstanding_at_a_time() -> None:
    """One sync is under way: what comes meanwhile is the next group."""
    core = scripted_core()
    core.step(append(0, 0, 1))
    first = core.ready()
    assert first is not None
    core.step(append(1, 1, 1, 1))
    assert core.ready() is None
    core.persisted(first)
    second = core.ready()
    assert second is not None
    assert [entry.index for entry in second.entries] == [2, 3]


def test_ready_without_anything_to_sync_may_be_sent_at_once() -> None:
    """A refusal promises nothing that a crash could take back."""
    core = scripted_core(hard=HardState(1, 0))
    core.step(append(7, 1, term=1))
    ready = core.ready()
    assert ready is not None
    assert not ready.needs_sync
    core.step(append(8, 1, term=1))
    assert core.ready() is not None


def test_foreign_ready_is_not_taken_for_durable() -> None:
    """The shell mixed up its writes: acknowledging now could lose entries."""
    core = scripted_core()
    core.step(append(0, 0, 1))
    ready = core.ready()
    assert ready is not None
    core.persisted(ready)
    with pytest.raises(InvariantBroken, match="not the outstanding one"):
        core.persisted(ready)


# -- the leader


def test_leader_counts_itself_only_when_its_disk_has_the_entry() -> None:
    """One of two followers has a submission, and the leader's own disk is slow."""
    script = CoreScript()
    leader = script.elect(1)
    (entry,) = script.propose(1, b"job")
    for message in script.sent(Append):
        script.deliver(message)
    script.sync(2)
    for reply in script.sent(AppendReply):
        script.deliver(reply)
    assert leader.match(2) == entry.index
    assert leader.commit == entry.index - 1
    script.sync(1)
    assert leader.commit == entry.index


def test_followers_commit_without_the_leaders_disk() -> None:
    """Both followers have a submission before the leader's own disk does."""
    script = CoreScript()
    leader = script.elect(1)
    (entry,) = script.propose(1, b"job")
    for number in (2, 3):
        for message in script.sent(Append, to=number):
            script.deliver(message)
        script.sync(number)
    for reply in script.sent(AppendReply):
        script.deliver(reply)
    assert (leader.commit, leader.stable) == (entry.index, entry.index - 1)


def test_appends_leave_while_the_leaders_disk_is_busy() -> None:
    """Three submissions come during one sync: the followers do not wait for it."""
    script = CoreScript()
    script.elect(1)
    for body in (b"a", b"b", b"c"):
        script.propose(1, body)
    sent = script.sent(Append, to=2)
    assert [message.entries[0].body for message in sent] == [b"a", b"b", b"c"]


def test_what_is_proposed_in_one_turn_travels_together() -> None:
    """A hundred submissions in one turn of the loop make one append to each follower."""
    script = CoreScript()
    script.elect(1)
    script.propose(1, *[b"%d" % number for number in range(100)])
    assert [len(message.entries) for message in script.sent(Append)] == [100, 100]


def test_counting_an_entry_of_an_earlier_term_commits_nothing() -> None:
    """Raft figure 8: a majority has an entry of term 2, which one of term 3 can still replace.

    So a leader of term 4 may not take it for committed.
    """
    core = scripted_core(hard=HardState(3, 0), entries=entries(1, 2))
    core.step(TimeoutNow(sender=2, to=1, term=3))
    for _ in range(2):
        ready = core.ready()
        assert ready is not None
        core.persisted(ready)
        core.step(VoteReply(sender=2, to=1, term=4, granted=True))
    assert (core.role, terms(core), core.stable) == (Role.LEADER, [1, 2, 4], 3)
    core.step(AppendReply(sender=2, to=1, term=4, prev=1, index=2))
    assert (core.match(2), core.commit) == (2, 0)
    core.step(AppendReply(sender=2, to=1, term=4, prev=2, index=3))
    assert core.commit == 3


def test_entries_of_earlier_terms_commit_with_the_no_op_of_the_new_one() -> None:
    """All controllers restart with a submission that was on every disk but not yet committed."""
    script = CoreScript()
    script.elect(1)
    script.beat(1)
    (entry,) = script.propose(1, b"job")
    script.settle(unless=lambda message: isinstance(message, AppendReply))
    for number in (1, 2, 3):
        script.crash(number)
        script.restart(number)
    assert {script.core(number).commit for number in (1, 2, 3)} < {1, 2}
    script.elect(2)
    script.beat(2)
    assert script.core(1).commit == entry.index + 1
    assert entry in script.histories[3]


def test_diverged_logs_agree_again_within_a_few_appends() -> None:
    """A follower has a hundred entries that a leader of ten lost terms gave it."""
    script = CoreScript()
    own = [1 + number // 10 for number in range(100)]
    script.nodes[3].take(Append(2, 3, 10, 1, 0, 1, 0, entries(*own, first=2)))
    script.sync(3)
    script.wire.clear()
    script.cut = {3}
    script.nodes[1].take(Heartbeat(sender=2, to=1, term=20, commit=1, round=0))
    script.forget_leader(1)
    script.elect(1)
    script.propose(1, *[b"%d" % number for number in range(50)])
    script.settle()
    script.cut = set()
    refused: list[AppendReply] = []

    def watch(message: object) -> bool:
        if isinstance(message, AppendReply) and message.refused and message.sender == 3:
            refused.append(message)
        return False

    for _ in range(20):
        script.tick(1)
        script.settle(unless=watch)
    assert script.logs()[3] == script.logs()[1]
    assert len(refused) <= 3


def test_stale_refusal_is_ignored() -> None:
    """A refusal, delayed in the network, is of a prev index that was acknowledged since."""
    script = CoreScript()
    leader = script.elect(1)
    script.propose(1, b"a", b"b")
    script.settle()
    script.wire.clear()
    for prev in (1, 2, 4):
        script.nodes[1].take(
            AppendReply(sender=2, to=1, term=leader.term, prev=prev, index=0, refused=True)
        )
    assert leader.match(2) == 4
    assert script.wire == []
    assert leader.lost_peers == ()


def test_refusal_of_another_probe_is_ignored() -> None:
    """A leader probes at one index; a refusal of an earlier probe comes twice."""
    script = CoreScript()
    script.cut = {3}
    leader = script.elect(1)
    script.propose(1, *[b"%d" % number for number in range(9)])
    script.settle()
    script.cut = set()
    script.tick(1, script.settings.resend_ticks)
    probes = script.sent(Append, to=3)
    refusal = AppendReply(sender=3, to=1, term=leader.term, prev=9, index=0, refused=True)
    script.nodes[1].take(refusal)
    assert script.sent(Append, to=3) == probes


def test_lost_append_is_found_by_an_empty_one() -> None:
    """The connection to a follower broke with an append under way; no more comes after it."""
    script = CoreScript()
    leader = script.elect(1)
    script.propose(1, b"job")
    script.drop(Append, to=3)
    script.settle()
    assert leader.match(3) == leader.last - 1
    script.tick(1, script.settings.resend_ticks - 1)
    script.settle()
    assert leader.match(3) == leader.last - 1
    script.tick(1)
    assert [len(message.entries) for message in script.sent(Append, to=3)] == [0]
    script.settle()
    assert leader.match(3) == leader.last


def test_lost_acknowledgement_is_asked_for_again() -> None:
    """The followers have an entry, and every answer was lost."""
    script = CoreScript()
    leader = script.elect(1)
    (entry,) = script.propose(1, b"job")
    script.settle(unless=lambda message: isinstance(message, AppendReply))
    assert leader.commit < entry.index
    script.tick(1, script.settings.resend_ticks)
    script.settle()
    assert leader.commit == entry.index


def test_window_of_messages_holds_appends_back() -> None:
    """A follower answers nothing; the leader does not send it the whole log."""
    script = CoreScript(settings=CoreSettings(inflight_count_max=3, append_bytes_max=1))
    script.elect(1)
    script.propose(1, *[b"%d" % number for number in range(9)])
    assert [len(message.entries) for message in script.sent(Append, to=2)] == [1, 1, 1]
    script.deliver(script.sent(Append, to=2)[0])
    script.sync(2)
    script.deliver(script.sent(AppendReply)[0])
    assert len(script.sent(Append, to=2)) == 3


def test_window_of_bytes_holds_appends_back() -> None:
    """The same, counted in bytes: the append that crosses the limit is the last to go."""
    script = CoreScript(settings=CoreSettings(inflight_bytes_max=1500, append_bytes_max=1200))
    script.elect(1)
    script.propose(1, *[b"x" * 500 for _ in range(9)])
    assert [len(message.entries) for message in script.sent(Append, to=2)] == [2, 2]


def test_entry_over_the_limit_of_an_append_travels_alone() -> None:
    """A submission with a script of megabytes stands between two small ones."""
    script = CoreScript(settings=CoreSettings(append_bytes_max=1000))
    script.elect(1)
    script.propose(1, b"small", b"x" * 5000, b"small", b"small")
    assert [len(message.entries) for message in script.sent(Append, to=2)] == [1, 1, 2]
    script.settle()
    assert script.core(2).last == script.core(1).last


def test_blobs_count_against_the_limits() -> None:
    """Attachments travel with their entry, so they fill the windows as well."""
    core = CoreScript((1,), settings=CoreSettings(entry_bytes_max=1000)).elect(1)
    assert isinstance(core.propose(2, b"body", (b"x" * 500,)), Entry)
    assert core.propose(2, b"body", (b"x" * 500, b"x" * 500)) == Refusal("too-large", 1)


def test_proposals_are_refused_when_too_much_waits() -> None:
    """No quorum answers: memory must not fill up with submissions."""
    script = CoreScript(settings=CoreSettings(uncommitted_bytes_max=1000))
    leader = script.elect(1)
    taken = [leader.propose(2, b"x" * 300) for _ in range(5)]
    assert [isinstance(entry, Entry) for entry in taken] == [True, True, True, False, False]
    assert taken[-1] == Refusal("busy", 1)
    script.settle()
    assert isinstance(leader.propose(2, b"x" * 300), Entry)


def test_single_proposal_over_the_cap_is_taken_when_nothing_waits() -> None:
    """The cap keeps memory bounded; it is no limit on one submission."""
    script = CoreScript(settings=CoreSettings(uncommitted_bytes_max=100))
    leader = script.elect(1)
    script.settle()
    assert isinstance(leader.propose(2, b"x" * 300), Entry)


def test_proposal_at_a_follower_names_the_leader() -> None:
    """A client asks the wrong controller."""
    script = CoreScript()
    script.elect(1)
    assert script.core(2).propose(2, b"job") == Refusal("not-leader", 1)
    assert scripted_core().propose(2, b"job") == Refusal("not-leader", 0)


def test_heartbeat_tells_no_more_than_the_follower_acknowledged() -> None:
    """A follower is behind: it must not take entries for committed that it never compared."""
    script = CoreScript()
    leader = script.elect(1)
    script.propose(1, b"a", b"b")
    script.drop(Append, to=3)
    script.settle()
    script.tick(1)
    assert leader.commit == 4
    assert [message.commit for message in script.sent(Heartbeat, to=3)] == [2]
    assert [message.commit for message in script.sent(Heartbeat, to=2)] == [4]


def test_acknowledgement_of_what_does_not_exist_is_a_peers_fault() -> None:
    """A peer acknowledges entry 99 of a log with two."""
    script = CoreScript()
    leader = script.elect(1)
    with pytest.raises(PeerFault, match="acknowledged entry 99"):
        leader.step(AppendReply(sender=2, to=1, term=leader.term, prev=1, index=99))
    assert leader.match(2) == 2


def test_answers_of_strangers_are_ignored() -> None:
    """A replica that is no member acknowledges everything."""
    script = CoreScript()
    leader = script.elect(1)
    script.propose(1, b"job")
    leader.step(AppendReply(sender=9, to=1, term=leader.term, prev=1, index=3))
    assert (leader.match(9), leader.commit) == (0, 2)


# -- a replica that lost what it had acknowledged


def lose_disk(script: CoreScript, number: int) -> None:
    script.crash(number)
    disk = script.nodes[number].disk
    del disk.entries[1:]
    disk.commit = 1
    script.restart(number)


def test_follower_that_lost_acknowledged_entries_is_noticed() -> None:
    """A follower's disk came back from a backup: it must neither be refilled nor counted."""
    script = CoreScript()
    leader = script.elect(1)
    script.propose(1, b"a", b"b")
    script.settle()
    script.nodes[3].disk.recorded = 0
    script.nodes[3].disk.ledger.clear()
    lose_disk(script, 3)
    script.propose(1, b"c")
    script.settle()
    assert leader.lost_peers == (3,)
    assert script.core(3).lost
    assert leader.match(3) == 0
    for _ in range(20):
        script.beat(1)
    assert script.core(3).last == 1
    script.cut = {2}
    (entry,) = script.propose(1, b"d")
    script.settle()
    assert leader.commit == entry.index - 1


def test_follower_notices_by_a_heartbeat_that_it_lost_entries() -> None:
    """Nothing is proposed; the leader only says what is committed."""
    script = CoreScript()
    script.elect(1)
    script.propose(1, b"a")
    script.settle()
    script.nodes[3].disk.recorded = 0
    script.nodes[3].disk.ledger.clear()
    lose_disk(script, 3)
    script.beat(1)
    assert script.core(3).lost


def test_replica_that_lost_entries_neither_votes_nor_campaigns_nor_acknowledges() -> None:
    """With its vote a candidate could win that lacks what it had helped to commit."""
    core = scripted_core()
    core.step(append(1, 1, 1, acked=1))
    assert answers(core) == [
        AppendReply(sender=1, to=2, term=1, prev=1, index=0, refused=True, lost=True)
    ]
    core.step(append(0, 0, 1, acked=1))
    assert [answer.lost for answer in answers(core)] == [True]
    for _ in range(30):
        core.tick()
    assert core.role is Role.FOLLOWER
    core.step(PreVote(sender=3, to=1, term=2, last=9, last_term=1))
    core.step(Vote(sender=3, to=1, term=2, last=9, last_term=1))
    ready = core.ready()
    assert ready is not None
    assert core.take_messages() == [PreVoteReply(sender=1, to=3, term=1, granted=False)]
    assert ready.after == (VoteReply(sender=1, to=3, term=2, granted=False),)


def test_replica_whose_acknowledged_entry_is_another_now_is_lost() -> None:
    """The log is long enough, but what was acknowledged stands there with another term."""
    core = scripted_core(hard=HardState(2, 0), entries=entries(1, 1, 1))
    core.step(append(2, 2, 2, term=2, acked=2))
    assert [(answer.refused, answer.lost) for answer in answers(core)] == [(True, True)]


def test_follower_with_a_slow_disk_is_sent_nothing_twice() -> None:
    """A follower's sync takes a second, several times what a leader waits for an answer."""
    script = CoreScript()
    leader = script.elect(1)
    script.propose(1, b"a")
    for message in script.sent(Append, to=3):
        script.deliver(message)
    script.propose(1, b"b")
    sent: list[int] = []
    for _ in range(30):
        script.tick(1)
        for moving in list(script.wire):
            if isinstance(moving, Append) and moving.to == 3:
                sent += [entry.index for entry in moving.entries]
            script.deliver(moving)
        script.sync(1)
        script.sync(2)
    assert sent == [4]
    script.settle()
    assert leader.match(3) == leader.last
