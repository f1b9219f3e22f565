"""Runs the parts of the demonstration in fresh directories: `python -m spur.testing.demo DIR`."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from spur.testing.demo.failover import show_failover
from spur.testing.demo.jobs import show_jobs
from spur.testing.demo.narrator import Narrator
from spur.values.errors import SpurError

__all__ = ["main"]

PARTS: dict[str, Callable[[Path, Narrator], None]] = {"jobs": show_jobs, "failover": show_failover}


def main(arguments: Sequence[str]) -> int:
    """Show the parts that are named, or all; the exit status is 1 when a step went wrong."""
    directory = Path(arguments[0]).resolve()
    wanted = arguments[1:] or list(PARTS)
    unknown = [name for name in wanted if name not in PARTS]
    if unknown:
        sys.stderr.write(f"demo: no part {', '.join(unknown)}; it has {', '.join(PARTS)}\n")
        return 2
    narrator = Narrator()
    began = time.monotonic()
    for name in wanted:
        place = directory / name
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        try:
            PARTS[name](place, narrator)
        except SpurError as fault:
            narrator.stopped(str(fault))
            return 1
    narrator.say(
        f"\nThat was it, in {time.monotonic() - began:.0f} s. All of it is in {directory}."
    )
    narrator.say("Where to go on: README.md, ARCHITECTURE.md, docs/log-contract.md")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
