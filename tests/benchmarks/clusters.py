"""A whole cluster of ours, and a real Slurm beside it, for the benchmarks of jobs and commands.

The other cluster is named by its slurm.conf, with `--oracle`; it must run already, and the commands
on PATH must be its own. Both sides are asked by commands, in the environment that each needs.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from spur.up.layout import Layout, Places
from spur.up.tool import down, environment, up
from spur.values.config import ConfigFile
from spur_cli.commands.link import make_names
from spur_cli.conffiles import read_config_files
from tests.benchmarks.figures import progress

__all__ = ["Commands", "add_oracle", "layout_of", "our_cluster", "sides", "their_cluster", "ways"]

DIRECTORY = Path("/tmp")

IN_PYTHON = "-python"
"""Behind the directory of commands: those whose launchers are in Python."""


@dataclass(frozen=True, kw_only=True)
class Commands:
    """How to run the commands of one cluster."""

    name: str
    environment: Mapping[str, str]
    prefix: Sequence[str] = field(default=())
    """Words before each command: how to become the user that asks."""

    def run(self, *words: str) -> str:
        """Run a command and return what it prints. Raises: RuntimeError when it fails."""
        done = subprocess.run(
            [*self.prefix, *words],
            capture_output=True,
            text=True,
            check=False,
            env=self.environment,
            cwd=DIRECTORY,
        )
        if done.returncode:
            raise RuntimeError(f"{self.name}: {' '.join(words)}: {done.stderr or done.returncode}")
        return done.stdout


def add_oracle(parser: argparse.ArgumentParser) -> None:
    """Add the options that name the other cluster."""
    parser.add_argument("--oracle", metavar="SLURM_CONF", help="slurm.conf of a running Slurm")
    parser.add_argument("--oracle-user", default="", help="who asks it (default: who we are)")


@contextlib.contextmanager
def our_cluster(directory: Path, options: argparse.Namespace) -> Iterator[Commands]:
    """Bring up a cluster of ours: of the other one's configuration when there is one."""
    files: tuple[ConfigFile, ...] = read_config_files(options.oracle) if options.oracle else ()
    name = str(directory)
    try:
        up(name, numbers={}, files=files, say=progress)
        found = environment(name)
        make_names(found["PATH"], "spur")
        make_names(f"{found['PATH']}{IN_PYTHON}", native=False)
        path = f"{found['PATH']}:/usr/bin:/bin"
        variables = {**_plain(), "SLURM_CONF": found["SLURM_CONF"], "PATH": path}
        yield Commands(name="spur", environment=variables)
    finally:
        if Places(directory).read() is not None:
            down(name)


def their_cluster(options: argparse.Namespace) -> Commands | None:
    """Return the other cluster; None when none was named."""
    if not options.oracle:
        return None
    user = options.oracle_user
    prefix = ("setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups") if user else ()
    variables = {**_plain(), "SLURM_CONF": options.oracle, "PATH": "/usr/bin:/bin"}
    return Commands(name="slurm", environment=variables, prefix=prefix)


@contextlib.contextmanager
def sides(directory: Path, options: argparse.Namespace) -> Iterator[list[Commands]]:
    """Yield our cluster and, when one was named, the other, in this order."""
    other = their_cluster(options)
    with our_cluster(directory, options) as ours:
        yield [ours] if other is None else [ours, other]


def ways(clusters: Sequence[Commands]) -> list[Commands]:
    """Return each cluster as it is asked: ours is the first, cold, warm, and warm from Python."""
    ours, *others = clusters
    cold = {**ours.environment, "SPUR_WARM": "0"}
    own, _, rest = ours.environment["PATH"].partition(":")
    python = {**ours.environment, "PATH": f"{own}{IN_PYTHON}:{rest}"}
    return [
        replace(ours, name="spur, cold", environment=cold),
        replace(ours, name="spur, warm"),
        replace(ours, name="spur, warm, launchers in Python", environment=python),
        *others,
    ]


def layout_of(directory: Path) -> tuple[Places, Layout]:
    """Return where our cluster lies and what it consists of. Raises: RuntimeError without one."""
    places = Places(directory)
    layout = places.read()
    if layout is None:
        raise RuntimeError(f"no cluster lies in {directory}")
    return places, layout


def _plain() -> dict[str, str]:
    kept = ("HOME", "USER", "LOGNAME", "LANG")
    return {key: os.environ[key] for key in kept if key in os.environ}
