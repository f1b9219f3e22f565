"""What scontrol update may change of a job."""

from __future__ import annotations

import pytest

from spur.slurm.jobupdates import JobUpdate, parse_job_update
from spur.slurm.timespec import Moment
from spur.slurm.wording import SlurmError
from spur.values.ids import PartitionName
from spur.wire.jobs import JobChanges


class Start:
    """A clock at the beginning of time."""

    def now(self) -> int:
        return 1_000

    def moment(self, seconds: int) -> Moment:
        return Moment(1970, 1, 1, 0, 16, 40)

    def seconds(self, moment: Moment) -> int:
        raise OverflowError(f"no calendar has {moment}")


def parse(*pairs: tuple[str, str]) -> JobUpdate:
    return parse_job_update(list(pairs), Start())


@pytest.mark.parametrize(
    ("key", "value", "changes"),
    [
        ("TimeLimit", "20", JobChanges(time_limit_s=1200)),
        ("timelimit", "unlimited", JobChanges(time_limit_s=0)),
        ("timelimit", "-1", JobChanges(time_limit_s=0)),
        ("Partition", "a,b", JobChanges(partitions=(PartitionName("a"), PartitionName("b")))),
        ("Priority", "100", JobChanges(priority=100)),
        ("priority", "-1", JobChanges(priority=-1)),
        ("Nice", "", JobChanges(nice=100)),
        ("nice", "-50", JobChanges(nice=-50)),
        ("JobName", "new", JobChanges(name="new")),
        ("Name", "new", JobChanges(name="new")),
        ("QOS", "high", JobChanges(qos="high")),
        ("Account", "astro", JobChanges(account="astro")),
        ("Requeue", "0", JobChanges(requeue=False)),
        ("StartTime", "now+60", JobChanges(begin_ns=1_060_000_000_000)),
        ("EligibleTime", "now", JobChanges(begin_ns=1_000_000_000_000)),
    ],
)
def test_change_is_read(key: str, value: str, changes: JobChanges) -> None:
    """Someone changes one thing of their job."""
    assert parse((key, value)) == JobUpdate(changes, None)


def test_limit_is_moved_by_a_difference() -> None:
    """Someone gives their job five minutes more, or takes them."""
    assert parse(("timelimit", "+5"), ("nice", "1")) == JobUpdate(JobChanges(nice=1), 300)
    assert parse(("timelimit", "-5")) == JobUpdate(JobChanges(), -300)


@pytest.mark.parametrize(
    ("key", "value", "lines"),
    [
        ("TimeLimit", "abc", ("scontrol: error: Invalid TimeLimit value",)),
        ("timelimit", "+abc", ("scontrol: error: Invalid TimeLimit value",)),
        (
            "nice",
            "99999999999",
            ("scontrol: error: Invalid --nice value, out of range (+/- 2147483645)",),
        ),
        ("priority", "high", ("scontrol: error: Invalid Priority value: high",)),
        ("requeue", "maybe", ("scontrol: error: Invalid Requeue value: maybe",)),
        (
            "starttime",
            "abc",
            (
                "Invalid time specification (pos=0): abc",
                "scontrol: error: Invalid StartTime value",
            ),
        ),
        (
            "nosuchkey",
            "1",
            ("Update of this parameter is not supported: nosuchkey=1", "Request aborted"),
        ),
        (
            "Comment",
            "x",
            ("Update of this parameter is not supported: Comment=x", "Request aborted"),
        ),
    ],
)
def test_bad_change_is_refused_in_slurms_words(
    key: str, value: str, lines: tuple[str, ...]
) -> None:
    """Someone mistypes a change, or asks for one that is not there."""
    with pytest.raises(SlurmError) as refused:
        parse((key, value))
    assert (refused.value.lines, refused.value.status) == (lines, 1)
