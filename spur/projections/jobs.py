"""Jobs as rows: who asked for what, which tasks of which array, and why jobs wait.

A job's row changes seldom; what changes often is its run (`runs.py`). An array is one row with
the set of tasks it stands for. Tasks are split off into rows of their own when something happens
to some of them; the last ones keep the array's id. What all tasks share (the throttle, the
attachments) is kept once, in the array's row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from spur.events.jobs import (
    ArrayThrottled,
    JobHeld,
    JobPriorityChanged,
    JobPurged,
    JobReasonsStated,
    JobReleased,
    JobRequeued,
    JobSpecChanged,
    JobSubmitted,
    JobTasksSplit,
    JobTextsChanged,
)
from spur.projections.apply import At, applies
from spur.projections.attachments import amend_attachments, pack_attachments
from spur.projections.counters import JOB_ID_COUNTER, counter, raise_counter
from spur.projections.dependencies import put_dependency
from spur.projections.runrows import Course, PastRun, PastRunsRow, RunRow, counted_from_ns
from spur.projections.runs import IllegalTransition, run_in
from spur.projections.tables import Row
from spur.values.arrays import TaskSet
from spur.values.ids import JobId, PartitionName
from spur.values.jobspec import JobSpec
from spur.values.states import Hold, Phase, Reason

if TYPE_CHECKING:
    from spur.projections.state import State

__all__ = [
    "REASONS_STATED_COUNTER",
    "ArrayRow",
    "GroupKey",
    "GroupReasonRow",
    "JobRow",
    "next_job_id",
    "take_job_id",
]

REASONS_STATED_COUNTER = "reasons-stated-ns"
"""When reasons were stated last."""

GroupKey = tuple[PartitionName, bytes]
"""Partition and shape."""


class JobRow(Row, frozen=True):
    """A job, or the tasks of an array that have everything in common; its key is the job's id."""

    uid: int
    gid: int
    submit_ns: int
    spec: JobSpec
    attachments: bytes
    """As `pack_attachments` makes it; of a task what was amended alone, since its array has the
    rest."""
    array_id: JobId
    """0 for a job that is no array."""
    tasks: TaskSet | None
    """The tasks this row stands for, at least one; None for a job that is no array."""
    het_id: JobId
    """0 for a job that is no component of a het job."""
    het_offset: int
    het_size: int


class ArrayRow(Row, frozen=True):
    """What the tasks of an array have in common; it goes with the last of them."""

    uid: int
    tasks: TaskSet
    """All that were submitted."""
    purged: int
    """How many of them have left the state."""
    throttle: int
    """At most this many run at a time; 0 is no limit."""
    attachments: bytes


class GroupReasonRow(Row, frozen=True):
    """Why the pending jobs of one partition and one shape wait."""

    reason: Reason


def next_job_id(state: State) -> JobId:
    """Return the id that the next new job gets."""
    return JobId(counter(state, JOB_ID_COUNTER) + 1)


def take_job_id(state: State, job_id: JobId) -> None:
    """Move the counter on to this id, which must be the next."""
    due = next_job_id(state)
    if job_id != due:
        raise IllegalTransition(f"job id {job_id} is given out; the next is {due}")
    raise_counter(state, JOB_ID_COUNTER, job_id)


@applies(JobSubmitted)
def apply_job_submitted(state: State, at: At, event: JobSubmitted) -> None:
    """Add the job and its run 0."""
    job_id = event.job_id
    if event.het_size and (job_id != event.het_id + event.het_offset or event.tasks is not None):
        raise IllegalTransition(f"job {job_id} is no component {event.het_offset} of a het job")
    take_job_id(state, job_id)
    shared = state.shared
    uid = shared.number(event.uid)
    packed = pack_attachments(at.attachments[place] for place in event.attachments)
    array_id = JobId(0)
    tasks = event.tasks
    if tasks is not None:
        array_id = job_id
        state.arrays.put(job_id, ArrayRow(uid, tasks, 0, event.throttle, packed))
        packed = b""
    gid = shared.number(event.gid)
    spec = shared.spec(event.spec)
    row = JobRow(
        uid,
        gid,
        at.time_ns,
        spec,
        packed,
        array_id,
        tasks,
        event.het_id,
        event.het_offset,
        event.het_size,
    )
    state.jobs.put(job_id, row)
    run = RunRow(
        0,
        0,
        Phase.PENDING,
        event.hold,
        Reason.NONE,
        event.priority,
        at.time_ns,
        array_id,
        event.het_id,
        None,
        None,
        None,
    )
    state.runs.put(job_id, run)
    if event.spec.dependency is not None:
        put_dependency(state, job_id, event.spec.dependency)


@applies(JobTasksSplit)
def apply_job_tasks_split(state: State, at: At, event: JobTasksSplit) -> None:
    """Move tasks from one pending job to a new one, which has the same past."""
    take_job_id(state, event.job_id)
    run = run_in(state, event.from_id, Phase.PENDING)
    job = state.jobs[event.from_id]
    if job.tasks is None:
        raise IllegalTransition(f"job {event.from_id} is no array")
    left = job.tasks.without(event.tasks)
    if not left.ranges or job.tasks.count != left.count + event.tasks.count:
        raise IllegalTransition(
            f"the tasks split off job {event.from_id} are not some, and not all, of its own"
        )
    state.jobs.put(event.from_id, replace(job, tasks=left))
    state.jobs.put(event.job_id, replace(job, tasks=event.tasks))
    state.runs.put(event.job_id, run)
    past = state.past_runs.get(event.from_id)
    if past is not None:
        state.past_runs.put(event.job_id, past)
    waits = state.dependencies.get(event.from_id)
    if waits is not None:
        state.dependencies.put(event.job_id, waits)


