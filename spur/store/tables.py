"""The tables of the read model, declared once; migrations are checked against this page.

Columns that are named like a field of a job's spec, or of a share of a node, hold that field: see
`structs.py`.

Times are nanoseconds since 1970 (UTC), as in the log. A mask of devices is eight big-endian bytes:
SQL has no unsigned integer of 64 bits. Text that users may have erased is never here
(LOG-CONTRACT 2.4).
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
)

__all__ = [
    "METADATA",
    "MODEL_VERSION",
    "NEVER_NS",
    "REVISION",
    "cursor",
    "group_reasons",
    "job_events",
    "jobs",
    "run_nodes",
    "runs",
    "step_nodes",
    "steps",
]

NEVER_NS = 2**63 - 1
"""The end of what has not ended."""

REVISION = "0002"
"""The migration that leads to these tables: a model that is there already needs no other."""

MODEL_VERSION = 2
"""Raised whenever the same events make other rows: a model of another number is made anew."""


METADATA = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(referred_table_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)

cursor = Table(
    "cursor",
    METADATA,
    Column("id", Integer, nullable=False, autoincrement=False),
    Column("incarnation", BigInteger, nullable=False),
    Column("log_index", BigInteger, nullable=False),
    Column("chain", LargeBinary(32), nullable=False),
    Column("time_ns", BigInteger, nullable=False),
    Column("model_version", Integer, nullable=False),
    PrimaryKeyConstraint("id"),
    CheckConstraint("id = 1", name="one_row"),
)
"""The last entry whose rows are here: a single row, changed in the transaction of those rows.
`chain` is the log's chain value there, by which another history is known."""

jobs = Table(
    "jobs",
    METADATA,
    Column("job_id", BigInteger, nullable=False, autoincrement=False),
    Column("array_job_id", BigInteger, nullable=False),
    Column("array_tasks", Text, nullable=False),
    Column("array_throttle", Integer, nullable=False),
    Column("het_job_id", BigInteger, nullable=False),
    Column("het_offset", Integer, nullable=False),
    Column("uid", BigInteger, nullable=False),
    Column("gid", BigInteger, nullable=False),
    Column("name", Text, nullable=False),
    Column("partitions", Text, nullable=False),
    Column("account", Text, nullable=False),
    Column("qos", Text, nullable=False),
    Column("run", Integer, nullable=False),
    Column("hold", Integer, nullable=False),
    Column("priority", BigInteger, nullable=True),
    Column("nice", BigInteger, nullable=False),
    Column("requeue", Boolean, nullable=False),
    Column("batch", Boolean, nullable=False),
    Column("time_limit_s", BigInteger, nullable=True),
    Column("begin_ns", BigInteger, nullable=False),
    Column("nodes_min", Integer, nullable=False),
    Column("nodes_max", Integer, nullable=False),
    Column("tasks", Integer, nullable=False),
    Column("tasks_per_node", Integer, nullable=False),
    Column("cpus_per_task", Integer, nullable=False),
    Column("memory_mib", BigInteger, nullable=False),
    Column("memory_per", Integer, nullable=False),
    Column("memory_is_default", Boolean, nullable=False),
    Column("gres", Text, nullable=False),
    Column("features", Text, nullable=False),
    Column("nodes_required", Text, nullable=False),
    Column("nodes_excluded", Text, nullable=False),
    Column("sharing", Integer, nullable=False),
    Column("licenses", Text, nullable=False),
    Column("reservation", Text, nullable=False),
    Column("tasks_per_socket", Integer, nullable=False),
    Column("tasks_per_core", Integer, nullable=False),
    Column("tasks_per_gpu", Integer, nullable=False),
    Column("sockets_per_node", Integer, nullable=False),
    Column("cores_per_socket", Integer, nullable=False),
    Column("threads_per_core", Integer, nullable=False),
    Column("cpus_per_node_min", Integer, nullable=False),
    Column("cpus_per_gpu", Integer, nullable=False),
    Column("disk_mib", BigInteger, nullable=False),
    Column("contiguous", Boolean, nullable=False),
    Column("overcommit", Boolean, nullable=False),
    Column("preferred", Text, nullable=False),
    Column("tasks_follow", Boolean, nullable=False),
    Column("deadline_ns", BigInteger, nullable=False),
    Column("dependency", Text, nullable=False),
    Column("kill_on_invalid_dependency", Boolean, nullable=True),
    Column("time_limit_min_s", BigInteger, nullable=True),
    Column("submit_time_ns", BigInteger, nullable=False),
    Column("submit_index", BigInteger, nullable=False),
    Column("purge_time_ns", BigInteger, nullable=True),
    PrimaryKeyConstraint("job_id"),
    Index(None, "uid", "submit_time_ns"),
    Index(None, "account", "submit_time_ns"),
    Index(None, "array_job_id"),
    Index(None, "het_job_id"),
)
"""One row a job, as its spec is now; `run` is the number of its newest run. `array_tasks` is empty
for a job that is no array; a job whose task was split off an array keeps the array's id in
`array_job_id`, which is 0 otherwise."""

