"""What agents are told of steps."""

from __future__ import annotations

from spur.projections.stepdispatch import KillStep, LaunchStep, LetIn, SignalStep
from spur.projections.steporders import step_order
from spur.testing.hall import STEP, USER, Hall
from spur.values.steps import StepState
from spur.wire.agents import KillStepOrder, LaunchStepOrder, LetInOrder, SignalStepOrder
from spur.wire.steps import AdmitGuest, CancelStep
from spur.wire.steps import SignalStep as SendSignal
from spur.wire.streams import key_digest


def test_each_effect_becomes_the_order_of_its_node() -> None:
    """A step is started, signalled and cancelled; its node is told all that it must know."""
    hall = Hall()
    job_id = hall.start(hall.submit(), hall.share("n2", cpus=2))
    step_id = hall.start_step(job_id, STEP)
    hall.cluster.ask(SendSignal(job_id, step_id, 10), USER)
    hall.cluster.ask(CancelStep(job_id, step_id), USER)
    hall.cluster.ask(AdmitGuest(job_id, step_id, bytes(32)), USER)
    kinds = LaunchStep | SignalStep | KillStep | LetIn
    effects = [e for e in hall.cluster.effects if isinstance(e, kinds)]
    launch, signal, kill, let_in = (step_order(hall.state, effect, 77) for effect in effects)
    assert isinstance(launch, LaunchStepOrder)
    assert (launch.node, launch.uid, launch.attempt, launch.tasks) == ("n2", 1001, 1, (1,))
    assert (launch.cluster_name, launch.kill_wait_s, launch.key_digest) == (
        "hall",
        30,
        key_digest(bytes(32)),
    )
    assert launch.shares == hall.steps(job_id)[0].shares
    assert signal == SignalStepOrder(launch.node, job_id, 0, 1, step_id, 10, 77)
    assert let_in == LetInOrder(launch.node, job_id, 0, 1, step_id, key_digest(bytes(32)))
    assert kill == KillStepOrder(launch.node, job_id, 0, 1, step_id, StepState.CANCELLED, 0)
