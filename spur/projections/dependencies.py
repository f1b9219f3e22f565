"""What jobs wait for of others: the conditions that are left, and what of them is settled by now.

A condition holds, or can hold no more, once another job ended. That is an event, since the other
job's record leaves the state. A held job is not judged before its release, as in Slurm; what it
waits for may be gone by then, and a job that is gone keeps nobody waiting.

Source: sbatch(1) --dependency; what a Slurm 22.05 did.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from zlib import crc32

from msgspec.structs import replace

from spur.events.declare import Event
from spur.events.jobs import JobDependencyJudged, JobTasksSplit
from spur.events.runs import RunEnded
from spur.projections.apply import At, applies
from spur.projections.cluster import parameter_of
from spur.projections.counters import JOB_ID_COUNTER, counter
from spur.projections.due import Due, falls_due
from spur.projections.runrows import RunRow
from spur.projections.runs import IllegalTransition, run_in
from spur.projections.tables import Row
from spur.values.arrays import TaskSet
from spur.values.dependencies import Condition, Dependency, DependencyKind
from spur.values.ids import JobId
from spur.values.jobspec import JobSpec
from spur.values.states import Hold, JobState, Phase, Reason

if TYPE_CHECKING:
    from spur.projections.state import State

__all__ = [
    "DependencyRow",
    "awaited_ends",
    "closes_circle",
    "dependents_judged",
    "live_names",
    "looks_often",
    "named_jobs",
    "namesakes_key",
    "never_holds",
    "put_dependency",
]

_NS = 1_000_000_000

CHAIN_MAX = 10_000
"""Jobs that are looked at for a circle; a longer chain is taken for none."""


class DependencyRow(Row, frozen=True):
    """What a waiting job still waits for; its key is the job's id. Gone once nothing is left."""

    any_holds: bool
    """Whether one condition is enough."""
    conditions: tuple[Condition, ...]
    """Those that do not hold yet, or can hold no more."""
    failed: tuple[Condition, ...]
    """Those of them that can hold no more."""


# -- indexes


def awaited_ends(_: JobId, row: DependencyRow) -> tuple[JobId, ...]:
    """Return the jobs and arrays whose end, as a whole, is waited for."""
    return tuple(
        {
            condition.job_id: None
            for condition in row.conditions
            if _is_plain(condition) and condition not in row.failed
        }
    )


def looks_often(_: JobId, row: DependencyRow) -> bool | None:
    """Whether the row has conditions that no end of a whole job tells of; None when not."""
    others = (
        condition
        for condition in row.conditions
        if not _is_plain(condition) and condition not in row.failed
    )
    return True if any(others) else None


def _is_plain(condition: Condition) -> bool:
    return (
        condition.kind
        not in (DependencyKind.AFTER, DependencyKind.AFTER_CORR, DependencyKind.SINGLETON)
        and condition.task is None
        and not condition.delay_s
    )


def live_names(key: JobId, row: RunRow) -> tuple[JobId, ...]:
    """Return the job's id, and its array's or het job's, while the run has not ended."""
    if row.phase is Phase.ENDED:
        return ()
    whole = row.array_id or row.het_id
    return (key,) if whole in (0, key) else (key, whole)


def named_jobs(_: JobId, row: DependencyRow) -> tuple[JobId, ...]:
    """Return each job and array that the conditions name."""
    return tuple(dict.fromkeys(condition.job_id for condition in row.conditions))


def namesakes_key(uid: int, name: str) -> tuple[int, int]:
    """Return the user, and a number that equal names share: a whole name costs memory."""
    return uid, crc32(name.encode()) & 0x3FF


# -- rows


def put_dependency(state: State, job_id: JobId, dependency: Dependency | None) -> None:
    """Let a job wait for this, and for nothing else."""
    if dependency is not None and dependency.conditions:
        row = DependencyRow(dependency.any_holds, dependency.conditions, ())
        state.dependencies.put(job_id, row)
    elif job_id in state.dependencies:
        state.dependencies.delete(job_id)


def never_holds(row: DependencyRow) -> bool:
    """Whether the dependency can hold no more."""
    if row.any_holds:
        return len(row.failed) == len(row.conditions)
    return bool(row.failed)


