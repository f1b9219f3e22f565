"""A cluster on this machine that is known by its commands alone, as a person knows it.

cluster = MachineCluster(directory)
cluster.up("--nodes", "2")
cluster.shell("sbatch --wrap hostname")
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from spur.values.errors import SpurError

__all__ = ["ENVIRONMENT", "MachineCluster", "Row"]

Row = dict[str, str | int | bool]

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
"""Whichever interpreter it is, it finds the packages of this one."""

PATIENCE_S = 60.0

_MAIN = "from spur_cli.main import main; raise SystemExit(main())"


class MachineCluster:
    """A cluster in a directory."""

    def __init__(
        self, directory: Path, python: str = sys.executable, prefix: Sequence[str] = ()
    ) -> None:
        """Take a directory that may be empty; `prefix` are words that make another user of us."""
        self.directory = directory
        self._python = python
        self._prefix = prefix
        self._exports = ""

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a verb of `spur` for this directory."""
        return subprocess.run(
            [*self._prefix, self._python, "-c", _MAIN, *words, "--dir", str(self.directory)],
            capture_output=True,
            text=True,
            check=False,
            env=ENVIRONMENT,
        )

    def up(self, *options: str) -> str:
        """Bring it up; return what was said. Raises: SpurError when it does not come up."""
        self._exports = ""
        done = self.run("up", *options)
        if done.returncode or done.stdout:
            raise SpurError(f"`spur up` ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stderr

    @property
    def exports(self) -> str:
        """What a shell needs to find it, as `spur env` says it."""
        self._exports = self._exports or self.run("env").stdout
        return self._exports

    def shell(self, script: str, *, cwd: Path | None = None, status: int = 0) -> str:
        """Return what a shell prints that knows what `spur env` says, and nothing else.

        Raises: SpurError when it ends with another status, or complains although all is well.
        """
        clean = {"PATH": "/usr/bin:/bin", "HOME": str(self.directory)}
        done = subprocess.run(
            [*self._prefix, "sh", "-ec", f"{self.exports}\n{script}"],
            capture_output=True,
            text=True,
            check=False,
            env=clean,
            cwd=cwd or self.directory,
        )
        if done.returncode != status or (done.stderr and not status):
            raise SpurError(f"{script!r} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def processes(self) -> list[Row]:
        """Return the rows of `spur status`."""
        return [json.loads(line) for line in self.run("status", "--json").stdout.splitlines()]

    def pids(self, role: str) -> list[int]:
        """Return the pids of the processes of a role that run."""
        return [int(row["pid"]) for row in self.processes() if row["role"] == role and row["pid"]]

    def kill(self, role: str) -> int:
        """Kill the first process of a role as a crash would; return its pid.

        Raises: SpurError when none runs.
        """
        pids = self.pids(role)
        if not pids:
            raise SpurError(f"no {role} runs: {self.processes()}")
        os.kill(pids[0], signal.SIGKILL)
        return pids[0]

    def wait_for(self, script: str, goal: str, *, patience_s: float = PATIENCE_S) -> None:
        """Wait until a shell prints this. Raises: SpurError with what it prints instead."""
        end_s = time.monotonic() + patience_s
        while (seen := self.shell(script)) != goal:
            if time.monotonic() > end_s:
                raise SpurError(f"{script!r} prints {seen!r} after {patience_s:g} s, not {goal!r}")
            time.sleep(0.1)

    def ended(self, job: str, *, patience_s: float = PATIENCE_S) -> None:
        """Wait until nothing of a job is left to run. Raises: SpurError after that long."""
        self.wait_for(f"squeue -h -j {job} -o %T 2>/dev/null || true", "", patience_s=patience_s)
