"""Commands about jobs: submit, hold, release, cancel, signal, requeue, query."""

from __future__ import annotations

from msgspec.structs import replace

from spur.commands.admission import placed_spec, refuse_submission
from spur.commands.decide import Context, Decision, command
from spur.commands.permissions import (
    Permission,
    Role,
    may_act_for,
    own_alone,
    role_of,
    sees_all_jobs,
)
from spur.commands.targets import (
    ROWS_PER_PART_MAX,
    Target,
    changed,
    ended,
    has_ended,
    targets,
    whole_alone,
)
from spur.events.declare import Event
from spur.events.jobs import (
    JobHeld,
    JobReleased,
    JobRequeued,
    JobSubmitted,
)
from spur.events.runs import RunEnded, RunResumed, RunSignalled, RunStopped, RunSuspended
from spur.projections.hetjobs import components_of
from spur.projections.jobfilters import Test, candidate_jobs, test_of
from spur.projections.jobs import next_job_id
from spur.projections.jobviews import PAGE_ROWS_MAX, job_page
from spur.projections.runrows import is_paused
from spur.projections.state import State
from spur.values.errors import Rejection
from spur.values.ids import JobId
from spur.values.states import HOLD_REASONS, Hold, JobState, Phase, Reason
from spur.wire.declare import Answer, Done
from spur.wire.jobs import (
    CancelJob,
    CancelJobs,
    HoldJob,
    JobAccepted,
    JobFilter,
    QueryJobs,
    ReleaseJob,
    RequeueJob,
    ResumeJob,
    SignalJob,
    SubmitJob,
    SuspendJob,
)

__all__ = ["RUNS_MAX", "SIGNALS_MAX"]

RUNS_MAX = 1_000
"""Runs that one job may have: each is kept until the job is purged."""

SIGNALS_MAX = 10_000
"""Runs that one request may signal; no row remembers a signal, so it cannot be done in parts."""

SIGNAL_MAX = 64
"""The highest signal of Linux."""


@command(SubmitJob, permission=Permission.USER, needs_room=True)
def decide_submit_job(state: State, request: SubmitJob, context: Context) -> Decision | Rejection:
    """Accept a job and give it an id."""
    spec = placed_spec(state, request.spec, context)
    if isinstance(spec, Rejection):
        return spec
    refused = refuse_submission(state, replace(request, spec=spec), context)
    if refused is not None:
        return refused
    job_id = next_job_id(state)
    event = JobSubmitted(
        job_id,
        context.actor.uid,
        context.actor.gid,
        spec,
        request.tasks,
        request.throttle,
        JobId(0),
        0,
        0,
        Hold.USER if request.hold else Hold.NONE,
        request.priority,
        tuple(range(len(context.attachments))),
    )
    return Decision((event,), JobAccepted(job_id))


@command(HoldJob, permission=Permission.USER, divisible=True)
def decide_hold_job(state: State, request: HoldJob, context: Context) -> Decision | Rejection:
    """Keep jobs from starting; one that runs is held when it is put back into the queue."""
    hold = request.hold
    if hold not in (Hold.USER, Hold.ADMIN):
        return Rejection(
            "invalid-value", f"a hold is USER or ADMIN, not {hold.name}; nothing was changed"
        )
    if hold is Hold.ADMIN and role_of(state, context.actor) < Role.OPERATOR:
        return Rejection(
            "not-permitted", "an administrator's hold takes an operator; nothing was changed"
        )

    def change(target: Target) -> list[Event] | Rejection | None:
        if has_ended(target.run):
            return ended(target)
        # A user's hold takes nothing from one that is harder to lift.
        if target.run.hold is hold or target.run.hold is Hold.ADMIN:
            return None
        return [JobHeld(target.job_id, hold)]

    return changed(state, context, request.job_id, request.tasks, change)


@command(ReleaseJob, permission=Permission.USER, divisible=True)
def decide_release_job(state: State, request: ReleaseJob, context: Context) -> Decision | Rejection:
    """Lift holds; one set by an administrator takes an operator."""
    is_operator = role_of(state, context.actor) >= Role.OPERATOR

    def change(target: Target) -> list[Event] | Rejection | None:
        if has_ended(target.run):
            return ended(target)
        if target.run.hold is Hold.NONE:
            return None
        if target.run.hold is Hold.ADMIN and not is_operator:
            return Rejection(
                "not-permitted",
                f"job {target.job_id} is held by an administrator; nothing was changed",
            )
        return [JobReleased(target.job_id)]

    return changed(state, context, request.job_id, request.tasks, change)


