"""srun on a cluster of this machine: real controllers, agents, supervisors and tasks."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from spur.testing.machine import MachineCluster


class Done(NamedTuple):
    """How a command ended."""

    status: int
    out: str
    err: str


class Site:
    """A cluster, and a shell on one of its hosts."""

    def __init__(self, directory: Path) -> None:
        self.cluster = MachineCluster(directory / "up")
        self.home = directory / "home"
        self.home.mkdir()
        self._exports = ""

    def up(self) -> None:
        """Bring it up."""
        self.cluster.up("--nodes", "2")
        self._exports = self.cluster.run("env").stdout

    def start(self, command: str) -> subprocess.Popen[str]:
        """Start a command of a shell."""
        return subprocess.Popen(
            ["/bin/bash", "-c", f"{self._exports}\n{command}"],
            cwd=self.home,
            env={"PATH": "/usr/bin:/bin", "HOME": str(self.home)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, command: str) -> Done:
        """Run a command of a shell to its end."""
        process = self.start(command)
        out, err = process.communicate(timeout=60)
        return Done(process.returncode, out, err)

    def until(self, command: str, wanted: str) -> str:
        """Repeat a command until it says something."""
        end_s = time.monotonic() + 30
        while time.monotonic() < end_s:
            found = self.run(command).out
            if wanted in found:
                return found
            time.sleep(0.1)
        raise AssertionError(f"{command!r} never said {wanted!r}: {found!r}")


@pytest.fixture(scope="module", name="site")
def site_of_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Two nodes of eight CPUs."""
    site = Site(tmp_path_factory.mktemp("srun"))
    try:
        site.up()
        yield site
    finally:
        site.cluster.run("down")


def test_a_command_runs_on_its_node(site: Site) -> None:
    """Srun hostname, the first thing that anybody tries."""
    done = site.run("srun printenv SLURMD_NODENAME")
    assert done == Done(0, "n1\n", "")


def test_tasks_are_spread_over_nodes_and_know_their_place(site: Site) -> None:
    """Four tasks on two nodes, labelled."""
    command = "srun -N2 -n4 -l bash -c 'echo $SLURM_PROCID of $SLURM_NTASKS' | sort"
    assert site.run(command).out == "0: 0 of 4\n1: 1 of 4\n2: 2 of 4\n3: 3 of 4\n"


@pytest.mark.parametrize(
    ("command", "status", "told"),
    [
        ("false", 1, "srun: error: n1: task 0: Exited with exit code 1\n"),
        ("bash -c 'kill -SEGV $$'", 139, "srun: error: n1: task 0: Segmentation fault\n"),
        ("/nonexistent/prog", 2, "execve(): /nonexistent/prog: No such file or directory\n"),
        ("bash -c 'kill -9 $$'", 137, "srun: Force Terminated StepId="),
    ],
)
def test_failures_are_told_as_slurm_tells_them(
    site: Site, command: str, status: int, told: str
) -> None:
    """The exit status of a task is that of srun."""
    done = site.run(f"srun {command}")
    assert done.status == status
    assert told in done.err


def test_input_and_output_are_streamed_whole(site: Site) -> None:
    """Three megabytes go through cat on another node and come back."""
    command = "head -c 3000000 /dev/urandom > big; srun cat < big | cmp - big"
    assert site.run(command) == Done(0, "", "")


def test_files_are_opened_there_for_each_task_and_here_for_all(site: Site) -> None:
    """Srun -o out-%t.txt, and -o all.txt."""
    site.run("srun -n2 -o out-%t.txt printenv SLURM_PROCID; srun -n2 -o all.txt echo x")
    assert [(site.home / f"out-{task}.txt").read_text() for task in (0, 1)] == ["0\n", "1\n"]
    assert (site.home / "all.txt").read_text() == "x\nx\n"


def test_a_script_runs_steps_one_after_the_other_and_beside_each_other(site: Site) -> None:
    """Three sruns in a script: the second waits for nobody, the third for both."""
    script = site.home / "job.sh"
    script.write_text(
        "#!/bin/bash\n"
        "srun -n2 bash -c 'echo first $SLURM_STEP_ID'\n"
        "srun --exact -n1 sleep 1 & srun --exact -n1 bash -c 'echo beside $SLURM_STEP_ID' & wait\n"
        "srun -n1 false; echo status $?\n"
    )
    job_id = site.run("sbatch --parsable -n2 -o job.out job.sh").out.strip()
    site.until(f"squeue -h -j {job_id} -t all -o %T", "COMPLETED")
    lines = (site.home / "job.out").read_text().splitlines()
    assert lines[:2] == ["first 0", "first 0"]
    assert sorted(lines[2:])[0] in ("beside 1", "beside 2")
    assert "status 1" in lines


