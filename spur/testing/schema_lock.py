"""Writes the locks of shapes: `python -m spur.testing.schema_lock [--rewrite]`.

New lines are added. A line that changed is refused, since a released shape never changes; while
the files say `era 0`, which no release has written to last, `--rewrite` makes them anew.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import spur
from spur.events.declare import EVENTS
from spur.events.lock import breaches, event_lines
from spur.events.upcasts import UPCASTS
from spur.projections.state import State
from spur.projections.tables import table_lines

__all__ = ["LOCKS", "main", "read_lock"]

ERA = "era 0"

LOCKS: dict[str, Callable[[], list[str]]] = {
    "events/schema.lock": lambda: event_lines(EVENTS, UPCASTS),
    "projections/tables.lock": lambda: table_lines(State().tables()),
}
"""Each lock by its path in the package, and what yields its present lines."""


def read_lock(path: Path) -> tuple[str, list[str]]:
    """Return the era and the lines of a lock; a missing file is an empty one of the present era."""
    if not path.exists():
        return ERA, []
    era, *lines = path.read_text(encoding="ascii").splitlines()
    return era, lines


def main(arguments: Sequence[str] | None = None, *, root: Path | None = None) -> int:
    """Bring every lock up to date; return the exit status: 1 when a locked line has changed."""
    parser = argparse.ArgumentParser(prog="ops/schema-lock", description=__doc__)
    parser.add_argument("--rewrite", action="store_true", help="make a lock of era 0 anew")
    options = parser.parse_args(arguments)
    package = root or Path(spur.__file__).parent
    status = 0
    for name, lines_now in LOCKS.items():
        path = package / name
        era, locked = read_lock(path)
        present = lines_now()
        changed = [text for text in breaches(locked, present) if "ops/schema-lock" not in text]
        if changed and not (options.rewrite and era == ERA):
            sys.stderr.write("".join(f"{name}: {text}\n" for text in changed))
            status = 1
            continue
        path.write_text("\n".join([era, *present]) + "\n", encoding="ascii")
        sys.stdout.write(f"schema-lock: {name} has {len(present)} lines\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
