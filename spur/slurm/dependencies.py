"""What a job waits for of others, as --dependency spells it.

    afterok:120:121_3,singleton      all of them
    afterok:120?afternotok:121       any of them
    after:120+5                      five minutes after it started
    120                              the same as afterany:120

Source: sbatch(1) --dependency; transcripts of Slurm 22.05.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from spur.values.dependencies import CONDITIONS_MAX, Condition, Dependency, DependencyKind
from spur.values.ids import JobId
from spur.wire.jobs import ConditionView, DependencyView

__all__ = ["BadDependency", "format_dependency", "parse_dependency"]

_JOB = re.compile(r"([1-9][0-9]{0,17})(?:_([0-9]{1,9}|\*))?(?:\+([0-9]{1,7}))?")


class BadDependency(ValueError):
    """The text is none that Slurm takes."""


def parse_dependency(text: str) -> Dependency | None:
    """Return the conditions; None for an empty text or 0, which take a dependency away.

    Raises: BadDependency.
    """
    if text in ("", "0"):
        return None
    conditions = [condition for part in re.split("[,?]", text) for condition in _conditions(part)]
    if len(conditions) > CONDITIONS_MAX:
        raise BadDependency(f"{len(conditions)} conditions are over {CONDITIONS_MAX}")
    return Dependency("?" in text, tuple(dict.fromkeys(conditions)))


def _conditions(part: str) -> Iterable[Condition]:
    """Return the conditions of one kind on one or more jobs."""
    word, colon, jobs = part.partition(":")
    if not colon and word[:1].isdigit():
        return [_condition(DependencyKind.AFTER_ANY, word)]
    try:
        kind = DependencyKind(word.lower())
    except ValueError:
        raise BadDependency(f"there is no dependency {word!r}") from None
    if kind is DependencyKind.SINGLETON:
        if colon:
            raise BadDependency("singleton names no job")
        return [Condition(kind, JobId(0), None, 0)]
    return [_condition(kind, job) for job in jobs.split(":")]


def _condition(kind: DependencyKind, job: str) -> Condition:
    found = _JOB.fullmatch(job)
    if found is None:
        raise BadDependency(f"{job!r} names no job")
    number, task, minutes = found.groups()
    return Condition(
        kind,
        JobId(int(number)),
        None if task in (None, "*") else int(task),
        60 * int(minutes or 0),
    )


def format_dependency(view: DependencyView) -> str:
    """Spell what is left, as in afterok:120(unfulfilled),afterok:121_*(failed)."""
    between = "?" if view.any_holds else ","
    return between.join(_spelled(condition) for condition in view.conditions)


def _spelled(view: ConditionView) -> str:
    condition = view.condition
    text = condition.kind.value
    if condition.kind is not DependencyKind.SINGLETON:
        text += f":{condition.job_id}"
        if condition.task is not None or view.is_array:
            text += "_*" if condition.task is None else f"_{condition.task}"
        if condition.delay_s:
            text += f"+{condition.delay_s // 60}"
    return f"{text}({'failed' if view.failed else 'unfulfilled'})"
