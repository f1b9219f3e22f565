"""Registers: held jobs whose nice value is written and read, each a linearizable register."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from spur.testing.simulation.callers import ADMINISTRATOR, Caller, Callers, Outcome
from spur.testing.simulation.linearizability import UNKNOWN, Operation, is_linearizable
from spur.testing.simulation.member import Violation
from spur.testing.simulation.plan import Plan
from spur.testing.simulation.world import World
from spur.values.ids import JobId
from spur.wire.calls import Refused
from spur.wire.declare import Request
from spur.wire.jobs import (
    JobChanges,
    JobFilter,
    JobPage,
    QueryJobs,
    UpdateJob,
    page_views,
)

__all__ = ["FIRST_VALUE", "Registers"]

FIRST_VALUE = 0
"""The nice value that a register is submitted with."""

PATIENCE_S = 6.0
BEFORE_ALL = JobId(0)
"""A query's slice begins above this id."""


def _step(state: Hashable, action: Hashable) -> tuple[Hashable, Hashable]:
    """What a register does: an int is written, None reads."""
    return (state, state) if action is None else (action, "written")


class Registers:
    """Clients that write and read the registers, and what they saw."""

    def __init__(self, world: World, callers: Callers, plan: Plan) -> None:
        self.history: list[Operation] = []
        self.is_stopped = False
        self._world = world
        self._callers = callers
        self._haste = plan.haste
        self._writes = plan.writes
        self._ids: list[JobId] = []
        self._value = FIRST_VALUE
        self._open: dict[int, Operation] = {}
        """What was begun and has no outcome yet, by its number."""
        self._number = 0

    def start(self, ids: list[JobId], clients: int) -> None:
        """Let this many clients begin."""
        self._ids = ids
        for _ in range(clients):
            caller = self._callers.caller(ADMINISTRATOR)
            self._world.after(self._world.rng.random() * self._haste, self._use, caller)

    def _use(self, caller: Caller) -> None:
        if self.is_stopped:
            return
        world = self._world
        job_id = world.rng.choice(self._ids)
        request: Request
        action: Hashable
        if world.rng.random() < self._writes:
            self._value += 1
            action = self._value
            request = UpdateJob(job_id, None, JobChanges(nice=self._value))
        else:
            action = None
            request = QueryJobs(JobFilter(job_ids=(job_id,)), BEFORE_ALL, 10)

        self._number += 1
        number = self._number
        self._open[number] = Operation(world.now_s, UNKNOWN, job_id, action, None)

        def done(outcome: Outcome) -> None:
            self._note(self._open.pop(number), outcome)
            world.after(world.rng.random() * 0.5 * self._haste, self._use, caller)

        world.counts["asked"] += 1
        caller.ask(request, done, patience_s=PATIENCE_S)

    def _note(self, operation: Operation, outcome: Outcome) -> None:
        if isinstance(outcome, Refused) and outcome.code != "outcome-unknown":
            raise Violation(f"a register was refused: {outcome}")
        if outcome is None or isinstance(outcome, Refused):
            self.history.append(operation)
            return
        self._world.counts["answered"] += 1
        result: Hashable = "written"
        if isinstance(outcome, JobPage):
            result = page_views(outcome)[0].spec.nice
        self.history.append(replace(operation, returned=self._world.now_s, result=result))

    def judge(self) -> None:
        """Check what the clients saw. Raises: Violation."""
        history = [*self.history, *self._open.values()]
        if not is_linearizable(history, FIRST_VALUE, _step):
            raise Violation("what the clients saw of the registers is not linearizable")
