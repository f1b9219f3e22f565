"""The options of sattach. Source: sattach(1), OPTIONS."""

from __future__ import annotations

from functools import partial

from spur.slurm.optionrows import Effect, Option, Takes

__all__ = ["ROWS"]

NOTHING, VALUE, MAYBE, MAYBE_NEXT = Takes
HONOURED, ACCEPTED, REFUSED = Effect

_row = partial(Option, "sattach")

ROWS: tuple[Option, ...] = (
    _row("error-filter", "", VALUE, "error_filter"),
    _row("help", "h", NOTHING, "help"),
    _row("input-filter", "", VALUE, "input_filter"),
    _row("label", "l", NOTHING, "label"),
    _row("layout", "", NOTHING, "layout"),
    _row("output-filter", "", VALUE, "output_filter"),
    _row("pty", "", NOTHING, "pty", effect=REFUSED, why="tasks have no terminal"),
    _row("quiet", "Q", NOTHING, "quiet"),
    _row("usage", "u", NOTHING, "usage"),
    _row("verbose", "v", NOTHING, "verbose", effect=ACCEPTED, why="there is nothing more to tell"),
    _row("version", "V", NOTHING, "version"),
)
