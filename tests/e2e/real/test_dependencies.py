"""Jobs that wait for others: until they end well, in any way, or never."""

from __future__ import annotations

import time
from pathlib import Path

from spur.testing.machine import MachineCluster

SUBMIT = "sbatch --parsable -o /dev/null"


def test_join_after_two_parents(cluster: MachineCluster, tmp_path: Path) -> None:
    """It runs when both have ended well, and says meanwhile what it waits for."""
    wait = "until [ -e go ]; do sleep 0.1; done"
    parents = f"a=$({SUBMIT} --wrap='{wait}'); b=$({SUBMIT} --wrap='sleep 1')"
    join = f"{parents}; sbatch --parsable -d afterok:${{a}}:${{b}} -o joined --wrap='echo joined'"
    job = cluster.shell(join, cwd=tmp_path).strip()
    assert cluster.shell(f"squeue -h -j {job} -o '%T %R'") == "PENDING (Dependency)\n"
    (tmp_path / "go").touch()
    cluster.ended(job)
    assert (tmp_path / "joined").read_text() == "joined\n"


def test_tasks_after_their_counterparts(cluster: MachineCluster, tmp_path: Path) -> None:
    """The second of three parents fails: its child alone never runs."""
    first = f"p=$({SUBMIT} -a 1-3 --wrap='exit $((SLURM_ARRAY_TASK_ID==2))')"
    child = "sbatch --parsable -o ran-%a -a 1-3 -d aftercorr:$p --wrap='echo $SLURM_ARRAY_TASK_ID'"
    job = cluster.shell(f"{first}; {child}", cwd=tmp_path).strip()
    never = f"{job}_2 PD DependencyNeverSatisfied\n"
    cluster.wait_for(f"squeue -h -j {job} -r -o '%i %t %r'", never)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ran-1", "ran-3"]
    cluster.shell(f"scancel {job}")


def test_one_job_of_a_name_at_a_time(cluster: MachineCluster, tmp_path: Path) -> None:
    """Three nightly jobs follow each other."""
    wrap = "--wrap='mkdir lock && sleep 1 && rmdir lock && echo $SLURM_JOB_ID >> order'"
    loop = f"for n in 1 2 3; do {SUBMIT} -J nightly -d singleton {wrap}; done"
    jobs = cluster.shell(loop, cwd=tmp_path).split()
    assert cluster.shell(f"squeue -h -j {jobs[2]} -o '%t %r'") == "PD Dependency\n"
    for job in jobs:
        cluster.ended(job)
    assert (tmp_path / "order").read_text().split() == jobs


def test_dependency_that_can_no_longer_hold(cluster: MachineCluster) -> None:
    """The parent failed: the child stays where it is, with that reason, until it is cancelled."""
    chain = f"a=$({SUBMIT} --wrap='exit 3'); {SUBMIT} -J never -d afterok:$a --wrap=true"
    job = cluster.shell(chain).strip()
    mine = "squeue --me -n never -h -o '%i %t %r'"
    never = f"{job} PD DependencyNeverSatisfied\n"
    cluster.wait_for(mine, never)
    time.sleep(2)
    assert cluster.shell(mine) == never
    cluster.shell(f"scancel {job}")
    assert cluster.shell(mine) == ""
