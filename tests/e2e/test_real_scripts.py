"""Scripts and commands as people of other sites have them, on real nodes, with Slurm's answers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from spur.testing.machine import MachineCluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MachineCluster]:
    """Yield a cluster of four nodes of eight CPUs and two GPUs."""
    made = MachineCluster(tmp_path_factory.mktemp("real") / "up")
    made.up("--nodes", "4", "--cpus", "8", "--gpus", "a100:2")
    yield made
    made.run("down")


def script(folder: Path, text: str, name: str = "job.sh") -> None:
    (folder / name).write_text(text)


def ended(cluster: MachineCluster, job: str) -> None:
    """Wait until nothing of a job is left to run."""
    cluster.wait_for(f"squeue -h -j {job} -o %T 2>/dev/null || true", "")


def test_long_and_short_directives_in_one_script(cluster: MachineCluster, tmp_path: Path) -> None:
    """A script mixes spellings; an option behind the first command does not count."""
    text = (
        "#!/bin/bash\n\n# set up by alice\n#SBATCH --job-name=fit01\n#SBATCH -N2 -n4 -t30 -c2\n"
        "#SBATCH --time=10   # ten minutes\n#SBATCH -o fit-%j-%x.log\ntrue\n#SBATCH --mem=900G\n"
        'echo "$SLURM_JOB_NUM_NODES $SLURM_NTASKS $SLURM_CPUS_PER_TASK"\n'
    )
    script(tmp_path, text)
    said = cluster.shell("sbatch -H job.sh", cwd=tmp_path)
    job = said.split()[-1]
    assert said == f"Submitted batch job {job}\n"
    assert cluster.shell(f"squeue -h -j {job} -o '%j %D %C %l'") == "fit01 2 8 10:00\n"
    cluster.shell(f"scontrol release {job}")
    ended(cluster, job)
    assert (tmp_path / f"fit-{job}-fit01.log").read_text() == "2 4 2\n"


def test_line_beats_environment_beats_script(cluster: MachineCluster, tmp_path: Path) -> None:
    """A site sets SBATCH_TIMELIMIT, a user says -c."""
    script(tmp_path, "#!/bin/bash\n#SBATCH -t 10 -c 2\necho $SLURM_CPUS_PER_TASK\n")
    job = cluster.shell(
        "SBATCH_TIMELIMIT=20 sbatch -H --parsable -c 3 job.sh", cwd=tmp_path
    ).strip()
    assert cluster.shell(f"squeue -h -j {job} -o '%l %C'") == "20:00 3\n"
    cluster.shell(f"scancel {job}")


def test_script_of_another_batch_system(cluster: MachineCluster, tmp_path: Path) -> None:
    """#PBS lines count, unless they are to be passed over."""
    script(tmp_path, "#!/bin/bash\n#PBS -N oldjob\n#PBS -l walltime=00:07:00\ntrue\n")
    job = cluster.shell("sbatch -H --parsable job.sh", cwd=tmp_path).strip()
    other = cluster.shell("sbatch -H --parsable --ignore-pbs job.sh", cwd=tmp_path).strip()
    assert cluster.shell(f"squeue -h -j {job} -o '%j %l'") == "oldjob 7:00\n"
    assert cluster.shell(f"squeue -h -j {other} -o %j") == "job.sh\n"
    cluster.shell(f"scancel {job} {other}")


def test_script_from_a_pipe_and_arguments(cluster: MachineCluster, tmp_path: Path) -> None:
    """A here-document is expanded on the node; what stands behind a script's name is its own."""
    body = '#!/bin/bash\necho "job $SLURM_JOB_NAME"'
    pipe = f"sbatch --wait -o heredoc.log >/dev/null <<'EOT'\n{body}\nEOT"
    cluster.shell(pipe, cwd=tmp_path)
    assert (tmp_path / "heredoc.log").read_text() == "job sbatch\n"
    script(tmp_path, "#!/bin/bash\nprintf '%s|' \"$@\"\n", "args.sh")
    cluster.shell(
        "sbatch --wait -o args.log args.sh --mem=1G 'two words' '' >/dev/null", cwd=tmp_path
    )
    assert (tmp_path / "args.log").read_text() == "--mem=1G|two words||"


