"""Steps of a job: their numbers, and which task of a step runs on which of its nodes."""

from __future__ import annotations

from enum import IntEnum, StrEnum

__all__ = [
    "BATCH_STEP",
    "EXTERN_STEP",
    "INTERACTIVE_STEP",
    "STEP_ID_MAX",
    "Dealing",
    "StepState",
    "parse_step",
    "spell_counts",
    "spell_tasks",
    "step_name",
    "tasks_on",
]

STEP_ID_MAX = 0xFFFFFFEF
"""The highest number of a step that srun starts; those above have names."""

BATCH_STEP = 0xFFFFFFFB
EXTERN_STEP = 0xFFFFFFFC
INTERACTIVE_STEP = 0xFFFFFFFA

_NAMES = {BATCH_STEP: "batch", EXTERN_STEP: "extern", INTERACTIVE_STEP: "interactive"}


class Dealing(IntEnum):
    """How tasks are dealt out to nodes. Source: srun(1) --distribution, first method."""

    BLOCK = 0
    """Consecutive tasks share a node."""
    CYCLIC = 1
    """One task a node in turn."""
    PLANE = 2
    """Blocks of a size, in turn."""


class StepState(StrEnum):
    """How a step is recorded. Source: sacct(1) JOB STATE CODES."""

    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    TIMEOUT = "TIMEOUT"
    NODE_FAIL = "NODE_FAIL"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"


def step_name(step_id: int) -> str:
    """Return how a step's number is written behind the job's: 0, batch, extern."""
    return _NAMES.get(step_id) or str(step_id)


def parse_step(text: str) -> int:
    """Return the number of a step as it is written behind the job's: 0, batch, extern.

    Raises: ValueError for anything else.
    """
    for number, name in _NAMES.items():
        if name == text:
            return number
    if not (text.isascii() and text.isdigit()) or int(text[:12]) > STEP_ID_MAX:
        raise ValueError(f"{text!r} is no step: write a number, batch or extern")
    return int(text)


def tasks_on(
    counts: tuple[int, ...], node: int, *, dealing: Dealing, plane: int = 1
) -> tuple[int, ...]:
    """Return the numbers of the tasks that run on a node, ascending.

    `counts` has the number of tasks of each node, `node` is a place in it, and `plane` the size of
    the blocks of `Dealing.PLANE`.
    """
    if dealing is Dealing.BLOCK:
        first = sum(counts[:node])
        return tuple(range(first, first + counts[node]))
    size = plane if dealing is Dealing.PLANE else 1
    left = list(counts)
    found: list[int] = []
    number = 0
    while left[node]:
        for place, still in enumerate(left):
            taken = min(size, still)
            if place == node:
                found.extend(range(number, number + taken))
            left[place] = still - taken
            number += taken
    return tuple(found)


def spell_counts(counts: tuple[int, ...]) -> str:
    """Return a number for each node as Slurm spells them: 3,2(x2)."""
    parts: list[str] = []
    place = 0
    while place < len(counts):
        end = place
        while end < len(counts) and counts[end] == counts[place]:
            end += 1
        times = end - place
        parts.append(str(counts[place]) if times == 1 else f"{counts[place]}(x{times})")
        place = end
    return ",".join(parts)


def spell_tasks(tasks: tuple[int, ...]) -> str:
    """Return ascending numbers of tasks as Slurm's sentences spell them: 0-1,3."""
    parts: list[str] = []
    place = 0
    while place < len(tasks):
        end = place
        while end + 1 < len(tasks) and tasks[end + 1] == tasks[end] + 1:
            end += 1
        first, last = tasks[place], tasks[end]
        parts.append(str(first) if first == last else f"{first}-{last}")
        place = end + 1
    return ",".join(parts)
