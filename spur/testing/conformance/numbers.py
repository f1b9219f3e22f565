"""Numbers of jobs that a record shows without having captured them: the replay is given the same.

A cluster counts its jobs one by one, so what it could not run leaves its numbers behind those of
the record. Texts that have the number of a job in them then differ, and widths with them.

Source: the README of the recordings: the same numbers, for columns to be comparable.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from spur.testing.conformance.cases import Case
from spur.testing.conformance.judge import normalise

__all__ = ["first_numbers"]

_NUMBER = re.compile(r"(?<![\w.:/-])(\d{4,7})(?![\w:/-])|(?<=[=-])(\d{4,7})(?=[.\s])")
"""A number that may be a job's: by itself, before a step, or behind the name of a variable."""

_SUBMITS = re.compile(r"\b(?:sbatch|srun|salloc)\b")

FARTHEST = 150
"""More jobs than are left out between two numbers that a scene captured."""


def first_numbers(cases: Sequence[Case], first: int) -> dict[str, int]:
    """Return the number of the first job of each case that shows one which it did not capture.

    The cases are those of a scene in order, and its jobs begin at `first`. A number counts that
    lies between those captured before and after; a case that submits nothing has none.
    """
    captured = [_captured(case) for case in cases]
    found: dict[str, int] = {}
    least = first - 1
    for place, case in enumerate(cases):
        most = min((low for low, _ in captured[place:] if low), default=least + FARTHEST)
        shown = [number for number in _shown(case) if least < number <= most]
        if shown:
            found[case.name] = least = min(shown)
        least = max(least, captured[place][1])
    return found


def _captured(case: Case) -> tuple[int, int]:
    """Return the lowest and the highest number that a case's own steps captured; 0 for none."""
    names = {name for step in (*case.setup, *case.steps) for name in step.capture or {}}
    numbers = [
        int(case.vars[name]) for name in names if re.fullmatch(r"\d{4,}", case.vars.get(name, ""))
    ]
    return min(numbers, default=0), max(numbers, default=0)


def _shown(case: Case) -> set[int]:
    texts = []
    for step in case.steps:
        if not _SUBMITS.search(step.command or ""):
            continue
        for text, mask, is_unstable in (
            (step.stdout, step.stdout_masked, step.stdout_unstable),
            (step.stderr, step.stderr_masked, step.stderr_unstable),
        ):
            if not is_unstable:
                texts.append(normalise(text, case.vars) if mask is None else mask)
    return {int(one or other) for text in texts for one, other in _NUMBER.findall(text)}
