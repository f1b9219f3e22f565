"""What time brings to steps: their own time limits."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from spur.events.steps import StepStopped
from spur.projections.due import Due, falls_due
from spur.projections.runrows import is_paused
from spur.values.states import Phase
from spur.values.steps import StepState

if TYPE_CHECKING:
    from spur.projections.state import State

__all__ = ["step_limits_reached"]


@falls_due
def step_limits_reached(state: State, now_ns: int, limit: int) -> Iterator[Due]:
    """Yield steps whose own time limit is reached, the first of each job: they stop as TIMEOUT."""
    for job_id in islice(state.steps_by_limit.up_to(now_ns), limit):
        row, run = state.steps[job_id], state.runs[job_id]
        if run.phase is not Phase.RUNNING or is_paused(run):
            continue
        reached = [step for step in row.steps if step.limit_ns and step.stop is None]
        step = min(reached, key=lambda step: (step.limit_ns, step.step_id))
        stopped = StepStopped(job_id, row.run, step.step_id, StepState.TIMEOUT, False)
        yield Due(step.limit_ns, "steps", job_id, (stopped,))
