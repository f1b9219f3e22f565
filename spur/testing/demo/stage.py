"""A cluster that a demonstration brings up, and the commands that a person types."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from spur.testing.demo.narrator import Narrator, Shell
from spur.up.layout import LAYOUT_FILE
from spur.up.tool import environment
from spur.values.errors import SpurError

__all__ = ["Stage"]

SPUR = "from spur_cli.main import main; raise SystemExit(main())"

WAIT_S = 100.0
"""How long a job of the demonstration may take."""

Row = dict[str, str | int | bool]


class Stage:
    """A directory with a cluster that is not up yet, and one to work in."""

    def __init__(self, directory: Path, narrator: Narrator) -> None:
        self.tell = narrator
        self.home = directory / "cluster"
        work = directory / "work"
        work.mkdir()
        self.shell = Shell(narrator, work, {})

    @property
    def is_up(self) -> bool:
        """Whether there is a cluster to be ended."""
        return (self.home / LAYOUT_FILE).exists()

    def spur(self, *words: str) -> None:
        """Run a verb of `spur` that the cluster need not be there for."""
        command = f"{sys.executable} -c '{SPUR}' {' '.join(words)} --dir {self.home}"
        self.tell.command(f"spur {' '.join(words)} --dir {self.home}")
        self.tell.output(self.shell.ask(f"{command} 2>&1"))

    def log(self, verb: str, directory: Path, *options: str, status: int = 0) -> None:
        """Look at a controller's log with `spur log`.

        Raises: SpurError when its exit status is another one.
        """
        words = " ".join([verb, str(directory), *options])
        self.shell.run(f"spur log {words}", status=status)

    def up(self, *options: str) -> None:
        """Bring the cluster up, and let the shell know it."""
        self.spur("up", *options)
        found = environment(str(self.home))
        path = f"{found.pop('PATH')}:/usr/local/bin:/usr/bin:/bin"
        self.shell = Shell(self.tell, self.shell.directory, {**found, "PATH": path})

    def rows(self) -> list[Row]:
        """Return what `spur status` shows."""
        return [json.loads(row) for row in self.shell.ask("spur status --json").splitlines()]

    def submit(self, command: str) -> str:
        """Run sbatch; return the job's id."""
        return self.shell.run(command).split()[-1]

    def wait(self, job: str) -> None:
        """Wait until a job has left the queue."""
        self.until(f"squeue -h -j {job} -o %i", "")

    def until(self, command: str, goal: str) -> None:
        """Wait until a command prints this. Raises: SpurError when it does not for long."""
        end_s = time.monotonic() + WAIT_S
        while self.shell.ask(command) != goal:
            if time.monotonic() > end_s:
                raise SpurError(f"`{command}` did not come to {goal!r} in {WAIT_S:g} s")
            time.sleep(0.1)
