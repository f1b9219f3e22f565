"""Elections: who may lead a term, who may not, and what a vote is worth."""

from __future__ import annotations

import pytest

from spur.consensus.core import HardState, Role
from spur.consensus.membership import Membership
from spur.consensus.messages import (
    Append,
    AppendReply,
    Heartbeat,
    HeartbeatReply,
    PreVote,
    PreVoteReply,
    TimeoutNow,
    Vote,
    VoteReply,
)
from spur.events.envelope import Entry
from spur.testing.simulation.core_script import CoreScript, membership_of, scripted_core
from spur.values.errors import InvariantBroken, PeerFault

ELECTION_TICKS = 10


def test_three_replicas_elect_one_leader_and_commit_what_it_proposes() -> None:
    """Somebody starts three fresh controllers and submits to the one that leads."""
    script = CoreScript()
    leader = script.elect(1)
    script.propose(1, b"first")
    script.settle()
    script.beat(1)
    assert leader.term == 1
    assert script.logs() == {number: [(1, 0), (2, 1), (3, 1)] for number in (1, 2, 3)}
    assert [script.histories[number][-1].body for number in (1, 2, 3)] == [b"first"] * 3


def test_single_voter_leads_once_its_own_vote_is_durable() -> None:
    """A controller on its own starts; its disk has not written the vote yet."""
    script = CoreScript((1,))
    script.tick(1)
    core = script.core(1)
    assert (core.role, core.term, core.vote) == (Role.CANDIDATE, 1, 1)
    script.sync(1)
    assert core.is_leader
    script.sync(1)
    assert core.commit == 2


@pytest.mark.parametrize("voters", [(1,), (1, 2, 3)])
def test_candidate_waits_for_a_slow_disk_and_wins(voters: tuple[int, ...]) -> None:
    """On a worn disk a sync takes longer than an election: the vote that is being written counts.

    A candidate that stood again each time would write votes for ever and never lead.
    """
    script = CoreScript(voters)
    for _ in range(5):
        script.tick(1, 2 * ELECTION_TICKS)
        for asked in script.sent(PreVote):
            script.deliver(asked)
        for answered in script.sent(PreVoteReply):
            script.deliver(answered)
    script.settle()
    core = script.core(1)
    assert (core.is_leader, core.term) == (True, 1)


def test_single_voter_commits_only_what_its_disk_has() -> None:
    """A submission to a controller on its own waits for the disk before it is answered."""
    script = CoreScript((1,))
    core = script.elect(1)
    (entry,) = script.propose(1, b"job")
    assert core.commit == entry.index - 1
    script.sync(1)
    assert core.commit == entry.index


def test_vote_requests_wait_for_the_candidates_own_vote_to_be_durable() -> None:
    """A candidate whose disk is slow asks nobody: if it crashed it could vote for another."""
    script = CoreScript()
    script.tick(1, ELECTION_TICKS)
    for message in script.sent(PreVote, to=2):
        script.deliver(message)
    for reply in script.sent(PreVoteReply):
        script.deliver(reply)
    assert script.core(1).role is Role.CANDIDATE
    assert script.sent(Vote) == []
    script.sync(1)
    assert [vote.to for vote in script.sent(Vote)] == [2, 3]


def test_vote_leaves_only_when_it_is_durable() -> None:
    """A voter loses power before its disk has the vote: the candidate must not have it either."""
    script = CoreScript()
    script.nodes[3].take(Vote(sender=1, to=3, term=5, last=1, last_term=0))
    assert script.sent(VoteReply) == []
    script.crash(3)
    script.restart(3)
    assert (script.core(3).term, script.core(3).vote) == (0, 0)
    script.nodes[3].take(Vote(sender=2, to=3, term=5, last=1, last_term=0))
    script.sync(3)
    assert script.sent(VoteReply) == [VoteReply(sender=3, to=2, term=5, granted=True)]


