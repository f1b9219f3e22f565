"""The options of sbcast. Source: sbcast(1), OPTIONS and ENVIRONMENT VARIABLES."""

from __future__ import annotations

from functools import partial

from spur.slurm.optionrows import Effect, Option, Takes

__all__ = ["ROWS"]

NOTHING, VALUE, MAYBE, MAYBE_NEXT = Takes
HONOURED, ACCEPTED, REFUSED = Effect

_row = partial(Option, "sbcast")

ROWS: tuple[Option, ...] = (
    _row(
        "compress",
        "C",
        MAYBE,
        "compress",
        environment=("SBCAST_COMPRESS",),
    ),
    _row(
        "exclude",
        "",
        VALUE,
        "exclude",
        environment=("SBCAST_EXCLUDE",),
        effect=ACCEPTED,
        why="no libraries are sent",
    ),
    _row("force", "f", NOTHING, "force", environment=("SBCAST_FORCE",)),
    _row("help", "", NOTHING, "help"),
    _row("jobid", "j", VALUE, "job_id"),
    _row(
        "no-allocation",
        "Z",
        NOTHING,
        "no_allocation",
        effect=REFUSED,
        why="nothing is written outside an allocation",
    ),
    _row(
        "nodelist", "w", VALUE, "nodes", effect=REFUSED, why="a file goes to all nodes of the job"
    ),
    _row("preserve", "p", NOTHING, "preserve", environment=("SBCAST_PRESERVE",)),
    _row(
        "send-libs",
        "",
        MAYBE,
        "send_libs",
        environment=("SBCAST_SEND_LIBS",),
        effect=ACCEPTED,
        why="no libraries are sent",
    ),
    _row("size", "s", VALUE, "size", environment=("SBCAST_SIZE",)),
    _row("timeout", "t", VALUE, "timeout", environment=("SBCAST_TIMEOUT",)),
    _row(
        "treewidth",
        "F",
        VALUE,
        "treewidth",
        environment=("SBCAST_FANOUT",),
        effect=ACCEPTED,
        why="a file is sent to each node apart",
        aliases=("fanout",),
    ),
    _row("usage", "", NOTHING, "usage"),
    _row("verbose", "v", NOTHING, "verbose", effect=ACCEPTED, why="there is nothing more to tell"),
    _row("version", "V", NOTHING, "version"),
)