@applies(JobDependencyJudged)
def apply_job_dependency_judged(state: State, at: At, event: JobDependencyJudged) -> None:
    """Strike out what holds and mark what never will; the age of a freed job counts from now."""
    job_id = event.job_id
    run = run_in(state, job_id, Phase.PENDING)
    row = state.dependencies.get(job_id)
    judged = (*event.held, *event.failed)
    if row is None or not judged or not set(judged) <= set(row.conditions) - set(row.failed):
        raise IllegalTransition(f"job {job_id} does not wait for what is judged")
    left = tuple(condition for condition in row.conditions if condition not in event.held)
    if event.frees is not (not left or (row.any_holds and bool(event.held))):
        raise IllegalTransition(f"job {job_id} is said to be free, or not, against its conditions")
    if event.frees:
        state.dependencies.delete(job_id)
        state.runs.put(job_id, replace(run, reason=Reason.NONE, since_ns=at.time_ns))
    else:
        failed = (*row.failed, *event.failed)
        state.dependencies.put(job_id, DependencyRow(row.any_holds, left, failed))


# -- judging


def closes_circle(state: State, job_id: JobId, dependency: Dependency) -> bool:
    """Whether a job that waited for this would wait for itself."""
    seen: set[JobId] = set()
    ahead = [condition.job_id for condition in dependency.conditions]
    while ahead and len(seen) < CHAIN_MAX:
        name = ahead.pop()
        if name == job_id:
            return True
        if name in seen:
            continue
        seen.add(name)
        for member in (name, *state.array_jobs.jobs(name)):
            row = state.dependencies.get(member)
            if row is not None:
                ahead += [condition.job_id for condition in row.conditions]
    return False


@falls_due
def dependents_judged(state: State, now_ns: int, limit: int) -> Iterator[Due]:
    """Yield the waiting jobs of which a condition is settled."""
    if not state.dependencies.rows:
        return
    ready = set(state.restless_dependents.keys(True))
    for name in state.dependents.values() - state.live.values():
        ready.update(state.dependents.keys(name))
    found = 0
    has_split = False
    for job_id in sorted(ready):
        if found == limit:
            return
        run = state.runs[job_id]
        if run.hold is not Hold.NONE:
            continue
        item = None
        if not has_split:
            # The ids of the parts are the next of the counter, so one row is split in an entry.
            item = _corresponding(state, job_id, now_ns)
            has_split = item is not None
        item = item or _judged(state, job_id, now_ns)
        if item is not None:
            found += 1
            yield item


def _judged(state: State, job_id: JobId, now_ns: int) -> Due | None:
    """Return what is settled by now of a row, with the moment when the first of it was."""
    row, tasks = state.dependencies[job_id], state.jobs[job_id].tasks
    task = None if tasks is None or not tasks.is_single else tasks.first
    held: list[Condition] = []
    failed: list[Condition] = []
    first_ns = now_ns
    for condition in row.conditions:
        if condition in row.failed or (_is_per_task(state, condition) and task is None and tasks):
            continue
        holds, time_ns = _outcome(state, job_id, condition, task)
        if holds is None or time_ns > now_ns:
            continue
        (held if holds else failed).append(condition)
        first_ns = min(first_ns, time_ns)
    if not held and not failed:
        return None
    events = _consequences(state, job_id, job_id, held, failed, first_ns)
    return Due(first_ns, "runs", job_id, tuple(events))


def _is_per_task(state: State, condition: Condition) -> bool:
    """Whether each task of a waiting array waits for a task of its own."""
    return (
        condition.kind is DependencyKind.AFTER_CORR
        and condition.task is None
        and condition.job_id in state.arrays
    )


def _corresponding(state: State, job_id: JobId, now_ns: int) -> Due | None:
    """Return the split of those tasks of a waiting array whose own conditions are settled."""
    tasks, row = state.jobs[job_id].tasks, state.dependencies[job_id]
    if tasks is None or tasks.is_single:
        return None
    condition = next(
        (each for each in row.conditions if each not in row.failed and _is_per_task(state, each)),
        None,
    )
    if condition is None:
        return None
    settled: dict[bool, list[int]] = {}
    first_ns = now_ns
    for task in tasks:
        holds, time_ns = _outcome(state, job_id, condition, task)
        if holds is not None and time_ns <= now_ns:
            settled.setdefault(holds, []).append(task)
            first_ns = min(first_ns, time_ns)
    for holds, members in sorted(settled.items(), reverse=True):
        part = TaskSet.of(members)
        held, failed = ([condition], []) if holds else ([], [condition])
        if part.count == tasks.count:
            events = _consequences(state, job_id, job_id, held, failed, first_ns)
            return Due(first_ns, "runs", job_id, tuple(events))
        fresh = JobId(counter(state, JOB_ID_COUNTER) + 1)
        split = JobTasksSplit(fresh, job_id, part)
        events = _consequences(state, job_id, fresh, held, failed, first_ns)
        return Due(first_ns, "runs", job_id, (split, *events))
    return None


