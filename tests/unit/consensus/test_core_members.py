"""Membership: acts when appended, falls back when truncated, changes one voter at a time."""

from __future__ import annotations

import pytest

from spur.consensus.membership import Member, Membership, member_id_at
from spur.consensus.messages import Append, Heartbeat
from spur.consensus.port import Refusal
from spur.events.envelope import Entry, EntryKind
from spur.testing.simulation.core_script import CoreScript, membership_of, scripted_core
from spur.values.errors import InvariantBroken

MEMBERSHIP = int(EntryKind.MEMBERSHIP)


def change(index: int, term: int, membership: Membership) -> Entry:
    return Entry(index, term, MEMBERSHIP, membership.encode())


def test_membership_acts_when_it_is_appended() -> None:
    """A learner is promoted; before that entry is committed its acknowledgement counts."""
    script = CoreScript((1, 2), learners=(3,))
    leader = script.elect(1)
    leader.propose(MEMBERSHIP, membership_of((1, 2, 3)).encode())
    assert leader.members.voters() == (1, 2, 3)
    script.crash(2)
    script.nodes[1].pump()
    script.settle()
    assert leader.commit == 3


def test_truncated_membership_falls_back() -> None:
    """A follower has a change of members that the next leader never saw."""
    core = scripted_core()
    core.step(Append(2, 1, 1, 0, 0, 0, 0, (Entry(1, 1, 0, b""),)))
    core.step(Append(2, 1, 1, 1, 1, 0, 0, (change(2, 1, membership_of((1, 2))),)))
    assert core.members == membership_of((1, 2))
    core.step(Append(3, 1, 2, 1, 1, 0, 0, (Entry(2, 2, 0, b""),)))
    assert core.members == membership_of((1, 2, 3))


def test_removed_replica_that_is_put_back_by_a_truncation_campaigns_again() -> None:
    """The removal of this replica is replaced before it was committed."""
    core = scripted_core(entries=(Entry(1, 1, 0, b""),), commit=1)
    core.step(Append(2, 1, 1, 1, 1, 1, 0, (change(2, 1, membership_of((2, 3))),)))
    core.step(Append(3, 1, 2, 1, 1, 1, 0, (Entry(2, 2, 0, b""),)))
    for _ in range(20):
        core.tick()
    assert len(core.take_messages()) > 0


def test_membership_is_kept_over_a_restart_and_a_trim() -> None:
    """The newest membership is in the log; then it is trimmed out of memory."""
    script = CoreScript((1,), learners=(2,))
    leader = script.elect(1)
    leader.propose(MEMBERSHIP, membership_of((1, 2)).encode())
    script.settle()
    script.propose(1, b"job")
    script.settle()
    script.nodes[1].trim(0)
    assert leader.first == 5
    assert leader.members == membership_of((1, 2))
    script.crash(1)
    script.restart(1)
    assert script.core(1).members == membership_of((1, 2))


def test_membership_waits_for_the_no_op_of_the_term() -> None:
    """Changing members before that could commit two memberships that do not overlap."""
    script = CoreScript((1,))
    script.tick(1)
    script.nodes[1].written()
    leader = script.core(1)
    assert leader.is_leader
    assert not leader.no_op_committed
    body = membership_of((1,), learners=(member_id_at(3),)).encode()
    assert leader.propose(MEMBERSHIP, body) == Refusal("wrong-membership", 1)
    script.sync(1)
    assert leader.no_op_committed
    assert isinstance(leader.propose(MEMBERSHIP, body), Entry)


def test_one_change_is_under_way_at_a_time() -> None:
    """A second change comes before the first is committed."""
    script = CoreScript()
    leader = script.elect(1)
    leader.propose(MEMBERSHIP, membership_of((1, 2), learners=(3,)).encode())
    body = membership_of((1,), learners=(2, 3)).encode()
    assert leader.propose(MEMBERSHIP, body) == Refusal("wrong-membership", 1)
    fault = leader.membership_fault(Entry(4, 1, MEMBERSHIP, body))
    assert fault == "the last change of members is not committed yet"
    script.nodes[1].pump()
    script.settle()
    assert isinstance(leader.propose(MEMBERSHIP, body), Entry)


