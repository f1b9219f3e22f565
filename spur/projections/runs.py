"""Runs: what start, reports, stop and end do to the rows.

    PENDING --job.started--> RUNNING --run.stopped--> STOPPING --run.ended--> ENDED
       |                        +----------------run.ended----------------------^
       +-----------------------run.ended (never started)-----------------------^

An arm checks that its event is legal in the state it meets and raises `IllegalTransition` if not:
on the leader's trial that refuses the request, in a committed entry it stops the replica.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from spur.events.runs import (
    JobRelaunched,
    JobStarted,
    NodeCutOff,
    ReportVoided,
    RunEnded,
    RunReported,
    RunResumed,
    RunStopped,
    RunSuspended,
)
from spur.projections.agents import note_report
from spur.projections.apply import At, applies
from spur.projections.runrows import (
    FINAL,
    Course,
    EndNote,
    RunRow,
    StartedRun,
    StopNote,
    all_final,
    is_paused,
    position_of_node,
    ran_ns,
    with_node_state,
)
from spur.projections.steprows import moved_limits
from spur.values.errors import SpurError
from spur.values.ids import JobId, NodeName
from spur.values.states import Hold, NodeShareState, Phase, Reason

if TYPE_CHECKING:
    from spur.projections.state import State

__all__ = ["IllegalTransition", "reported_row", "run_in"]

_OWED = bytes((NodeShareState.OWED,))


class IllegalTransition(SpurError):
    """An event that is not legal in the state that it meets."""


def run_in(state: State, job_id: JobId, *phases: Phase) -> RunRow:
    """Return a job's newest run. Raises: IllegalTransition unless it is in one of the phases."""
    run = state.runs.get(job_id)
    if run is None:
        raise IllegalTransition(f"job {job_id} is not in the state")
    if run.phase not in phases:
        raise IllegalTransition(f"job {job_id} is {run.phase.name}")
    return run


def _started(state: State, job_id: JobId, number: int, *phases: Phase) -> tuple[RunRow, StartedRun]:
    """Return the row of this very run, and its part that only started runs have."""
    run = run_in(state, job_id, *phases)
    if run.number != number:
        raise IllegalTransition(f"job {job_id} is at run {run.number}, not {number}")
    if run.started is None:
        raise IllegalTransition(f"run {number} of job {job_id} was not started")
    return run, run.started


@applies(JobStarted)
def apply_job_started(state: State, at: At, event: JobStarted) -> None:
    """Give the run its allocation; each node owes an answer to the launch."""
    job_id, shares = event.job_id, event.shares
    run = run_in(state, job_id, Phase.PENDING)
    if event.run != run.number or event.attempt != run.attempt + 1:
        raise IllegalTransition(
            f"job {job_id} is at run {run.number}, attempt {run.attempt}; "
            f"run {event.run}, attempt {event.attempt} is not its next start"
        )
    if run.hold is not Hold.NONE:
        raise IllegalTransition(f"job {job_id} is held")
    if not shares or (len(shares) > 1 and len({share.node for share in shares}) != len(shares)):
        raise IllegalTransition(f"job {job_id} would hold no node, or a node twice")
    if job_id in state.dependencies:
        raise IllegalTransition(f"job {job_id} waits for others")
    job = state.jobs[job_id]
    if job.tasks is not None and not job.tasks.is_single:
        raise IllegalTransition(f"job {job_id} is several tasks of an array")
    limit_s = event.time_limit_s
    started = StartedRun(
        event.partition,
        shares,
        _OWED * len(shares),
        at.time_ns,
        at.time_ns + limit_s * 1_000_000_000 if limit_s else 0,
        1,
        0,
        0,
        0,
        False,
        None,
    )
    row = RunRow(
        run.number,
        event.attempt,
        Phase.RUNNING,
        Hold.NONE,
        Reason.NONE,
        run.priority,
        run.since_ns,
        run.array_id,
        run.het_id,
        started,
        None,
        None,
    )
    state.runs.put(job_id, row)


@applies(JobRelaunched)
def apply_job_relaunched(state: State, at: At, event: JobRelaunched) -> None:
    """Count the attempt up; each node owes an answer to the new launch."""
    job_id = event.job_id
    run, started = _started(state, job_id, event.run, Phase.RUNNING)
    if event.attempt != run.attempt + 1:
        raise IllegalTransition(f"job {job_id} is at attempt {run.attempt}")
    if not all_final(started):
        raise IllegalTransition(f"attempt {run.attempt} of job {job_id} may live on some node")
    again = replace(
        started, states=_OWED * len(started.shares), launches=started.launches + 1, end_ns=0
    )
    state.runs.put(job_id, replace(run, attempt=event.attempt, started=again))
    if (steps := state.steps.get(job_id)) is not None:
        # Its steps were of the attempt that lives nowhere any more.
        state.steps.put(job_id, replace(steps, attempt=event.attempt, steps=()))


def reported_row(run: RunRow, node: NodeName, event: RunReported) -> RunRow | None:
    """Return the row after a report; None when the report is void: it changes nothing."""
    started = run.started
    if (
        started is None
        or run.number != event.run
        or run.attempt != event.attempt
        or run.phase not in (Phase.RUNNING, Phase.STOPPING)
    ):
        return None
    position = position_of_node(started, node)
    if position is None:
        return None
    known = started.states[position]
    if known in FINAL or known == event.state:
        return None
    if known == NodeShareState.LAUNCHED and event.state is NodeShareState.VOID:
        return None
    return with_node_state(
        run,
        position,
        event.state,
        end_ns=event.end_ns,
        exit_code=event.exit_code,
        signal=event.signal,
        out_of_memory=event.out_of_memory,
    )