def _consequences(
    state: State,
    row_id: JobId,
    job_id: JobId,
    held: list[Condition],
    failed: list[Condition],
    time_ns: int,
) -> list[Event]:
    """Return the judgement of a job, and its end when it shall not wait for ever.

    `row_id` is the job's row as it is now; `job_id` differs when it is split off first.
    """
    row, run = state.dependencies[row_id], state.runs[row_id]
    left = tuple(each for each in row.conditions if each not in held)
    frees = not left or (row.any_holds and bool(held))
    events: list[Event] = [JobDependencyJudged(job_id, tuple(held), tuple(failed), frees)]
    after = DependencyRow(row.any_holds, left, (*row.failed, *failed))
    if not frees and never_holds(after) and _kills(state, state.jobs[row_id].spec):
        events.append(
            RunEnded(
                job_id,
                run.number,
                JobState.CANCELLED,
                Reason.DEPENDENCY_NEVER_SATISFIED,
                0,
                0,
                time_ns,
                False,
            )
        )
    return events


_KILL_PARAMETERS = ("DependencyParameters", "SchedulerParameters")


def _kills(state: State, spec: JobSpec) -> bool:
    """Whether a job ends once its dependency can no longer hold: as it says, or as its site does.

    Source: slurm.conf(5) DependencyParameters, and SchedulerParameters of older releases.
    """
    if spec.kill_on_invalid_dependency is not None:
        return spec.kill_on_invalid_dependency
    words = ",".join(parameter_of(state, name) for name in _KILL_PARAMETERS)
    return "kill_invalid_depend" in (word.strip().lower() for word in words.split(","))


def _outcome(
    state: State, job_id: JobId, condition: Condition, task: int | None
) -> tuple[bool | None, int]:
    """Return whether a condition holds (None: nobody knows yet), and since when.

    `task` is the waiting job's own task of its array.
    """
    if condition.kind is DependencyKind.SINGLETON:
        return (None if _has_namesake(state, job_id) else True), state.time_ns
    if condition.task is not None:
        task = condition.task
    elif not _is_per_task(state, condition):
        task = None
    rows = _rows_of(state, condition.job_id, task)
    if not rows:
        return True, state.time_ns
    outcomes = [_outcome_of(state.runs[row], condition.kind) for row in rows]
    if any(holds is None for holds, _ in outcomes):
        return None, 0
    each = [bool(holds) for holds, _ in outcomes]
    # An array is not ok as soon as one of its tasks is not.
    is_met = any(each) if condition.kind is DependencyKind.AFTER_NOT_OK else all(each)
    time_ns = max(time_ns for _, time_ns in outcomes)
    return is_met, time_ns + condition.delay_s * _NS if is_met else time_ns


def _rows_of(state: State, name: JobId, task: int | None) -> list[JobId]:
    """Return the rows of a job, of an array, or of one task of it, that are in the state."""
    members = state.array_jobs
    if name not in state.arrays:
        return [name] if name in state.runs else []
    if task is None:
        return members.jobs(name)
    alone = members.single(name, task)
    if alone is not None:
        return [alone]
    return [row for row in members.several(name) if task in (state.jobs[row].tasks or ())]


def _outcome_of(run: RunRow, kind: DependencyKind) -> tuple[bool | None, int]:
    """Return whether one run meets a condition (None: not yet known), and since when."""
    if kind is DependencyKind.AFTER and run.started is not None:
        return True, run.started.start_ns
    if run.end is None:
        return None, 0
    is_ok = run.end.state is JobState.COMPLETED
    if kind in (DependencyKind.AFTER_OK, DependencyKind.AFTER_CORR):
        return is_ok, run.end.end_ns
    if kind is DependencyKind.AFTER_NOT_OK:
        return not is_ok, run.end.end_ns
    return True, run.end.end_ns


def _has_namesake(state: State, job_id: JobId) -> bool:
    """Whether an earlier job of the same user and name has not ended, or a later one runs."""
    job = state.jobs[job_id]
    array_id = job.array_id or job_id
    for other in state.namesakes.after(namesakes_key(job.uid, job.spec.name), JobId(0)):
        if other == job_id:
            continue
        row, phase = state.jobs[other], state.runs[other].phase
        if phase is Phase.ENDED or (other > job_id and phase is Phase.PENDING):
            continue
        if row.array_id != array_id and row.spec.name == job.spec.name:
            return True
    return False
