"""The options of strigger. Source: strigger(1), OPTIONS and ENVIRONMENT VARIABLES."""

from __future__ import annotations

from functools import partial

from spur.slurm.optionrows import Effect, Option, Takes

__all__ = ["ROWS"]

NOTHING, VALUE, MAYBE, MAYBE_NEXT = Takes
HONOURED, ACCEPTED, REFUSED = Effect

_row = partial(Option, "strigger")

ROWS: tuple[Option, ...] = (
    _row("backup_slurmctld_assumed_control", "C", NOTHING, "backup_slurmctld_assumed_control"),
    _row("backup_slurmctld_failure", "B", NOTHING, "backup_slurmctld_failure"),
    _row("backup_slurmctld_resumed_operation", "c", NOTHING, "backup_slurmctld_resumed_operation"),
    _row(
        "burst_buffer",
        "",
        NOTHING,
        "burst_buffer",
        effect=ACCEPTED,
        why="there are no burst buffers",
    ),
    _row("clear", "", NOTHING, "clear"),
    _row(
        "clusters",
        "M",
        VALUE,
        "clusters",
        environment=("SLURM_CLUSTERS",),
        effect=REFUSED,
        why="there is one cluster",
        aliases=("cluster",),
    ),
    _row("down", "d", NOTHING, "down"),
    _row("drained", "D", NOTHING, "drained"),
    _row("draining", "", NOTHING, "draining"),
    _row("fail", "F", NOTHING, "fail"),
    _row("fini", "f", NOTHING, "fini"),
    _row("flags", "", VALUE, "flags"),
    _row("get", "", NOTHING, "get"),
    _row("help", "", NOTHING, "help"),
    _row("id", "i", VALUE, "id"),
    _row("idle", "I", NOTHING, "idle"),
    _row("jobid", "j", VALUE, "job_id"),
    _row("node", "n", MAYBE, "node"),
    _row("noheader", "N", NOTHING, "noheader"),
    _row("offset", "o", VALUE, "offset"),
    _row(
        "primary_database_failure",
        "h",
        NOTHING,
        "primary_database_failure",
        effect=ACCEPTED,
        why="there is no database beside the log",
    ),
    _row(
        "primary_database_resumed_operation",
        "H",
        NOTHING,
        "primary_database_resumed_operation",
        effect=ACCEPTED,
        why="there is no database beside the log",
    ),
    _row(
        "primary_slurmdbd_failure",
        "g",
        NOTHING,
        "primary_slurmdbd_failure",
        effect=ACCEPTED,
        why="there is no database beside the log",
    ),
    _row(
        "primary_slurmdbd_resumed_operation",
        "G",
        NOTHING,
        "primary_slurmdbd_resumed_operation",
        effect=ACCEPTED,
        why="there is no database beside the log",
    ),
    _row(
        "primary_slurmctld_acct_buffer_full",
        "e",
        NOTHING,
        "primary_slurmctld_acct_buffer_full",
        effect=ACCEPTED,
        why="there is no database beside the log",
    ),
    _row("primary_slurmctld_failure", "a", NOTHING, "primary_slurmctld_failure"),
    _row("primary_slurmctld_resumed_control", "b", NOTHING, "primary_slurmctld_resumed_control"),
    _row(
        "primary_slurmctld_resumed_operation", "A", NOTHING, "primary_slurmctld_resumed_operation"
    ),
    _row("program", "p", VALUE, "program"),
    _row("quiet", "Q", NOTHING, "quiet"),
    _row("reconfig", "r", NOTHING, "reconfig"),
    _row("resume", "R", NOTHING, "resume"),
    _row("set", "", NOTHING, "set"),
    _row("time", "t", NOTHING, "time"),
    _row("up", "u", NOTHING, "up"),
    _row("usage", "", NOTHING, "usage"),
    _row("user", "", VALUE, "user"),
    _row("verbose", "v", NOTHING, "verbose", effect=ACCEPTED, why="there is nothing more to tell"),
    _row("version", "V", NOTHING, "version"),
)
