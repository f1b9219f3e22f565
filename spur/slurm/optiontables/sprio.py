"""The options of sprio. Source: sprio(1), OPTIONS and ENVIRONMENT VARIABLES."""

from __future__ import annotations

from functools import partial

from spur.slurm.optionrows import Effect, Option, Takes

__all__ = ["ROWS"]

NOTHING, VALUE, MAYBE, MAYBE_NEXT = Takes
HONOURED, ACCEPTED, REFUSED = Effect

_row = partial(Option, "sprio")

ROWS: tuple[Option, ...] = (
    _row("clusters", "M", VALUE, "clusters", environment=("SLURM_CLUSTERS",), aliases=("cluster",)),
    _row(
        "federation",
        "",
        NOTHING,
        "federation",
        environment=("SPRIO_FEDERATION",),
        effect=ACCEPTED,
        why="there is one cluster",
    ),
    _row("format", "o", VALUE, "format", environment=("SPRIO_FORMAT",)),
    _row("help", "", NOTHING, "help"),
    _row("jobs", "j", MAYBE_NEXT, "jobs"),
    _row(
        "local",
        "",
        NOTHING,
        "local",
        environment=("SPRIO_LOCAL",),
        effect=ACCEPTED,
        why="there is one cluster",
    ),
    _row("long", "l", NOTHING, "long"),
    _row("noheader", "h", NOTHING, "noheader"),
    _row("norm", "n", NOTHING, "norm"),
    _row("partition", "p", VALUE, "partitions"),
    _row(
        "sibling",
        "",
        NOTHING,
        "sibling",
        environment=("SPRIO_SIBLING",),
        effect=ACCEPTED,
        why="there is one cluster",
    ),
    _row("sort", "S", VALUE, "sort"),
    _row("usage", "", NOTHING, "usage"),
    _row("user", "u", VALUE, "users", aliases=("users",)),
    _row("verbose", "v", NOTHING, "verbose", effect=ACCEPTED, why="there is nothing more to tell"),
    _row("version", "V", NOTHING, "version"),
    _row("weights", "w", NOTHING, "weights"),
)
