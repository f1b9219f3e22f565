"""What follows for a run from what is known of its nodes: events, decided by pure functions.

A report, a lost node, a fenced node each change one node's share of a run. What then follows is
the same for all: the run goes on, is launched again, stops (its other nodes owe its death), or
has ended, and its job may wait again.
"""

from __future__ import annotations

from spur.events.declare import Event
from spur.events.jobs import JobRequeued
from spur.events.runs import JobRelaunched, NodeCutOff, RunEnded, RunStopped
from spur.projections.jobs import JobRow
from spur.projections.runrows import (
    FINAL,
    RunRow,
    StartedRun,
    StopNote,
    all_final,
    position_of_node,
    with_node_state,
)
from spur.values.config import RequeuePolicy
from spur.values.ids import JobId, NodeName
from spur.values.states import Hold, JobState, NodeShareState, Phase, Reason

__all__ = [
    "AUTOMATIC_REQUEUES_MAX",
    "LAUNCHES_MAX",
    "after_node_failed",
    "after_node_known",
    "after_node_lost",
]

LAUNCHES_MAX = 3
"""Attempts of one run that may come to nothing before its job is put back, held."""

LAUNCH_FAILED_SIGNAL = 53
"""What Slurm records of a script whose files could not be opened; no process gets this signal."""

AUTOMATIC_REQUEUES_MAX = 5
"""Runs that the cluster itself puts back; the next waits to be released.
Source: slurm.conf(5) SchedulerParameters=max_batch_requeue."""


def after_node_known(
    job_id: JobId,
    job: JobRow,
    run: RunRow,
    *,
    closed: bool,
    now_ns: int,
    policy: RequeuePolicy,
) -> list[Event]:
    """Return what follows once the row says what became of a node's share.

    `closed` says that a node which launched nothing takes no new jobs any more: the job is put
    back for other nodes at once, not held, since the fault is none of its own.
    """
    started = run.started
    if started is None:
        return []
    if run.stop is not None:
        return _end_if_over(job_id, job, run, run.stop, now_ns=now_ns, policy=policy)
    states = started.states
    if states[0] == NodeShareState.ENDED:
        state, reason = _own_end(started)
        stop = StopNote(state, reason, now_ns, False, Hold.NONE, started.exit_code, started.signal)
    elif NodeShareState.DEAD in states:
        stop = _node_failure(job, run, now_ns)
    elif NodeShareState.VOID not in states:
        return []
    elif NodeShareState.LAUNCHED in states or NodeShareState.ENDED in states:
        stop = _launch_failure(job, now_ns, closed=closed)
    elif not all_final(started):
        # Nothing runs anywhere yet; the nodes that have not answered decide.
        return []
    elif started.launches < LAUNCHES_MAX and not closed:
        return [JobRelaunched(job_id, run.number, run.attempt + 1)]
    else:
        stop = _launch_failure(job, now_ns, closed=closed)
    return _stop(job_id, job, run, stop, now_ns=now_ns, policy=policy)


def after_node_lost(
    job_id: JobId,
    job: JobRow,
    run: RunRow,
    node: NodeName,
    *,
    state: NodeShareState,
    last_seen_ns: int,
    now_ns: int,
    policy: RequeuePolicy,
) -> list[Event]:
    """Return what follows once nobody hears a node (LOST), or knows it to be dead (DEAD)."""
    started = run.started
    position = None if started is None else position_of_node(started, node)
    if started is None or position is None:
        return []
    known = started.states[position]
    if known in FINAL or known == state:
        return []
    events: list[Event] = [NodeCutOff(job_id, run.number, node, state, last_seen_ns)]
    end_ns = now_ns if state is NodeShareState.DEAD else 0
    after = with_node_state(run, position, state, end_ns=end_ns)
    if after.stop is not None:
        return events + _end_if_over(job_id, job, after, after.stop, now_ns=now_ns, policy=policy)
    stop = _node_failure(job, after, now_ns)
    return events + _stop(job_id, job, after, stop, now_ns=now_ns, policy=policy)