def _cancelled(target: Target, context: Context) -> list[Event] | None:
    """Return the events that end one row; None when it ends already."""
    job_id, run = target.job_id, target.run
    if run.phase is Phase.PENDING:
        # What kept it waiting stays with it, as Slurm shows it.
        reason = HOLD_REASONS.get(run.hold, run.reason)
        return [
            RunEnded(job_id, run.number, JobState.CANCELLED, reason, 0, 0, context.now_ns, False)
        ]
    waits_again = run.stop is not None and run.stop.requeue
    if run.phase is Phase.RUNNING or waits_again:
        return [
            RunStopped(job_id, run.number, JobState.CANCELLED, Reason.NONE, False, Hold.NONE, 0, 0)
        ]
    return None


def _cancelled_whole(state: State, target: Target, context: Context) -> list[Event]:
    """Return the events that end one row, and with a first component all others."""
    events: list[Event] = []
    for job_id in components_of(state, target.job_id) or (target.job_id,):
        each = Target(job_id, state.jobs[job_id], state.runs[job_id], None)
        events += _cancelled(each, context) or ()
    return events


def _is_met(state: State, job_id: JobId, is_wanted: Test) -> bool:
    """Whether a filter names a job that has not ended."""
    run = state.runs.get(job_id)
    return (
        run is not None
        and run.phase is not Phase.ENDED
        and is_wanted(job_id, state.jobs[job_id], run)
    )


@command(CancelJob, permission=Permission.USER, divisible=True)
def decide_cancel_job(state: State, request: CancelJob, context: Context) -> Decision | Rejection:
    """End jobs, whether they wait or run."""

    def change(target: Target) -> list[Event] | Rejection | None:
        if target.run.phase is Phase.PENDING:
            refused = whole_alone(target, request.job_id)
            if refused is not None:
                return refused
        return _cancelled(target, context) or ended(target)

    return changed(state, context, request.job_id, request.tasks, change)


@command(CancelJobs, permission=Permission.USER, divisible=True)
def decide_cancel_jobs(state: State, request: CancelJobs, context: Context) -> Decision | Rejection:
    """End what a filter names, as far as the caller may; nothing that matches is no error."""
    if request.filter == JobFilter():
        return Rejection(
            "invalid-value",
            "the filter has no condition and would end every job; nothing was changed",
        )
    events: list[Event] = []
    jobs, runs, is_wanted = state.jobs.rows, state.runs.rows, test_of(state, request.filter)
    last = context.resume_after
    for job_id in candidate_jobs(state, request.filter, JobId(last)):
        run = runs[job_id]
        if run.phase is Phase.ENDED:
            continue
        job = jobs[job_id]
        if not is_wanted(job_id, job, run):
            continue
        target = Target(job_id, job, run, None)
        if not may_act_for(state, context.actor, target.job.uid):
            continue
        if job.het_offset and (run.phase is Phase.PENDING or _is_met(state, job.het_id, is_wanted)):
            continue  # the first component takes it along, or nobody does
        outcome = _cancelled_whole(state, target, context)
        if not outcome:
            continue
        if len(events) >= ROWS_PER_PART_MAX:
            return Decision(tuple(events), Done(), more=True, resume_after=last)
        events.extend(outcome)
        last = job_id
    return Decision(tuple(events), Done())


@command(SignalJob, permission=Permission.USER)
def decide_signal_job(state: State, request: SignalJob, context: Context) -> Decision | Rejection:
    """Send a signal to runs."""
    if not 1 <= request.signal <= SIGNAL_MAX:
        return Rejection(
            "invalid-value",
            f"signal {request.signal} is not from 1 to {SIGNAL_MAX}; nothing was changed",
        )
    found = targets(state, context, request.job_id, request.tasks)
    if isinstance(found, Rejection):
        return found
    phases: set[Phase] = set()
    running: list[Target] = []
    for target in found:
        phases.add(target.run.phase)
        if target.run.phase is Phase.RUNNING:
            running.append(target)
    if not running:
        if phases == {Phase.PENDING}:
            return Rejection(
                "job-pending", f"job {request.job_id} has not started; nothing was changed"
            )
        return Rejection("job-ended", f"job {request.job_id} has ended; nothing was changed")
    if len(running) > SIGNALS_MAX:
        return Rejection(
            "limit-exceeded",
            f"signals-max is {SIGNALS_MAX}, and this needs {len(running)}; nothing was changed",
        )
    events = tuple(
        RunSignalled(
            target.job_id,
            target.run.number,
            target.run.attempt,
            request.signal,
            request.reach,
        )
        for target in running
    )
    return Decision(events, Done())