def test_exports_and_directories(cluster: MachineCluster, tmp_path: Path) -> None:
    """All variables and more, or named ones alone; a directory of the job's own."""
    run = tmp_path / "run"
    run.mkdir()
    show = 'echo "$A|$B|[$C]"; pwd; echo $SLURM_SUBMIT_DIR; echo e >&2'
    every = (
        f"A=1 sbatch --wait -D {run} -o all.log --export=ALL,B=two,C= --wrap='{show}' >/dev/null"
    )
    cluster.shell(every, cwd=tmp_path)
    assert (run / "all.log").read_text() == f"1|two|[]\n{run}\n{tmp_path}\ne\n"
    named = (
        "A=1 B=2 sbatch --wait -o named.log --export=A,C=9 --wrap='echo \"$A|$B|$C\"' >/dev/null"
    )
    cluster.shell(named, cwd=tmp_path)
    assert (tmp_path / "named.log").read_text() == "1||9\n"


def test_array_has_its_variables_and_its_throttle(cluster: MachineCluster, tmp_path: Path) -> None:
    """Two tasks at a time; each has its number, and one has the array's own job number."""
    show = (
        "env | grep -E '^SLURM_(ARRAY_|JOB_ID=|JOBID=)' | sort; until [ -e go ]; do sleep 0.1; done"
    )
    array = f'sbatch --parsable -a 2-8:3%2 -o %A_%a.out --wrap="{show}"'
    job = cluster.shell(array, cwd=tmp_path).strip()
    cluster.wait_for(f"squeue -h -j {job} -t R -r -o %i | wc -l", "2\n")
    assert (
        cluster.shell(f"squeue -h -j {job} -t PD -o '%i %r'") == f"{job}_[8%2] JobArrayTaskLimit\n"
    )
    (tmp_path / "go").touch()
    ended(cluster, job)
    found = {task: (tmp_path / f"{job}_{task}.out").read_text() for task in (2, 5, 8)}
    for task, text in found.items():
        shared = f"SLURM_ARRAY_JOB_ID={job}\nSLURM_ARRAY_TASK_COUNT=3\nSLURM_ARRAY_TASK_ID={task}\n"
        ranges = "SLURM_ARRAY_TASK_MAX=8\nSLURM_ARRAY_TASK_MIN=2\nSLURM_ARRAY_TASK_STEP=3\n"
        assert text.startswith(shared + ranges)
    assert sum(f"SLURM_JOB_ID={job}\n" in text for text in found.values()) == 1


def test_parts_of_an_array_are_cancelled(cluster: MachineCluster) -> None:
    """One task, a range, then all that is left; nothing is said."""
    job = cluster.shell("sbatch -H --parsable -a 1-9 -o /dev/null --wrap=true").strip()
    left = f"squeue -h -r -j {job} -t PD -o %K | tr '\\n' ' '"
    assert cluster.shell(f"scancel {job}_3") == ""
    cluster.shell(f"scancel '{job}_[4-6]'")
    assert cluster.shell(left) == "1 2 7 8 9 "
    cluster.shell(f"scancel {job}")
    assert cluster.shell(left) == ""


def test_jobs_wait_for_others(cluster: MachineCluster, tmp_path: Path) -> None:
    """A join after two parents, tasks after their counterparts, one that can never start."""
    submit = "sbatch --parsable -o /dev/null"
    parents = (
        f"a=$({submit} --wrap='until [ -e go ]; do sleep 0.1; done'); b=$({submit} --wrap=true)"
    )
    join = f"{parents}; sbatch --parsable -d afterok:$a:$b -o joined --wrap='echo joined'"
    job = cluster.shell(join, cwd=tmp_path).strip()
    assert cluster.shell(f"squeue -h -j {job} -o '%t %R'") == "PD (Dependency)\n"
    (tmp_path / "go").touch()
    ended(cluster, job)
    assert (tmp_path / "joined").read_text() == "joined\n"

    first = f"p=$({submit} -a 1-3 --wrap='exit $((SLURM_ARRAY_TASK_ID==2))')"
    tasks = f"{first}; {submit} -a 1-3 -d aftercorr:$p --wrap=true"
    job = cluster.shell(tasks).strip()
    never = f"{job}_2 PD DependencyNeverSatisfied\n"
    cluster.wait_for(f"squeue -h -j {job} -r -o '%i %t %r'", never)
    cluster.shell(f"scancel {job}")


