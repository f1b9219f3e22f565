"""The second part: three controllers, a leader that dies under running jobs, a changed byte."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from spur.testing.demo.narrator import Narrator
from spur.testing.demo.stage import Row, Stage
from spur.values.errors import SpurError

__all__ = ["FailoverDemo", "show_failover"]

TASKS = 60

STATES = "squeue -h -r -o %T | sort | uniq -c"

CONTROLLERS = "spur status | grep -E 'NAME|controller'"

LEVELS = "spur status --json | grep -o '\"index\":[1-9][0-9]*' | sort -u | wc -l"
"""How many different entries the controllers are at."""

WORK = """\
#!/bin/bash
#SBATCH --job-name=work
#SBATCH --output=/dev/null
echo "ran on $SLURMD_NODENAME" >> "ran.$SLURM_ARRAY_TASK_ID"
sleep 1
"""
"""A task that ran twice leaves two lines."""


class FailoverDemo:
    """The steps, in order."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._tell = stage.tell

    def run(self) -> None:
        """Show everything; the cluster is ended, whatever happens.

        Raises: SpurError when something is not as it should be.
        """
        try:
            self._cluster()
            array = self._submit()
            self._lose_the_leader()
            self._count(array)
            self._come_back()
        finally:
            if self._stage.is_up:
                self._stage.spur("down")
        self._compare()
        self._change_a_byte()

    # -- the steps
    def _cluster(self) -> None:
        self._tell.step(
            "10. Three controllers",
            "Another cluster, of three controllers: one genesis, one certificate authority, a\n"
            "directory each. No shared disk, no database, no shared secret.",
        )
        self._stage.up("--controllers", "3", "--nodes", "4")
        self._stage.shell.run(CONTROLLERS)
        self._stage.shell.run("scontrol ping")

    def _submit(self) -> str:
        self._tell.step(
            "11. Jobs run",
            f"An array of {TASKS} tasks of a second each: one entry of the log, answered once a\n"
            "majority has it on disk. Each task adds a line to a file of its own.",
        )
        (self._stage.shell.directory / "work.sh").write_text(WORK)
        array = self._stage.submit(f"sbatch --array=1-{TASKS} work.sh")
        self._stage.until(f"squeue -h -j {array} -t R -o running | sort -u", "running")
        self._stage.shell.run(STATES)
        return array

    def _lose_the_leader(self) -> None:
        self._tell.step(
            "12. The leader dies",
            "kill -9 of the controller that leads, with all its processes, while the tasks run.\n"
            "The next command is given at once: the agent of this host asks on with the same\n"
            "request id until another controller answers. Nothing is lost, nothing done twice.",
        )
        leader, pids = _leader(self._stage.rows())
        self._tell.command(f"kill -9 {' '.join(map(str, pids))}   # {leader} leads")
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        began_s = time.monotonic()
        self._stage.submit("sbatch --wrap 'echo after the leader died'")
        took_s = time.monotonic() - began_s
        self._tell.note(
            f"[bold]{took_s:.2f} s[/bold] from the kill to the next accepted submission"
        )
        self._stage.shell.run(STATES)
        self._stage.shell.run(CONTROLLERS)

    def _count(self, array: str) -> None:
        self._tell.step(
            "13. Nothing was lost",
            "The tasks went on while nobody led, and those that waited were started by the new\n"
            "leader. Each has one record, and each ran once.",
        )
        self._stage.until("squeue -h -o %i", "")
        self._stage.shell.run(f"sacct -j {array} -X -n -D -o state | sort | uniq -c")
        self._stage.shell.run("cat ran.* | wc -l; ls ran.* | wc -l")
        files = sorted(self._stage.shell.directory.glob("ran.*"))
        if [len(file.read_text().splitlines()) for file in files] != [1] * TASKS:
            raise SpurError("a task did not run, or ran twice")

    def _come_back(self) -> None:
        self._tell.step(
            "14. The dead one comes back",
            "`spur up` starts what is down. The controller fetches what it missed from the others.",
        )
        self._stage.up()
        self._stage.until(LEVELS, "1")
        self._stage.shell.run(CONTROLLERS)

    # -- on the stopped directories
    def _compare(self) -> None:
        self._tell.step(
            "15. The ledger",
            "The controllers are stopped. What was committed lies in each directory: the\n"
            "same bytes on all three, each record chained to the one before by SHA-256.",
        )
        self._stage.log("show", self._home(1), "--tail", "6")
        for number in (1, 2, 3):
            self._stage.log("verify", self._home(number), "--replay")

    def _change_a_byte(self) -> None:
        self._tell.step(
            "16. One byte is changed",
            "Somebody edits the ledger of one controller behind our back.",
        )
        victim = self._home(3) / "ledger" / "000000000001.raw"
        data = bytearray(victim.read_bytes())
        data[len(data) // 2] ^= 1
        victim.write_bytes(data)
        self._stage.log("verify", self._home(3), status=1)
        self._tell.note("the changed record is named; a controller repairs it from its peers")

    def _home(self, number: int) -> Path:
        return self._stage.home / "controllers" / f"c{number}"


def _leader(rows: list[Row]) -> tuple[str, list[int]]:
    """Return the name of the controller that leads, and its processes, the parent first."""
    for row in rows:
        if row["leader"]:
            name = str(row["name"])
            return name, [int(each["pid"]) for each in rows if each["name"] == name]
    raise SpurError("no controller leads")


def show_failover(directory: Path, narrator: Narrator) -> None:
    """Show what becomes of jobs and of the log when a leader dies, and when somebody edits it.

    Raises: SpurError when something is not as it should be.
    """
    FailoverDemo(Stage(directory, narrator)).run()