@command(RequeueJob, permission=Permission.USER, divisible=True)
def decide_requeue_job(state: State, request: RequeueJob, context: Context) -> Decision | Rejection:
    """Put jobs that run or have ended back into the queue."""
    hold = Hold.REQUEUE if request.hold else Hold.NONE

    def change(target: Target) -> list[Event] | Rejection | None:
        job_id, job, run = target.job_id, target.job, target.run
        if whole_alone(target, request.job_id) is not None:
            return Rejection(
                "not-het-leader",
                f"job {job_id} is a component of het job {job.het_id}; nothing was changed",
                f"ask for {job.het_id}, which is all of it",
            )
        if run.phase is Phase.PENDING:
            return Rejection("job-pending", f"job {job_id} has not started; nothing was changed")
        if not job.spec.batch or not job.spec.requeue:
            what = "does not ask to be requeued" if job.spec.batch else "is no batch job"
            return Rejection("requeue-disabled", f"job {job_id} {what}; nothing was changed")
        if run.number + 1 >= RUNS_MAX:
            return Rejection(
                "limit-exceeded",
                f"runs-max is {RUNS_MAX}, and this needs {run.number + 2}; nothing was changed",
            )
        if has_ended(run):
            return [JobRequeued(job_id, run.number + 1, hold if request.hold else run.hold)]
        if run.phase is Phase.RUNNING:
            return [
                RunStopped(job_id, run.number, JobState.REQUEUED, Reason.NONE, True, hold, 0, 0)
            ]
        return None

    return changed(state, context, request.job_id, request.tasks, change)


@command(SuspendJob, permission=Permission.OPERATOR, divisible=True)
def decide_suspend_job(state: State, request: SuspendJob, context: Context) -> Decision | Rejection:
    """Let what runs stand still; what is suspended already stays so."""

    def change(target: Target) -> list[Event] | Rejection | None:
        refused = whole_alone(target, request.job_id) or _not_running(target)
        if refused is not None or is_paused(target.run):
            return refused
        return [RunSuspended(target.job_id, target.run.number)]

    return changed(state, context, request.job_id, request.tasks, change)


@command(ResumeJob, permission=Permission.OPERATOR, divisible=True)
def decide_resume_job(state: State, request: ResumeJob, context: Context) -> Decision | Rejection:
    """Let what is suspended go on."""

    def change(target: Target) -> list[Event] | Rejection | None:
        refused = whole_alone(target, request.job_id) or _not_running(target)
        if refused is not None:
            return refused
        if not is_paused(target.run):
            return Rejection(
                "not-suspended", f"job {target.job_id} is not suspended; nothing was changed"
            )
        return [RunResumed(target.job_id, target.run.number)]

    return changed(state, context, request.job_id, request.tasks, change)


def _not_running(target: Target) -> Rejection | None:
    """Return why what only a running job takes is refused, or None."""
    if target.run.phase is Phase.RUNNING:
        return None
    if target.run.phase is Phase.PENDING:
        return Rejection("job-pending", f"job {target.job_id} has not started; nothing was changed")
    return ended(target)


@command(QueryJobs, permission=Permission.USER, reads=True)
def decide_query_jobs(state: State, request: QueryJobs, context: Context) -> Decision | Rejection:
    """Show a slice of the queue."""
    if not 1 <= request.limit <= PAGE_ROWS_MAX:
        return Rejection(
            "invalid-value",
            f"a page of {request.limit} rows is not from 1 to {PAGE_ROWS_MAX}; nothing was changed",
        )
    wanted = request.filter
    if not sees_all_jobs(state, context.actor):
        wanted = replace(wanted, uids=own_alone(wanted.uids, context.actor))
    page: Answer = job_page(
        state, wanted, after=request.after, limit=request.limit, foreseen=context.starts
    )
    return Decision((), page)
