"""Heterogeneous jobs on real nodes: both components from one script, known to it, ended with it."""

from __future__ import annotations

from pathlib import Path

from spur.testing.machine import MachineCluster

SCRIPT = """\
#!/bin/bash
#SBATCH -J het -n1 -p cpu --mem=200 -o het.out
#SBATCH hetjob
#SBATCH -n2 -N2 -p gpu --mem=300
env | grep -E '_HET_(SIZE|GROUP_)' | grep -E 'SIZE|NODELIST|JOB_ID|TASKS' | sort
squeue -h -j $SLURM_JOB_ID -o '%i %P %T' -S i
until [ -e go ]; do sleep 0.1; done
exit 3
"""


def test_both_components_of_a_script(cluster: MachineCluster, tmp_path: Path) -> None:
    """One script asks for a node of CPUs and two with GPUs; it runs on the first and fails."""
    (tmp_path / "job.sh").write_text(SCRIPT)
    job = int(cluster.shell("sbatch --parsable job.sh", cwd=tmp_path))
    cluster.wait_for(f"squeue -h -j {job} -o '%i %t' -S i", f"{job}+0 R\n{job}+1 R\n")
    named = cluster.shell(f"scontrol -o show job {job}+1 | grep -oE '(JobId|Het[A-Za-z]+)=\\S+'")
    assert named.split() == [
        f"JobId={job + 1}",
        f"HetJobId={job}",
        "HetJobOffset=1",
        f"HetJobIdSet={job}-{job + 1}",
    ]
    nodes = [
        cluster.shell(f"squeue -h -j {job} -o '%i %N' -S i").split()[place] for place in (1, 3)
    ]
    (tmp_path / "go").touch()
    cluster.ended(str(job))
    cluster.wait_for(
        f"sacct -n -P -X -j {job} -o jobid,state,exitcode",
        f"{job}+0|FAILED|3:0\n{job}+1|FAILED|3:0\n",
    )
    assert (tmp_path / "het.out").read_text().splitlines() == [
        "SLURM_HET_SIZE=2",
        f"SLURM_JOB_ID_HET_GROUP_0={job}",
        f"SLURM_JOB_ID_HET_GROUP_1={job + 1}",
        f"SLURM_JOB_NODELIST_HET_GROUP_0={nodes[0]}",
        f"SLURM_JOB_NODELIST_HET_GROUP_1={nodes[1]}",
        "SLURM_NTASKS_HET_GROUP_0=1",
        "SLURM_NTASKS_HET_GROUP_1=2",
        "SLURM_TASKS_PER_NODE_HET_GROUP_0=1",
        "SLURM_TASKS_PER_NODE_HET_GROUP_1=1(x2)",
        f"{job}+0 cpu RUNNING",
        f"{job}+1 gpu RUNNING",
    ]


def test_a_het_job_is_cancelled_as_a_whole(cluster: MachineCluster) -> None:
    """One waiting component alone is refused, with Slurm's sentence and exit status."""
    job = cluster.shell("sbatch --parsable -H -n1 : -n1 --wrap=true").strip()
    said = cluster.shell(f"scancel {job}+1 2>&1 || echo rc=$?")
    assert said == (
        f"scancel: error: Kill job error on job id {job}+1: Operation not permitted on individual "
        "component of heterogeneous job\nrc=60\n"
    )
    cluster.shell(f"scancel {job}")
    states = cluster.shell(f"squeue -h -t all -j {job} -o '%i %T' -S i")
    assert states == f"{job}+0 CANCELLED\n{job}+1 CANCELLED\n"