def test_vote_is_not_forgotten_by_a_restart() -> None:
    """A voter restarts between two candidates of one term: two leaders would be elected in it."""
    script = CoreScript()
    script.nodes[3].take(Vote(sender=1, to=3, term=5, last=1, last_term=0))
    script.sync(3)
    assert [reply.granted for reply in script.sent(VoteReply)] == [True]
    script.crash(3)
    script.restart(3)
    script.wire.clear()
    script.nodes[3].take(Vote(sender=2, to=3, term=5, last=1, last_term=0))
    script.nodes[3].take(Vote(sender=1, to=3, term=5, last=1, last_term=0))
    script.sync(3)
    assert [(reply.to, reply.granted) for reply in script.sent(VoteReply)] == [
        (2, False),
        (1, True),
    ]


def test_leader_that_stepped_down_does_not_vote_again_in_its_term() -> None:
    """A leader without a quorum steps down; another campaigns in the very same term."""
    script = CoreScript()
    term = script.elect(1).term
    script.core(1).step_down()
    script.nodes[1].take(Vote(sender=2, to=1, term=term, last=9, last_term=term))
    script.sync(1)
    assert [reply.granted for reply in script.sent(VoteReply, sender=1)] == [False]


def test_vote_is_counted_once_per_voter() -> None:
    """In a cluster of five the network repeats the only vote that a candidate got."""
    core = scripted_core(membership=membership_of((1, 2, 3, 4, 5)))
    core.tick()
    core.step(TimeoutNow(sender=2, to=1, term=1))
    ready = core.ready()
    assert ready is not None
    core.persisted(ready)
    vote = VoteReply(sender=3, to=1, term=2, granted=True)
    for _ in range(3):
        core.step(vote)
    assert core.role is Role.CANDIDATE
    core.step(VoteReply(sender=4, to=1, term=2, granted=True))
    assert core.is_leader


def test_vote_of_an_earlier_term_is_not_counted() -> None:
    """A vote for the candidacy of term 1 arrives when its candidate campaigns in term 2."""
    core = scripted_core()
    for term in (0, 1):
        core.step(TimeoutNow(sender=2, to=1, term=term))
        ready = core.ready()
        assert ready is not None
        core.persisted(ready)
    assert (core.role, core.term) == (Role.CANDIDATE, 2)
    core.step(VoteReply(sender=3, to=1, term=1, granted=True))
    assert core.role is Role.CANDIDATE


@pytest.mark.parametrize(("voters", "votes"), [(2, 0), (3, 0), (4, 1), (5, 1), (6, 2), (7, 2)])
def test_half_of_the_voters_is_no_quorum(voters: int, votes: int) -> None:
    """A cluster is cut in two equal halves, or worse: neither side may elect a leader."""
    core = scripted_core(membership=membership_of(range(1, voters + 1)))
    core.step(TimeoutNow(sender=2, to=1, term=1))
    ready = core.ready()
    assert ready is not None
    core.persisted(ready)
    for voter in range(2, 2 + votes):
        core.step(VoteReply(sender=voter, to=1, term=2, granted=True))
    assert core.role is Role.CANDIDATE
    core.step(VoteReply(sender=2 + votes, to=1, term=2, granted=True))
    assert core.is_leader


def test_candidate_refused_by_a_quorum_follows() -> None:
    """Everybody has a longer log than the replica that campaigns."""
    core = scripted_core()
    core.step(TimeoutNow(sender=2, to=1, term=1))
    roles = []
    for voter in (2, 2, 3):
        core.step(VoteReply(sender=voter, to=1, term=2, granted=False))
        roles.append(core.role)
    assert roles == [Role.CANDIDATE, Role.CANDIDATE, Role.FOLLOWER]


