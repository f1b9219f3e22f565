"""A signal for what has not begun yet is not lost, and one for what is over is not sent."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from spur.agent.actions import Action, Kill, Signal
from spur.agent.machine import Machine, Outbox, Stage
from spur.agent.manifest import AttemptName
from spur.testing.orders import kill_order, order_for, orders, step_order
from spur.values.ids import JobId, NodeName
from spur.values.states import Reach
from spur.wire.agents import Order, SignalOrder, SignalStepOrder

N1, JOB = NodeName("n1"), JobId(1)
RUN = AttemptName(N1, JOB, 0, None, 1)
STEP = RUN._replace(step=0)

TO_STEPS = SignalOrder(N1, JOB, 0, 1, signal.SIGUSR2, Reach.STEPS, 20)
TO_SCRIPT = SignalOrder(N1, JOB, 0, 1, signal.SIGUSR2, Reach.SCRIPT, 20)
TO_ALL = SignalOrder(N1, JOB, 0, 1, signal.SIGUSR2, Reach.ALL, 20)
TO_STEP = SignalStepOrder(N1, JOB, 0, 1, 0, signal.SIGUSR2, 20)

TOLD_TO: dict[Order, tuple[AttemptName, ...]] = {
    TO_STEPS: (STEP,),
    TO_SCRIPT: (RUN,),
    TO_ALL: (RUN, STEP),
    TO_STEP: (STEP,),
}

WAYS: dict[Stage, tuple[Callable[[Machine, AttemptName], list[Action]], ...]] = {
    Stage.PREPARING: (),
    Stage.FORKING: (Machine.prepared,),
    Stage.STARTED: (Machine.prepared, Machine.forked),
}
"""What happened to an attempt that is this far."""

REST: dict[Stage, tuple[Callable[[Machine, AttemptName], list[Action]], ...]] = {
    Stage.PREPARING: (Machine.prepared, Machine.forked, Machine.claimed),
    Stage.FORKING: (Machine.forked, Machine.claimed),
    Stage.STARTED: (Machine.claimed,),
}
"""What happens to it until its processes run."""


class Node:
    """A machine with a run and a step of it, both so far."""

    def __init__(self, stage: Stage) -> None:
        self.machine = Machine("boot", {N1: Outbox(id=b"o" * 16)})
        self.number = 0
        self.sent: list[AttemptName] = []
        self.take(order_for("n1", 1), step_order("n1", 1, 0))
        self.do(WAYS[stage])

    def do(self, ways: tuple[Callable[[Machine, AttemptName], list[Action]], ...]) -> None:
        for way in ways:
            for name in (RUN, STEP):
                self.note(way(self.machine, name))

    def take(self, *told: Order) -> list[Action]:
        actions = self.machine.take(orders(*told, first=self.number + 1))
        self.number += len(told)
        self.note(actions)
        return actions

    def note(self, actions: list[Action]) -> None:
        self.sent += [each.name for each in actions if isinstance(each, Signal)]


@pytest.mark.parametrize("stage", WAYS, ids=lambda stage: stage.name)
@pytest.mark.parametrize("order", TOLD_TO, ids=("steps", "script", "all", "step"))
def test_signal_waits_for_what_begins(order: Order, stage: Stage) -> None:
    """Processes that show themselves before their agent has heard of them get it as well, once."""
    node = Node(stage)
    node.take(order)
    assert node.sent == []
    node.do(REST[stage])
    assert tuple(node.sent) == TOLD_TO[order]
    node.take(order)
    assert tuple(node.sent) == TOLD_TO[order]


@pytest.mark.parametrize("order", TOLD_TO, ids=("steps", "script", "all", "step"))
def test_signal_reaches_what_runs_at_once(order: Order) -> None:
    """Nothing is kept once the processes are there."""
    node = Node(Stage.STARTED)
    node.do(REST[Stage.STARTED])
    node.take(order)
    assert tuple(node.sent) == TOLD_TO[order]


def test_signals_come_in_their_order_and_before_the_end() -> None:
    """A kill that came after signals finds them sent."""
    machine = Node(Stage.STARTED).machine
    first = SignalOrder(N1, JOB, 0, 1, signal.SIGUSR1, Reach.SCRIPT, 20)
    second = SignalOrder(N1, JOB, 0, 1, signal.SIGUSR2, Reach.SCRIPT, 21)
    machine.take(orders(first, second, kill_order("n1", 1), first=10))
    # The kill tries to take the claim; the supervisor was quicker.
    actions = machine.voided(RUN, won=False)
    told = [type(each) for each in actions if isinstance(each, Signal | Kill)]
    assert told == [Signal, Signal, Kill]
    numbers = [each.signal for each in actions if isinstance(each, Signal)]
    assert numbers == [signal.SIGUSR1, signal.SIGUSR2]
