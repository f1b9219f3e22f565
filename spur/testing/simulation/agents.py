"""Simulated agents: they launch each attempt once, and report its end until they are heard.

An agent outlives the controllers' failovers and is the judge of what really ran: the same run
launched by two attempts that both lived is a violation, and so is a run recorded as ended while its
process lives here. A step lives within its run: it is launched once, where its run lives, and its
end is reported before that of the run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from spur.projections.dispatch import KillRun, LaunchRun
from spur.projections.react import Effect
from spur.projections.stepdispatch import KillStep, LaunchStep
from spur.testing.simulation.callers import FOR_EVER, Caller, Callers, Outcome, agent
from spur.testing.simulation.member import Violation
from spur.testing.simulation.world import World
from spur.values.ids import JobId, NodeName
from spur.values.states import NodeShareState
from spur.wire.calls import Refused
from spur.wire.declare import Answer
from spur.wire.nodes import RegisterNode
from spur.wire.runs import ReportAnswered, ReportRun
from spur.wire.steps import ReportStep

__all__ = ["Agent"]

Name = tuple[JobId, int, int]
"""Job, run, attempt."""

StepName = tuple[JobId, int, int, int]
"""Job, run, attempt, step."""


class Agent:
    """The agent of one node."""

    def __init__(self, world: World, callers: Callers, node: NodeName) -> None:
        self.node = node
        self.alive: set[Name] = set()
        """What has a process here."""
        self.ran: dict[tuple[JobId, int], int] = {}
        """Attempt by (job, run) of everything that ever had one."""
        self.is_there = False
        """It has registered."""
        self.is_silent = False
        """Nothing comes through to it or from it."""
        self.silent_since_s = 0.0
        self._world = world
        self._callers = callers
        self._caller: Caller
        self._boot_id = world.rng.randbytes(16)
        self._outbox = world.rng.randbytes(16)
        self._number = 0
        self._queue: deque[ReportRun | ReportStep] = deque()
        self._steps: dict[StepName, bool] = {}
        """Steps that were launched or voided here, and whether each still lives."""
        self._ended: set[Name] = set()
        self._voided: set[Name] = set()

    @property
    def unheard(self) -> int:
        """How many reports nobody has answered yet."""
        return len(self._queue)

    def register(self, host_id: int, done: Callable[[], None]) -> None:
        """Take the host's identity and say that the node is there."""
        self._caller = self._callers.caller(agent(host_id))
        self.is_there = True
        self._say_it_is_there(done)

    def _say_it_is_there(self, done: Callable[[], None]) -> None:
        request = RegisterNode(self.node, self._boot_id, 2, 4096, "", 0)

        def registered(outcome: Outcome) -> None:
            if isinstance(outcome, Refused) and outcome.code == "outcome-unknown":
                self._say_it_is_there(done)
            elif isinstance(outcome, Answer):
                done()
            else:
                raise Violation(f"node {self.node} was refused: {outcome}")

        self._caller.ask(request, registered, patience_s=FOR_EVER)

    def fall_silent(self, seconds: float) -> None:
        """Be cut off for a while; what runs goes on, and what has ended is reported later."""
        if self.is_there and not self.is_silent:
            self.is_silent, self.silent_since_s = True, self._world.now_s
            self._world.after(seconds, self._come_back)

    def _come_back(self) -> None:
        self.is_silent = False
        self._say_it_is_there(lambda: None)

    # -- what it is told
    def perform(self, effect: Effect) -> None:
        """Take an effect addressed to this node; each may come several times."""
        if isinstance(effect, LaunchRun):
            self._launch((effect.job_id, effect.run, effect.attempt))
        elif isinstance(effect, KillRun):
            self._kill((effect.job_id, effect.run, effect.attempt))
        elif isinstance(effect, LaunchStep):
            run = (effect.job_id, effect.run, effect.attempt)
            self._launch_step((*run, effect.step.step_id))
        elif isinstance(effect, KillStep):
            self._end_step((effect.job_id, effect.run, effect.attempt, effect.step_id), 9)

    def _launch(self, name: Name) -> None:
        job_id, run, attempt = name
        if name in self._voided or self.ran.get((job_id, run)) == attempt:
            return
        if (job_id, run) in self.ran:
            raise Violation(f"run {run} of job {job_id} was launched twice on {self.node}")
        rng = self._world.rng
        if rng.random() < 0.1:
            self._void(name)
            return
        self._world.tell(self.node, "launches", name)
        self.ran[job_id, run] = attempt
        self.alive.add(name)
        if rng.random() < 0.5:
            self._report(name, NodeShareState.LAUNCHED, 0)
        self._world.after(rng.random() * rng.choice((0.5, 2.0, 8.0)), self._end, name, 0)

    def _launch_step(self, name: StepName) -> None:
        if name in self._steps:
            return
        if name[:3] not in self.alive:
            self._end_step(name, 0)
            return
        self._world.tell(self.node, "launches step", name)
        self._world.counts["step launched"] += 1
        self._steps[name] = True
        if self._world.rng.random() < 0.5:
            self._report_step(name, NodeShareState.LAUNCHED, 0)
        self._world.after(self._world.rng.random() * 2.0, self._end_step, name, 0)

    def _end_step(self, name: StepName, signal: int) -> None:
        """End a step, or see to it that it never begins; say so once."""
        lives = self._steps.get(name)
        self._steps[name] = False
        if lives is None:
            self._report_step(name, NodeShareState.VOID, 0)
        elif lives:
            self._report_step(name, NodeShareState.ENDED, signal)

    def _kill(self, name: Name) -> None:
        job_id, run, attempt = name
        if self.ran.get((job_id, run)) == attempt:
            self._world.after(0.01, self._end, name, 15)
        elif name not in self._voided:
            self._void(name)

    def _void(self, name: Name) -> None:
        """Never launch this attempt, and say so."""
        self._voided.add(name)
        self._report(name, NodeShareState.VOID, 0)

    def _end(self, name: Name, signal: int) -> None:
        if name not in self._ended:
            self._world.tell(self.node, "has seen the end of", name)
            self._ended.add(name)
            self.alive.discard(name)
            for step in [each for each, lives in self._steps.items() if lives]:
                if step[:3] == name:
                    self._end_step(step, 9)
            self._report(name, NodeShareState.ENDED, signal)

    # -- what it reports
    def _report(self, name: Name, state: NodeShareState, signal: int) -> None:
        self._number += 1
        job_id, run, attempt = name
        self._queue.append(
            ReportRun(
                node=self.node,
                outbox=self._outbox,
                number=self._number,
                job_id=job_id,
                run=run,
                attempt=attempt,
                state=state,
                exit_code=0,
                signal=signal,
                out_of_memory=False,
                age_ns=int(self._world.rng.random() * 1e9),
            )
        )
        if len(self._queue) == 1:
            self._send()

    def _report_step(self, name: StepName, state: NodeShareState, signal: int) -> None:
        self._number += 1
        job_id, run, attempt, step_id = name
        self._queue.append(
            ReportStep(
                node=self.node,
                outbox=self._outbox,
                number=self._number,
                job_id=job_id,
                run=run,
                attempt=attempt,
                step_id=step_id,
                state=state,
                exit_code=0,
                signal=signal,
                out_of_memory=False,
                age_ns=int(self._world.rng.random() * 1e9),
            )
        )
        if len(self._queue) == 1:
            self._send()

    def _send(self) -> None:
        if self.is_silent:
            self._world.after(0.5, self._send)
        else:
            self._caller.ask(self._queue[0], self._answered, patience_s=10.0)

    def _answered(self, outcome: Outcome) -> None:
        if outcome is None or self.is_silent:
            # Not heard: the same report again, which its number makes harmless.
            self._send()
            return
        if not isinstance(outcome, ReportAnswered):
            raise Violation(f"a report was answered with {outcome}")
        self._world.counts[f"report {outcome.outcome}"] += 1
        self._queue.popleft()
        if self._queue:
            self._send()
