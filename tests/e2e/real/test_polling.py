"""What tools ask again and again, and pull out of the answers."""

from __future__ import annotations

from pathlib import Path

from spur.testing.machine import MachineCluster

UNKNOWN = "slurm_load_jobs error: Invalid job id specified"


def test_status_poll_of_one_and_of_several(cluster: MachineCluster) -> None:
    """Tools depend on it: one unknown number is an error, several are passed over."""
    submit = "sbatch -H --parsable -o /dev/null --wrap=true"
    one, two = cluster.shell(f"{submit}; {submit}").split()
    poll = "squeue -h -o '%i %T' -j"
    said = cluster.shell(f"{poll} {one},{two},999999 2>&1; echo rc=$?")
    assert sorted(said.splitlines()) == [f"{one} PENDING", f"{two} PENDING", "rc=0"]
    assert cluster.shell(f"{poll} 999998,999999 2>&1; echo rc=$?") == "rc=0\n"
    assert cluster.shell(f"{poll} 999999 2>&1 || echo rc=$?") == f"{UNKNOWN}\nrc=1\n"
    cluster.shell(f"scancel {one} {two}")


def test_final_state_from_accounting(cluster: MachineCluster, tmp_path: Path) -> None:
    """One word for a job, or a line for each of its steps too; an unknown one is nothing."""
    wrap = "--wrap='srun -o /dev/null true'"
    job = cluster.shell(f"sbatch --wait --parsable -o /dev/null {wrap}", cwd=tmp_path).strip()
    cluster.wait_for(f"sacct -n -X -P -j {job} -o State", "COMPLETED\n")
    steps = [f"{job}{step}|COMPLETED|0:0" for step in ("", ".batch", ".extern", ".0")]
    found = cluster.shell(f"sacct -n -P -j {job} -o JobID,State,ExitCode")
    assert sorted(found.splitlines()) == sorted(steps)
    assert cluster.shell("sacct -n -X -P -j 999999 -o State 2>&1; echo rc=$?") == "rc=0\n"


def test_who_cancelled_is_told(cluster: MachineCluster) -> None:
    """Its one word becomes three."""
    job = cluster.shell("sbatch -H --parsable -o /dev/null --wrap=true").strip()
    cluster.shell(f"scancel {job}")
    user = cluster.shell("id -u").strip()
    cluster.wait_for(f"sacct -n -X -P -j {job} -o State", f"CANCELLED by {user}\n")


def test_one_key_out_of_a_record(cluster: MachineCluster, tmp_path: Path) -> None:
    """One line a record, or paragraphs; the word for it and its options in any order."""
    submit = "sbatch -H --parsable --wrap=true"
    job, other = cluster.shell(f"{submit}; {submit}", cwd=tmp_path).split()
    key = f"scontrol show job -o {job} | grep -oP 'StdOut=\\K[^ ]+'"
    assert cluster.shell(key) == f"{tmp_path}/slurm-{job}.out\n"
    assert "JobState=PENDING " in cluster.shell(f"scontrol show jobid -dd {job} | grep JobState")
    forms = [
        f"scontrol -o show job {job}",
        f"scontrol show -o job {job}",
        f"scontrol show jobs {job} -o",
        f"scontrol show jobid={job} -o",
    ]
    shown = {cluster.shell(form) for form in forms}
    assert len(shown) == 1
    [line] = shown
    assert line.endswith("\n")
    assert dict(word.split("=", 1) for word in line.split() if "=" in word)["JobId"] == job
    records = cluster.shell("scontrol show jobs").split("\n\n")
    assert {f"JobId={job} JobName=wrap", f"JobId={other} JobName=wrap"} <= {
        record.splitlines()[0] for record in records if record.strip()
    }
    said = cluster.shell("scontrol show job 999999 2>&1 || echo rc=$?")
    assert said == f"{UNKNOWN}\nrc=1\n"
    cluster.shell(f"scancel {job} {other}")


def test_partitions_are_summed_up(cluster: MachineCluster) -> None:
    """The default partition has a star in one column and not in the other."""
    cluster.shell("scontrol update nodename=c03 state=drain reason='fan is loud'")
    cluster.wait_for(
        "sinfo -h -n c[01-03],g[01-04] -o '%P %a %l %D %T %N'",
        "cpu* up 2-00:00:00 1 drained c03\n"
        "cpu* up 2-00:00:00 2 idle c[01-02]\n"
        "gpu up infinite 4 idle g[01-04]\n",
    )
    cluster.shell("scontrol update nodename=c03 state=resume")
    assert cluster.shell("sinfo -o %P | head -2") == "PARTITION\ncpu*\n"
    assert cluster.shell("sinfo -h -o %R") == "cpu\ngpu\n"


def test_node_is_drained_and_taken_back(cluster: MachineCluster) -> None:
    """An administrator takes a node out of use."""
    cluster.shell("scontrol update nodename=c03 state=drain reason='fan is loud'")
    assert cluster.shell("sinfo -h -n c03 -N -o '%N %T'") == "c03 drained\n"
    assert "fan is loud" in cluster.shell("sinfo -h -R")
    cluster.shell("scontrol update nodename=c03 state=resume")
    assert cluster.shell("sinfo -h -n c03 -N -o '%N %T'") == "c03 idle\n"