def after_node_failed(job_id: JobId, job: JobRow, run: RunRow, *, now_ns: int) -> list[Event]:
    """Return what follows once a node that still answers was taken down under a running run."""
    if run.phase is not Phase.RUNNING:
        return []
    stop = _node_failure(job, run, now_ns)
    return [_stopped(job_id, run, stop)]


def _own_end(started: StartedRun) -> tuple[JobState, Reason]:
    """Return how a run is recorded that ended by itself."""
    if started.out_of_memory:
        return JobState.OUT_OF_MEMORY, Reason.OUT_OF_MEMORY
    if started.signal == LAUNCH_FAILED_SIGNAL:
        return JobState.FAILED, Reason.LAUNCH_FAILURE
    if started.signal:
        return JobState.FAILED, Reason.RAISED_SIGNAL
    if started.exit_code:
        return JobState.FAILED, Reason.NON_ZERO_EXIT_CODE
    return JobState.COMPLETED, Reason.NONE


def _may_run_again(job: JobRow) -> bool:
    """Whether it goes back into the queue by itself; nobody waits for an allocation any more."""
    return job.spec.requeue and job.spec.batch


def _node_failure(job: JobRow, run: RunRow, now_ns: int) -> StopNote:
    requeue = _may_run_again(job)
    held = requeue and run.number >= AUTOMATIC_REQUEUES_MAX
    hold = Hold.MAX_REQUEUE if held else Hold.NONE
    return StopNote(JobState.NODE_FAIL, Reason.NODE_DOWN, now_ns, requeue, hold, 0, 0)


def _launch_failure(job: JobRow, now_ns: int, *, closed: bool) -> StopNote:
    requeue = _may_run_again(job)
    hold = Hold.LAUNCH_FAILURE if requeue and not closed else Hold.NONE
    return StopNote(JobState.NODE_FAIL, Reason.LAUNCH_FAILURE, now_ns, requeue, hold, 0, 0)


def _stopped(job_id: JobId, run: RunRow, stop: StopNote) -> RunStopped:
    return RunStopped(
        job_id,
        run.number,
        stop.state,
        stop.reason,
        stop.requeue,
        stop.hold,
        stop.exit_code,
        stop.signal,
    )


def _stop(
    job_id: JobId,
    job: JobRow,
    run: RunRow,
    stop: StopNote,
    *,
    now_ns: int,
    policy: RequeuePolicy,
) -> list[Event]:
    """Return the end when nothing is left of the run, else its stop."""
    ended = _end_if_over(job_id, job, run, stop, now_ns=now_ns, policy=policy)
    return ended or [_stopped(job_id, run, stop)]


def _end_if_over(
    job_id: JobId,
    job: JobRow,
    run: RunRow,
    stop: StopNote,
    *,
    now_ns: int,
    policy: RequeuePolicy,
) -> list[Event]:
    """Return the record of the run and, if it shall, its job's next; nothing while it may live.

    A lost node is waited for only where the job would run a second time and the policy is to be
    sure first (LOG-CONTRACT 7.7).
    """
    started = run.started
    if started is None:
        return []
    waits_for_lost = stop.requeue and policy is RequeuePolicy.CONFIRMED
    if not all_final(started, lost_counts=not waits_for_lost):
        return []
    unfenced = NodeShareState.LOST in started.states
    end_ns = max(started.end_ns, now_ns if unfenced else started.start_ns)
    # What a script that was killed as its node failed ended with is not its own doing.
    has_script = job.spec.batch and not job.het_offset
    is_own = has_script and stop.state is not JobState.NODE_FAIL
    exit_of = started if is_own else stop
    events: list[Event] = [
        RunEnded(
            job_id,
            run.number,
            stop.state,
            stop.reason,
            exit_of.exit_code,
            exit_of.signal,
            end_ns,
            unfenced,
        )
    ]
    if stop.requeue:
        hold = stop.hold if run.hold is Hold.NONE else run.hold
        events.append(JobRequeued(job_id, run.number + 1, hold))
    return events
