"""Limits of the shell that submits, and updates of jobs, on real nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from spur.testing.machine import MachineCluster


@pytest.mark.parametrize(
    ("option", "soft"),
    [("", "333"), ("--propagate", "333"), ("--propagate=NOFILE", "333"), ("--propagate=NONE", "")],
)
def test_a_script_has_the_soft_limit_of_its_shell(
    cluster: MachineCluster, tmp_path: Path, option: str, soft: str
) -> None:
    """Someone lowers a limit before they submit; the hard limit stays the node's."""
    usual, hard = cluster.shell("srun bash -c 'ulimit -Sn; ulimit -Hn'").split()
    wrap = "--wrap 'ulimit -Sn; ulimit -Hn; env | grep -c RLIMIT; srun bash -c \"ulimit -Sn\"'"
    cluster.shell(f"ulimit -Sn 333; sbatch -W {option} -o out {wrap}", cwd=tmp_path)
    expected = soft or usual
    assert (tmp_path / "out").read_text().split() == [expected, hard, "0", expected]


def test_a_task_of_srun_has_it_too(cluster: MachineCluster) -> None:
    """Of an allocation of its own."""
    shown = cluster.shell("ulimit -Sn 444; srun bash -c 'ulimit -Sn; env | grep RLIMIT | wc -l'")
    assert shown.split() == ["444", "0"]


def test_comment_and_output_of_a_waiting_job_change(
    cluster: MachineCluster, tmp_path: Path
) -> None:
    """Both are shown as they are now, and the script writes where it was told to last."""
    submit = "sbatch -H --parsable --comment=first -o old.out --wrap 'echo here'"
    job = cluster.shell(submit, cwd=tmp_path).strip()
    update = f"scontrol update jobid={job}"
    cluster.shell(f"{update} comment='second thoughts' stdout={tmp_path}/new.out")
    assert cluster.shell(f"squeue -h -j {job} -o %k") == "second thoughts\n"
    shown = cluster.shell(f"scontrol show job {job}")
    assert f"StdOut={tmp_path}/new.out\n" in shown
    assert "Comment=second thoughts" in shown
    cluster.shell(f"scontrol release {job}")
    cluster.wait_for(f"squeue -h -t all -j {job} -o %T", "COMPLETED\n")
    assert (tmp_path / "new.out").read_text() == "here\n"
    assert not (tmp_path / "old.out").exists()


def test_a_forecast_submits_nothing(cluster: MachineCluster) -> None:
    """Somebody asks when a job would start, of sbatch and of srun."""
    for command in ("sbatch --test-only --wrap true", "srun --test-only true"):
        program = command.split()[0]
        told = cluster.shell(f"{command} 2>&1")
        assert told.startswith(f"{program}: Job ")
        assert told.endswith("using 1 processors on nodes c01 in partition cpu\n")
    assert cluster.shell(
        "sbatch --test-only -n9999 --wrap true 2>&1 || echo rc=$?"
    ).splitlines() == [
        "allocation failure: Requested node configuration is not available",
        "rc=1",
    ]
