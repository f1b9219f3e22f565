"""Jobs in the read model: one row a job, and what opens and changes it."""

from __future__ import annotations

from spur.events.crontabs import CronRepeated
from spur.events.jobs import (
    ArrayThrottled,
    JobDependencyJudged,
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
from spur.projections.apply import At
from spur.store.folds import folds
from spur.store.rows import Row, Rows
from spur.store.structs import spec_columns, tasks_of, tasks_text
from spur.store.tables import NEVER_NS
from spur.values.errors import InvariantBroken
from spur.values.states import Hold, JobState, Reason

__all__ = ["newest_run"]


def newest_run(rows: Rows, job_id: int) -> Row:
    """Return the row of a job's newest run."""
    return rows.runs[job_id, rows.jobs[job_id,]["run"]]


def _waits(run: Row) -> bool:
    """Whether a run has neither started nor ended."""
    return run["start_time_ns"] is None and run["end_time_ns"] == NEVER_NS


def _open_run(job_id: int, run: int, at: At, *, eligible_ns: int | None) -> Row:
    return {
        "job_id": job_id,
        "run": run,
        "record_index": at.index,
        "state": JobState.PENDING.value,
        "reason": Reason.NONE.value,
        "attempt": 0,
        "open_time_ns": at.time_ns,
        "eligible_time_ns": eligible_ns,
        "start_time_ns": None,
        "end_time_ns": NEVER_NS,
        "time_limit_s": None,
        "partition": "",
        "batch_host": "",
        "exit_code": 0,
        "signal": 0,
        "killed_by": None,
        "paused_time_ns": None,
        "paused_ns": 0,
        "script_end_ns": None,
        "script_exit_code": 0,
        "script_signal": 0,
        "unfenced": False,
    }


@folds(JobSubmitted)
def fold_job_submitted(rows: Rows, at: At, event: JobSubmitted) -> None:
    """Add the job and its run 0."""
    job_id, spec = event.job_id, event.spec
    row: Row = {
        "job_id": job_id,
        "array_job_id": 0 if event.tasks is None else job_id,
        "array_tasks": tasks_text(event.tasks),
        "array_throttle": event.throttle,
        "het_job_id": event.het_id,
        "het_offset": event.het_offset,
        "uid": event.uid,
        "gid": event.gid,
        "run": 0,
        "hold": event.hold.value,
        "priority": event.priority,
        "submit_time_ns": at.time_ns,
        "submit_index": at.index,
        "purge_time_ns": None,
    }
    row.update(spec_columns(spec))
    rows.jobs.insert(row)
    is_free = event.hold is Hold.NONE and spec.dependency is None
    eligible_ns = max(at.time_ns, spec.begin_ns) if is_free else None
    rows.runs.insert(_open_run(job_id, 0, at, eligible_ns=eligible_ns))


@folds(CronRepeated)
def fold_cron_repeated(rows: Rows, at: At, event: CronRepeated) -> None:
    """Add the next job of a crontab's entry, equal to the one before in all else."""
    job_id = event.job_id
    rows.jobs.insert(
        rows.jobs[event.from_id,]
        | {
            "job_id": job_id,
            "run": 0,
            "hold": Hold.NONE.value,
            "begin_ns": event.begin_ns,
            "submit_time_ns": at.time_ns,
            "submit_index": at.index,
            "purge_time_ns": None,
        }
    )
    rows.runs.insert(_open_run(job_id, 0, at, eligible_ns=event.begin_ns))


@folds(JobTasksSplit)
def fold_job_tasks_split(rows: Rows, at: At, event: JobTasksSplit) -> None:
    """Move tasks to a job of their own, which has the same past."""
    job_id, from_id = event.job_id, event.from_id
    job = rows.jobs[from_id,]
    tasks = tasks_of(job["array_tasks"])
    if tasks is None:
        raise InvariantBroken(f"job {from_id} is no array in the read model")
    rows.jobs.insert(job | {"job_id": job_id, "array_tasks": tasks_text(event.tasks)})
    rows.jobs.change(from_id, array_tasks=tasks_text(tasks.without(event.tasks)))
    newest = job["run"]
    for run in range(newest + 1):
        copied = rows.runs[from_id, run] | {"job_id": job_id}
        if run == newest:
            copied["record_index"] = at.index
        rows.runs.insert(copied)


@folds(JobHeld)
def fold_job_held(rows: Rows, at: At, event: JobHeld) -> None:
    """Note the hold; since when the job might have started stays known."""
    rows.jobs.change(event.job_id, hold=event.hold.value)


@folds(JobReleased)
def fold_job_released(rows: Rows, at: At, event: JobReleased) -> None:
    """Lift the hold: a job that waits may start from now on."""
    job_id = event.job_id
    rows.jobs.change(job_id, hold=Hold.NONE.value)
    if _waits(run := newest_run(rows, job_id)):
        eligible_ns = max(at.time_ns, rows.jobs[job_id,]["begin_ns"])
        rows.runs.change(job_id, run["run"], eligible_time_ns=eligible_ns)


@folds(JobPriorityChanged)
def fold_job_priority_changed(rows: Rows, at: At, event: JobPriorityChanged) -> None:
    """Note the fixed priority, or that there is none."""
    rows.jobs.change(event.job_id, priority=event.priority)


@folds(JobSpecChanged)
def fold_job_spec_changed(rows: Rows, at: At, event: JobSpecChanged) -> None:
    """Replace the spec; begin and limit of the newest run follow it."""
    job_id, spec = event.job_id, event.spec
    job, run = rows.jobs[job_id,], newest_run(rows, job_id)
    number, limit_s, begin_ns = run["run"], spec.time_limit_s, spec.begin_ns
    if run["start_time_ns"] is not None:
        if limit_s is not None and limit_s != job["time_limit_s"]:
            rows.runs.change(job_id, number, time_limit_s=limit_s)
    elif run["eligible_time_ns"] is not None and begin_ns != job["begin_ns"]:
        eligible_ns = max(run["open_time_ns"], begin_ns)
        rows.runs.change(job_id, number, eligible_time_ns=eligible_ns)
    rows.jobs.change(job_id, **spec_columns(spec))


@folds(JobTextsChanged)
def fold_job_texts_changed(rows: Rows, at: At, event: JobTextsChanged) -> None:
    """Keep nothing: texts are private, and are read from where their blobs are."""


@folds(JobDependencyJudged)
def fold_job_dependency_judged(rows: Rows, at: At, event: JobDependencyJudged) -> None:
    """A job that waits for no other any more may start from now on."""
    job_id = event.job_id
    if event.frees and _waits(run := newest_run(rows, job_id)):
        eligible_ns = max(at.time_ns, rows.jobs[job_id,]["begin_ns"])
        rows.runs.change(job_id, run["run"], eligible_time_ns=eligible_ns)


@folds(ArrayThrottled)
def fold_array_throttled(rows: Rows, at: At, event: ArrayThrottled) -> None:
    """Note the limit with the tasks that are not split off: it steers no other any more."""
    rows.jobs.change(event.array_id, array_throttle=event.throttle)


@folds(JobRequeued)
def fold_job_requeued(rows: Rows, at: At, event: JobRequeued) -> None:
    """Open the next run. One that is held is known to have been eligible, as in Slurm's records."""
    job_id = event.job_id
    rows.jobs.change(job_id, run=event.run, hold=event.hold.value)
    eligible_ns = max(at.time_ns, rows.jobs[job_id,]["begin_ns"])
    rows.runs.insert(_open_run(job_id, event.run, at, eligible_ns=eligible_ns))


@folds(JobPurged)
def fold_job_purged(rows: Rows, at: At, event: JobPurged) -> None:
    """Note when the state forgot the job."""
    rows.jobs.change(event.job_id, purge_time_ns=at.time_ns)


@folds(JobReasonsStated)
def fold_job_reasons_stated(rows: Rows, at: At, event: JobReasonsStated) -> None:
    """Replace the reasons of groups and of single jobs."""
    for group in event.groups:
        rows.group_reasons.put(
            {
                "partition": group.partition,
                "shape": group.shape,
                "reason": group.reason.value,
            }
        )
    for single in event.jobs:
        run = newest_run(rows, single.job_id)
        rows.runs.change(single.job_id, run["run"], reason=single.reason.value)
