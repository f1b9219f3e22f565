"""Arrays: their throttle, their variables, their limit, and the end of parts of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from spur.testing.machine import MachineCluster


def test_wide_array_runs_as_many_as_it_says(cluster: MachineCluster, tmp_path: Path) -> None:
    """A thousand tasks, fifty at a time: the rest waits as one line that says so."""
    array = "sbatch --parsable -a 1-1000%50 -o logs/%A_%a.out --wrap='exec sleep 300'"
    job = cluster.shell(array, cwd=tmp_path).strip()
    assert job.isdigit()
    cluster.wait_for(f"squeue -h -r -j {job} -t R -o %i | wc -l", "50\n")
    waits = f"squeue -h -j {job} -t PD -o '%i %r'"
    cluster.wait_for(waits, f"{job}_[51-1000%50] JobArrayTaskLimit\n")
    cluster.shell(f"scancel {job}_7")
    cluster.wait_for(waits, f"{job}_[52-1000%50] JobArrayTaskLimit\n")
    cluster.shell(f"scancel {job}")
    cluster.ended(job)
    assert (tmp_path / "logs" / f"{job}_50.out").exists()


def test_task_takes_its_line_of_a_file(cluster: MachineCluster, tmp_path: Path) -> None:
    """The numbers are those of the lines, without padding."""
    (tmp_path / "inputs.txt").write_text("red\ngreen\nblue\n")
    (tmp_path / "job.sh").write_text(
        "#!/bin/bash\n#SBATCH -a 1-3 -o %a.out\n"
        'IN=$(sed -n "${SLURM_ARRAY_TASK_ID}p" inputs.txt)\necho "doing $IN"\n'
    )
    cluster.shell("sbatch --wait job.sh > /dev/null", cwd=tmp_path)
    found = [(tmp_path / f"{task}.out").read_text() for task in (1, 2, 3)]
    assert found == ["doing red\n", "doing green\n", "doing blue\n"]


@pytest.mark.parametrize("tasks", ["1-2000", "1001-2000", "1001"])
def test_array_beyond_the_sites_limit(cluster: MachineCluster, tasks: str) -> None:
    """The limit is on the numbers of the tasks, so the second half is refused too."""
    said = cluster.shell(f"sbatch -a {tasks} --wrap=true 2>&1 || echo rc=$?")
    sentence = "sbatch: error: Batch job submission failed: Invalid job array specification"
    assert said == f"{sentence}\nrc=1\n"


def test_array_up_to_the_sites_limit(cluster: MachineCluster) -> None:
    """The highest number that there may be."""
    job = cluster.shell("sbatch -H --parsable -a 0-1000 -o /dev/null --wrap=true").strip()
    assert cluster.shell(f"squeue -h -j {job} -o %i") == f"{job}_[0-1000]\n"
    cluster.shell(f"scancel {job}")


def test_tasks_know_their_array(cluster: MachineCluster, tmp_path: Path) -> None:
    """Each has its number and a job number of its own; one has the array's own job number."""
    (tmp_path / "job.sh").write_text(
        "#!/bin/bash\n#SBATCH -a 2-8:3 -o %a.out\n"
        "env | grep -E 'SLURM_(ARRAY|JOB_ID|JOBID)' | sort\n"
    )
    job = cluster.shell("sbatch --wait --parsable job.sh", cwd=tmp_path).strip()
    numbers = set()
    for task in (2, 5, 8):
        found = dict(
            line.split("=", 1) for line in (tmp_path / f"{task}.out").read_text().splitlines()
        )
        number = found.pop("SLURM_JOB_ID")
        numbers.add(number)
        assert found == {
            "SLURM_ARRAY_JOB_ID": job,
            "SLURM_ARRAY_TASK_COUNT": "3",
            "SLURM_ARRAY_TASK_ID": str(task),
            "SLURM_ARRAY_TASK_MAX": "8",
            "SLURM_ARRAY_TASK_MIN": "2",
            "SLURM_ARRAY_TASK_STEP": "3",
            "SLURM_JOBID": number,
        }
    assert len(numbers) == 3
    assert job in numbers


def test_parts_of_an_array_are_cancelled(cluster: MachineCluster) -> None:
    """One task, a range, then all that is left, running or not; nothing is said."""
    array = "sbatch --parsable -a 1-9%2 -o /dev/null --wrap='exec sleep 300'"
    job = cluster.shell(array).strip()
    cluster.wait_for(f"squeue -h -r -j {job} -t R -o %K | tr '\\n' ' '", "1 2 ")
    left = f"squeue -h -r -j {job} -t PD,R -o '%K' | sort -n | tr '\\n' ' '"
    assert cluster.shell(f"scontrol hold {job} 2>&1; scancel {job}_3; scancel '{job}_[4-6]'") == ""
    assert cluster.shell(left) == "1 2 7 8 9 "
    assert cluster.shell(f"scancel {job}_1 2>&1; scancel {job} 2>&1") == ""
    cluster.wait_for(left, "")
