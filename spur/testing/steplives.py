"""Mixed lives of jobs with steps: `Lifecycles`, and what srun and agents do to steps besides.

lives = StepLives(Hall(), seed=7)
lives.run(1_000)
"""

from __future__ import annotations

from msgspec.structs import replace

from spur.projections.stepdispatch import KillStep, LaunchStep
from spur.testing.builders import actor
from spur.testing.hall import STEP, Hall
from spur.testing.lifecycles import WEIGHTS, Lifecycles
from spur.values.errors import Rejection
from spur.values.ids import JobId
from spur.values.states import NodeShareState
from spur.values.steps import Dealing
from spur.values.tres import GresAsk, Per
from spur.wire.steps import (
    CancelStep,
    ReleaseAllocation,
    ReportStep,
    SignalStep,
    StartStep,
    StepAccepted,
    StepAsk,
)

__all__ = ["STEP_WEIGHTS", "StepLives"]

STEP_WEIGHTS: dict[str, int] = {
    **WEIGHTS,
    "start_step": 20,
    "answer_step": 24,
    "answer_step_again": 2,
    "cancel_step": 2,
    "signal_step": 1,
    "release_allocation": 2,
}
"""How often each kind of step of the story is drawn."""


class StepLives(Lifecycles):
    """One story under one seed."""

    def __init__(self, hall: Hall, *, seed: int, weights: dict[str, int] | None = None) -> None:
        """Begin a story; `weights` replaces how often each kind of step is drawn."""
        super().__init__(hall, seed=seed, weights=STEP_WEIGHTS if weights is None else weights)
        #: Steps that were started, ended ones too.
        self._steps: list[tuple[JobId, int]] = []
        #: What agents were told of steps and have not dealt with.
        self._step_inbox: list[LaunchStep | KillStep] = []
        self._steps_told = 0
        self._steps_sent: list[ReportStep] = []

    def settle(self) -> None:
        """Let agents answer all that they were told of steps and runs."""
        self._read_step_inbox()
        while self._step_inbox:
            self._answer_step()
            self._read_step_inbox()
        super().settle()

    # -- srun
    def _step_ask(self) -> StepAsk:
        rng = self._rng
        return replace(
            STEP,
            tasks=rng.choice((0, 1, 1, 2, 3)),
            nodes_min=rng.choice((0, 0, 1, 2)),
            cpus_per_task=rng.choice((0, 1, 2)),
            memory_mib=rng.choice((0, 0, 10, -1)),
            gres=rng.choice((None, (), (GresAsk("gpu", "", 1, Per.NODE),))),
            nodes_required=rng.choice(("", "", "n1", "n[1-2]")),
            dealing=rng.choice(tuple(Dealing)),
            exact=rng.random() < 0.6,
            overlaps=rng.random() < 0.2,
            overcommits=rng.random() < 0.1,
        )

    def _start_step(self) -> None:
        rng = self._rng
        held = self.hall.state.allocations.jobs()
        job_id = rng.choice(held) if held and rng.random() < 0.9 else self._draw(self._jobs)
        job = self.hall.state.jobs.get(job_id)
        who = actor(job.uid if job is not None and rng.random() < 0.95 else 1009)
        limit_s = rng.choice((0, 0, 30))
        request = StartStep(job_id, "sleep", self._step_ask(), limit_s, rng.randbytes(32))
        outcome = self.hall.cluster.ask(request, who)
        if isinstance(outcome, StepAccepted):
            self._steps.append((job_id, outcome.step_id))
        elif isinstance(outcome, Rejection):
            self._count(outcome.code)

    def _drawn_step(self) -> tuple[JobId, int]:
        return self._rng.choice(self._steps) if self._steps else (JobId(1), 0)

    def _cancel_step(self) -> None:
        self._ask(CancelStep(*self._drawn_step()))

    def _signal_step(self) -> None:
        self._ask(SignalStep(*self._drawn_step(), self._rng.choice((10, 12, 70))))

    def _release_allocation(self) -> None:
        job_id = self._draw(self._jobs)
        self._ask(ReleaseAllocation(job_id, self._rng.choice((0, 3)), 0))

    # -- agents
    def _read_step_inbox(self) -> None:
        effects = self.hall.cluster.effects
        told = effects[self._steps_told :]
        self._step_inbox.extend(e for e in told if isinstance(e, LaunchStep | KillStep))
        self._steps_told = len(effects)

    def _answer_step(self) -> None:
        """Let one agent deal with one thing it was told of a step."""
        self._read_step_inbox()
        if not self._step_inbox:
            return
        rng = self._rng
        told = self._step_inbox.pop(rng.randrange(len(self._step_inbox)))
        ended = NodeShareState.ENDED
        states = (ended, ended, ended, NodeShareState.LAUNCHED, NodeShareState.VOID)
        state = rng.choice(states) if isinstance(told, LaunchStep) else ended
        step_id = told.step.step_id if isinstance(told, LaunchStep) else told.step_id
        report = self.hall.next_step_report(
            told.node,
            told.job_id,
            step_id,
            state,
            exit_code=rng.choice((0, 0, 1)),
            signal=rng.choice((0, 0, 9)),
            age_ns=rng.choice((0, 5_000_000)),
        )
        report = replace(report, run=told.run, attempt=told.attempt)
        self._steps_sent.append(report)
        del self._steps_sent[:-64]
        self._count(self.hall.deliver(report))
        if state is NodeShareState.LAUNCHED:
            self._step_inbox.append(told)  # It ends in another step of the story.

    def _answer_step_again(self) -> None:
        """Send a report a second time, as after a lost answer."""
        if self._steps_sent:
            self._count(self.hall.deliver(self._rng.choice(self._steps_sent)))