@pytest.mark.parametrize(("last", "last_term"), [(9, 1), (1, 2), (0, 0)])
def test_candidate_with_an_older_log_gets_no_vote(last: int, last_term: int) -> None:
    """A replica that missed entries asks one that has them: (2, term 2) is the last."""
    entries = (Entry(1, 1, 2, b"a"), Entry(2, 2, 2, b"b"))
    core = scripted_core(hard=HardState(2, 0), entries=entries)
    core.step(PreVote(sender=2, to=1, term=3, last=last, last_term=last_term))
    assert core.take_messages() == [PreVoteReply(sender=1, to=2, term=2, granted=False)]
    core.step(Vote(sender=2, to=1, term=3, last=last, last_term=last_term))
    ready = core.ready()
    assert ready is not None
    assert ready.hard == HardState(3, 0)
    assert ready.after == (VoteReply(sender=1, to=2, term=3, granted=False),)


def test_pre_vote_raises_no_term() -> None:
    """A controller is cut off for a long time, then comes back to a cluster at work."""
    script = CoreScript()
    leader = script.elect(1)
    script.cut = {3}
    script.tick(3, 20 * ELECTION_TICKS)
    script.settle()
    assert (script.core(3).role, script.core(3).term) == (Role.PRE_CANDIDATE, leader.term)
    script.cut = set()
    script.tick(3, 2 * ELECTION_TICKS)
    script.settle()
    script.beat(1)
    assert leader.is_leader
    assert {script.core(number).term for number in (1, 2, 3)} == {leader.term}
    assert script.core(3).leader == 1


def test_pre_vote_changes_nothing_at_the_voter() -> None:
    """A replica is asked whether it would vote; its answer is no promise."""
    core = scripted_core()
    core.step(PreVote(sender=2, to=1, term=1, last=0, last_term=0))
    core.step(PreVote(sender=3, to=1, term=1, last=0, last_term=0))
    assert core.take_messages() == [
        PreVoteReply(sender=1, to=2, term=1, granted=True),
        PreVoteReply(sender=1, to=3, term=1, granted=True),
    ]
    assert (core.term, core.vote, core.ready()) == (0, 0, None)


@pytest.mark.parametrize("kind", [PreVote, Vote])
def test_replica_that_hears_a_leader_does_not_hear_candidates(kind: type[PreVote | Vote]) -> None:
    """One controller can't reach the leader, all others can: it must not depose it."""
    script = CoreScript()
    leader = script.elect(1)
    message = kind(sender=3, to=2, term=leader.term + 7, last=9, last_term=leader.term)
    script.tick(2, ELECTION_TICKS - 1)
    script.nodes[2].take(message)
    script.sync(2)
    assert script.core(2).term == leader.term
    assert script.wire == []


def test_leader_does_not_hear_candidates_while_it_has_a_quorum() -> None:
    """A controller with a high term is back in reach of the leader."""
    script = CoreScript()
    leader = script.elect(1)
    script.nodes[1].take(Vote(sender=3, to=1, term=leader.term + 7, last=9, last_term=9))
    assert leader.is_leader


def test_replica_that_heard_no_leader_for_an_election_timeout_votes() -> None:
    """The leader is dead; the first to notice asks the second."""
    script = CoreScript()
    leader = script.elect(1)
    script.forget_leader(2)
    script.nodes[2].take(
        Vote(sender=3, to=2, term=leader.term + 1, last=leader.last, last_term=leader.term)
    )
    script.sync(2)
    assert [reply.granted for reply in script.sent(VoteReply)] == [True]


def test_leader_without_a_quorum_steps_down_within_two_election_timeouts() -> None:
    """The leader is cut off: soon it must not say that it leads any more."""
    script = CoreScript()
    leader = script.elect(1)
    script.cut = {1}
    term = leader.term
    script.tick(1, 2 * ELECTION_TICKS)
    assert not leader.is_leader
    assert (leader.term, leader.leader) == (term, 0)


def test_leader_that_hears_one_of_two_followers_keeps_the_lead() -> None:
    """One of three controllers is down for long; the cluster goes on."""
    script = CoreScript()
    leader = script.elect(1)
    script.crash(3)
    for _ in range(5 * ELECTION_TICKS):
        script.tick(1)
        script.settle()
    assert leader.is_leader


