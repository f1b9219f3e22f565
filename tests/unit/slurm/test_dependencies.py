"""What --dependency spells."""

from __future__ import annotations

import pytest

from spur.slurm.dependencies import BadDependency, parse_dependency
from spur.values.dependencies import Condition, Dependency, DependencyKind
from spur.values.ids import JobId

AFTER, ANY, OK, NOT_OK, CORR, BURST, SINGLETON = DependencyKind


def on(kind: DependencyKind, job: int, task: int | None = None, delay_s: int = 0) -> Condition:
    return Condition(kind, JobId(job), task, delay_s)


@pytest.mark.parametrize(
    ("text", "conditions"),
    [
        ("afterok:7", (on(OK, 7),)),
        ("afterok:7:8", (on(OK, 7), on(OK, 8))),
        ("7", (on(ANY, 7),)),
        ("after:7+2", (on(AFTER, 7, None, 120),)),
        ("aftercorr:7,afternotok:8_3", (on(CORR, 7), on(NOT_OK, 8, 3))),
        ("afterany:7_*", (on(ANY, 7),)),
        ("afterburstbuffer:7", (on(BURST, 7),)),
        ("singleton", (on(SINGLETON, 0),)),
        ("AfterOk:7,afterok:7", (on(OK, 7),)),
    ],
)
def test_conditions_are_read(text: str, conditions: tuple[Condition, ...]) -> None:
    """A pipeline is chained by job numbers."""
    assert parse_dependency(text) == Dependency(False, conditions)


def test_question_mark_makes_one_enough() -> None:
    """One question mark anywhere, and any of the conditions will do."""
    found = parse_dependency("afterok:7?afterok:8,singleton")
    assert found is not None
    assert found.any_holds
    assert len(found.conditions) == 3


@pytest.mark.parametrize("text", ["", "0"])
def test_nothing_takes_a_dependency_away(text: str) -> None:
    """`scontrol update Dependency=` with nothing behind it."""
    assert parse_dependency(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "afterok",
        "afterok:",
        "afterok:abc",
        "none",
        "expand:7",
        "afterok:7_",
        "afterok:0",
        "x:7",
        ",",
        "singleton:7",
        "after:7+",
        "afterok:7+x",
    ],
)
def test_what_is_no_dependency_is_refused(text: str) -> None:
    """A shell variable was empty, or a word was guessed."""
    with pytest.raises(BadDependency):
        parse_dependency(text)


def test_too_many_conditions_are_refused() -> None:
    """A loop glued all jobs of a campaign together."""
    with pytest.raises(BadDependency):
        parse_dependency("afterok:" + ":".join(str(job) for job in range(1, 1_002)))
