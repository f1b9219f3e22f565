"""The options of scancel. Source: scancel(1), OPTIONS and ENVIRONMENT VARIABLES."""

from __future__ import annotations

from functools import partial

from spur.slurm.optionrows import Effect, Option, Takes

__all__ = ["ROWS"]

NOTHING, VALUE, MAYBE, MAYBE_NEXT = Takes
HONOURED, ACCEPTED, REFUSED = Effect

_row = partial(Option, "scancel")

ROWS: tuple[Option, ...] = (
    _row("account", "A", VALUE, "accounts", environment=("SCANCEL_ACCOUNT",)),
    _row(
        "admin-comment",
        "",
        VALUE,
        "admin_comment",
        effect=REFUSED,
        why="it is kept with nothing that reads it",
    ),
    _row("batch", "b", NOTHING, "batch", environment=("SCANCEL_BATCH",)),
    _row(
        "clusters",
        "M",
        VALUE,
        "clusters",
        environment=("SLURM_CLUSTERS",),
        effect=REFUSED,
        why="there is one cluster",
    ),
    _row(
        "ctld",
        "",
        NOTHING,
        "ctld",
        environment=("SCANCEL_CTLD",),
        effect=ACCEPTED,
        why="every signal goes through the controllers",
    ),
    _row(
        "cron",
        "c",
        NOTHING,
        "cron",
        environment=("SCANCEL_CRON",),
        effect=ACCEPTED,
        why="there are no recurring jobs",
    ),
    _row("full", "f", NOTHING, "full", environment=("SCANCEL_FULL",)),
    _row("help", "", NOTHING, "help"),
    _row(
        "hurry",
        "H",
        NOTHING,
        "hurry",
        environment=("SCANCEL_HURRY",),
        effect=ACCEPTED,
        why="there is nothing to stage out",
    ),
    _row(
        "interactive",
        "i",
        NOTHING,
        "interactive",
        environment=("SCANCEL_INTERACTIVE",),
        effect=REFUSED,
        why="nothing is asked back",
    ),
    _row("jobname", "n", VALUE, "names", environment=("SCANCEL_NAME",), aliases=("name",)),
    _row("me", "", NOTHING, "me"),
    _row("nodelist", "w", VALUE, "nodes"),
    _row("partition", "p", VALUE, "partitions", environment=("SCANCEL_PARTITION",)),
    _row("qos", "q", VALUE, "qos", environment=("SCANCEL_QOS",)),
    _row("quiet", "Q", NOTHING, "quiet"),
    _row("reservation", "R", VALUE, "reservation"),
    _row("sibling", "", VALUE, "sibling", effect=REFUSED, why="there is one cluster"),
    _row("signal", "s", VALUE, "signal"),
    _row("state", "t", VALUE, "states", environment=("SCANCEL_STATE",)),
    _row("usage", "", NOTHING, "usage"),
    _row("user", "u", VALUE, "users", environment=("SCANCEL_USER",)),
    _row("verbose", "v", NOTHING, "verbose", environment=("SCANCEL_VERBOSE",)),
    _row("version", "V", NOTHING, "version"),
    _row(
        "wckey",
        "",
        VALUE,
        "wckey",
        environment=("SCANCEL_WCKEY",),
        effect=REFUSED,
        why="workload keys are not kept",
    ),
)
