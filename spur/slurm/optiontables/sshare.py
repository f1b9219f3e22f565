"""The options of sshare. Source: sshare(1), OPTIONS and ENVIRONMENT VARIABLES."""

from __future__ import annotations

from functools import partial

from spur.slurm.optionrows import Effect, Option, Takes

__all__ = ["ROWS"]

NOTHING, VALUE, MAYBE, MAYBE_NEXT = Takes
HONOURED, ACCEPTED, REFUSED = Effect

_row = partial(Option, "sshare")

ROWS: tuple[Option, ...] = (
    _row("accounts", "A", VALUE, "accounts"),
    _row("all", "a", NOTHING, "all"),
    _row("clusters", "M", VALUE, "clusters"),
    _row("format", "o", VALUE, "format"),
    _row("help", "", NOTHING, "help"),
    _row("helpformat", "e", NOTHING, "help_format"),
    _row(
        "json",
        "",
        MAYBE,
        "json",
        environment=("SLURM_JSON",),
        effect=REFUSED,
        why="it is not printed so far",
    ),
    _row("long", "l", NOTHING, "long"),
    _row("noheader", "n", NOTHING, "noheader"),
    _row("parsable", "p", NOTHING, "parsable"),
    _row("parsable2", "P", NOTHING, "parsable2"),
    _row("partition", "m", NOTHING, "partition"),
    _row("usage", "", NOTHING, "usage"),
    _row("users", "u", VALUE, "users"),
    _row("Users", "U", NOTHING, "users_only"),
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
