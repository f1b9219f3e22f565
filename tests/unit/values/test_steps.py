"""Which task of a step runs where, and how steps are called."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spur.values.steps import (
    BATCH_STEP,
    EXTERN_STEP,
    STEP_ID_MAX,
    Dealing,
    parse_step,
    spell_counts,
    spell_tasks,
    step_name,
    tasks_on,
)


@pytest.mark.parametrize(
    ("dealing", "plane", "expected"),
    [
        (Dealing.BLOCK, 1, [(0, 1, 2), (3, 4), (5,)]),
        (Dealing.CYCLIC, 1, [(0, 3, 5), (1, 4), (2,)]),
        (Dealing.PLANE, 2, [(0, 1, 5), (2, 3), (4,)]),
    ],
)
def test_tasks_on_deals_as_asked(
    dealing: Dealing, plane: int, expected: list[tuple[int, ...]]
) -> None:
    """Three nodes of three, two and one task get their numbers in blocks, in turn, in planes."""
    found = [tasks_on((3, 2, 1), node, dealing=dealing, plane=plane) for node in range(3)]
    assert found == expected


@given(
    counts=st.lists(st.integers(0, 9), min_size=1, max_size=8).map(tuple),
    dealing=st.sampled_from(Dealing),
    plane=st.integers(1, 4),
)
def test_tasks_on_deals_each_task_once(
    counts: tuple[int, ...], dealing: Dealing, plane: int
) -> None:
    """However it is dealt, each node gets its count and each number is given once."""
    dealt = [tasks_on(counts, node, dealing=dealing, plane=plane) for node in range(len(counts))]
    assert tuple(map(len, dealt)) == counts
    assert sorted(number for numbers in dealt for number in numbers) == list(range(sum(counts)))
    assert all(numbers == tuple(sorted(numbers)) for numbers in dealt)


def test_step_name_is_slurms() -> None:
    """Steps of srun are numbers; the batch script's and the extern step have names."""
    assert [step_name(7), step_name(BATCH_STEP), step_name(EXTERN_STEP)] == ["7", "batch", "extern"]


@pytest.mark.parametrize(
    ("counts", "spelled"),
    [((1,), "1"), ((2, 2, 1), "2(x2),1"), ((3, 2, 2, 3), "3,2(x2),3"), ((), "")],
)
def test_spell_counts_counts_repetitions(counts: tuple[int, ...], spelled: str) -> None:
    """Scripts take SLURM_TASKS_PER_NODE apart."""
    assert spell_counts(counts) == spelled


@pytest.mark.parametrize(
    ("tasks", "spelled"),
    [((0,), "0"), ((0, 1), "0-1"), ((0, 2, 3, 4, 7), "0,2-4,7"), ((), "")],
)
def test_spell_tasks_joins_runs(tasks: tuple[int, ...], spelled: str) -> None:
    """Srun says which of a hundred tasks failed, in one short line."""
    assert spell_tasks(tasks) == spelled


@pytest.mark.parametrize(
    ("text", "step_id"),
    [("0", 0), ("17", 17), ("batch", BATCH_STEP), ("extern", EXTERN_STEP)],
)
def test_parse_step_reads_what_step_name_writes(text: str, step_id: int) -> None:
    """Scancel 5.17, squeue -s 5.batch."""
    assert parse_step(text) == step_id
    assert step_name(step_id) == text


@pytest.mark.parametrize("text", ["", "x", "-1", "1.2", str(STEP_ID_MAX + 1), "٣", "9" * 40])
def test_parse_step_refuses_what_is_none(text: str) -> None:
    """Someone mistypes a step."""
    with pytest.raises(ValueError, match="is no step"):
        parse_step(text)
