"""Commands that say something to jobs, or change their places among each other."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from spur.commands.admission import refuse_amendments
from spur.commands.decide import Context, Decision, command
from spur.commands.permissions import Permission, Role, may_act_for, role_of
from spur.commands.targets import Target, changed, ended
from spur.events.declare import Event
from spur.events.jobs import JobSpecChanged, JobTextsChanged
from spur.events.runs import RunNotified
from spur.projections.cluster import parameter_of
from spur.projections.jobs import JobRow
from spur.projections.state import State
from spur.values.errors import Rejection
from spur.values.ids import JobId
from spur.values.states import Phase
from spur.wire.declare import Done
from spur.wire.jobs import NotifyJob, TopJobs

__all__ = ["TOP_JOBS_MAX"]

TOP_JOBS_MAX = 1_000
"""Jobs whose places one request may change."""


@command(NotifyJob, permission=Permission.USER)
def decide_notify_job(state: State, request: NotifyJob, context: Context) -> Decision | Rejection:
    """Say something to what runs."""
    if [each.name for each in request.attachments] != ["notice"]:
        return Rejection("invalid-value", "nothing is said; nothing was changed")
    refused = refuse_amendments(state, request.attachments, context)
    if refused is not None:
        return refused

    def change(target: Target) -> list[Event] | Rejection | None:
        run = target.run
        if run.phase is Phase.PENDING:
            return Rejection(
                "job-pending", f"job {target.job_id} has not started; nothing was changed"
            )
        if run.phase is not Phase.RUNNING:
            return ended(target)
        return [
            JobTextsChanged(target.job_id, (0,)),
            RunNotified(target.job_id, run.number, run.attempt),
        ]

    return changed(state, context, request.job_id, request.tasks, change)


@command(TopJobs, permission=Permission.USER)
def decide_top_jobs(state: State, request: TopJobs, context: Context) -> Decision | Rejection:
    """Put waiting jobs before the others like them, by their nice. Source: scontrol(1) top."""
    if role_of(state, context.actor) < Role.OPERATOR and not _users_may(state):
        return Rejection(
            "not-permitted", "only operators change the places of jobs; nothing was changed"
        )
    listed: list[JobId] = []
    for job_id in request.job_ids:
        job = state.jobs.get(job_id)
        if job is None:
            return Rejection("unknown-job", f"there is no job {job_id}; nothing was changed")
        if not may_act_for(state, context.actor, job.uid):
            return Rejection(
                "not-owner", f"job {job_id} belongs to uid {job.uid}; nothing was changed"
            )
        if state.runs[job_id].phase is not Phase.PENDING:
            return ended(Target(job_id, job, state.runs[job_id], None))
        if len(job.spec.partitions) > 1 or _kind(job) != _kind(state.jobs[request.job_ids[0]]):
            continue
        if job_id not in listed:
            listed.append(job_id)
    if not listed:
        return Decision((), Done())
    others = list(_others(state, state.jobs[listed[0]], frozenset(listed)))
    if len(listed) + len(others) > TOP_JOBS_MAX:
        return Rejection(
            "limit-exceeded",
            f"top-jobs-max is {TOP_JOBS_MAX}, and this needs {len(listed) + len(others)}; "
            "nothing was changed",
        )
    return Decision(tuple(_moves(state, listed, others)), Done())


def _users_may(state: State) -> bool:
    if 1 not in state.config:
        return False
    return "enable_user_top" in parameter_of(state, "SchedulerParameters").lower().split(",")


def _kind(job: JobRow) -> tuple[object, ...]:
    """Return what jobs have in common that may change places."""
    return job.uid, job.spec.partitions, job.spec.account, job.spec.qos


def _others(state: State, like: JobRow, listed: frozenset[JobId]) -> Iterable[JobId]:
    """Yield the other waiting jobs of the kind, in order of their ids."""
    kind = _kind(like)
    for job_id in state.jobs_of_user.after(like.uid, JobId(0)):
        run = state.runs[job_id]
        if run.phase is Phase.PENDING and run.priority is None and job_id not in listed:
            if _kind(state.jobs[job_id]) == kind:
                yield job_id


def _moves(state: State, listed: list[JobId], others: list[JobId]) -> Iterable[Event]:
    """Yield the new nice of each: the listed one after the other, then the rest as they were."""
    nices = [state.jobs[job_id].spec.nice for job_id in (*listed, *others)]
    least = min(nices)
    for place, job_id in enumerate(listed):
        yield from _with_nice(state, job_id, least + place)
    # The others move together, so that none of them passes another.
    first = min((state.jobs[job_id].spec.nice for job_id in others), default=0)
    by = max(least + len(listed) - first, 0)
    for job_id in others:
        yield from _with_nice(state, job_id, state.jobs[job_id].spec.nice + by)


def _with_nice(state: State, job_id: JobId, nice: int) -> Iterable[Event]:
    spec = state.jobs[job_id].spec
    if spec.nice != nice:
        yield JobSpecChanged(job_id, replace(spec, nice=nice))
