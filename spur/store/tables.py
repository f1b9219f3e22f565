"""The tables of the read model, declared once; migrations are checked against this page.

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

__all__ = ["METADATA", "cursor", "job_gres", "jobs", "run_nodes", "runs"]

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
    Column("time_ns", BigInteger, nullable=False),
    PrimaryKeyConstraint("id"),
    CheckConstraint("id = 1", name="one_row"),
)
"""The last entry whose rows are here: a single row, changed in the transaction of those rows."""

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
    Column("state", Text, nullable=False),
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
    Column("features", Text, nullable=False),
    Column("nodes_required", Text, nullable=False),
    Column("nodes_excluded", Text, nullable=False),
    Column("sharing", Integer, nullable=False),
    Column("licenses", Text, nullable=False),
    Column("reservation", Text, nullable=False),
    Column("submit_time_ns", BigInteger, nullable=False),
    Column("submit_index", BigInteger, nullable=False),
    Column("purge_time_ns", BigInteger, nullable=True),
    PrimaryKeyConstraint("job_id"),
    Index(None, "uid", "submit_time_ns"),
    Index(None, "account", "submit_time_ns"),
    Index(None, "array_job_id"),
)
"""One row a job, as its spec is now. `array_tasks` is empty for a job that is no array; a job whose
task was split off an array keeps the array's id in `array_job_id`, which is 0 otherwise."""

job_gres = Table(
    "job_gres",
    METADATA,
    Column("job_id", BigInteger, nullable=False, autoincrement=False),
    Column("position", Integer, nullable=False, autoincrement=False),
    Column("name", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("count", BigInteger, nullable=False),
    Column("per", Integer, nullable=False),
    PrimaryKeyConstraint("job_id", "position"),
    ForeignKeyConstraint(["job_id"], ["jobs.job_id"], ondelete="CASCADE"),
)
"""The generic resources that a job asks for, in its own order."""

runs = Table(
    "runs",
    METADATA,
    Column("job_id", BigInteger, nullable=False, autoincrement=False),
    Column("run", Integer, nullable=False, autoincrement=False),
    Column("state", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("open_time_ns", BigInteger, nullable=False),
    Column("start_time_ns", BigInteger, nullable=True),
    Column("end_time_ns", BigInteger, nullable=True),
    Column("time_limit_s", BigInteger, nullable=True),
    Column("exit_code", Integer, nullable=False),
    Column("signal", Integer, nullable=False),
    Column("unfenced", Boolean, nullable=False),
    PrimaryKeyConstraint("job_id", "run"),
    ForeignKeyConstraint(["job_id"], ["jobs.job_id"], ondelete="CASCADE"),
    Index(None, "start_time_ns"),
    Index(None, "end_time_ns"),
)
"""One row a run: run 0 from submission, one more for each requeue. `start_time_ns` is null for a
run that never started, `end_time_ns` for one that has not ended."""

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
    Column("last_seen_ns", BigInteger, nullable=True),
    PrimaryKeyConstraint("job_id", "run", "node"),
    ForeignKeyConstraint(["job_id", "run"], ["runs.job_id", "runs.run"], ondelete="CASCADE"),
    Index(None, "node"),
)
"""What a run held on each node; position 0 is where its batch script ran. `last_seen_ns` is null
unless the node was cut off: up to then it is billed."""
