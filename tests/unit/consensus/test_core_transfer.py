"""Handing the lead over on purpose."""

from __future__ import annotations

from spur.consensus.messages import AppendReply, TimeoutNow, Vote
from spur.consensus.port import Refusal
from spur.testing.simulation.core_script import CoreScript


def test_lead_is_handed_to_a_voter_that_has_everything() -> None:
    """An operator restarts the controller that leads."""
    script = CoreScript()
    leader = script.elect(1)
    assert leader.transfer(2)
    script.nodes[1].pump()
    script.settle()
    assert script.core(2).is_leader
    assert not leader.is_leader
    assert {script.core(number).term for number in (1, 2, 3)} == {2}


def test_transfer_waits_until_the_voter_has_everything() -> None:
    """The successor lacks a submission: it would lose the election, or the submission."""
    script = CoreScript()
    leader = script.elect(1)
    (entry,) = script.propose(1, b"job")
    assert leader.transfer(2)
    script.nodes[1].pump()
    assert script.sent(TimeoutNow) == []
    script.settle()
    assert script.core(2).is_leader
    assert entry in script.core(2).entries(1, script.core(2).last)


def test_proposals_rest_during_a_transfer() -> None:
    """A submission comes while the lead moves: it is to be tried again at once."""
    script = CoreScript()
    leader = script.elect(1)
    leader.transfer(2)
    assert leader.propose(2, b"job") == Refusal("transferring", 1)
    assert leader.transferring_to == 2


def test_transfer_to_a_dead_voter_is_given_up_after_an_election_timeout() -> None:
    """The chosen successor does not answer; the leader goes on."""
    script = CoreScript()
    leader = script.elect(1)
    script.crash(2)
    assert leader.transfer(2)
    for _ in range(script.settings.election_ticks):
        script.tick(1)
        script.settle()
    assert leader.transferring_to == 0
    assert not isinstance(leader.propose(2, b"job"), Refusal)


def test_lost_order_to_campaign_is_repeated() -> None:
    """The message that hands over the lead is lost once."""
    script = CoreScript()
    leader = script.elect(1)
    leader.transfer(2)
    script.nodes[1].pump()
    assert script.drop(TimeoutNow) == 1
    script.beat(1)
    assert script.core(2).is_leader


def test_voters_hear_a_successor_although_they_hear_the_leader() -> None:
    """The vote request of a transfer says so; others of that moment are not heard."""
    script = CoreScript()
    leader = script.elect(1)
    leader.transfer(2)
    script.nodes[1].pump()
    for message in script.sent(TimeoutNow):
        script.deliver(message)
    script.sync(2)
    assert [vote.transfer for vote in script.sent(Vote)] == [True, True]
    (request,) = script.sent(Vote, to=3)
    script.deliver(request)
    script.sync(3)
    assert script.core(3).vote == 2


def test_transfer_to_who_cannot_lead_is_refused() -> None:
    """To itself, a learner, a stranger; and asked of a follower."""
    script = CoreScript((1, 2), learners=(3,))
    leader = script.elect(1)
    assert not leader.transfer(1)
    assert not leader.transfer(3)
    assert not leader.transfer(9)
    assert not script.core(2).transfer(1)
    assert leader.transferring_to == 0


def test_successor_that_must_not_lead_does_not_campaign() -> None:
    """The successor's clock is off; the lead stays where it is."""
    script = CoreScript()
    leader = script.elect(1)
    script.core(2).may_campaign = False
    leader.transfer(2)
    for _ in range(script.settings.election_ticks):
        script.beat(1)
    assert leader.is_leader
    assert leader.transferring_to == 0


def test_transfer_ends_when_the_successor_is_removed() -> None:
    """A successor that lost its entries can't be waited for."""
    script = CoreScript()
    leader = script.elect(1)
    script.propose(1, b"job")
    leader.transfer(2)
    leader.step(
        AppendReply(2, 1, leader.term, prev=2, index=0, refused=True, hint_term=0, lost=True)
    )
    assert leader.transferring_to == 0


def test_second_transfer_replaces_the_first() -> None:
    """An operator changes their mind about who shall lead."""
    script = CoreScript()
    leader = script.elect(1)
    script.crash(2)
    leader.transfer(2)
    assert leader.transfer(3)
    script.nodes[1].pump()
    script.settle()
    assert script.core(3).is_leader
