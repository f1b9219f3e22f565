"""Steps: what start, reports, stop and end do to the rows.

    OPEN --step.stopped--> OPEN, to be recorded as CANCELLED or TIMEOUT
      +----step.ended, or the end of the run----> gone

The steps of a run live within its attempt: its end or its next attempt ends them all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from spur.events.steps import StepEnded, StepReported, StepStarted, StepStopped
from spur.projections.agents import note_report
from spur.projections.apply import At, applies
from spur.projections.runs import IllegalTransition, run_in
from spur.projections.steprows import (
    OpenStep,
    StepsRow,
    is_over,
    step_in,
    with_report,
    with_step,
    without_step,
)
from spur.values.ids import JobId
from spur.values.states import NodeShareState, Phase

if TYPE_CHECKING:
    from spur.projections.state import State

__all__ = ["next_step_id", "reported_step"]

_OWED = bytes((NodeShareState.OWED,))


def next_step_id(state: State, job_id: JobId) -> int:
    """Return the number that the job's next step gets."""
    row = state.steps.get(job_id)
    return 0 if row is None else row.next_id


def _open(state: State, job_id: JobId, run: int, step_id: int) -> tuple[StepsRow, OpenStep]:
    """Return an open step of this very run. Raises: IllegalTransition when it is none."""
    row = state.steps.get(job_id)
    step = step_in(row, step_id)
    if row is None or step is None or row.run != run:
        raise IllegalTransition(f"step {job_id}.{step_id} of run {run} is not open")
    return row, step


@applies(StepStarted)
def apply_step_started(state: State, at: At, event: StepStarted) -> None:
    """Open the step; each of its nodes owes an answer to the launch."""
    job_id = event.job_id
    run = run_in(state, job_id, Phase.RUNNING)
    if (event.run, event.attempt) != (run.number, run.attempt):
        raise IllegalTransition(
            f"job {job_id} is at run {run.number}, attempt {run.attempt}, "
            f"not {event.run}, {event.attempt}"
        )
    row = state.steps.get(job_id) or StepsRow(run.number, run.attempt, 0, ())
    if event.step_id != row.next_id:
        raise IllegalTransition(f"the next step of job {job_id} is {row.next_id}")
    if not event.shares or len(event.shares) != len(event.tasks):
        raise IllegalTransition(f"step {job_id}.{event.step_id} has no nodes, or tasks on others")
    step = OpenStep(
        event.step_id,
        event.name,
        event.shares,
        event.tasks,
        _OWED * len(event.shares),
        event.dealing,
        event.plane,
        event.cpus_per_task,
        event.overlaps,
        event.key_digest,
        at.time_ns,
        at.time_ns + event.time_limit_s * 1_000_000_000 if event.time_limit_s else 0,
        None,
        False,
        0,
        0,
        0,
        False,
    )
    state.steps.put(job_id, replace(row, next_id=event.step_id + 1, steps=(*row.steps, step)))


def reported_step(state: State, event: StepReported) -> StepsRow | None:
    """Return the job's row after a report; None when the report is void: it changes nothing."""
    row = state.steps.get(event.job_id)
    step = step_in(row, event.step_id)
    if row is None or step is None or (row.run, row.attempt) != (event.run, event.attempt):
        return None
    changed = with_report(
        step,
        event.node,
        event.state,
        end_ns=event.end_ns,
        exit_code=event.exit_code,
        signal=event.signal,
        out_of_memory=event.out_of_memory,
    )
    return None if changed is None else with_step(row, changed)


@applies(StepReported)
def apply_step_reported(state: State, at: At, event: StepReported) -> None:
    """Note what became of the step on that node."""
    note_report(state, event.node, event.outbox, event.number)
    row = reported_step(state, event)
    if row is None:
        raise IllegalTransition(
            f"node {event.node} reports {event.state.name} of step {event.job_id}."
            f"{event.step_id}, run {event.run}, attempt {event.attempt}, which is not open there"
        )
    state.steps.put(event.job_id, row)


@applies(StepStopped)
def apply_step_stopped(state: State, at: At, event: StepStopped) -> None:
    """Settle how the step ends; nodes that may have it alive owe its death."""
    row, step = _open(state, event.job_id, event.run, event.step_id)
    if step.stop is not None:
        raise IllegalTransition(f"how step {event.job_id}.{event.step_id} ends is settled")
    ended = replace(step, stop=event.state, stops_at_once=event.at_once)
    state.steps.put(event.job_id, with_step(row, ended))


@applies(StepEnded)
def apply_step_ended(state: State, at: At, event: StepEnded) -> None:
    """Free what the step used."""
    row, step = _open(state, event.job_id, event.run, event.step_id)
    if not is_over(step):
        raise IllegalTransition(f"step {event.job_id}.{event.step_id} may live on some node")
    state.steps.put(event.job_id, without_step(row, event.step_id))
