"""Names of jobs as people type them."""

from __future__ import annotations

import pytest

from spur.slurm.jobids import JobName, parse_job_name, split_names
from spur.values.arrays import TaskSet
from spur.values.ids import JobId


@pytest.mark.parametrize(
    ("text", "job_id", "tasks"),
    [
        ("1501", 1501, None),
        ("1505_2", 1505, [2]),
        ("1505_[2]", 1505, [2]),
        ("1505_[3-5,7]", 1505, [3, 4, 5, 7]),
        ("1505_[1-9:4]", 1505, [1, 5, 9]),
        ("1506+1", 1507, None),
        ("1506+0", 1506, None),
        ("1_", 1, None),
    ],
)
def test_name_is_read(text: str, job_id: int, tasks: list[int] | None) -> None:
    """Someone names a job, tasks of an array or a component."""
    _, plus, typed = text.partition("+")
    offset = int(typed) if plus else None
    wanted = None if tasks is None else TaskSet.of(tasks)
    assert parse_job_name(text) == JobName(JobId(job_id), wanted, offset)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "abc",
        "0",
        "-1",
        "1_x",
        "1_[3",
        "1_3]",
        "1_[*]",
        "1_[]",
        "1+",
        "1+x",
        "1.0",
        "9" * 30,
        "1_3-5",
        "1_[4-2]",
        "1_[1-99999999]",
        "٣",
    ],
)
def test_no_name_is_refused(text: str) -> None:
    """Someone mistypes a job's number."""
    with pytest.raises(ValueError, match=r"."):
        parse_job_name(text)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("1,2", ["1", "2"]),
        ("1_[3,5],2", ["1_[3,5]", "2"]),
        ("", []),
        (",1,,", ["1"]),
        ("1_[3,5", ["1_[3,5"]),
    ],
)
def test_list_is_cut_outside_of_brackets(text: str, names: list[str]) -> None:
    """Someone lists several jobs, one of them with tasks."""
    assert split_names(text) == names