def test_leader_of_a_lower_term_is_told_the_term() -> None:
    """A replica that had campaigned in vain meets the leader that everybody else follows."""
    core = scripted_core(hard=HardState(7, 1))
    core.step(Heartbeat(sender=2, to=1, term=5, commit=0, round=3))
    ready = core.ready()
    assert ready is not None
    assert ready.after == (AppendReply(sender=1, to=2, term=7, prev=0, index=0, refused=True),)
    leader = CoreScript()
    leader.elect(2)
    leader.nodes[2].take(AppendReply(sender=1, to=2, term=7, prev=0, index=0, refused=True))
    assert not leader.core(2).is_leader
    assert leader.core(2).term == 7


@pytest.mark.parametrize("kind", [PreVote, Vote])
def test_candidate_of_a_lower_term_is_told_the_term(kind: type[PreVote | Vote]) -> None:
    """A candidate that slept campaigns in a term that is long over."""
    core = scripted_core(hard=HardState(7, 0))
    core.step(kind(sender=2, to=1, term=5, last=0, last_term=0))
    ready = core.ready()
    assert ready is not None
    (reply,) = ready.after
    assert isinstance(reply, PreVoteReply | VoteReply)
    assert (reply.term, reply.granted) == (7, False)


def test_refused_pre_vote_of_a_higher_term_teaches_the_term() -> None:
    """A pre-candidate hears that the cluster has moved on."""
    core = scripted_core()
    core.tick()
    core.step(PreVoteReply(sender=2, to=1, term=4, granted=False))
    assert (core.term, core.role) == (4, Role.FOLLOWER)


def test_granted_pre_vote_for_a_term_that_was_not_asked_about_is_ignored() -> None:
    """An old answer, of before the term rose and a crash, must not raise terms."""
    core = scripted_core()
    core.step(PreVoteReply(sender=2, to=1, term=9, granted=True))
    assert (core.term, core.role) == (0, Role.FOLLOWER)


def test_replica_that_must_not_lead_does_not_campaign() -> None:
    """A controller's clock is off by minutes: it follows, whatever happens."""
    script = CoreScript()
    script.core(1).may_campaign = False
    script.tick(1, 10 * ELECTION_TICKS)
    assert script.sent(PreVote) == []
    script.nodes[1].take(TimeoutNow(sender=2, to=1, term=1))
    script.sync(1)
    assert script.core(1).role is Role.FOLLOWER
    assert script.sent(Vote) == []


def test_candidate_that_must_not_lead_any_more_gives_a_won_election_up() -> None:
    """The clock is found to be off between the campaign and the last vote."""
    script = CoreScript()
    script.core(1).step(TimeoutNow(sender=2, to=1, term=1))
    script.nodes[1].pump()
    script.sync(1)
    script.core(1).may_campaign = False
    script.nodes[1].take(VoteReply(sender=2, to=1, term=2, granted=True))
    assert script.core(1).role is Role.FOLLOWER


def test_learner_never_campaigns() -> None:
    """A controller that is only being filled hears no leader, then is told to take the lead."""
    script = CoreScript((1, 2), learners=(3,))
    script.tick(3, 10 * ELECTION_TICKS)
    script.nodes[3].take(TimeoutNow(sender=1, to=3, term=1))
    assert script.core(3).role is Role.FOLLOWER
    assert script.sent(PreVote) == []


def test_learner_is_not_asked_and_its_vote_does_not_count() -> None:
    """Two voters, one of them dead, and a learner: no leader can be elected."""
    script = CoreScript((1, 2), learners=(3,))
    script.crash(2)
    script.tick(1, ELECTION_TICKS)
    assert [message.to for message in script.sent(PreVote)] == [2]
    script.nodes[1].take(PreVoteReply(sender=3, to=1, term=1, granted=True))
    assert script.core(1).role is Role.PRE_CANDIDATE