@pytest.mark.parametrize(
    ("members", "fault"),
    [
        (membership_of((1,)), "more than one voter would change"),
        (membership_of((1, 2, 3), learners=(9,)), "a new member's id is 18, not 9"),
        (
            Membership((*membership_of((1, 2)).members, Member(3, b"other", True, "h3:1", "h3:2"))),
            "member 3 has another disk: it needs a new id",
        ),
        (Membership(()), "membership entry: at least one member must be a voter"),
        (
            Membership(tuple(reversed(membership_of((1, 2, 3)).members))),
            "membership entry: ids must rise, not [3, 2, 1]",
        ),
        (Membership((Member(0, b"", True, "", ""),)), "membership entry: ids start at 1, not [0]"),
    ],
)
def test_wrong_membership_is_refused_with_a_reason(members: Membership, fault: str) -> None:
    """An operator asks for a membership that could split the cluster, or reuse an id."""
    script = CoreScript()
    leader = script.elect(1)
    body = members.encode()
    assert leader.propose(MEMBERSHIP, body) == Refusal("wrong-membership", 1)
    assert leader.membership_fault(Entry(3, 1, MEMBERSHIP, body)) == fault
    assert leader.last == 2


def test_new_member_is_filled_from_the_start() -> None:
    """A controller with an empty disk joins as a learner, and is promoted later."""
    script = CoreScript()
    leader = script.elect(1)
    script.propose(1, *[b"%d" % number for number in range(5)])
    script.settle()
    new = member_id_at(leader.last + 1)
    leader.propose(MEMBERSHIP, membership_of((1, 2, 3), learners=(new,)).encode())
    script.join(new)
    script.nodes[1].pump()
    script.settle()
    script.beat(1)
    assert script.core(new).commit == leader.commit
    assert script.histories[new] == leader.entries(1, leader.last)
    leader.propose(MEMBERSHIP, membership_of((1, 2, 3, new)).encode())
    script.nodes[1].pump()
    script.settle()
    assert leader.commit == leader.last
    assert script.core(new).members.voters() == (1, 2, 3, new)


def test_leader_that_removed_itself_leads_until_that_is_committed() -> None:
    """The last thing that a leader does is to commit its own removal, without counting itself."""
    script = CoreScript()
    leader = script.elect(1)
    script.crash(3)
    leader.propose(MEMBERSHIP, membership_of((2, 3)).encode())
    script.nodes[1].pump()
    script.settle()
    assert leader.is_leader
    assert leader.commit == 2
    script.restart(3)
    for _ in range(script.settings.resend_ticks):
        script.beat(1)
    assert not leader.is_leader
    assert leader.commit == 3


def test_acknowledgements_of_a_removed_voter_do_not_count() -> None:
    """Of three voters one is removed and one is dead: what the removed one has is no quorum."""
    script = CoreScript()
    leader = script.elect(1)
    leader.propose(MEMBERSHIP, membership_of((1, 2)).encode())
    script.nodes[1].pump()
    script.settle()
    script.crash(2)
    (entry,) = script.propose(1, b"job")
    script.settle()
    assert (leader.commit, leader.match(3)) == (entry.index - 1, 0)


def test_membership_bytes_are_read_back() -> None:
    """The body of a membership entry is kept for ever."""
    membership = membership_of((1, 2), learners=(17,))
    assert Membership.decode(membership.encode()) == membership
    assert membership.peers_of(2) == (1, 17)
    assert membership.member(17) == membership.members[2]
    assert membership.member(3) is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x00",
        membership_of((1,)).encode() + b"\x00",
        b"\x93\x02" + membership_of((1,)).encode()[2:],
        b"\x94" + membership_of((1,)).encode()[1:] + b"\x00",
    ],
)
def test_unreadable_membership_stops_the_reader(body: bytes) -> None:
    """Bytes that are no membership, of a later format, or with elements too many."""
    with pytest.raises(InvariantBroken, match="membership entry"):
        Membership.decode(body)


def test_follower_of_a_leader_outside_its_membership_obeys() -> None:
    """A replica far behind does not know yet that the present leader was ever added."""
    core = scripted_core()
    core.step(Heartbeat(sender=40, to=1, term=3, commit=0, round=0))
    assert (core.leader, core.term) == (40, 3)
