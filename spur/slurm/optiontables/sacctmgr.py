"""The options of sacctmgr. Source: sacctmgr(1), OPTIONS and ENVIRONMENT VARIABLES."""

from __future__ import annotations

from functools import partial

from spur.slurm.optionrows import Effect, Option, Takes

__all__ = ["ROWS"]

NOTHING, VALUE, MAYBE, MAYBE_NEXT = Takes
HONOURED, ACCEPTED, REFUSED = Effect

_row = partial(Option, "sacctmgr")

ROWS: tuple[Option, ...] = (
    _row("associations", "s", NOTHING, "associations"),
    _row("help", "h", NOTHING, "help"),
    _row("immediate", "i", NOTHING, "immediate"),
    _row(
        "json",
        "",
        MAYBE,
        "json",
        environment=("SLURM_JSON",),
        effect=REFUSED,
        why="it is not printed so far",
    ),
    _row("noheader", "n", NOTHING, "noheader"),
    _row("oneliner", "o", NOTHING, "oneliner", effect=ACCEPTED, why="each entity is one line"),
    _row("parsable", "p", NOTHING, "parsable"),
    _row("parsable2", "P", NOTHING, "parsable2"),
    _row("quiet", "Q", NOTHING, "quiet", effect=ACCEPTED, why="there is nothing less to tell"),
    _row("readonly", "r", NOTHING, "readonly"),
    _row("usage", "", NOTHING, "usage"),
    _row("verbose", "v", NOTHING, "verbose", effect=ACCEPTED, why="there is nothing more to tell"),
    _row("version", "V", NOTHING, "version"),
    _row(
        "yaml",
        "",
        MAYBE,
        "yaml",
        environment=("SLURM_YAML",),
        effect=REFUSED,
        why="it is not printed so far",
    ),
)
