"""The options of scrontab. Source: scrontab(1), OPTIONS."""

from __future__ import annotations

from functools import partial

from spur.slurm.optionrows import Effect, Option, Takes

__all__ = ["ROWS"]

NOTHING, VALUE, MAYBE, MAYBE_NEXT = Takes
HONOURED, ACCEPTED, REFUSED = Effect

_row = partial(Option, "scrontab")

ROWS: tuple[Option, ...] = (
    _row("", "e", NOTHING, "edit"),
    _row("", "l", NOTHING, "list"),
    _row("", "r", NOTHING, "remove"),
    _row("", "u", VALUE, "user"),
    _row("help", "", NOTHING, "help"),
    _row("usage", "", NOTHING, "usage"),
    _row("verbose", "v", NOTHING, "verbose", effect=ACCEPTED, why="there is nothing more to tell"),
    _row("version", "V", NOTHING, "version"),
)
