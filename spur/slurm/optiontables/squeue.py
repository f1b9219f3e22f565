"""The options of squeue. Source: squeue(1), OPTIONS and ENVIRONMENT VARIABLES."""

from __future__ import annotations

from functools import partial

from spur.slurm.optionrows import Effect, Option, Takes

__all__ = ["ROWS"]

NOTHING, VALUE, MAYBE, MAYBE_NEXT = Takes
HONOURED, ACCEPTED, REFUSED = Effect

_row = partial(Option, "squeue")

ROWS: tuple[Option, ...] = (
    _row("account", "A", VALUE, "accounts", environment=("SQUEUE_ACCOUNT",), aliases=("accounts",)),
    _row(
        "all",
        "a",
        NOTHING,
        "all",
        environment=("SQUEUE_ALL",),
        effect=ACCEPTED,
        why="nothing is hidden",
    ),
    _row("array", "r", NOTHING, "array", environment=("SQUEUE_ARRAY",)),
    _row("clusters", "M", VALUE, "clusters", environment=("SLURM_CLUSTERS",)),
    _row(
        "expand-patterns",
        "",
        NOTHING,
        "expand_patterns",
        effect=REFUSED,
        why="patterns are shown expanded",
    ),
    _row(
        "federation",
        "",
        NOTHING,
        "federation",
        environment=("SQUEUE_FEDERATION",),
        effect=ACCEPTED,
        why="there is one cluster",
    ),
    _row("format", "o", VALUE, "format", environment=("SQUEUE_FORMAT",)),
    _row("Format", "O", VALUE, "long_format", environment=("SQUEUE_FORMAT2",)),
    _row("help", "", NOTHING, "help"),
    _row("hide", "", NOTHING, "hide", effect=ACCEPTED, why="nothing is hidden"),
    _row("iterate", "i", VALUE, "iterate"),
    _row("jobs", "j", MAYBE_NEXT, "jobs", aliases=("job",)),
    _row("json", "", MAYBE, "json", environment=("SLURM_JSON",)),
    _row("licenses", "L", VALUE, "licenses", environment=("SQUEUE_LICENSES",)),
    _row(
        "local",
        "",
        NOTHING,
        "local",
        environment=("SQUEUE_LOCAL",),
        effect=ACCEPTED,
        why="there is one cluster",
    ),
    _row("long", "l", NOTHING, "long"),
    _row("me", "", NOTHING, "me"),
    _row("name", "n", VALUE, "names", environment=("SQUEUE_NAMES",)),
    _row("noconvert", "", NOTHING, "noconvert"),
    _row("nodelist", "w", VALUE, "nodes"),
    _row("noheader", "h", NOTHING, "noheader"),
    _row("notme", "", NOTHING, "notme"),
    _row("only-job-state", "", NOTHING, "only_job_state"),
    _row(
        "partition",
        "p",
        VALUE,
        "partitions",
        environment=("SQUEUE_PARTITION",),
        aliases=("partitions",),
    ),
    _row(
        "priority",
        "P",
        NOTHING,
        "priority",
        environment=("SQUEUE_PRIORITY",),
        effect=ACCEPTED,
        why="a job of several partitions is one line",
    ),
    _row("qos", "q", VALUE, "qos", environment=("SQUEUE_QOS",)),
    _row("reservation", "R", VALUE, "reservation"),
    _row("running-over", "", VALUE, "running_over"),
    _row("running-under", "", VALUE, "running_under"),
    _row(
        "sibling",
        "",
        NOTHING,
        "sibling",
        environment=("SQUEUE_SIBLING",),
        effect=ACCEPTED,
        why="there is one cluster",
    ),
    _row("sort", "S", VALUE, "sort", environment=("SQUEUE_SORT",)),
    _row("start", "", NOTHING, "start"),
    _row("states", "t", VALUE, "states", environment=("SQUEUE_STATES",), aliases=("state",)),
    _row("steps", "s", MAYBE_NEXT, "steps", aliases=("step",)),
    _row("usage", "", NOTHING, "usage"),
    _row("user", "u", VALUE, "users", environment=("SQUEUE_USERS",), aliases=("users",)),
    _row("verbose", "v", NOTHING, "verbose", effect=ACCEPTED, why="there is nothing more to tell"),
    _row("version", "V", NOTHING, "version"),
    _row("yaml", "", MAYBE, "yaml", environment=("SLURM_YAML",)),
)
