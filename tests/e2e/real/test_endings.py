"""How jobs end: by themselves, by a signal, by somebody, or at their limit."""

from __future__ import annotations

from pathlib import Path

from spur.testing.machine import MachineCluster


def test_exit_codes_come_back(cluster: MachineCluster) -> None:
    """--wait ends as the job did; accounting and scontrol say the same."""
    done = cluster.shell("sbatch --wait --parsable -o /dev/null --wrap='exit 3'", status=3)
    job = done.strip()
    cluster.wait_for(f"sacct -n -X -P -j {job} -o State,ExitCode", "FAILED|3:0\n")
    shown = f"scontrol show job -o {job} | grep -oP 'JobState=\\K[^ ]+'"
    assert cluster.shell(shown) == "FAILED\n"


def test_end_from_outside_is_told_in_the_jobs_own_file(
    cluster: MachineCluster, tmp_path: Path
) -> None:
    """A job that is cancelled while it runs finds that where its errors go."""
    job = cluster.shell(
        "sbatch --parsable -t 1 -o lim.log --wrap='sleep 300'", cwd=tmp_path
    ).strip()
    cluster.wait_for(f"squeue -h -j {job} -o %t", "R\n")
    cluster.shell(f"scancel {job}")
    cluster.ended(job)
    assert f"*** JOB {job} ON c0" in (tmp_path / "lim.log").read_text()


def test_signal_goes_to_the_steps_the_script_or_all(
    cluster: MachineCluster, tmp_path: Path
) -> None:
    """A script has a trap; only those who say so reach it, and the program that it waits for."""
    (tmp_path / "job.sh").write_text(
        "#!/bin/bash\n"
        "trap 'echo script' USR1\n"
        """bash -c "trap 'echo child' USR1; touch up; until [ -e go ]; do sleep 0.1; done" &\n"""
        "until [ -e go ]; do sleep 0.1; done; wait\n"
    )
    job = cluster.shell("sbatch --parsable -o out job.sh", cwd=tmp_path).strip()
    cluster.wait_for(f"cd {tmp_path}; echo up*", "up\n")
    heard = f"sort {tmp_path}/out"
    cluster.shell(f"scancel -s USR1 {job}")
    cluster.shell(f"scancel -s USR1 --batch {job}")
    cluster.wait_for(heard, "script\n")
    cluster.shell(f"scancel -s USR1 --full {job}")
    cluster.wait_for(f"{heard} | grep -v signal", "child\nscript\nscript\n")
    (tmp_path / "go").touch()
    cluster.ended(job)


def test_step_that_a_signal_ends_is_cancelled(cluster: MachineCluster, tmp_path: Path) -> None:
    """Without more words a signal is for the steps: the script goes on, and tells of it."""
    step = "srun bash -c 'touch up; exec sleep 60'; echo after"
    job = cluster.shell(f'sbatch --parsable -o out --wrap="{step}"', cwd=tmp_path).strip()
    cluster.wait_for(f"cd {tmp_path}; echo up*", "up\n")
    cluster.shell(f"scancel -s USR2 {job}")
    cluster.ended(job)
    told = (tmp_path / "out").read_text()
    assert told.endswith(": task 0: User defined signal 2\nafter\n")
    shown = f"sacct -n -P -j {job} -o JobID,State,ExitCode | grep -v extern"
    lines = (f"{job}|COMPLETED|0:0", f"{job}.batch|COMPLETED|0:0", f"{job}.0|CANCELLED|0:12", "")
    cluster.wait_for(shown, "\n".join(lines))


def test_stopped_job_has_no_exit_of_its_own(cluster: MachineCluster, tmp_path: Path) -> None:
    """A script that is cancelled ends with a status: accounting tells it of the script alone."""
    wrap = "trap 'exit 3' TERM; touch up; while :; do sleep 0.1; done"
    job = cluster.shell(f'sbatch --parsable -o out --wrap="{wrap}"', cwd=tmp_path).strip()
    cluster.wait_for(f"cd {tmp_path}; echo up*", "up\n")
    cluster.shell(f"scancel {job}")
    cluster.ended(job)
    cluster.wait_for(f"sacct -n -P -j {job} -o ExitCode | head -2", "0:0\n3:0\n")