runs = Table(
    "runs",
    METADATA,
    Column("job_id", BigInteger, nullable=False, autoincrement=False),
    Column("run", Integer, nullable=False, autoincrement=False),
    Column("record_index", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("open_time_ns", BigInteger, nullable=False),
    Column("eligible_time_ns", BigInteger, nullable=True),
    Column("start_time_ns", BigInteger, nullable=True),
    Column("end_time_ns", BigInteger, nullable=False),
    Column("paused_time_ns", BigInteger, nullable=True),
    Column("paused_ns", BigInteger, nullable=False),
    Column("time_limit_s", BigInteger, nullable=True),
    Column("partition", Text, nullable=False),
    Column("batch_host", Text, nullable=False),
    Column("exit_code", Integer, nullable=False),
    Column("signal", Integer, nullable=False),
    Column("killed_by", BigInteger, nullable=True),
    Column("script_end_ns", BigInteger, nullable=True),
    Column("script_exit_code", Integer, nullable=False),
    Column("script_signal", Integer, nullable=False),
    Column("unfenced", Boolean, nullable=False),
    PrimaryKeyConstraint("job_id", "run"),
    ForeignKeyConstraint(["job_id"], ["jobs.job_id"], ondelete="CASCADE"),
    Index(None, "end_time_ns"),
)
"""One row a run: run 0 from submission, one more for each requeue. `record_index` is the entry that
the record began with: of the opening, or for a task of an array, of the start. `eligible_time_ns`
is null while nothing lets it start, `start_time_ns` for a run that never did. `end_time_ns` of one
that has not ended is `NEVER_NS`, so that what was alive at a time is one range of an index.
`paused_time_ns` is null unless it is suspended, or was when it ended; `paused_ns` is how long it
was suspended before. What its first node reported of the script is kept apart from how the run
was recorded."""

run_nodes = Table(
    "run_nodes",
    METADATA,
    Column("job_id", BigInteger, nullable=False, autoincrement=False),
    Column("run", Integer, nullable=False, autoincrement=False),
    Column("node", Text, nullable=False),
    Column("position", Integer, nullable=False),
    Column("cpus", Integer, nullable=False),
    Column("memory_mib", BigInteger, nullable=False),
    Column("gpus", LargeBinary(8), nullable=False),
    Column("cpu_set", LargeBinary, nullable=False),
    Column("is_shared", Boolean, nullable=False),
    Column("last_seen_ns", BigInteger, nullable=True),
    PrimaryKeyConstraint("job_id", "run", "node"),
    ForeignKeyConstraint(["job_id", "run"], ["runs.job_id", "runs.run"], ondelete="CASCADE"),
    Index(None, "node"),
)
"""What a run held on each node; position 0 is where its batch script ran. `last_seen_ns` is null
unless the node was cut off: up to then it is billed."""

steps = Table(
    "steps",
    METADATA,
    Column("job_id", BigInteger, nullable=False, autoincrement=False),
    Column("run", Integer, nullable=False, autoincrement=False),
    Column("step_id", BigInteger, nullable=False, autoincrement=False),
    Column("attempt", Integer, nullable=False),
    Column("name", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("start_time_ns", BigInteger, nullable=False),
    Column("end_time_ns", BigInteger, nullable=False),
    Column("exit_code", Integer, nullable=False),
    Column("signal", Integer, nullable=False),
    Column("killed_by", BigInteger, nullable=True),
    Column("tasks", Integer, nullable=False),
    Column("dealing", Integer, nullable=False),
    Column("time_limit_s", BigInteger, nullable=False),
    PrimaryKeyConstraint("job_id", "run", "step_id"),
    ForeignKeyConstraint(["job_id", "run"], ["runs.job_id", "runs.run"], ondelete="CASCADE"),
)
"""One row a numbered step. A step that is open when its run or its attempt ends has no record of
its own: it ended then, as CANCELLED, and its row stays as it is."""

step_nodes = Table(
    "step_nodes",
    METADATA,
    Column("job_id", BigInteger, nullable=False, autoincrement=False),
    Column("run", Integer, nullable=False, autoincrement=False),
    Column("step_id", BigInteger, nullable=False, autoincrement=False),
    Column("node", Text, nullable=False),
    Column("position", Integer, nullable=False),
    Column("cpus", Integer, nullable=False),
    Column("memory_mib", BigInteger, nullable=False),
    Column("gpus", LargeBinary(8), nullable=False),
    Column("cpu_set", LargeBinary, nullable=False),
    Column("is_shared", Boolean, nullable=False),
    PrimaryKeyConstraint("job_id", "run", "step_id", "node"),
    ForeignKeyConstraint(
        ["job_id", "run", "step_id"],
        ["steps.job_id", "steps.run", "steps.step_id"],
        ondelete="CASCADE",
    ),
)
"""What a step used on each node."""

group_reasons = Table(
    "group_reasons",
    METADATA,
    Column("partition", Text, nullable=False),
    Column("shape", LargeBinary(8), nullable=False),
    Column("reason", Text, nullable=False),
    PrimaryKeyConstraint("partition", "shape"),
)
"""Why the pending jobs of one partition and one shape wait, as the scheduler said last."""

job_events = Table(
    "job_events",
    METADATA,
    Column("job_id", BigInteger, nullable=False, autoincrement=False),
    Column("log_index", BigInteger, nullable=False, autoincrement=False),
    Column("position", Integer, nullable=False, autoincrement=False),
    PrimaryKeyConstraint("job_id", "log_index", "position"),
    sqlite_with_rowid=False,
)
"""Where in the log each event of a job is: its story is read there."""
