"""Runs in the read model: start, what the first node reported of the script, and the one record."""

from __future__ import annotations

from spur.events.runs import (
    JobRelaunched,
    JobStarted,
    NodeCutOff,
    RunEnded,
    RunReported,
    RunResumed,
    RunStopped,
    RunSuspended,
)
from spur.projections.apply import At
from spur.store.folds import folds, person
from spur.store.rows import Row, Rows
from spur.store.structs import SHARES
from spur.values.states import Hold, JobState, NodeShareState

__all__: list[str] = []

_NO_SCRIPT: Row = {"script_end_ns": None, "script_exit_code": 0, "script_signal": 0}


@folds(JobStarted)
def fold_job_started(rows: Rows, at: At, event: JobStarted) -> None:
    """Note the allocation; the record of an array's task begins here."""
    job_id, number = event.job_id, event.run
    job, run = rows.jobs[job_id,], rows.runs[job_id, number]
    if job["hold"] != Hold.NONE:
        rows.jobs.change(job_id, hold=Hold.NONE.value)
    rows.runs.change(
        job_id,
        number,
        record_index=at.index if job["array_job_id"] else run["record_index"],
        state=JobState.RUNNING.value,
        attempt=event.attempt,
        eligible_time_ns=run["eligible_time_ns"] or at.time_ns,
        start_time_ns=at.time_ns,
        time_limit_s=event.time_limit_s,
        partition=event.partition,
        batch_host=event.shares[0].node,
    )
    for position, share in enumerate(event.shares):
        held = SHARES.write(share)
        held.update(job_id=job_id, run=number, position=position, last_seen_ns=None)
        rows.run_nodes.insert(held)


@folds(JobRelaunched)
def fold_job_relaunched(rows: Rows, at: At, event: JobRelaunched) -> None:
    """Note the new attempt; what became of the former one's script does not count."""
    rows.runs.change(event.job_id, event.run, attempt=event.attempt, **_NO_SCRIPT)


@folds(RunReported)
def fold_run_reported(rows: Rows, at: At, event: RunReported) -> None:
    """Note how the script ended, which the first node of the run reports."""
    if event.state is not NodeShareState.ENDED:
        return
    run = rows.runs[event.job_id, event.run]
    if run["batch_host"] == event.node:
        rows.runs.change(
            event.job_id,
            event.run,
            script_end_ns=event.end_ns,
            script_exit_code=event.exit_code,
            script_signal=event.signal,
        )


@folds(NodeCutOff)
def fold_node_cut_off(rows: Rows, at: At, event: NodeCutOff) -> None:
    """Note until when the node was heard."""
    rows.run_nodes.change(event.job_id, event.run, event.node, last_seen_ns=event.last_seen_ns)


@folds(RunSuspended)
def fold_run_suspended(rows: Rows, at: At, event: RunSuspended) -> None:
    """Note since when it stands still."""
    rows.runs.change(
        event.job_id, event.run, state=JobState.SUSPENDED.value, paused_time_ns=at.time_ns
    )


@folds(RunResumed)
def fold_run_resumed(rows: Rows, at: At, event: RunResumed) -> None:
    """Count what it stood still."""
    run = rows.runs[event.job_id, event.run]
    rows.runs.change(
        event.job_id,
        event.run,
        state=JobState.RUNNING.value,
        paused_time_ns=None,
        paused_ns=run["paused_ns"] + at.time_ns - run["paused_time_ns"],
    )


@folds(RunStopped)
def fold_run_stopped(rows: Rows, at: At, event: RunStopped) -> None:
    """Note how the run ends, as it is settled; its end is now until nodes say otherwise."""
    rows.runs.change(
        event.job_id,
        event.run,
        state=event.state.value,
        end_time_ns=at.time_ns,
        killed_by=person(at.actor),
    )


@folds(RunEnded)
def fold_run_ended(rows: Rows, at: At, event: RunEnded) -> None:
    """Write the run's one record; a job that never started was ended by who asked for it."""
    run = rows.runs[event.job_id, event.run]
    never_ran = run["start_time_ns"] is None
    rows.runs.change(
        event.job_id,
        event.run,
        state=event.state.value,
        exit_code=event.exit_code,
        signal=event.signal,
        end_time_ns=event.end_ns,
        unfenced=event.unfenced,
        killed_by=person(at.actor) if never_ran else run["killed_by"],
    )