@applies(JobHeld)
def apply_job_held(state: State, at: At, event: JobHeld) -> None:
    """Note the hold, which a running job meets only when it is put back into the queue."""
    run = run_in(state, event.job_id, Phase.PENDING, Phase.RUNNING, Phase.STOPPING)
    state.runs.put(event.job_id, replace(run, hold=event.hold))


@applies(JobReleased)
def apply_job_released(state: State, at: At, event: JobReleased) -> None:
    """Lift the hold; the age of a job that waits counts from now."""
    run = run_in(state, event.job_id, Phase.PENDING, Phase.RUNNING, Phase.STOPPING)
    if run.hold is Hold.NONE:
        raise IllegalTransition(f"job {event.job_id} is not held")
    since_ns = at.time_ns if run.phase is Phase.PENDING else run.since_ns
    state.runs.put(event.job_id, replace(run, hold=Hold.NONE, since_ns=since_ns))


@applies(JobPriorityChanged)
def apply_job_priority_changed(state: State, at: At, event: JobPriorityChanged) -> None:
    """Fix the priority, or give it back to the scheduler."""
    run = run_in(state, event.job_id, Phase.PENDING, Phase.RUNNING, Phase.STOPPING)
    state.runs.put(event.job_id, replace(run, priority=event.priority))


@applies(JobSpecChanged)
def apply_job_spec_changed(state: State, at: At, event: JobSpecChanged) -> None:
    """Replace the spec; the limit of a running run follows it."""
    run = run_in(state, event.job_id, Phase.PENDING, Phase.RUNNING, Phase.STOPPING)
    job = state.jobs[event.job_id]
    state.jobs.put(event.job_id, replace(job, spec=state.shared.spec(event.spec)))
    if event.spec.dependency != job.spec.dependency:
        put_dependency(state, event.job_id, event.spec.dependency)
    limit_s = event.spec.time_limit_s
    if run.started is not None and limit_s is not None and limit_s != job.spec.time_limit_s:
        began_ns = counted_from_ns(run.started)
        former = run.started.course or Course(0, False, 0, 0)
        started = replace(
            run.started,
            limit_ns=began_ns + limit_s * 1_000_000_000 if limit_s else 0,
            course=replace(former, index=at.index),
        )
        state.runs.put(event.job_id, replace(run, started=started))


@applies(JobTextsChanged)
def apply_job_texts_changed(state: State, at: At, event: JobTextsChanged) -> None:
    """Keep the new texts; nothing refers to the former any more."""
    run_in(state, event.job_id, Phase.PENDING, Phase.RUNNING, Phase.STOPPING)
    job = state.jobs[event.job_id]
    come = [at.attachments[place] for place in event.attachments]
    packed = amend_attachments(job.attachments, come)
    state.jobs.put(event.job_id, replace(job, attachments=packed))


@applies(ArrayThrottled)
def apply_array_throttled(state: State, at: At, event: ArrayThrottled) -> None:
    """Note the limit; tasks that run beyond it go on."""
    array = state.arrays.get(event.array_id)
    if array is None:
        raise IllegalTransition(f"there is no array {event.array_id}")
    state.arrays.put(event.array_id, replace(array, throttle=event.throttle))


@applies(JobRequeued)
def apply_job_requeued(state: State, at: At, event: JobRequeued) -> None:
    """Keep the ended run as a compact record and open the next."""
    job_id = event.job_id
    run = run_in(state, job_id, Phase.ENDED)
    if event.run != run.number + 1 or run.end is None:
        raise IllegalTransition(
            f"job {job_id} ended its run {run.number}, so {event.run} is not next"
        )
    past = state.past_runs.get(job_id)
    record = PastRun(run.number, run.since_ns, run.started, run.end)
    runs = (record,) if past is None else (*past.runs, record)
    state.past_runs.put(job_id, PastRunsRow(runs))
    opened = replace(
        run,
        number=event.run,
        phase=Phase.PENDING,
        hold=event.hold,
        reason=Reason.NONE,
        since_ns=at.time_ns,
        started=None,
        end=None,
    )
    state.runs.put(job_id, opened)


@applies(JobPurged)
def apply_job_purged(state: State, at: At, event: JobPurged) -> None:
    """Take an ended job and its runs out of the state."""
    job_id = event.job_id
    run_in(state, job_id, Phase.ENDED)
    job = state.jobs[job_id]
    state.runs.delete(job_id)
    if job_id in state.past_runs:
        state.past_runs.delete(job_id)
    state.jobs.delete(job_id)
    if job.tasks is not None:
        array = state.arrays[job.array_id]
        if state.array_jobs.count(job.array_id):
            purged = array.purged + job.tasks.count
            state.arrays.put(job.array_id, replace(array, purged=purged))
        else:
            state.arrays.delete(job.array_id)


@applies(JobReasonsStated)
def apply_job_reasons_stated(state: State, at: At, event: JobReasonsStated) -> None:
    """Replace the reasons of groups and of single jobs."""
    raise_counter(state, REASONS_STATED_COUNTER, at.time_ns)
    for group in event.groups:
        key = (group.partition, group.shape)
        if group.reason is not Reason.NONE:
            state.reasons.put(key, GroupReasonRow(group.reason))
        elif key in state.reasons:
            state.reasons.delete(key)
    for single in event.jobs:
        run = run_in(state, single.job_id, Phase.PENDING)
        state.runs.put(single.job_id, replace(run, reason=single.reason))
