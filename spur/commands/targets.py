"""Which rows a request about a job means, and how much of a request fits one entry.

An id of an array means all of its rows; tasks mean those rows that stand for them, and a row that
stands for others too is split first. A request over many rows is done in parts: each part takes
rows that are not yet as the request wants them, so the next part goes on where it ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from spur.commands.decide import Context
from spur.commands.permissions import may_act_for
from spur.events.declare import Event
from spur.events.jobs import JobRequeued, JobTasksSplit
from spur.projections.jobs import JobRow, next_job_id
from spur.projections.runrows import RunRow
from spur.projections.state import State
from spur.values.arrays import TaskSet
from spur.values.errors import Rejection
from spur.values.ids import JobId
from spur.values.limits import ENTRY_ROW_CHANGES_MAX
from spur.values.states import Phase

__all__ = ["ROWS_PER_PART_MAX", "Change", "Target", "changes", "has_ended", "targets"]

ROWS_PER_PART_MAX = ENTRY_ROW_CHANGES_MAX // 2
"""Row changes that one part makes. A bigger part would hold the front's loop for too long."""

_ROWS_OF = {JobTasksSplit: 4, JobRequeued: 2}
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
    state: State, context: Context, job_id: JobId, tasks: TaskSet | None
) -> list[Target] | Rejection:
    """Return the rows that are meant, in order, or why there are none.

    Rejections: unknown-job; not-permitted when some row is another user's.
    """
    if job_id in state.arrays:
        found = list(_of_array(state, job_id, tasks))
    elif tasks is not None or job_id not in state.jobs:
        found = []
    else:
        found = [Target(job_id, state.jobs[job_id], state.runs[job_id], None)]
    if not found:
        what = f"job {job_id}" if tasks is None else f"array {job_id} with such tasks"
        return Rejection("unknown-job", f"there is no {what}; nothing was changed")
    for target in found:
        if not may_act_for(state, context.actor, target.job.uid):
            return Rejection(
                "not-permitted",
                f"job {target.job_id} belongs to uid {target.job.uid}; nothing was changed",
            )
    return found


def _of_array(state: State, array_id: JobId, tasks: TaskSet | None) -> Iterable[Target]:
    """Yield the rows of an array that stand for some of these tasks, or for any."""
    index = state.array_jobs
    if tasks is not None and tasks.count <= _TASKS_LOOKED_UP_MAX:
        alone = {index.single(array_id, task) for task in tasks} - {None}
        ids = sorted({*index.several(array_id), *(job_id for job_id in alone if job_id)})
    else:
        ids = index.jobs(array_id)
    for job_id in ids:
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


def changes(
    state: State, found: Sequence[Target], change: Change
) -> tuple[list[Event], bool, Rejection | None]:
    """Return the events for as many rows as fit one entry, whether more follow, and a refusal.

    The refusal is that of the first row that refused; it counts when no row was changed.
    """
    events: list[Event] = []
    refusal: Rejection | None = None
    fresh = next_job_id(state)
    rows = 0
    for target in found:
        meant = target
        if target.tasks is not None:
            meant = Target(fresh, target.job, target.run, None)
        outcome = change(meant)
        if isinstance(outcome, list) and target.tasks is not None and has_ended(target.run):
            outcome = Rejection(
                "wrong-state",
                f"these tasks ended as one with others, as job {target.job_id}; "
                "nothing was changed",
                "ask for all of them",
            )
        if outcome is None:
            continue
        if isinstance(outcome, Rejection):
            refusal = refusal or outcome
            continue
        if target.tasks is not None:
            outcome.insert(0, JobTasksSplit(fresh, target.job_id, target.tasks))
            fresh = JobId(fresh + 1)
        rows += sum(_ROWS_OF.get(type(event), 1) for event in outcome)
        if rows > ROWS_PER_PART_MAX:
            return events, True, refusal
        events.extend(outcome)
    return events, False, refusal
