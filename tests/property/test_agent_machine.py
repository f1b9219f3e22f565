"""What an agent does, whatever dies when: nothing runs twice, and everything is told in the end."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from spur.testing.agentworld import AgentWorld

WEIGHTS = {
    "submit": 6,
    "step": 24,
    "step_supervisor": 4,
    "step_report": 16,
    "start_step": 6,
    "cancel": 2,
    "repeat_order": 3,
    "give_up": 1,
    "kill_supervisor": 1,
    "crash": 1,
    "reboot": 1,
}


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_every_attempt_runs_at_most_once_and_is_told(seed: int) -> None:
    """Orders come twice and late; agent, supervisors and machine die between any two steps.

    No attempt's code begins twice or beside an older attempt of its job, none is told void that
    ran or ended that lives, no number of a report is used twice, and in the end all is told.
    """
    world = AgentWorld(Random(seed))
    names, weights = list(WEIGHTS), list(WEIGHTS.values())
    for name in world.rng.choices(names, weights, k=250):
        getattr(world, name)()
    world.drain()
    assert [name for name in world.rows if world.is_open(name)] == []
    assert world.supervisors == []
    assert world.machine.alive == []
    assert {name: ran for name, ran in world.ran.items() if ran != 1} == {}
