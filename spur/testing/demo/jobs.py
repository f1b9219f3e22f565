"""The first part: one controller, four nodes with GPUs, real scripts, in Slurm's own words."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from spur.testing.demo.narrator import Narrator, Shell
from spur.up.layout import LAYOUT_FILE
from spur.up.tool import environment
from spur.values.errors import SpurError

__all__ = ["JobsDemo", "show_jobs"]

SPUR = "from spur_cli.main import main; raise SystemExit(main())"

WAIT_S = 100.0
"""How long a job of the demonstration may take."""

TRAIN = """\
#!/bin/bash
#SBATCH --job-name=train
#SBATCH --ntasks=2
#SBATCH --time=5
echo "job $SLURM_JOB_ID on $(hostname), $SLURM_NTASKS tasks, by $(id -un)"
sleep 1
echo "trained" > model.txt
"""


SAVES = 'trap "echo saved what I have; exit 1" TERM; sleep 3600 & wait'


class JobsDemo:
    """The steps, in order; each leaves what the later ones look back at."""

    def __init__(self, directory: Path, narrator: Narrator) -> None:
        self._tell = narrator
        self._directory = directory
        self._up = directory / "cluster"
        work = directory / "work"
        work.mkdir()
        self._shell = Shell(narrator, work, {})

    def run(self) -> None:
        """Show everything; the cluster is ended, whatever happens."""
        try:
            self._cluster()
            first = self._script()
            slow = self._bad_ends()
            self._array_and_dependency()
            self._gpus()
            self._interactive()
            self._waiting()
            self._time_limit(slow)
            self._afterwards(first)
        finally:
            if (self._up / LAYOUT_FILE).exists():
                self._spur("down")

    def _spur(self, *words: str) -> None:
        """Run a verb of `spur` that the cluster need not be there for."""
        command = f"{sys.executable} -c '{SPUR}' {' '.join(words)} --dir {self._up}"
        self._tell.command(f"spur {' '.join(words)} --dir {self._up}")
        self._tell.output(self._shell.ask(f"{command} 2>&1"))

    # -- the steps
    def _cluster(self) -> None:
        self._tell.step(
            "1. A cluster",
            "One controller and four nodes are brought up on this machine, as ordinary processes.\n"
            "The nodes are said to have 8 CPUs and 8 GPUs each: the jobs get them as declared.",
        )
        self._spur("up", "--nodes", "4", "--gpus", "gfx942:8")
        found = environment(str(self._up))
        path = f"{found.pop('PATH')}:/usr/local/bin:/usr/bin:/bin"
        self._shell = Shell(self._tell, self._shell.directory, {**found, "PATH": path})
        self._shell.run("spur status")
        self._shell.run("sinfo")
        self._shell.run("sinfo -N -o '%N %.4c %.6m %.12G %t'")

    def _script(self) -> str:
        self._tell.step(
            "2. A batch script",
            "Scripts, options and messages are Slurm's. The script runs on a node as its user;\n"
            "its output is a file in the directory where it was submitted.",
        )
        (self._shell.directory / "train.sh").write_text(TRAIN)
        self._shell.run("cat train.sh")
        job = self._submit("sbatch train.sh")
        self._shell.run("squeue")
        self._wait(job)
        self._shell.run(f"cat slurm-{job}.out model.txt")
        return job

    def _bad_ends(self) -> str:
        self._tell.step(
            "3. Jobs that end badly",
            "One fails. Another has a minute and wants an hour: step 8 shows what became of it.",
        )
        failing = self._submit("sbatch --wrap 'echo no luck; exit 3'")
        slow = self._submit(f"sbatch --time=1 --wrap '{SAVES}'")
        self._wait(failing)
        self._shell.run(f"scontrol show job {failing} | grep -E 'JobState|ExitCode'")
        return slow

    def _array_and_dependency(self) -> None:
        self._tell.step(
            "4. An array, two at a time, and what depends on it",
            "An array of any size is one entry of the log. %2 lets two of its tasks run at once.\n"
            "The second job waits until all of them have ended well.",
        )
        work = 'echo "task $SLURM_ARRAY_TASK_ID on $(hostname)"; sleep 2'
        array = self._submit(f"sbatch --array=1-6%2 -o task-%a.out --wrap '{work}'")
        after = self._submit(f"sbatch --dependency=afterok:{array} --wrap 'cat task-*.out'")
        self._until(f"squeue -h -j {array} -t PD -o %r", "JobArrayTaskLimit")
        self._shell.run("squeue -o '%.12i %.9P %.8j %.2t %.6M %R'")
        self._wait(after)
        self._shell.run(f"cat slurm-{after}.out")

    def _gpus(self) -> None:
        self._tell.step(
            "5. GPUs",
            "A job that asks for two GPUs is told which, in the variables of each vendor; a job\n"
            "that asks for none sees none.",
        )
        look = "env | grep -E 'VISIBLE|ORDINAL|GPU' | sort"
        with_two = self._submit(f'sbatch --gres=gpu:gfx942:2 --wrap "{look}"')
        without = self._submit(f'sbatch --wrap "{look}; echo nothing to see"')
        self._wait(with_two)
        self._wait(without)
        self._shell.run(f"cat slurm-{with_two}.out")
        self._shell.run(f"cat slurm-{without}.out")

    def _interactive(self) -> None:
        self._tell.step(
            "6. srun",
            "Tasks on four nodes at once; what they write comes back as it is written.",
        )
        self._shell.run("srun -N 4 -l hostname")
        self._shell.run("srun sh -c 'exit 7'", status=7)

    def _waiting(self) -> None:
        self._tell.step(
            "7. Why does it wait?",
            "One job takes three of the four nodes for itself, and another one wants two.",
        )
        full = self._submit("sbatch -N 3 --exclusive --wrap 'sleep 3'")
        waits = self._submit("sbatch -N 2 --exclusive --wrap true")
        self._until(f"squeue -h -j {waits} -o %r", "Resources")
        self._shell.run("squeue")
        self._shell.run(f"spur why {waits}")
        self._wait(full)
        self._wait(waits)

    def _time_limit(self, slow: str) -> None:
        self._tell.step(
            "8. The time limit",
            "The minute is over: the job got SIGTERM, had KillWait to save what it has, and would\n"
            "have got SIGKILL then.",
        )
        self._wait(slow)
        self._shell.run(f"cat slurm-{slow}.out")
        self._shell.run(f"scontrol show job {slow} | grep -E 'JobState|ExitCode|TimeLimit'")

    def _afterwards(self, first: str) -> None:
        self._tell.step(
            "9. What is left",
            "Accounting is a read model that follows the log; the life of a job is its events;\n"
            "and the log can prove that nobody changed it.",
        )
        self._shell.run("sacct -X -o jobid,jobname,state,exitcode,elapsed,nodelist")
        self._shell.run(f"sacct -j {first} -o jobid,state,alloccpus,maxrss,workdir%40")
        self._shell.run(f"spur story {first}")
        self._shell.run(f"spur log verify {self._up / 'controllers' / 'c1'}")
        rows = self._shell.ask("spur status --json").splitlines()
        mib = sum(json.loads(row)["memory_kib"] for row in rows) >> 10
        self._tell.note(f"the {len(rows)} processes of the cluster have {mib} MiB of memory")

    # -- helpers
    def _submit(self, command: str) -> str:
        """Run sbatch; return the job's id."""
        return self._shell.run(command).split()[-1]

    def _wait(self, job: str) -> None:
        """Wait until a job has left the queue."""
        self._until(f"squeue -h -j {job} -o %i", "")

    def _until(self, command: str, goal: str) -> None:
        end_s = time.monotonic() + WAIT_S
        while self._shell.ask(command) != goal:
            if time.monotonic() > end_s:
                raise SpurError(f"`{command}` did not come to {goal!r} in {WAIT_S:g} s")
            time.sleep(0.1)


def show_jobs(directory: Path, narrator: Narrator) -> None:
    """Show jobs on a cluster of one controller and four nodes.

    Raises: SpurError when something is not as it should be.
    """
    JobsDemo(directory, narrator).run()
