"""What must hold of the records of a run, beside the log, and beside what the jobs wrote down.

one record a run     the read model and the log have the same ends; runs are numbered without a gap
not lost             every accepted job is there with all of its tasks, and has ended
not twice            a run has one start line; runs of a job live one after the other
said                 a run that lived on beside its successor is recorded as unfenced
true                 what is recorded as completed began once and came to its last line
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from spur.controller.logtool import show_events
from spur.testing.chaos.plan import PlannedJob, Task
from spur.testing.chaos.scripts import EXIT_OF_FAILING, Notes
from spur.testing.live.load import Wrong
from spur.values.config import RequeuePolicy
from spur.values.ids import JobId
from spur.values.states import JobState
from spur.wire.history import JobRecord, RunRecord

__all__ = ["Ends", "judge_jobs", "judge_records", "read_log"]

RunKey = tuple[int, int]
"""Job and run."""

OPEN = frozenset((JobState.PENDING, JobState.RUNNING, JobState.SUSPENDED))

NEVER_RAN = Notes(())


@dataclass(frozen=True)
class Ends:
    """What the log says of runs."""

    ended: Counter[RunKey]
    ends: Mapping[RunKey, tuple[int, int, bool]]
    """Exit code, signal, and whether it is unfenced."""
    started: Counter[RunKey]
    relaunches: int


def read_log(directory: str) -> Ends:
    """Return what a controller's log says of runs."""
    ended: Counter[RunKey] = Counter()
    started: Counter[RunKey] = Counter()
    ends: dict[RunKey, tuple[int, int, bool]] = {}
    relaunches = 0
    for row in show_events(directory):
        fields = row["fields"]
        match row["event"]:
            case "run.ended":
                key = (fields["job_id"], fields["run"])
                ended[key] += 1
                ends[key] = (fields["exit_code"], fields["signal"], fields["unfenced"])
            case "job.started":
                started[fields["job_id"], fields["run"]] += 1
            case "job.relaunched":
                relaunches += 1
    return Ends(ended, ends, started, relaunches)


def judge_records(records: Iterable[JobRecord], log: Ends) -> int:
    """Compare records and log; return how many records there are. Raises: Wrong."""
    wrong = []
    seen: Counter[RunKey] = Counter()
    for record in records:
        for number, run in enumerate(record.runs):
            key = (record.job_id, run.run)
            seen[key] += 1
            if run.run != number:
                wrong.append(f"job {record.job_id} has a record of run {run.run} as its {number}th")
            if run.state in OPEN or not run.end_ns:
                wrong.append(f"run {run.run} of job {record.job_id} is recorded as {run.state}")
            elif log.ends.get(key) != (run.exit_code, run.signal, run.unfenced):
                wrong.append(
                    f"run {run.run} of job {record.job_id} is recorded with exit code"
                    f" {run.exit_code}, signal {run.signal}, unfenced {run.unfenced}; the log has"
                    f" {log.ends.get(key)}"
                )
            wrong += _open_steps(record.job_id, run)
    wrong += [f"{count} records of (job, run) {key}" for key, count in seen.items() if count > 1]
    wrong += [f"{count} ends of {key} in the log" for key, count in log.ended.items() if count > 1]
    wrong += [f"{n} starts of {key} in the log" for key, n in log.started.items() if n > 1]
    if log.ended.keys() != seen.keys():
        wrong.append(f"records and log differ in {sorted(log.ended.keys() ^ seen.keys())}")
    _refuse(wrong)
    return seen.total()


def _open_steps(job_id: int, run: RunRecord) -> Iterator[str]:
    for step in run.steps:
        if step.state in OPEN or not step.end_ns:
            yield f"step {step.step} of job {job_id}, run {run.run}, is recorded as {step.state}"


def judge_jobs(
    jobs: Iterable[PlannedJob],
    accepted: Mapping[str, JobId],
    records: Iterable[JobRecord],
    notes: Mapping[int, Notes],
    policy: RequeuePolicy,
) -> tuple[int, int]:
    """Compare records with what was accepted, and with what the jobs wrote down.

    Return how many runs began, and how many of them lived on beside a later one. Raises: Wrong.
    """
    wrong: list[str] = []
    rows: dict[int, list[JobRecord]] = defaultdict(list)
    for record in records:
        rows[record.array_id or record.job_id].append(record)
    known = {record.job_id for members in rows.values() for record in members}
    wrong += [f"job {job_id} ran and has no record" for job_id in notes.keys() - known]
    began = unfenced = 0
    for job in jobs:
        if job.name not in accepted:
            wrong.append(f"{job.name} has no outcome")
            continue
        members = rows[accepted[job.name]]
        count = sum(1 if each.tasks is None else each.tasks.count for each in members)
        if count != job.members:
            wrong.append(f"{job.name} was accepted with {job.members} jobs, and {count} are there")
        for record in members:
            if record.spec.name != job.name:
                wrong.append(f"job {record.job_id} is {record.spec.name}, not {job.name}")
            written = notes.get(record.job_id, NEVER_RAN)
            began += len(written.runs)
            late = written.overlaps()
            unfenced += len(late)
            wrong += _judge_job(job, record, written, late, policy)
    _refuse(wrong)
    return began, unfenced


def _judge_job(
    job: PlannedJob, record: JobRecord, notes: Notes, late: list[int], policy: RequeuePolicy
) -> Iterator[str]:
    where = f"{job.name} (job {record.job_id}"
    for run in notes.runs:
        if run >= len(record.runs):
            yield f"{where}, run {run}) ran and has no record"
    for run in late:
        if policy is RequeuePolicy.CONFIRMED:
            yield f"{where}, run {run}) lived on beside a later run"
        elif run < len(record.runs) and not record.runs[run].unfenced:
            yield f"{where}, run {run}) lived on beside a later run, and is recorded as fenced"
    for run_record in record.runs:
        run = run_record.run
        starts, ends = notes.count("start", run), notes.count("end", run)
        if starts > 1:
            yield f"{where}, run {run}) began {starts} times"
        if starts and not run_record.start_ns:
            yield f"{where}, run {run}) began and is recorded as never started"
        code = EXIT_OF_FAILING if job.task is Task.FAILING else 0
        is_own_end = run_record.state is JobState.COMPLETED or (
            run_record.state is JobState.FAILED and run_record.exit_code == EXIT_OF_FAILING
        )
        if is_own_end and (starts, ends, run_record.exit_code) != (1, 1, code):
            yield (
                f"{where}, run {run}) is recorded as {run_record.state}, exit code"
                f" {run_record.exit_code}, and wrote {starts} start and {ends} end lines"
            )


def _refuse(wrong: list[str]) -> None:
    if wrong:
        raise Wrong("; ".join(wrong[:20]) + (f"; and {len(wrong) - 20} more" * (len(wrong) > 20)))