def test_one_job_of_a_name_at_a_time(cluster: MachineCluster, tmp_path: Path) -> None:
    """Three nightly jobs follow each other."""
    wrap = "--wrap='mkdir lock && sleep 1 && rmdir lock && echo $SLURM_JOB_ID >> order'"
    loop = f"for n in 1 2 3; do sbatch --parsable -J nightly -d singleton -o /dev/null {wrap}; done"
    jobs = cluster.shell(loop, cwd=tmp_path).split()
    for job in jobs:
        ended(cluster, job)
    assert (tmp_path / "order").read_text().split() == jobs


def test_gpus_are_counted_and_shown(cluster: MachineCluster, tmp_path: Path) -> None:
    """A count left out is one; a job without GPUs sees none, whatever its submitter saw."""
    show = "echo $CUDA_VISIBLE_DEVICES,$SLURM_GPUS_ON_NODE"
    cluster.shell(f"sbatch --wait -o one --gres=gpu --wrap='{show}' >/dev/null", cwd=tmp_path)
    cluster.shell(
        f"sbatch --wait -o two --gres=gpu:a100:2 --wrap='{show}' >/dev/null", cwd=tmp_path
    )
    none = "CUDA_VISIBLE_DEVICES=0 sbatch --wait -o bare --wrap='echo [$CUDA_VISIBLE_DEVICES]'"
    cluster.shell(f"{none} >/dev/null", cwd=tmp_path)
    assert (tmp_path / "bare").read_text() == "[]\n"
    assert (tmp_path / "one").read_text().endswith(",1\n")
    assert (tmp_path / "two").read_text() == "0,1,2\n"


def test_exit_codes_come_back(cluster: MachineCluster) -> None:
    """--wait ends as the job did; accounting and scontrol say the same."""
    done = cluster.shell("sbatch --wait --parsable -o /dev/null --wrap='exit 3'", status=3)
    job = done.strip()
    cluster.wait_for(f"sacct -n -X -P -j {job} -o State,ExitCode", "FAILED|3:0\n")
    shown = f"scontrol show job -o {job} | grep -oP 'JobState=\\K[^ ]+'"
    assert cluster.shell(shown) == "FAILED\n"
    assert cluster.shell("sacct -n -X -P -j 99999 -o State") == ""


def test_status_poll_of_one_and_of_several(cluster: MachineCluster) -> None:
    """Tools depend on it: one unknown number is an error, several are passed over."""
    job = cluster.shell("sbatch -H --parsable -o /dev/null --wrap=true").strip()
    assert cluster.shell(f"squeue -h -o '%i %T' -j {job},999999") == f"{job} PENDING\n"
    cluster.shell("squeue -h -o '%i %T' -j 999999", status=1)
    cluster.shell(f"scancel {job}")


def test_end_from_outside_is_told_in_the_jobs_own_file(
    cluster: MachineCluster, tmp_path: Path
) -> None:
    """A job that is cancelled while it runs finds that where its errors go."""
    job = cluster.shell(
        "sbatch --parsable -t 1 -o lim.log --wrap='sleep 300'", cwd=tmp_path
    ).strip()
    cluster.wait_for(f"squeue -h -j {job} -o %t", "R\n")
    cluster.shell(f"scancel {job}")
    ended(cluster, job)
    assert f"*** JOB {job} ON n" in (tmp_path / "lim.log").read_text()


def test_signal_goes_to_the_steps_the_script_or_all(
    cluster: MachineCluster, tmp_path: Path
) -> None:
    """A script has a trap; only those who say so reach it, and the program that it waits for."""
    (tmp_path / "job.sh").write_text(
        "#!/bin/bash\n"
        "trap 'echo script' USR1\n"
        """bash -c "trap 'echo child' USR1; until [ -e go ]; do sleep 0.1; done" &\n"""
        "touch up; until [ -e go ]; do sleep 0.1; done; wait\n"
    )
    job = cluster.shell("sbatch --parsable -o out job.sh", cwd=tmp_path).strip()
    cluster.wait_for(f"ls {tmp_path}/up", f"{tmp_path}/up\n")
    time.sleep(0.5)
    heard = f"sort {tmp_path}/out"
    cluster.shell(f"scancel -s USR1 {job}")
    cluster.shell(f"scancel -s USR1 --batch {job}")
    cluster.wait_for(heard, "script\n")
    cluster.shell(f"scancel -s USR1 --full {job}")
    cluster.wait_for(f"{heard} | grep -v signal", "child\nscript\nscript\n")
    (tmp_path / "go").touch()
    ended(cluster, job)