def test_learner_that_a_newer_log_makes_a_voter_gives_its_vote() -> None:
    """A sole voter promoted the second, and crashed before it could say so: both are needed."""
    script = CoreScript((1,), learners=(2,))
    script.elect(1)
    script.core(1).propose(1, membership_of((1, 2)).encode())
    script.nodes[1].pump()
    script.sync(1)
    script.wire.clear()
    script.crash(1)
    script.restart(1)
    assert script.core(1).members.voters() == (1, 2)
    assert script.core(2).members.voters() == (1,)
    assert script.elect(1).is_leader


def test_removed_replica_keeps_silent() -> None:
    """A controller that was removed from the cluster is still running."""
    script = CoreScript()
    script.elect(1)
    script.core(1).propose(1, membership_of((1, 2)).encode())
    script.settle()
    script.beat(1)
    script.nodes[3].take(
        Append(
            sender=1,
            to=3,
            term=1,
            prev=2,
            prev_term=1,
            commit=3,
            acked=0,
            entries=tuple(script.core(1).entries(3, 3)),
        )
    )
    script.wire.clear()
    script.tick(3, 10 * ELECTION_TICKS)
    assert script.core(3).commit == 3
    assert script.wire == []


def test_voter_whose_removal_is_not_committed_can_still_lead() -> None:
    """A leader of two removes itself and crashes; only it has a log good enough to lead."""
    script = CoreScript((1, 2))
    script.elect(1)
    script.beat(1)
    script.core(1).propose(1, membership_of((2,)).encode())
    script.nodes[1].pump()
    script.sync(1)
    script.wire.clear()
    script.crash(1)
    script.restart(1)
    script.forget_leader(2)
    script.tick(1, ELECTION_TICKS)
    script.settle()
    assert (script.core(1).role, script.core(1).term) == (Role.FOLLOWER, 2)
    assert script.core(2).members == membership_of((2,))
    script.tick(2, 2 * ELECTION_TICKS)
    script.settle()
    assert script.core(2).is_leader


def test_leader_that_hears_another_of_its_term_stops() -> None:
    """A vote was counted twice somewhere: this must not go on for a moment."""
    script = CoreScript()
    term = script.elect(1).term
    with pytest.raises(InvariantBroken, match=f"two leaders in term {term}: replicas 1 and 2"):
        script.nodes[1].take(Heartbeat(sender=2, to=1, term=term, commit=0, round=0))


def test_follower_that_hears_a_second_leader_of_its_term_stops() -> None:
    """The same, seen from a follower."""
    script = CoreScript()
    term = script.elect(1).term
    with pytest.raises(InvariantBroken, match="two leaders"):
        script.nodes[3].take(Heartbeat(sender=2, to=3, term=term, commit=0, round=0))


def test_message_for_another_replica_is_a_peers_fault() -> None:
    """Addresses were mixed up in a configuration."""
    core = scripted_core()
    with pytest.raises(PeerFault, match="a message to replica 2 came to replica 1"):
        core.step(Heartbeat(sender=3, to=2, term=1, commit=0, round=0))


def test_replica_of_no_membership_waits() -> None:
    """A controller that is to join has an empty log and knows nobody."""
    core = scripted_core(membership=Membership(()))
    for _ in range(5 * ELECTION_TICKS):
        core.tick()
    assert core.role is Role.FOLLOWER
    assert core.take_messages() == []


def test_follower_answers_heartbeats_while_its_disk_is_busy() -> None:
    """A slow disk must not make a follower look dead."""
    script = CoreScript()
    leader = script.elect(1)
    script.propose(1, b"job")
    (append,) = script.sent(Append, to=2)
    script.deliver(append)
    script.wire.clear()
    script.nodes[2].take(Heartbeat(sender=1, to=2, term=leader.term, commit=0, round=4))
    assert script.wire == [HeartbeatReply(sender=2, to=1, term=leader.term, round=4)]
