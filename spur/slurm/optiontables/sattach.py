"""The options of sattach. Source: sattach(1), OPTIONS."""

from __future__ import annotations

from functools import partial

from spur.slurm import optionvalues as at
from spur.slurm.optionrows import Effect, Option, Takes

__all__ = ["ROWS"]

NOTHING, VALUE, MAYBE, MAYBE_NEXT = Takes
HONOURED, ACCEPTED, REFUSED = Effect


def _task(value: str, option: str) -> int:
    """Return the number of a task."""
    if not value.isascii() or not value.isdigit():
        raise at.BadOption(f'Invalid numeric value "{value}" for {option}.', 1)
    return int(value)


_row = partial(Option, "sattach")

ROWS: tuple[Option, ...] = (
    _row("error-filter", "", VALUE, "error_filter", _task),
    _row("help", "h", NOTHING, "help"),
    _row("input-filter", "", VALUE, "input_filter", _task),
    _row("label", "l", NOTHING, "label"),
    _row("layout", "", NOTHING, "layout"),
    _row("output-filter", "", VALUE, "output_filter", _task),
    _row("pty", "", NOTHING, "pty", effect=REFUSED, why="tasks have no terminal"),
    _row("quiet", "Q", NOTHING, "quiet"),
    _row("usage", "u", NOTHING, "usage"),
    _row("verbose", "v", NOTHING, "verbose", effect=ACCEPTED, why="there is nothing more to tell"),
    _row("version", "V", NOTHING, "version"),
)
