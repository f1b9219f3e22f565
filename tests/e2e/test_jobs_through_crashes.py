"""Jobs run while parts of the cluster are killed: each ends once, with one record, and ran once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from spur.testing.machine import MachineCluster

TASKS = 80
SINGLES = 20

SCRIPT = """\
#!/bin/bash
#SBATCH --output=/dev/null
echo "$SLURM_JOB_ID $SLURMD_NODENAME" >> "$1/${SLURM_ARRAY_TASK_ID:-x$SLURM_JOB_ID}"
sleep "$((4 + RANDOM % 6))"
"""

KILLED = ("agent", "scheduler", "projector", "front")
"""What is killed, in turn, with kill -9."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[MachineCluster]:
    """Yield a cluster of four nodes with room for all jobs at once."""
    made = MachineCluster(tmp_path / "up")
    made.up("--nodes", "4", "--cpus", "32")
    yield made
    made.run("down")


def test_every_job_ends_once_whoever_is_killed(cluster: MachineCluster, tmp_path: Path) -> None:
    """A bad hour: agent, scheduler, projector and front die one after the other under 100 jobs.

    The parent brings back what it started; `spur up` brings back the agent, whose jobs went on.
    """
    ran = tmp_path / "ran"
    ran.mkdir()
    script = tmp_path / "job.sh"
    script.write_text(SCRIPT)
    cluster.shell(f"sbatch --array=1-{TASKS} {script} {ran}")
    cluster.shell(f"for n in $(seq {SINGLES}); do sbatch {script} {ran} & done; wait")
    for role in KILLED:
        time.sleep(1.0)
        killed = cluster.kill(role)
        if role == "agent":
            cluster.up()
        _wait_for_another(cluster, role, killed)
    cluster.wait_for("squeue -h -r -o %T | sort | uniq -c", "", patience_s=90)
    _each_ran_once(ran)
    records = cluster.shell("sacct -n -P -X -D -o jobid,state,exitcode").splitlines()
    assert len(records) == TASKS + SINGLES
    assert {record.partition("|")[2] for record in records} == {"COMPLETED|0:0"}
    log = cluster.directory / "controllers" / "c1"
    assert "damaged" not in cluster.shell(f"spur log verify {log} --replay")


def _wait_for_another(cluster: MachineCluster, role: str, killed: int) -> None:
    end_s = time.monotonic() + 30
    while not (pids := cluster.pids(role)) or killed in pids:
        assert time.monotonic() < end_s, f"no other {role}: {cluster.processes()}"
        time.sleep(0.1)


def _each_ran_once(ran: Path) -> None:
    lines = {path.name: path.read_text().splitlines() for path in ran.iterdir()}
    assert {name: found for name, found in lines.items() if len(found) != 1} == {}
    assert len(lines) == TASKS + SINGLES
    assert len({found[0].split()[0] for found in lines.values()}) == TASKS + SINGLES
