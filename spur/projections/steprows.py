"""Rows of steps, and what one report makes of a step: pure functions of it.

All open steps of a run are one row, so the end of a run ends them by one change. A step that ended
leaves its row; its record is in the log.
"""

from __future__ import annotations

from msgspec.structs import replace

from spur.projections.runrows import FINAL
from spur.projections.tables import Row
from spur.values.ids import JobId, NodeName
from spur.values.states import NodeShareState
from spur.values.steps import Dealing, StepState
from spur.values.tres import NodeShare

__all__ = [
    "OpenStep",
    "StepsRow",
    "earliest_limit",
    "ended_state",
    "is_over",
    "moved_limits",
    "place_of_node",
    "step_in",
    "with_report",
    "with_step",
    "without_step",
]


class OpenStep(Row, frozen=True):
    """A step that has not ended."""

    step_id: int
    name: str
    shares: tuple[NodeShare, ...]
    tasks: tuple[int, ...]
    """How many on each node."""
    states: bytes
    """A `NodeShareState` for each share, in the same order."""
    dealing: Dealing
    plane: int
    cpus_per_task: int
    overlaps: bool
    key_digest: bytes
    start_ns: int
    limit_ns: int
    """When its own time limit is reached; 0 is never."""
    stop: StepState | None
    """What it will be recorded as, once it is settled that it ends; else None."""
    stops_at_once: bool
    """Whether it then ends without a warning."""
    end_ns: int
    """The latest end that a node reported; 0 before."""
    exit_code: int
    """The highest that a node reported."""
    signal: int
    out_of_memory: bool


class StepsRow(Row, frozen=True):
    """The steps of a job's run, from the first of them until the run ends; keyed by job."""

    run: int
    attempt: int
    """Of the run; its steps live and die with it."""
    next_id: int
    steps: tuple[OpenStep, ...]
    """Those that have not ended, by number."""


def step_in(row: StepsRow | None, step_id: int) -> OpenStep | None:
    """Return an open step; None when there is none of this number."""
    if row is not None:
        for step in row.steps:
            if step.step_id == step_id:
                return step
    return None


def with_step(row: StepsRow, changed: OpenStep) -> StepsRow:
    """Return the row with a step replaced."""
    steps = tuple(changed if step.step_id == changed.step_id else step for step in row.steps)
    return replace(row, steps=steps)


def moved_limits(row: StepsRow, by_ns: int) -> StepsRow:
    """Return the row with the time limits of its steps reached so much later."""
    steps = tuple(
        replace(step, limit_ns=step.limit_ns + by_ns) if step.limit_ns else step
        for step in row.steps
    )
    return replace(row, steps=steps)


def without_step(row: StepsRow, step_id: int) -> StepsRow:
    """Return the row without a step."""
    return replace(row, steps=tuple(step for step in row.steps if step.step_id != step_id))


def place_of_node(step: OpenStep, node: NodeName) -> int | None:
    """Return the node's place among the shares; None when the step has nothing there."""
    for place, share in enumerate(step.shares):
        if share.node == node:
            return place
    return None


def is_over(step: OpenStep) -> bool:
    """Whether the step can live on none of its nodes any more."""
    return all(state in FINAL for state in step.states)


def with_report(
    step: OpenStep,
    node: NodeName,
    state: NodeShareState,
    *,
    end_ns: int,
    exit_code: int,
    signal: int,
    out_of_memory: bool,
) -> OpenStep | None:
    """Return the step after a node's report; None when the report is void: it changes nothing."""
    place = place_of_node(step, node)
    if place is None:
        return None
    known = step.states[place]
    if known in FINAL or known == state:
        return None
    if known == NodeShareState.LAUNCHED and state is NodeShareState.VOID:
        return None
    return replace(
        step,
        states=step.states[:place] + bytes((state,)) + step.states[place + 1 :],
        end_ns=max(step.end_ns, end_ns),
        exit_code=max(step.exit_code, exit_code),
        signal=step.signal or signal,
        out_of_memory=step.out_of_memory or out_of_memory,
    )


def ended_state(step: OpenStep) -> StepState:
    """Return how a step is recorded whose nodes have all reported it."""
    if step.stop is not None:
        return step.stop
    if step.out_of_memory:
        return StepState.OUT_OF_MEMORY
    if step.exit_code or step.signal or NodeShareState.VOID in step.states:
        return StepState.FAILED
    return StepState.COMPLETED


def earliest_limit(_: JobId, row: StepsRow) -> int | None:
    """Return when the first of the steps reaches its own time limit; None when none will."""
    limits = [step.limit_ns for step in row.steps if step.limit_ns and step.stop is None]
    return min(limits, default=None)
