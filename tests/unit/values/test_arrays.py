"""Sets of array tasks: what people write, and what is left after tasks were taken out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spur.values.arrays import ArrayAsk, TaskSet, format_tasks, parse_array

TASKS = st.sets(st.integers(0, 40), min_size=1)


@pytest.mark.parametrize(
    ("text", "tasks", "throttle"),
    [
        ("1-5", [1, 2, 3, 4, 5], 0),
        ("0-3", [0, 1, 2, 3], 0),
        ("1-10:3", [1, 4, 7, 10], 0),
        ("1-10:2%3", [1, 3, 5, 7, 9], 3),
        ("5", [5], 0),
        ("1-5%0", [1, 2, 3, 4, 5], 0),
        ("1,1,2", [1, 2], 0),
        ("1-3,2-4", [1, 2, 3, 4], 0),
        ("10-20:5,1", [1, 10, 15, 20], 0),
        ("3-3", [3], 0),
        ("1-2:5", [1], 0),
    ],
)
def test_array_expression_names_its_tasks(text: str, tasks: list[int], throttle: int) -> None:
    """Someone writes --array in any of Slurm's spellings."""
    ask = parse_array(text, index_max=1000)
    assert (sorted(ask.tasks), ask.throttle) == (tasks, throttle)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1-",
        "-1",
        "1 2",
        "a",
        "1-5:0",
        "5-1",
        "1:2",
        "1,,2",
        "1%",
        "1%x",
        "1%2%3",
        "1%4294967296",
        "\u0661",
    ],
)
def test_malformed_array_expression_is_refused_with_its_text(text: str) -> None:
    """Someone mistypes --array; the error quotes what they wrote."""
    with pytest.raises(ValueError, match="array"):
        parse_array(text, index_max=1000)


def test_array_index_over_the_largest_is_refused_before_it_is_expanded() -> None:
    """Someone asks for task 99 999 999 where MaxArraySize is 1001; no memory is spent on it."""
    with pytest.raises(ValueError, match="99999999"):
        parse_array("1-99999999,3", index_max=1000)


def test_array_of_a_hundred_thousand_tasks_is_one_range() -> None:
    """A huge array is submitted: it is kept as three numbers."""
    ask = parse_array("0-99999", index_max=100_000)
    assert ask == ArrayAsk(TaskSet(((0, 99_999, 1),)), 0)
    assert ask.tasks.count == 100_000


def test_first_task_taken_from_a_stepped_array_leaves_one_range() -> None:
    """Tasks start in order: the row stays as small as it was."""
    left = parse_array("0-100:4", index_max=1000).tasks.without(TaskSet.single(0))
    assert left == TaskSet(((4, 100, 4),))


@given(TASKS, st.sets(st.integers(0, 40)))
def test_task_set_removal_equals_the_removal_of_plain_sets(a: set[int], b: set[int]) -> None:
    """Whatever is taken out of an array, exactly the others are left, each once."""
    mine, other = TaskSet.of(a), TaskSet.of(b)
    left = mine.without(other)
    assert list(left) == sorted(a - b)
    assert left.count == len(a - b)
    assert sorted(mine.common(other)) == sorted(a & b)
    assert mine.is_within(other) == (a <= b)


@given(TASKS, st.lists(st.integers(0, 40)))
def test_task_set_after_single_removals_holds_what_was_not_removed(
    tasks: set[int], removed: list[int]
) -> None:
    """Tasks are split off one by one in any order."""
    left = TaskSet.of(tasks)
    for task in removed:
        left = left.without(TaskSet.single(task))
    rest = tasks - set(removed)
    assert sorted(left) == sorted(rest)
    assert all((task in left) == (task in rest) for task in range(41))
    if rest:
        assert (left.first, left.last) == (min(rest), max(rest))
    assert left.is_single == (len(rest) == 1)


@given(TASKS)
def test_task_set_spelled_out_reads_back_as_the_same_tasks(tasks: set[int]) -> None:
    """A queue listing prints the tasks; someone gives them back to --array."""
    text = format_tasks(TaskSet.of(tasks))
    assert sorted(parse_array(text, index_max=40).tasks) == sorted(tasks)


def test_stepped_tasks_are_spelled_as_slurm_spells_them() -> None:
    """Slurm lists a stepped array task by task."""
    assert format_tasks(parse_array("1-10:3", index_max=99).tasks) == "1,4,7,10"
    assert format_tasks(parse_array("1-5", index_max=99).tasks) == "1-5"
