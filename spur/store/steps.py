"""Steps in the read model: one row a numbered step, and what it used on each node."""

from __future__ import annotations

from spur.events.steps import StepEnded, StepStarted, StepStopped
from spur.projections.apply import At
from spur.store.folds import folds, person
from spur.store.rows import Rows
from spur.store.structs import STEP_SHARES
from spur.store.tables import NEVER_NS
from spur.values.states import JobState

__all__: list[str] = []


@folds(StepStarted)
def fold_step_started(rows: Rows, at: At, event: StepStarted) -> None:
    """Add the step."""
    key = {"job_id": event.job_id, "run": event.run, "step_id": event.step_id}
    rows.steps.insert(
        key
        | {
            "attempt": event.attempt,
            "name": event.name,
            "state": JobState.RUNNING.value,
            "start_time_ns": at.time_ns,
            "end_time_ns": NEVER_NS,
            "exit_code": 0,
            "signal": 0,
            "killed_by": None,
            "tasks": sum(event.tasks),
            "dealing": event.dealing.value,
            "time_limit_s": event.time_limit_s,
        }
    )
    for position, share in enumerate(event.shares):
        rows.step_nodes.insert(key | STEP_SHARES.write(share) | {"position": position})


@folds(StepStopped)
def fold_step_stopped(rows: Rows, at: At, event: StepStopped) -> None:
    """Note who ends the step."""
    rows.steps.change(event.job_id, event.run, event.step_id, killed_by=person(at.actor))


@folds(StepEnded)
def fold_step_ended(rows: Rows, at: At, event: StepEnded) -> None:
    """Write the step's record."""
    rows.steps.change(
        event.job_id,
        event.run,
        event.step_id,
        state=event.state.value,
        exit_code=event.exit_code,
        signal=event.signal,
        end_time_ns=event.end_ns,
    )