@applies(RunReported)
def apply_run_reported(state: State, at: At, event: RunReported) -> None:
    """Note what became of the attempt on that node."""
    note_report(state, event.node, event.outbox, event.number)
    run = state.runs.get(event.job_id)
    row = None if run is None else reported_row(run, event.node, event)
    if row is None:
        raise IllegalTransition(
            f"node {event.node} reports {event.state.name} of job {event.job_id}, run {event.run}, "
            f"attempt {event.attempt}, which is not open there"
        )
    state.runs.put(event.job_id, row)


@applies(ReportVoided)
def apply_report_voided(state: State, at: At, event: ReportVoided) -> None:
    """Note that the report was heard, and nothing else."""
    note_report(state, event.node, event.outbox, event.number)


@applies(NodeCutOff)
def apply_node_cut_off(state: State, at: At, event: NodeCutOff) -> None:
    """Note that nobody hears that node's share of the run any more, or that it is dead.

    A death that nobody saw is dated by this event. Source: LOG-CONTRACT 4.3.
    """
    run, started = _started(state, event.job_id, event.run, Phase.RUNNING, Phase.STOPPING)
    position = position_of_node(started, event.node)
    known = None if position is None else started.states[position]
    if position is None or known in FINAL or known == event.state:
        raise IllegalTransition(f"job {event.job_id} has nothing open on node {event.node}")
    if event.state not in (NodeShareState.LOST, NodeShareState.DEAD):
        raise IllegalTransition(f"{event.state.name} is no way to lose a node")
    end_ns = at.time_ns if event.state is NodeShareState.DEAD else 0
    state.runs.put(event.job_id, with_node_state(run, position, event.state, end_ns=end_ns))


@applies(RunSuspended)
def apply_run_suspended(state: State, at: At, event: RunSuspended) -> None:
    """Note since when the run stands still, and how long it had run."""
    run, started = _started(state, event.job_id, event.run, Phase.RUNNING)
    if is_paused(run):
        raise IllegalTransition(f"job {event.job_id} is suspended")
    course = Course(at.index, True, at.time_ns, ran_ns(started, at.time_ns))
    state.runs.put(event.job_id, replace(run, started=replace(started, course=course)))


@applies(RunResumed)
def apply_run_resumed(state: State, at: At, event: RunResumed) -> None:
    """Let the run go on; its limit moves by what it stood still."""
    run, started = _started(state, event.job_id, event.run, Phase.RUNNING)
    former = started.course
    if former is None or not former.paused:
        raise IllegalTransition(f"job {event.job_id} is not suspended")
    limit_ns = started.limit_ns
    again = replace(
        started,
        limit_ns=limit_ns + at.time_ns - former.turned_ns if limit_ns else 0,
        course=Course(at.index, False, at.time_ns, former.ran_ns),
    )
    state.runs.put(event.job_id, replace(run, started=again))
    if (steps := state.steps.get(event.job_id)) is not None:
        moved = moved_limits(steps, at.time_ns - former.turned_ns)
        state.steps.put(event.job_id, moved)


@applies(RunStopped)
def apply_run_stopped(state: State, at: At, event: RunStopped) -> None:
    """Settle how the run ends; nodes that may have it alive owe its death.

    A run that was to wait again can still be stopped for good; nothing else is settled twice.
    """
    job_id = event.job_id
    run, _ = _started(state, job_id, event.run, Phase.RUNNING, Phase.STOPPING)
    if run.stop is not None and (event.requeue or not run.stop.requeue):
        raise IllegalTransition(f"how job {job_id} ends is settled")
    note = StopNote(
        event.state,
        event.reason,
        at.time_ns,
        event.requeue,
        event.hold,
        event.exit_code,
        event.signal,
    )
    state.runs.put(job_id, replace(run, phase=Phase.STOPPING, stop=note))


@applies(RunEnded)
def apply_run_ended(state: State, at: At, event: RunEnded) -> None:
    """Write the run's one record and free what it held; steps that are open end with it."""
    job_id = event.job_id
    run = run_in(state, job_id, Phase.PENDING, Phase.RUNNING, Phase.STOPPING)
    if run.number != event.run:
        raise IllegalTransition(f"job {job_id} is at run {run.number}, not {event.run}")
    started = run.started
    if started is not None and not all_final(started, lost_counts=event.unfenced):
        raise IllegalTransition(f"run {event.run} of job {job_id} may live on some node")
    end = EndNote(
        event.state, event.reason, event.exit_code, event.signal, event.end_ns, event.unfenced
    )
    row = RunRow(
        run.number,
        run.attempt,
        Phase.ENDED,
        run.hold,
        Reason.NONE,
        run.priority,
        run.since_ns,
        run.array_id,
        run.het_id,
        started,
        None,
        end,
    )
    state.runs.put(job_id, row)
    if job_id in state.dependencies:
        state.dependencies.delete(job_id)
    if job_id in state.steps:
        state.steps.delete(job_id)