def test_step_that_a_signal_ends_is_cancelled(cluster: MachineCluster, tmp_path: Path) -> None:
    """Without more words a signal is for the steps: the script goes on, and tells of it."""
    step = "srun bash -c 'touch up; exec sleep 60'; echo after"
    job = cluster.shell(f'sbatch --parsable -o out --wrap="{step}"', cwd=tmp_path).strip()
    cluster.wait_for(f"ls {tmp_path}/up", f"{tmp_path}/up\n")
    cluster.shell(f"scancel -s USR2 {job}")
    ended(cluster, job)
    told = (tmp_path / "out").read_text()
    assert told.endswith(": task 0: User defined signal 2\nafter\n")
    shown = f"sacct -n -P -j {job} -o JobID,State,ExitCode | grep -v extern"
    lines = (f"{job}|COMPLETED|0:0", f"{job}.batch|COMPLETED|0:0", f"{job}.0|CANCELLED|0:12", "")
    cluster.wait_for(shown, "\n".join(lines))


def test_stopped_job_has_no_exit_of_its_own(cluster: MachineCluster, tmp_path: Path) -> None:
    """A script that is cancelled ends with a status: accounting tells it of the script alone."""
    wrap = "trap 'exit 3' TERM; touch up; while :; do sleep 0.1; done"
    job = cluster.shell(f'sbatch --parsable -o out --wrap="{wrap}"', cwd=tmp_path).strip()
    cluster.wait_for(f"ls {tmp_path}/up", f"{tmp_path}/up\n")
    cluster.shell(f"scancel {job}")
    ended(cluster, job)
    cluster.wait_for(f"sacct -n -P -j {job} -o ExitCode | head -2", "0:0\n3:0\n")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("10", "10:00"),
        ("10:30", "11:00"),
        ("1:2:3", "1:03:00"),
        ("1-12", "1-12:00:00"),
        ("0:3600", "1:00:00"),
        ("51:00:00", "2-03:00:00"),
        ("UNLIMITED", "UNLIMITED"),
    ],
)
def test_spellings_of_a_time_limit(cluster: MachineCluster, text: str, shown: str) -> None:
    """Every tool writes limits in its own way."""
    job = cluster.shell(f"sbatch -H --parsable -o /dev/null -t {text} --wrap=true").strip()
    assert cluster.shell(f"squeue -h -j {job} -o %l") == f"{shown}\n"
    cluster.shell(f"scancel {job}")


def test_node_is_drained_and_taken_back(cluster: MachineCluster) -> None:
    """An administrator takes a node out of use."""
    cluster.shell("scontrol update nodename=n4 state=drain reason='fan is loud'")
    assert cluster.shell("sinfo -h -n n4 -N -o '%N %T'") == "n4 drained\n"
    assert "fan is loud" in cluster.shell("sinfo -h -R")
    cluster.shell("scontrol update nodename=n4 state=resume")
    assert cluster.shell("sinfo -h -n n4 -N -o '%N %T'") == "n4 idle\n"


def test_script_is_read_back(cluster: MachineCluster, tmp_path: Path) -> None:
    """Somebody asks what exactly was handed in."""
    job = cluster.shell("sbatch -H --parsable --comment=note --wrap='echo a'", cwd=tmp_path).strip()
    wrapped = "#!/bin/sh\n# This script was created by sbatch --wrap.\n\necho a\n"
    assert cluster.shell(f"scontrol write batch_script {job} -") == wrapped
    said = cluster.shell(f"scontrol write batch_script {job}", cwd=tmp_path)
    assert said == f"batch script for job {job} written to slurm-{job}.sh\n"
    assert (tmp_path / f"slurm-{job}.sh").read_text() == wrapped
    shown = cluster.shell(f"scontrol show job {job}")
    assert f"StdOut={tmp_path}/slurm-{job}.out\n" in shown
    assert f"WorkDir={tmp_path}\n" in shown
    assert "Comment=note " in shown
    assert cluster.shell(f"squeue -h -j {job} -o '%k %Z'") == f"note {tmp_path}\n"
    cluster.shell(f"scancel {job}")


def test_partitions_are_summed_up(cluster: MachineCluster) -> None:
    """The default partition has a star in one column and not in the other."""
    assert cluster.shell("sinfo -h -o '%P %a %T' | sort -u").startswith("main* up ")
    assert cluster.shell("sinfo -h -o %R | sort -u") == "main\n"
