"""The options of scontrol. Source: scontrol(1), OPTIONS and ENVIRONMENT VARIABLES."""

from __future__ import annotations

from functools import partial

from spur.slurm.optionrows import Effect, Option, Takes

__all__ = ["ROWS"]

NOTHING, VALUE, MAYBE, MAYBE_NEXT = Takes
HONOURED, ACCEPTED, REFUSED = Effect

_row = partial(Option, "scontrol")

ROWS: tuple[Option, ...] = (
    _row("all", "a", NOTHING, "all", environment=("SCONTROL_ALL",)),
    _row(
        "clusters",
        "M",
        VALUE,
        "clusters",
        environment=("SLURM_CLUSTERS",),
        effect=REFUSED,
        why="there is one cluster",
    ),
    _row("details", "d", NOTHING, "details"),
    _row(
        "federation",
        "",
        NOTHING,
        "federation",
        environment=("SCONTROL_FEDERATION",),
        effect=ACCEPTED,
        why="there is one cluster",
    ),
    _row(
        "future",
        "F",
        NOTHING,
        "future",
        environment=("SCONTROL_FUTURE",),
    ),
    _row("help", "h", NOTHING, "help"),
    _row("hide", "", NOTHING, "hide", effect=ACCEPTED, why="nothing is hidden"),
    _row("json", "", MAYBE, "json", environment=("SLURM_JSON",)),
    _row(
        "local",
        "",
        NOTHING,
        "local",
        environment=("SCONTROL_LOCAL",),
        effect=ACCEPTED,
        why="there is one cluster",
    ),
    _row("oneliner", "o", NOTHING, "oneliner"),
    _row("quiet", "Q", NOTHING, "quiet"),
    _row(
        "sibling",
        "",
        NOTHING,
        "sibling",
        environment=("SCONTROL_SIBLING",),
        effect=ACCEPTED,
        why="there is one cluster",
    ),
    _row("uid", "u", VALUE, "uid", effect=REFUSED, why="rights come from the connection"),
    _row("verbose", "v", NOTHING, "verbose", effect=ACCEPTED, why="there is nothing more to tell"),
    _row("version", "V", NOTHING, "version"),
    _row("yaml", "", MAYBE, "yaml", environment=("SLURM_YAML",)),
)
