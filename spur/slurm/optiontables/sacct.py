"""The options of sacct. Source: sacct(1), OPTIONS and ENVIRONMENT VARIABLES."""

from __future__ import annotations

from functools import partial

from spur.slurm.optionrows import Effect, Option, Takes

__all__ = ["ROWS"]

NOTHING, VALUE, MAYBE, MAYBE_NEXT = Takes
HONOURED, ACCEPTED, REFUSED = Effect

_row = partial(Option, "sacct")

ROWS: tuple[Option, ...] = (
    _row("accounts", "A", VALUE, "accounts", aliases=("account",), gathers=True),
    _row("allclusters", "L", NOTHING, "all_clusters"),
    _row("allocations", "X", NOTHING, "allocations"),
    _row("allusers", "a", NOTHING, "all_users"),
    _row("array", "", NOTHING, "array", effect=ACCEPTED, why="tasks that wait are one line"),
    _row(
        "associations",
        "x",
        VALUE,
        "associations",
        effect=ACCEPTED,
        why="records are not chosen by association",
    ),
    _row("batch-script", "B", NOTHING, "batch_script"),
    _row("brief", "b", NOTHING, "brief"),
    _row("clusters", "M", VALUE, "clusters", environment=("SLURM_CLUSTERS",)),
    _row("completion", "c", NOTHING, "completion"),
    _row("constraints", "C", VALUE, "constraints"),
    _row("delimiter", "", VALUE, "delimiter"),
    _row("duplicates", "D", NOTHING, "duplicates"),
    _row("endtime", "E", VALUE, "end"),
    _row(
        "env-vars",
        "",
        NOTHING,
        "env_vars",
        effect=REFUSED,
        why="the environment of a job is not shown",
    ),
    _row(
        "expand-patterns",
        "",
        NOTHING,
        "expand_patterns",
        effect=ACCEPTED,
        why="patterns are shown expanded",
    ),
    _row(
        "federation",
        "",
        NOTHING,
        "federation",
        environment=("SACCT_FEDERATION",),
        effect=ACCEPTED,
        why="there is one cluster",
    ),
    _row("file", "f", VALUE, "file", effect=ACCEPTED, why="records come from the controllers"),
    _row("flags", "F", VALUE, "flags"),
    _row("format", "o", VALUE, "format", environment=("SACCT_FORMAT",), gathers=True),
    _row("group", "g", VALUE, "groups", aliases=("gid",), gathers=True),
    _row("help", "h", NOTHING, "help"),
    _row("helpformat", "e", NOTHING, "help_format"),
    _row("jobs", "j", VALUE, "jobs", gathers=True),
    _row("json", "", MAYBE, "json", environment=("SLURM_JSON",)),
    _row(
        "local",
        "",
        NOTHING,
        "local",
        environment=("SACCT_LOCAL",),
        effect=ACCEPTED,
        why="there is one cluster",
    ),
    _row("long", "l", NOTHING, "long"),
    _row("name", "", VALUE, "names", gathers=True),
    _row("ncpus", "I", VALUE, "cpus"),
    _row("nnodes", "i", VALUE, "node_count"),
    _row("noconvert", "", NOTHING, "noconvert"),
    _row("nodelist", "N", VALUE, "nodes"),
    _row("noheader", "n", NOTHING, "noheader"),
    _row("parsable", "p", NOTHING, "parsable"),
    _row("parsable2", "P", NOTHING, "parsable2"),
    _row("partition", "r", VALUE, "partitions", gathers=True),
    _row("qos", "q", VALUE, "qos", gathers=True),
    _row("reason", "R", VALUE, "reasons"),
    _row("starttime", "S", VALUE, "start"),
    _row("state", "s", VALUE, "states", gathers=True),
    _row("timelimit-max", "K", VALUE, "limit_max"),
    _row("timelimit-min", "k", VALUE, "limit_min"),
    _row("truncate", "T", NOTHING, "truncate"),
    _row("units", "", VALUE, "units"),
    _row("usage", "", NOTHING, "usage"),
    _row(
        "use-local-uid", "", NOTHING, "use_local_uid", effect=ACCEPTED, why="there is one cluster"
    ),
    _row("user", "u", VALUE, "users", aliases=("uid",), gathers=True),
    _row("verbose", "v", NOTHING, "verbose", effect=ACCEPTED, why="there is nothing more to tell"),
    _row("version", "V", NOTHING, "version"),
    _row("wckeys", "W", VALUE, "wckeys"),
    _row("whole-hetjob", "", MAYBE, "whole_hetjob"),
    _row("yaml", "", MAYBE, "yaml", environment=("SLURM_YAML",)),
)
