"""Which rows a request about a job means, and how much of a request fits one entry.

An id of an array means all of its rows, and that of a het job's first component all components;
tasks mean those rows that stand for them, and a row that
stands for others too is split first. A request over many rows is done in parts: each part takes
rows that are not yet as the request wants them, so the next part goes on where it ended.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from spur.commands.decide import Context, Decision
from spur.commands.permissions import may_act_for
from spur.events.declare import Event
from spur.events.jobs import JobRequeued, JobTasksSplit
from spur.projections.hetjobs import components_of
from spur.projections.jobs import JobRow, next_job_id
from spur.projections.runrows import RunRow
from spur.projections.state import State
from spur.values.arrays import TaskSet
from spur.values.errors import Rejection
from spur.values.ids import JobId
from spur.values.limits import ENTRY_ROW_CHANGES_MAX
from spur.values.states import Phase
from spur.wire.declare import Done

__all__ = [
    "ROWS_PER_PART_MAX",
    "Change",
    "Target",
    "changed",
    "changes",
    "ended",
    "has_ended",
    "targets",
    "whole_alone",
]

ROWS_PER_PART_MAX = ENTRY_ROW_CHANGES_MAX // 2
"""Row changes that one part makes. A bigger part would hold the front's loop for too long."""

_ROWS_OF = {JobTasksSplit: 5, JobRequeued: 2}
"""Row changes that the events of these commands make; all others make one."""

_TASKS_LOOKED_UP_MAX = 64
"""Tasks that are looked up one by one; beyond, the rows of the array are searched."""


@dataclass(frozen=True, slots=True)
class Target:
    """A row that a request means, or some of the tasks that it stands for."""

    job_id: JobId
    job: JobRow
    run: RunRow
    tasks: TaskSet | None
    """The tasks to split off before anything is done; None for the whole row."""


Change = Callable[[Target], "list[Event] | Rejection | None"]
"""What a request makes of a row: events about `target.job_id`, why not, or None when the row is
already as it wants."""


def targets(
    state: State,
    context: Context,
    job_id: JobId,
    tasks: TaskSet | None,
    *,
    takes_whole: bool = True,
) -> Iterator[Target] | Rejection:
    """Return the rows that are meant, in order, or why there are none.

    With `takes_whole` the first component of a het job stands for all of them.

    Of a later part: those behind what the part before looked at. The state must not change while
    they are walked.

    Rejections: unknown-job; not-permitted when the job or array is another user's.
    """
    array, job = state.arrays.get(job_id), state.jobs.get(job_id)
    if array is not None:
        uid, found = array.uid, _of_array(state, job_id, tasks, JobId(context.resume_after))
    elif job is not None and tasks is None:
        whole = components_of(state, job_id) if takes_whole else []
        after = JobId(context.resume_after)
        uid, found = job.uid, _of_rows(state, whole or [job_id], after)
    else:
        return _unknown(job_id, tasks)
    if not may_act_for(state, context.actor, uid):
        return Rejection("not-owner", f"job {job_id} belongs to uid {uid}; nothing was changed")
    first = next(found, None)
    if first is None:
        return _unknown(job_id, tasks)
    return chain((first,), found)


def _of_rows(state: State, job_ids: list[JobId], after: JobId) -> Iterator[Target]:
    """Yield those of these rows that are above an id."""
    for job_id in job_ids:
        if job_id > after:
            yield Target(job_id, state.jobs[job_id], state.runs[job_id], None)


def whole_alone(target: Target, asked: JobId) -> Rejection | None:
    """Return the no to a request for one component that takes the whole het job; None for others.

    The first component names the whole.
    """
    if not target.job.het_offset or asked != target.job_id:
        return None
    return Rejection(
        "het-component",
        f"job {asked} is a component of het job {target.job.het_id}; nothing was changed",
        f"ask for {target.job.het_id}, which is all of it",
    )


def _unknown(job_id: JobId, tasks: TaskSet | None) -> Rejection:
    what = f"job {job_id}" if tasks is None else f"array {job_id} with such tasks"
    return Rejection("unknown-job", f"there is no {what}; nothing was changed")


def _of_array(
    state: State, array_id: JobId, tasks: TaskSet | None, after: JobId
) -> Iterator[Target]:
    """Yield the rows of an array above an id that stand for some of these tasks, or for any."""
    index = state.array_jobs
    if tasks is not None and tasks.count <= _TASKS_LOOKED_UP_MAX:
        alone = (index.single(array_id, task) for task in tasks)
        ids = sorted({*index.several(array_id), *(job_id for job_id in alone if job_id)})
    else:
        ids = index.jobs(array_id)
    for job_id in ids[bisect_right(ids, after) :]:
        job = state.jobs[job_id]
        mine = job.tasks
        if mine is None or tasks is None or mine.is_within(tasks):
            yield Target(job_id, job, state.runs[job_id], None)
            continue
        common = mine.common(tasks)
        if common.ranges:
            yield Target(job_id, job, state.runs[job_id], common)


def has_ended(run: RunRow) -> bool:
    """Whether a run has its record, which then stands for all tasks of its row."""
    return run.phase is Phase.ENDED


def ended(target: Target) -> Rejection:
    """Return the no to a change of a run that has its record."""
    return Rejection("job-ended", f"job {target.job_id} has ended; nothing was changed")


def changed(
    state: State,
    context: Context,
    job_id: JobId,
    tasks: TaskSet | None,
    change: Change,
    *,
    takes_whole: bool = True,
) -> Decision | Rejection:
    """Apply a change to all rows that are meant, in as many parts as it takes."""
    found = targets(state, context, job_id, tasks, takes_whole=takes_whole)
    if isinstance(found, Rejection):
        return Decision((), Done()) if context.part > 1 else found
    events, last, refusal = changes(state, found, change)
    if not events and refusal is not None and context.part == 1:
        return refusal
    return Decision(tuple(events), Done(), more=last > 0, resume_after=last)


def changes(
    state: State, found: Iterable[Target], change: Change
) -> tuple[list[Event], int, Rejection | None]:
    """Return the events for as many rows as fit one part, where to go on, and a refusal.

    Where to go on is the last row that was dealt with, 0 when all were. The refusal is that of
    the first row that refused; it counts when no row was changed.
    """
    events: list[Event] = []
    refusal: Rejection | None = None
    fresh = next_job_id(state)
    rows = last = 0
    for target in found:
        outcome = _outcome(target, fresh, change)
        if isinstance(outcome, Rejection):
            refusal = refusal or outcome
        elif outcome is not None:
            rows += sum(_ROWS_OF.get(type(event), 1) for event in outcome)
            if rows > ROWS_PER_PART_MAX:
                return events, last, refusal
            if target.tasks is not None:
                fresh = JobId(fresh + 1)
            events.extend(outcome)
        last = target.job_id
    return events, 0, refusal


def _outcome(target: Target, fresh: JobId, change: Change) -> list[Event] | Rejection | None:
    """Return what a request makes of a row, the split of the tasks it means included."""
    if target.tasks is None:
        return change(target)
    outcome = change(Target(fresh, target.job, target.run, None))
    if not isinstance(outcome, list):
        return outcome
    if has_ended(target.run):
        return Rejection(
            "wrong-state",
            f"these tasks ended as one with others, as job {target.job_id}; nothing was changed",
            "ask for all of them",
        )
    return [JobTasksSplit(fresh, target.job_id, target.tasks), *outcome]
