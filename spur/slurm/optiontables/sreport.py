"""The options of sreport. Source: sreport(1), OPTIONS and ENVIRONMENT VARIABLES."""

from __future__ import annotations

from functools import partial

from spur.slurm.optionrows import Effect, Option, Takes

__all__ = ["ROWS"]

NOTHING, VALUE, MAYBE, MAYBE_NEXT = Takes
HONOURED, ACCEPTED, REFUSED = Effect

_row = partial(Option, "sreport")

ROWS: tuple[Option, ...] = (
    _row("all_clusters", "a", NOTHING, "all_clusters", effect=ACCEPTED, why="there is one cluster"),
    _row(
        "cluster",
        "M",
        VALUE,
        "clusters",
        environment=("SREPORT_CLUSTER",),
        effect=ACCEPTED,
        why="there is one cluster",
    ),
    _row(
        "federation",
        "",
        NOTHING,
        "federation",
        environment=("SREPORT_FEDERATION",),
        effect=ACCEPTED,
        why="there is one cluster",
    ),
    _row("help", "h", NOTHING, "help"),
    _row(
        "local",
        "",
        NOTHING,
        "local",
        environment=("SREPORT_LOCAL",),
        effect=ACCEPTED,
        why="there is one cluster",
    ),
    _row("noheader", "n", NOTHING, "noheader"),
    _row("parsable", "p", NOTHING, "parsable"),
    _row("parsable2", "P", NOTHING, "parsable2"),
    _row("quiet", "Q", NOTHING, "quiet", effect=ACCEPTED, why="there is nothing less to tell"),
    _row("", "t", VALUE, "time"),
    _row(
        "tres",
        "T",
        VALUE,
        "tres",
        environment=("SREPORT_TRES",),
        effect=ACCEPTED,
        why="CPUs alone are reported",
    ),
    _row("usage", "", NOTHING, "usage"),
    _row("verbose", "v", NOTHING, "verbose", effect=ACCEPTED, why="there is nothing more to tell"),
    _row("version", "V", NOTHING, "version"),
)
