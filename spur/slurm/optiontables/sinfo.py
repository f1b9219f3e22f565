"""The options of sinfo. Source: sinfo(1), OPTIONS and ENVIRONMENT VARIABLES."""

from __future__ import annotations

from functools import partial

from spur.slurm.optionrows import Effect, Option, Takes

__all__ = ["ROWS"]

NOTHING, VALUE, MAYBE, MAYBE_NEXT = Takes
HONOURED, ACCEPTED, REFUSED = Effect

_row = partial(Option, "sinfo")

ROWS: tuple[Option, ...] = (
    _row("all", "a", NOTHING, "all", environment=("SINFO_ALL",)),
    _row(
        "clusters",
        "M",
        VALUE,
        "clusters",
        environment=("SLURM_CLUSTERS",),
    ),
    _row("dead", "d", NOTHING, "dead"),
    _row(
        "exact",
        "e",
        NOTHING,
        "exact",
        effect=ACCEPTED,
        why="nodes are told apart by what the format shows",
    ),
    _row(
        "federation",
        "",
        NOTHING,
        "federation",
        environment=("SINFO_FEDERATION",),
        effect=ACCEPTED,
        why="there is one cluster",
    ),
    _row(
        "future",
        "F",
        NOTHING,
        "future",
        environment=("SCONTROL_FUTURE",),
        effect=ACCEPTED,
        why="there are no nodes to come",
    ),
    _row("format", "o", VALUE, "format", environment=("SINFO_FORMAT",)),
    _row("Format", "O", VALUE, "long_format"),
    _row("help", "", NOTHING, "help"),
    _row("hide", "", NOTHING, "hide", effect=ACCEPTED, why="nothing is hidden"),
    _row("iterate", "i", VALUE, "iterate", effect=REFUSED, why="it is shown once"),
    _row("json", "", MAYBE, "json", environment=("SLURM_JSON",)),
    _row("list-reasons", "R", NOTHING, "list_reasons"),
    _row(
        "local",
        "",
        NOTHING,
        "local",
        environment=("SINFO_LOCAL",),
        effect=ACCEPTED,
        why="there is one cluster",
    ),
    _row("long", "l", NOTHING, "long"),
    _row("noconvert", "", NOTHING, "noconvert", effect=ACCEPTED, why="sizes are shown as they are"),
    _row("Node", "N", NOTHING, "by_node"),
    _row("nodes", "n", VALUE, "nodes"),
    _row("noheader", "h", NOTHING, "noheader"),
    _row("partition", "p", VALUE, "partitions", environment=("SINFO_PARTITION",)),
    _row(
        "reservation", "T", NOTHING, "reservation", effect=REFUSED, why="there are no reservations"
    ),
    _row("responding", "r", NOTHING, "responding"),
    _row("sort", "S", VALUE, "sort", environment=("SINFO_SORT",)),
    _row("states", "t", VALUE, "states"),
    _row("summarize", "s", NOTHING, "summarize"),
    _row("usage", "", NOTHING, "usage"),
    _row("verbose", "v", NOTHING, "verbose", effect=ACCEPTED, why="there is nothing more to tell"),
    _row("version", "V", NOTHING, "version"),
    _row("yaml", "", MAYBE, "yaml", environment=("SLURM_YAML",)),
)
