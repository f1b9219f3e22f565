"""The first part: one controller, four nodes with GPUs, real scripts, in Slurm's own words."""

from __future__ import annotations

from pathlib import Path

from spur.testing.demo.narrator import Narrator
from spur.testing.demo.stage import Stage

__all__ = ["JobsDemo", "show_jobs"]

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

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._tell = stage.tell

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
            if self._stage.is_up:
                self._stage.spur("down")

    # -- the steps
    def _cluster(self) -> None:
        self._tell.step(
            "1. A cluster",
            "One controller and four nodes are brought up on this machine, as ordinary processes.\n"
            "The nodes are said to have 8 CPUs and 8 GPUs each: the jobs get them as declared.",
        )
        self._stage.up("--nodes", "4", "--gpus", "gfx942:8")
        self._stage.shell.run("spur status")
        self._stage.shell.run("sinfo")
        self._stage.shell.run("sinfo -N -o '%N %.4c %.6m %.12G %t'")

    def _script(self) -> str:
        self._tell.step(
            "2. A batch script",
            "Scripts, options and messages are Slurm's. The script runs on a node as its user;\n"
            "its output is a file in the directory where it was submitted.",
        )
        (self._stage.shell.directory / "train.sh").write_text(TRAIN)
        self._stage.shell.run("cat train.sh")
        job = self._stage.submit("sbatch train.sh")
        self._stage.shell.run("squeue")
        self._stage.wait(job)
        self._stage.shell.run(f"cat slurm-{job}.out model.txt")
        return job

    def _bad_ends(self) -> str:
        self._tell.step(
            "3. Jobs that end badly",
            "One fails. Another has a minute and wants an hour: step 8 shows what became of it.",
        )
        failing = self._stage.submit("sbatch --wrap 'echo no luck; exit 3'")
        slow = self._stage.submit(f"sbatch --time=1 --wrap '{SAVES}'")
        self._stage.wait(failing)
        self._stage.shell.run(f"scontrol show job {failing} | grep -E 'JobState|ExitCode'")
        return slow

    def _array_and_dependency(self) -> None:
        self._tell.step(
            "4. An array, two at a time, and what depends on it",
            "An array of any size is one entry of the log. %2 lets two of its tasks run at once.\n"
            "The second job waits until all of them have ended well.",
        )
        work = 'echo "task $SLURM_ARRAY_TASK_ID on $(hostname)"; sleep 2'
        array = self._stage.submit(f"sbatch --array=1-6%2 -o task-%a.out --wrap '{work}'")
        after = self._stage.submit(f"sbatch --dependency=afterok:{array} --wrap 'cat task-*.out'")
        self._stage.until(f"squeue -h -j {array} -t PD -o %r", "JobArrayTaskLimit")
        self._stage.shell.run("squeue -o '%.12i %.9P %.8j %.2t %.6M %R'")
        self._stage.wait(after)
        self._stage.shell.run(f"cat slurm-{after}.out")

    def _gpus(self) -> None:
        self._tell.step(
            "5. GPUs",
            "A job that asks for two GPUs is told which, in the variables of each vendor; a job\n"
            "that asks for none sees none.",
        )
        look = "env | grep -E 'VISIBLE|ORDINAL|GPU' | sort"
        with_two = self._stage.submit(f'sbatch --gres=gpu:gfx942:2 --wrap "{look}"')
        without = self._stage.submit(f'sbatch --wrap "{look}; echo nothing to see"')
        self._stage.wait(with_two)
        self._stage.wait(without)
        self._stage.shell.run(f"cat slurm-{with_two}.out")
        self._stage.shell.run(f"cat slurm-{without}.out")

    def _interactive(self) -> None:
        self._tell.step(
            "6. srun",
            "Tasks on four nodes at once; what they write comes back as it is written.",
        )
        self._stage.shell.run("srun -N 4 -l hostname")
        self._stage.shell.run("srun sh -c 'exit 7'", status=7)

    def _waiting(self) -> None:
        self._tell.step(
            "7. Why does it wait?",
            "One job takes three of the four nodes for itself, and another one wants two.",
        )
        full = self._stage.submit("sbatch -N 3 --exclusive --wrap 'sleep 3'")
        waits = self._stage.submit("sbatch -N 2 --exclusive --wrap true")
        self._stage.until(f"squeue -h -j {waits} -o %r", "Resources")
        self._stage.shell.run("squeue")
        self._stage.shell.run(f"spur why {waits}")
        self._stage.wait(full)
        self._stage.wait(waits)

    def _time_limit(self, slow: str) -> None:
        self._tell.step(
            "8. The time limit",
            "The minute is over: the job got SIGTERM, had KillWait to save what it has, and would\n"
            "have got SIGKILL then.",
        )
        self._stage.wait(slow)
        self._stage.shell.run(f"cat slurm-{slow}.out")
        self._stage.shell.run(f"scontrol show job {slow} | grep -E 'JobState|ExitCode|TimeLimit'")

    def _afterwards(self, first: str) -> None:
        self._tell.step(
            "9. What is left",
            "Accounting is a read model that follows the log; the life of a job is its events;\n"
            "and the log can prove that nobody changed it.",
        )
        self._stage.shell.run("sacct -X -o jobid,jobname,state,exitcode,elapsed,nodelist")
        self._stage.shell.run(f"sacct -j {first} -o jobid,state,alloccpus,maxrss,workdir%40")
        self._stage.shell.run(f"spur story {first}")
        self._stage.shell.run(f"spur log verify {self._stage.home / 'controllers' / 'c1'}")
        rows = self._stage.rows()
        mib = sum(int(row["memory_kib"]) for row in rows) >> 10
        self._tell.note(f"the {len(rows)} processes of the cluster have {mib} MiB of memory")


def show_jobs(directory: Path, narrator: Narrator) -> None:
    """Show jobs on a cluster of one controller and four nodes.

    Raises: SpurError when something is not as it should be.
    """
    JobsDemo(Stage(directory, narrator)).run()
