"""The front and the controllers themselves: entries of their own kind, and a lead that moves on."""

from __future__ import annotations

import pytest

from spur.events.envelope import Entry, EntryKind
from spur.projections.apply import apply
from spur.testing.desk import Desk, furnished
from spur.values.members import Member, Membership, by_whom, member_id_at
from spur.wire.calls import Refused
from spur.wire.controllers import (
    AddController,
    ControllerAdded,
    ControllerInfo,
    ControllerList,
    PromoteController,
    RemoveController,
)

MEMBERS = Membership(
    (
        Member(1, b"a", True, "h1:1", "h1:2", "c1"),
        Member(2, b"b", True, "h2:1", "h2:2", "c2"),
        Member(20, b"c", False, "h3:1", "h3:2", "c3"),
    )
)
NEW = AddController("c4", bytes(16), "h4:1", "h4:2")


@pytest.fixture
def desk() -> Desk:
    """Return a front that leads as the first of three, of whom one learns."""
    desk = furnished()
    entry = desk.log.propose(int(EntryKind.MEMBERSHIP), MEMBERS.encode(), ())
    assert isinstance(entry, Entry)
    apply(desk.front.state, entry)
    desk.turn()
    rows = tuple(
        ControllerInfo(
            node_id=each.id,
            name=each.name,
            disk_id=each.disk_id,
            voter=each.voter,
            raft_address=each.raft_address,
            rpc_address=each.rpc_address,
            leads=each.id == 1,
            match=1,
            lag=0,
            history_from=1,
            erased_to=0,
            free_mib=100,
            heard_ms=0,
            has_authority=True,
        )
        for each in MEMBERS.members
    )
    desk.log.known = ControllerList(1, rows, b"genesis")
    return desk


def newest(desk: Desk) -> Entry:
    """Return the last entry of the log."""
    (entry,) = desk.log.entries(desk.log.last, desk.log.last)
    return entry


def test_controller_is_added_by_an_entry_that_says_who_asked(desk: Desk) -> None:
    """An administrator adds a controller; the answer waits for the commit."""
    desk.put(NEW)
    assert desk.replies == []
    entry = newest(desk)
    assert entry.kind == EntryKind.MEMBERSHIP
    added = Membership.decode(entry.body).named("c4")
    assert added is not None
    assert added.id == member_id_at(entry.index)
    who = by_whom(entry.body)
    assert who is not None
    assert (who.uid, who.host_role) == (0, "controller")
    desk.turn()
    answer = desk.answer()
    assert isinstance(answer, ControllerAdded)
    assert answer.node_id == added.id
    assert Membership.decode(answer.members).named("c4") == added


def test_controller_asked_for_twice_is_one(desk: Desk) -> None:
    """The same request comes again while the first is not committed."""
    desk.put(NEW)
    desk.put(NEW)
    last = desk.log.last
    desk.turn()
    first, second = desk.replies
    assert first.outcome == second.outcome
    assert desk.log.last == last


def test_change_that_the_log_does_not_take_is_undone(desk: Desk) -> None:
    """Too much waits to be committed."""
    before = desk.front.state.membership[1]
    desk.log.is_full = True
    desk.put(NEW)
    desk.turn()
    assert desk.refusal().code == "busy"
    assert desk.front.state.membership[1] == before


def test_level_learner_is_promoted_by_the_leader_itself(desk: Desk) -> None:
    """Nobody has to ask."""
    desk.log.learner = 20
    desk.front.on_tick()
    promoted = Membership.decode(newest(desk).body).member(20)
    assert promoted is not None
    assert promoted.voter
    who = by_whom(newest(desk).body)
    assert who is not None
    assert who.host_role == "cluster"


def test_removal_of_the_leader_is_asked_of_the_next_one(desk: Desk) -> None:
    """The lead is handed over first; the caller is sent to whoever leads then."""
    desk.log.may_hand_over = True
    desk.put(RemoveController("c1"))
    desk.turn()
    assert desk.replies == []
    desk.front.following(2)
    assert desk.refusal().code == "not-leader"


def test_lead_that_nobody_takes_stays(desk: Desk) -> None:
    """No other voter could lead; or one could, and did not come to it."""
    desk.put(RemoveController("c1"))
    desk.turn()
    assert desk.refusal() == Refused(
        "busy",
        "no other voter could lead now; nothing was changed",
        "ask again when all of them are level",
    )
    desk.log.may_hand_over = True
    desk.put(RemoveController("c1"))
    desk.log.is_handing_over = False
    desk.front.on_tick()
    desk.turn()
    assert desk.refusal().text == "the lead could not be handed over; nothing was changed"


def test_promotion_of_a_stranger_is_refused(desk: Desk) -> None:
    """Somebody mistypes a name."""
    desk.put(PromoteController("c7"))
    desk.turn()
    assert desk.refusal().code == "unknown-controller"
