"""Time limits: as every tool writes them, and what a job meets at its own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spur.testing.machine import MachineCluster


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("10", "10:00"),
        ("10:30", "11:00"),
        ("1:2:3", "1:03:00"),
        ("1-12", "1-12:00:00"),
        ("1-2:3", "1-02:03:00"),
        ("0:3600", "1:00:00"),
        ("51:00:00", "2-03:00:00"),
        ("0", "UNLIMITED"),
        ("UNLIMITED", "UNLIMITED"),
        ("infinite", "UNLIMITED"),
    ],
)
def test_spellings_of_a_time_limit(cluster: MachineCluster, text: str, shown: str) -> None:
    """Seconds are rounded up to minutes; no limit has a word."""
    job = cluster.shell(f"sbatch -H --parsable -o /dev/null -t {text} --wrap=true").strip()
    assert cluster.shell(f"squeue -h -j {job} -o %l") == f"{shown}\n"
    cluster.shell(f"scancel {job}")


@pytest.mark.parametrize("text", ["51:00:00", "0"])
def test_limit_beyond_the_partitions(cluster: MachineCluster, text: str) -> None:
    """It is taken, and waits with a reason."""
    job = cluster.shell(f"sbatch --parsable -o /dev/null -t {text} --wrap=true").strip()
    cluster.wait_for(f"squeue -h -j {job} -o '%t %r'", "PD PartitionTimeLimit\n")
    cluster.shell(f"scancel {job}")


def test_job_at_its_limit(cluster: MachineCluster, limited: tuple[str, str, Path]) -> None:
    """It hears TERM, is killed when it does not end, and finds in its own file why."""
    job, other, log = limited
    cluster.ended(job, patience_s=100)
    first, *heard = log.read_text().splitlines()
    assert re.fullmatch(
        rf"slurmstepd(-c0\d)?: error: \*\*\* JOB {job} ON c0\d CANCELLED AT "
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d DUE TO TIME LIMIT \*\*\*",
        first,
    )
    assert heard == ["term"]
    ends = f"sacct -n -P -j {job} -o JobID,State,ExitCode | grep -v extern"
    cluster.wait_for(ends, f"{job}|TIMEOUT|0:0\n{job}.batch|CANCELLED|0:9\n")
    ends = f"sacct -n -P -j {other} -o JobID,State,ExitCode | grep -v extern"
    cluster.wait_for(ends, f"{other}|TIMEOUT|0:0\n{other}.batch|CANCELLED|0:15\n")
