"""The options of sdiag. Source: sdiag(1), OPTIONS and ENVIRONMENT VARIABLES."""

from __future__ import annotations

from functools import partial

from spur.slurm.optionrows import Effect, Option, Takes

__all__ = ["ROWS"]

NOTHING, VALUE, MAYBE, MAYBE_NEXT = Takes
HONOURED, ACCEPTED, REFUSED = Effect

_row = partial(Option, "sdiag")

ROWS: tuple[Option, ...] = (
    _row("all", "a", NOTHING, "all"),
    _row("cluster", "M", VALUE, "clusters", environment=("SLURM_CLUSTERS",), aliases=("clusters",)),
    _row("help", "h", NOTHING, "help"),
    _row("json", "", MAYBE, "json", environment=("SLURM_JSON",)),
    _row("no-trunc", "", NOTHING, "no_trunc"),
    _row("reset", "r", NOTHING, "reset"),
    _row("sort-by-id", "i", NOTHING, "sort_by_id"),
    _row("sort-by-time", "t", NOTHING, "sort_by_time"),
    _row("sort-by-time2", "T", NOTHING, "sort_by_time2"),
    _row("usage", "", NOTHING, "usage"),
    _row("version", "V", NOTHING, "version"),
    _row("yaml", "", MAYBE, "yaml", environment=("SLURM_YAML",)),
)
