"""Three cores, whose messages are passed by hand, elect one leader and commit."""

from __future__ import annotations

import random

from spur.consensus.core import Core, CoreSettings, HardState, Role
from spur.consensus.membership import Member, Membership
from spur.events.envelope import Entry


def start(me: int, voters: int) -> Core:
    members = tuple(
        Member(number, b"disk-%d" % number, True, f"h{number}:1", f"h{number}:2")
        for number in range(1, voters + 1)
    )
    return Core(
        me=me,
        settings=CoreSettings(),
        rng=random.Random(me),
        hard=HardState(0, 0),
        membership=Membership(members),
        base_index=0,
        base_term=0,
        entries=(),
        commit=0,
    )


def settle(cores: dict[int, Core]) -> None:
    moved = True
    while moved:
        moved = False
        for core in cores.values():
            messages = core.take_messages()
            ready = core.ready()
            if ready is not None:
                core.persisted(ready)
                messages.extend(ready.after)
                moved = True
            for message in messages:
                cores[message.to].step(message)
                moved = True


def test_three_replicas_elect_one_leader_and_commit_what_it_proposes() -> None:
    """Somebody starts three fresh controllers and submits to the one that leads."""
    cores = {me: start(me, 3) for me in (1, 2, 3)}
    while not any(core.role is Role.LEADER for core in cores.values()):
        for core in cores.values():
            core.tick()
        settle(cores)
    (leader,) = [core for core in cores.values() if core.role is Role.LEADER]
    taken = leader.propose(2, b"first")
    settle(cores)
    leader.tick()
    settle(cores)
    assert taken == Entry(2, leader.term, 2, b"first")
    assert [core.commit for core in cores.values()] == [2, 2, 2]
    assert [core.entry(2) for core in cores.values()] == [taken] * 3
