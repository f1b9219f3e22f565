"""Simulated agents: they launch each attempt once, and report its end until they are heard.

An agent outlives the controllers' failovers; it is the judge of "never twice": the same run
launched by two attempts that both ran is a violation, whoever asked for it.
"""

from __future__ import annotations

from collections import deque

from spur.projections.dispatch import KillRun, LaunchRun
from spur.projections.react import Effect
from spur.testing.simulation.callers import Caller, Outcome
from spur.testing.simulation.checks import Violation
from spur.testing.simulation.world import World
from spur.values.ids import JobId, NodeName
from spur.values.states import NodeShareState
from spur.wire.declare import Answer
from spur.wire.runs import ReportAnswered, ReportRun

__all__ = ["Agent"]


class Agent:
    """The agent of one node."""

    def __init__(self, world: World, caller: Caller, node: NodeName) -> None:
        self.node = node
        self.ran: dict[tuple[JobId, int], int] = {}
        """Attempt by (job, run) of everything that ran here."""
        self._world = world
        self._caller = caller
        self._outbox = world.rng.randbytes(16)
        self._number = 0
        self._queue: deque[ReportRun] = deque()
        self._ended: set[tuple[JobId, int, int]] = set()
        self._voided: set[tuple[JobId, int, int]] = set()

    def perform(self, effect: Effect) -> None:
        """Take an effect addressed to this node; each may come several times."""
        if isinstance(effect, LaunchRun):
            self._launch(effect.job_id, effect.run, effect.attempt)
        elif isinstance(effect, KillRun):
            self._kill(effect.job_id, effect.run, effect.attempt)

    def _launch(self, job_id: JobId, run: int, attempt: int) -> None:
        name = (job_id, run, attempt)
        if name in self._voided or self.ran.get((job_id, run)) == attempt:
            return
        if (job_id, run) in self.ran:
            raise Violation(f"run {run} of job {job_id} was launched twice on {self.node}")
        self.ran[job_id, run] = attempt
        self._world.after(self._world.rng.random() * 2.0, self._end, name, 0)

    def _kill(self, job_id: JobId, run: int, attempt: int) -> None:
        name = (job_id, run, attempt)
        if self.ran.get((job_id, run)) == attempt:
            self._world.after(0.01, self._end, name, 15)
        elif name not in self._voided:
            self._voided.add(name)
            self._report(name, NodeShareState.VOID, 0)

    def _end(self, name: tuple[JobId, int, int], signal: int) -> None:
        if name not in self._ended:
            self._ended.add(name)
            self._report(name, NodeShareState.ENDED, signal)

    def _report(self, name: tuple[JobId, int, int], state: NodeShareState, signal: int) -> None:
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

    def _send(self) -> None:
        self._caller.ask(self._queue[0], self._answered, patience_s=30.0)

    def _answered(self, outcome: Outcome) -> None:
        if outcome is None:
            self._send()
            return
        if isinstance(outcome, Answer) and not isinstance(outcome, ReportAnswered):
            raise Violation(f"a report was answered with {outcome}")
        if not isinstance(outcome, Answer):
            raise Violation(f"a report was refused: {outcome}")
        self._queue.popleft()
        if self._queue:
            self._send()
