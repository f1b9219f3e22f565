"""What stands in the head of a script: directives, in every spelling that people use."""

from __future__ import annotations

from pathlib import Path

import pytest

from spur.testing.machine import MachineCluster


def script(folder: Path, text: str, name: str = "job.sh") -> None:
    (folder / name).write_text(text)


def submitted(cluster: MachineCluster, folder: Path, command: str = "sbatch job.sh") -> str:
    """Submit; return the job's number."""
    said = cluster.shell(command, cwd=folder)
    job = said.split()[-1]
    assert said == f"Submitted batch job {job}\n"
    return job


def shown(cluster: MachineCluster, job: str, form: str) -> str:
    return cluster.shell(f"squeue -h -j {job} -o '{form}'").rstrip("\n")


def test_long_and_short_directives_in_one_script(cluster: MachineCluster, tmp_path: Path) -> None:
    """A script mixes spellings; both tasks of its step and its errors are in one file."""
    script(
        tmp_path,
        "#!/bin/bash\n#SBATCH --job-name=fit01\n#SBATCH -N 1\n#SBATCH --ntasks=2\n"
        "#SBATCH -t 00:05:00\n#SBATCH -o fit01-%j.log\nsrun hostname\necho told >&2\n",
    )
    job = submitted(cluster, tmp_path, "sbatch -H job.sh")
    assert shown(cluster, job, "%j %D %C %l") == "fit01 1 2 5:00"
    cluster.shell(f"scontrol release {job}")
    cluster.ended(job)
    assert [path.name for path in tmp_path.glob("*.log")] == [f"fit01-{job}.log"]
    first, second, last = (tmp_path / f"fit01-{job}.log").read_text().splitlines()
    assert (first, last) == (second, "told")


def test_directives_end_at_the_first_command(cluster: MachineCluster, tmp_path: Path) -> None:
    """Blank lines and comments do not end the head of a script; a line of its body does."""
    script(
        tmp_path,
        "#!/bin/bash\n\n# set up by alice, 2 hours max\n\n#SBATCH --time=2:00:00\n"
        "#SBATCH --mem=2G\nmodule load gcc\n#SBATCH --mem=60G\n",
    )
    job = submitted(cluster, tmp_path, "sbatch -H job.sh")
    assert shown(cluster, job, "%l %m") == "2:00:00 2G"
    cluster.shell(f"scancel {job}")


def test_comment_behind_a_directive(cluster: MachineCluster, tmp_path: Path) -> None:
    """Somebody explains their numbers; a # within quotes or behind a \\ is none."""
    script(
        tmp_path,
        "#!/bin/bash\n#SBATCH --time=10   # ten minutes\n#SBATCH -c 4 # cores\n"
        "#SBATCH -J 'a#b' --comment=c\\#d # both\ntrue\n",
    )
    job = submitted(cluster, tmp_path, "sbatch -H job.sh")
    assert shown(cluster, job, "%l %C %j %k") == "10:00 4 a#b c#d"
    cluster.shell(f"scancel {job}")


def test_several_options_on_a_line_with_glued_values(
    cluster: MachineCluster, tmp_path: Path
) -> None:
    """-N2 -n8: eight tasks on two nodes, each line with its task's number."""
    script(
        tmp_path,
        "#!/bin/bash\n#SBATCH -N2 -n8 -t30 -pgpu --gres=gpu:1\nsrun -l hostname\n",
    )
    job = submitted(cluster, tmp_path, "sbatch -H job.sh")
    assert shown(cluster, job, "%D %l %P %b") == "2 30:00 gpu gres:gpu:1"
    assert "NumTasks=8 " in cluster.shell(f"scontrol show job {job}")
    cluster.shell(f"scontrol release {job}")
    cluster.ended(job)
    lines = (tmp_path / f"slurm-{job}.out").read_text().splitlines()
    assert sorted(line.split(": ")[0] for line in lines) == list("01234567")


def test_dos_line_ends(cluster: MachineCluster, tmp_path: Path) -> None:
    """A script comes from Windows: it is refused, in two lines, and no job is there."""
    script(tmp_path, "#!/bin/bash\r\n#SBATCH -n 1 -J dos\r\nhostname\r\n")
    assert cluster.shell("sbatch job.sh 2>&1 || echo rc=$?", cwd=tmp_path) == (
        "sbatch: error: Batch script contains DOS line breaks (\\r\\n)\n"
        "sbatch: error: instead of expected UNIX line breaks (\\n).\n"
        "rc=1\n"
    )
    assert cluster.shell("squeue -h -n dos -t all") == ""


@pytest.mark.parametrize(
    ("directive", "said", "status"),
    [
        (
            "--gpu-count=2",
            "sbatch: unrecognized option '--gpu-count=2'\n"
            'Try "sbatch --help" for more information\n',
            255,
        ),
        ("--time=soon", "sbatch: error: Invalid --time specification\n", 255),
        (
            "--mem=1G --mem-per-cpu=1G",
            "sbatch: fatal: --mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.\n",
            1,
        ),
    ],
)
def test_directive_that_is_none(
    cluster: MachineCluster, tmp_path: Path, directive: str, said: str, status: int
) -> None:
    """A directive is mistyped, its value is, or two exclude each other: no job is made."""
    script(tmp_path, f"#!/bin/bash\n#SBATCH -J mistyped\n#SBATCH {directive}\ntrue\n")
    found = cluster.shell("sbatch job.sh 2>&1 || echo rc=$?", cwd=tmp_path)
    assert found == f"{said}rc={status}\n"
    assert cluster.shell("squeue -h -n mistyped -t all") == ""


def test_line_beats_environment_beats_script(cluster: MachineCluster, tmp_path: Path) -> None:
    """A site sets SBATCH_TIMELIMIT, a user says -c."""
    script(tmp_path, "#!/bin/bash\n#SBATCH -t 10 -c 2\nenv | grep SLURM_CPUS_PER_TASK\n")
    job = submitted(cluster, tmp_path, "SBATCH_TIMELIMIT=20 sbatch -H -c 3 job.sh")
    assert shown(cluster, job, "%l %C") == "20:00 3"
    cluster.shell(f"scontrol release {job}")
    cluster.ended(job)
    assert (tmp_path / f"slurm-{job}.out").read_text() == "SLURM_CPUS_PER_TASK=3\n"


def test_script_of_another_batch_system(cluster: MachineCluster, tmp_path: Path) -> None:
    """#PBS lines count, unless they are to be passed over."""
    script(
        tmp_path,
        "#!/bin/bash\n#PBS -N oldjob\n#PBS -l walltime=00:07:00\necho $SLURM_JOB_NAME\n",
    )
    job = submitted(cluster, tmp_path, "sbatch -H job.sh")
    other = submitted(cluster, tmp_path, "sbatch -H --ignore-pbs job.sh")
    assert shown(cluster, job, "%j %l") == "oldjob 7:00"
    assert shown(cluster, other, "%j") == "job.sh"
    cluster.shell(f"scancel {other}; scontrol release {job}")
    cluster.ended(job)
    assert (tmp_path / f"slurm-{job}.out").read_text() == "oldjob\n"