def test_steps_are_shown_and_cancelled_alone(site: Site) -> None:
    """A step in an allocation is seen, shown and ended; its srun says so."""
    process = site.start("srun -J watched -n1 sleep 60")
    job_id = site.until("squeue -h -n watched -t R -o %i", "\n").split()[0]
    site.until("squeue -h -s -o '%i %j'", f"{job_id}.0 sleep\n")
    assert f"StepId={job_id}.0 " in site.run(f"scontrol show step {job_id}.0").out
    assert site.run(f"scancel {job_id}.0") == Done(0, "", "")
    _, err = process.communicate(timeout=30)
    assert process.returncode == 137
    assert "srun: Job step aborted: Waiting up to 7 seconds for job step to finish.\n" in err
    assert f"*** STEP {job_id}.0 ON n1 CANCELLED AT " in err
    missing = site.run(f"scancel {job_id}.9")
    assert missing.status != 0
    assert missing.err.startswith("scancel: error: Kill job error on job step id ")


def test_an_interrupted_srun_leaves_nothing_behind(site: Site) -> None:
    """Ctrl-C twice: the tasks end, the allocation is given back."""
    process = site.start("exec srun -J broken -n2 sleep 60")
    site.until("squeue -h -s -o %j", "sleep\n")
    process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "srun: interrupt (one more within 1 sec to abort)\n" in err
    assert site.until("squeue -h -n broken -t all -o %T", "FAILED")


def killed_and_back(site: Site, *names: str) -> None:
    """Kill agents by name, as a crash would, and have them started again."""
    for row in site.cluster.processes():
        if row["name"] in names and row["role"] in ("agent", "relay"):
            os.kill(int(row["pid"]), signal.SIGKILL)
    site.cluster.up()


@pytest.mark.parametrize("names", [("spurd-n1",), ("relay",), ("spurd-n1", "relay")])
def test_an_attached_srun_outlives_its_agents(site: Site, names: tuple[str, ...]) -> None:
    """The agent of the node, that of srun's own host, or both die while a step reads and writes."""
    srun = site.start(
        "(seq 1 20000; sleep 3; echo last) |"
        " srun -w n1 bash -c 'cat; for i in $(seq 300); do echo tick $i; sleep 0.01; done; exit 3'"
    )
    site.until("squeue -h -s -o %N", "n1")
    killed_and_back(site, *names)
    out, err = srun.communicate(timeout=60)
    wanted = [str(number) for number in range(1, 20001)]
    wanted += ["last", *(f"tick {number}" for number in range(1, 301))]
    assert out.split("\n")[:-1] == wanted, err
    assert (srun.returncode, err) == (3, "srun: error: n1: task 0: Exited with exit code 3\n")


def test_the_allocation_of_a_killed_srun_ends(site: Site) -> None:
    """Kill -9 of srun, which gives nothing back, while its job runs and while one waits."""
    sruns = {"a": site.start("exec srun -J a -N2 --exclusive sleep 1000")}
    site.until("squeue -h -n a -o %T", "RUNNING")
    sruns["b"] = site.start("exec srun -J b -N2 --exclusive sleep 1000")
    site.until("squeue -h -n b -o %T", "PENDING")
    for name in ("b", "a"):
        sruns[name].kill()
        site.until(f'[ -z "$(squeue -h -n {name})" ] && echo none', "none")
        site.until(f"sacct -n -X --name {name} -o state%20", "CANCELLED by 0")
        sruns[name].communicate()


def test_a_job_that_is_not_there_takes_no_step(site: Site) -> None:
    """Someone names a job that is not there."""
    done = site.run("srun --jobid=999999 true")
    assert done.status == 1
    assert done.err == (
        "srun: error: Unable to confirm allocation for job 999999: Invalid job id specified\n"
        "srun: Check SLURM_JOB_ID environment variable. Expired or invalid job 999999\n"
    )


def test_no_step_is_left_when_everything_has_ended(site: Site) -> None:
    """All stories above are over: no step is open."""
    site.until("squeue -h -s -o %i | wc -l", "0\n")
