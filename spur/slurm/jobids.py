"""Names of jobs as people type them: 1501, 1505_2, 1505_[3-5,7], 1506+1.

Source: scancel(1), scontrol(1), squeue(1).
"""

from __future__ import annotations

from typing import NamedTuple

from spur.values.arrays import TaskSet, format_tasks, parse_array
from spur.values.ids import JobId

__all__ = [
    "TASKS_LETTERS",
    "TASK_MAX",
    "JobName",
    "format_task_list",
    "parse_job_name",
    "split_names",
]

JOB_ID_MAX = (1 << 63) - 1

TASK_MAX = 4_000_000
"""The highest task index that may be typed. Source: slurm.conf(5) MaxArraySize."""


TASKS_LETTERS = 64
"""Letters of a list of tasks before it ends in dots. Source: squeue(1) SLURM_BITSTR_LEN."""


class JobName(NamedTuple):
    """What one word of a command line names."""

    job_id: JobId
    tasks: TaskSet | None
    """Tasks of array `job_id`; None for all that the number names."""
    offset: int | None = None
    """Of the component of a het job that was named, which is counted in `job_id` already."""

    @property
    def whole(self) -> JobId:
        """The job, of a component its het job."""
        return JobId(self.job_id - (self.offset or 0))


def parse_job_name(text: str) -> JobName:
    """Read one name; a component of a heterogeneous job (+1) counts from its first job's number.

    Raises: ValueError for anything else.
    """
    number, underline, tasks = text.partition("_")
    if underline and tasks:
        bare = tasks[1:-1] if tasks.startswith("[") and tasks.endswith("]") else tasks
        if bare is tasks and not tasks.isdigit():
            raise ValueError(f"{text!r} names no tasks: write 5_2 or 5_[2-4]")
        ask = parse_array(bare, index_max=TASK_MAX)
        return JobName(_id(number, text), ask.tasks)
    first, plus, offset = number.partition("+")
    if plus:
        place = _id(offset, text, least=0)
        return JobName(JobId(_id(first, text) + place), None, place)
    return JobName(_id(number, text), None)


def _id(digits: str, text: str, least: int = 1) -> JobId:
    good = digits.isascii() and digits.isdigit() and len(digits) < 20
    if not good or not least <= int(digits) <= JOB_ID_MAX:
        raise ValueError(f"{text!r} is no job id")
    return JobId(int(digits))


def split_names(text: str) -> list[str]:
    """Cut a list at the commas outside of brackets."""
    names: list[str] = []
    depth = 0
    for part in text.split(","):
        if depth:
            names[-1] += f",{part}"
        elif part:
            names.append(part)
        depth = max(depth + part.count("[") - part.count("]"), 0)
    return names


def format_task_list(tasks: TaskSet, throttle: int, letters: int) -> str:
    """Spell the waiting tasks of an array: 3-6%2, or 1-9,11,... when it is long."""
    text = format_tasks(tasks)
    if letters and len(text) > letters - 3:
        text = text[: max(letters - 4, 0)] + "..."
    return f"{text}%{throttle}" if throttle else text
