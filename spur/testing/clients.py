"""Tools of others, as they come from the package index, at work on a cluster of Spur.

    seen = run_driver(cluster, Path(".venv-clients/parsl"), Path("parsl_driver.py"), directory)

Each is in a virtual environment of its own, made by `ops/test-clients` from the client's lock. What
it does there is a driver: a program in the client's own words that prints what it saw as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spur.testing.machine import MachineCluster

__all__ = ["PATIENCE_S", "Client", "run_driver"]

PATIENCE_S = 300
"""How long a client may take: several poll but four times a minute."""

Client = Callable[[str], dict[str, Any]]  # what a driver prints is its own
"""Runs the driver of a client, which it is given by name; returns what it printed last."""


def run_driver(
    cluster: MachineCluster, environment: Path, driver: Path, directory: Path
) -> dict[str, Any]:
    """Run a driver in an environment and a directory; return what it printed last.

    Raises: AssertionError with all that it complained of when it did not end well.
    """
    commands = environment / "bin"
    log = directory / "driver.log"
    script = (
        f"export PATH={commands}:$PATH\n"
        f"timeout {PATIENCE_S} {commands}/python {driver} 2>{log} || echo '{{\"status\": '$?'}}'"
    )
    said = cluster.shell(script, cwd=directory).splitlines()
    seen: dict[str, Any] = json.loads(said[-1])
    if "status" in seen:
        raise AssertionError(log.read_text(encoding="utf-8", errors="replace"))
    return seen
