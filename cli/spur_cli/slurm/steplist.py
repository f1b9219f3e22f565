"""The steps of the jobs that run, as lines."""

from __future__ import annotations

import time
from typing import NamedTuple

from spur.slurm.columns.steps import StepLine, batch_line, extern_line, line_of_step
from spur.slurm.jobids import JobName, parse_job_name
from spur.values.errors import Rejection
from spur.values.ids import JobId
from spur.values.states import JobState
from spur.values.steps import parse_step
from spur.wire.jobs import JobFilter
from spur.wire.steps import QuerySteps, StepPage, StepView
from spur_cli.slurm.people import LocalCalendar, user_name
from spur_cli.slurm.queue import fetch_queue
from spur_cli.slurm.session import Session

__all__ = ["StepWord", "by_partition", "fetch_steps", "is_meant", "parse_step_word"]

PAGE_ROWS = 1000


class StepWord(NamedTuple):
    """What 1501, 1501.0 or 1505_2.batch names."""

    job: JobName
    step_id: int | None
    """None for all steps of the job."""


def parse_step_word(text: str) -> StepWord:
    """Read the name of a step, or of a job for all of its steps. Raises: ValueError."""
    first, dot, step = text.partition(".")
    return StepWord(parse_job_name(first), parse_step(step) if dot else None)


def is_meant(line: StepLine, words: list[StepWord]) -> bool:
    """Whether a step is one of those that were named; no words name all."""
    return not words or any(_names(word, line) for word in words)


def _names(word: StepWord, line: StepLine) -> bool:
    job = line.job
    if word.step_id is not None and word.step_id != line.step_id:
        return False
    if word.job.job_id not in (job.job_id, job.array_id):
        return False
    tasks = word.job.tasks
    return tasks is None or (job.tasks is not None and job.tasks.first in tasks)


def fetch_steps(session: Session, wanted: JobFilter) -> list[StepLine] | Rejection:
    """Return the steps of those jobs that run, by job; those with names come behind the others."""
    queue = fetch_queue(session, wanted)
    if isinstance(queue, Rejection):
        return queue
    started = _fetch(session)
    if isinstance(started, Rejection):
        return started
    now_ns, calendar = time.time_ns(), LocalCalendar()
    lines: list[StepLine] = []
    for job in queue.jobs:
        if job.state is not JobState.RUNNING:
            continue
        lines += [
            line_of_step(job, step, now_ns, calendar, user_name)
            for step in started.get(job.job_id, ())
        ]
        if job.spec.batch and not job.het_offset:  # the first component has the script
            lines.append(batch_line(job, now_ns, calendar, user_name))
        lines.append(extern_line(job, now_ns, calendar, user_name))
    return lines


def _fetch(session: Session) -> dict[JobId, list[StepView]] | Rejection:
    found: dict[JobId, list[StepView]] = {}
    after: JobId | None = JobId(0)
    while after is not None:
        page = session.ask(QuerySteps((), after, PAGE_ROWS), StepPage)
        if isinstance(page, Rejection):
            return page
        for row in page.rows:
            found.setdefault(row.job_id, []).append(row)
        after = page.next
    return found


def by_partition(line: StepLine) -> tuple[str, int, int]:
    """Return what `squeue --steps` sorts by."""
    return line.job.partition, line.job.job_id, line.step_id
