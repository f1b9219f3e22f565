"""The options of sstat. Source: sstat(1), OPTIONS."""

from __future__ import annotations

from functools import partial

from spur.slurm.optionrows import Effect, Option, Takes

__all__ = ["ROWS"]

NOTHING, VALUE, MAYBE, MAYBE_NEXT = Takes
HONOURED, ACCEPTED, REFUSED = Effect

_row = partial(Option, "sstat")

ROWS: tuple[Option, ...] = (
    _row("allsteps", "a", NOTHING, "allsteps"),
    _row("format", "o", VALUE, "format", aliases=("fields",)),
    _row("help", "h", NOTHING, "help"),
    _row("helpformat", "e", NOTHING, "help_format"),
    _row("jobs", "j", VALUE, "jobs"),
    _row("noconvert", "", NOTHING, "noconvert"),
    _row("noheader", "n", NOTHING, "noheader"),
    _row("parsable", "p", NOTHING, "parsable"),
    _row("parsable2", "P", NOTHING, "parsable2"),
    _row("pidformat", "i", NOTHING, "pidformat"),
    _row("usage", "", NOTHING, "usage"),
    _row("verbose", "v", NOTHING, "verbose", effect=ACCEPTED, why="there is nothing more to tell"),
    _row("version", "V", NOTHING, "version"),
)
