"""The order in which squeue shows jobs: letters of --sort, each with - to turn it round.

What the letters leave equal stays in one settled order: what started or will start last comes
first; then waiting jobs, the newest first; then the others by their number.

Source: squeue(1) --sort; transcripts of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from spur.slurm.columns import jobline as at
from spur.slurm.columns.jobline import JobLine
from spur.values.states import JobState

__all__ = ["DEFAULT_SORT", "START_SORT", "SortKey", "parse_sort", "sorted_lines"]

DEFAULT_SORT = "P,t,-p"
START_SORT = "S"

SortKey = tuple[Callable[[JobLine], Any], bool]
"""What to sort by (values of one type, comparable), and whether the highest comes first."""

_STATES = (
    "PENDING",
    "RUNNING",
    "SUSPENDED",
    "COMPLETED",
    "CANCELLED",
    "FAILED",
    "TIMEOUT",
    "NODE_FAIL",
    "PREEMPTED",
    "BOOT_FAIL",
    "DEADLINE",
    "OUT_OF_MEMORY",
    "REQUEUED",
)
_RANKS = {JobState(word): rank for rank, word in enumerate(_STATES)}


def _rank(line: JobLine) -> int:
    return _RANKS[line.job.state]


def _number(line: JobLine) -> tuple[int, int]:
    job = line.job
    if line.tasks is not None:
        return job.array_id, (1 << 32) if at.is_several(line) else line.tasks.first
    return (job.het_id, job.het_offset) if job.het_id else (job.job_id, 0)


def _ranked(line: JobLine) -> tuple[int, int]:
    """Return what the scheduler goes by: a job that nobody ranked is behind by its nice."""
    nice = line.job.spec.nice if line.job.priority is None else 0
    return at.priority(line), -nice


def _limit(line: JobLine) -> int:
    return line.limit_s or 1 << 62


def _start(line: JobLine) -> int:
    return at.start_s(line) or 1 << 62


def _end(line: JobLine) -> int:
    return at.end_s(line) or 1 << 62


_KEYS: dict[str, Callable[[JobLine], Any]] = {  # each of one comparable type, as in `SortKey`
    "a": lambda line: line.job.spec.account,
    "A": lambda line: line.job.job_id,
    "b": lambda line: line.job.spec.ask.gres,
    "c": lambda line: int(at.min_cpus(line)),
    "C": lambda line: int(at.cpus(line)),
    "D": lambda line: int(at.nodes(line)),
    "e": _end,
    "f": lambda line: line.job.spec.ask.features,
    "F": lambda line: line.job.array_id or line.job.job_id,
    "g": at.group_name,
    "G": lambda line: line.job.gid,
    "i": _number,
    "j": lambda line: line.job.spec.name,
    "K": _number,
    "l": _limit,
    "L": lambda line: _limit(line) - at.used_s(line),
    "m": lambda line: line.job.spec.ask.memory_mib,
    "M": at.used_s,
    "N": at.node_list,
    "p": _ranked,
    "P": at.partition,
    "Q": _ranked,
    "S": _start,
    "t": _rank,
    "T": _rank,
    "u": at.user_name,
    "U": lambda line: line.job.uid,
    "v": lambda line: line.job.spec.ask.reservation,
    "V": lambda line: line.job.submit_ns,
}


def parse_sort(text: str) -> list[SortKey]:
    """Return the keys, the weightiest first.

    Raises: ValueError with the letter that is none.
    """
    keys: list[SortKey] = []
    is_down = False
    for letter in text:
        if letter in "+-":
            is_down = letter == "-"
        elif letter in ", ":
            is_down = False
        else:
            key = _KEYS.get(letter)
            if key is None:
                raise ValueError(letter)
            keys.append((key, is_down))
            is_down = False
    return keys


def sorted_lines(lines: Iterable[JobLine], keys: list[SortKey]) -> list[JobLine]:
    """Return the lines in order."""
    ordered = sorted(lines, key=_settled)
    for key, is_down in reversed(keys):
        ordered.sort(key=key, reverse=is_down)
    return ordered


def _settled(line: JobLine) -> tuple[int, int, int, tuple[int, int]]:
    job = line.job
    waits = job.state is JobState.PENDING
    number = _number(line)
    if waits:
        return -at.start_s(line), 0, -number[0], number
    return -at.start_s(line), 1, 0, number
