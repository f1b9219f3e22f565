"""Cursor, jobs and runs."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "cursor",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("incarnation", sa.BigInteger(), nullable=False),
        sa.Column("log_index", sa.BigInteger(), nullable=False),
        sa.Column("chain", sa.LargeBinary(length=32), nullable=False),
        sa.Column("time_ns", sa.BigInteger(), nullable=False),
        sa.Column("model_version", sa.Integer(), nullable=False),
        sa.CheckConstraint("id = 1", name=op.f("ck_cursor_one_row")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_cursor")),
    )
    create_jobs()
    create_runs()
    create_steps()
    create_notes()


def create_jobs() -> None:
    """Make the table of jobs."""
    op.create_table(
        "jobs",
        sa.Column("job_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("array_job_id", sa.BigInteger(), nullable=False),
        sa.Column("array_tasks", sa.Text(), nullable=False),
        sa.Column("array_throttle", sa.Integer(), nullable=False),
        sa.Column("het_job_id", sa.BigInteger(), nullable=False),
        sa.Column("het_offset", sa.Integer(), nullable=False),
        sa.Column("uid", sa.BigInteger(), nullable=False),
        sa.Column("gid", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("partitions", sa.Text(), nullable=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("qos", sa.Text(), nullable=False),
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("hold", sa.Integer(), nullable=False),
        sa.Column("priority", sa.BigInteger(), nullable=True),
        sa.Column("nice", sa.BigInteger(), nullable=False),
        sa.Column("requeue", sa.Boolean(), nullable=False),
        sa.Column("batch", sa.Boolean(), nullable=False),
        sa.Column("time_limit_s", sa.BigInteger(), nullable=True),
        sa.Column("begin_ns", sa.BigInteger(), nullable=False),
        *ask_columns(),
        sa.Column("deadline_ns", sa.BigInteger(), nullable=False),
        sa.Column("dependency", sa.Text(), nullable=False),
        sa.Column("kill_on_invalid_dependency", sa.Boolean(), nullable=True),
        sa.Column("time_limit_min_s", sa.BigInteger(), nullable=True),
        sa.Column("submit_time_ns", sa.BigInteger(), nullable=False),
        sa.Column("submit_index", sa.BigInteger(), nullable=False),
        sa.Column("purge_time_ns", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_jobs")),
    )
    op.create_index(op.f("ix_jobs_uid_submit_time_ns"), "jobs", ["uid", "submit_time_ns"])
    op.create_index(op.f("ix_jobs_account_submit_time_ns"), "jobs", ["account", "submit_time_ns"])
    op.create_index(op.f("ix_jobs_array_job_id"), "jobs", ["array_job_id"])
    op.create_index(op.f("ix_jobs_het_job_id"), "jobs", ["het_job_id"])


def ask_columns() -> tuple[sa.Column[Any], ...]:
    """Return the columns of what a job asks of nodes."""
    return (
        sa.Column("nodes_min", sa.Integer(), nullable=False),
        sa.Column("nodes_max", sa.Integer(), nullable=False),
        sa.Column("tasks", sa.Integer(), nullable=False),
        sa.Column("tasks_per_node", sa.Integer(), nullable=False),
        sa.Column("cpus_per_task", sa.Integer(), nullable=False),
        sa.Column("memory_mib", sa.BigInteger(), nullable=False),
        sa.Column("memory_per", sa.Integer(), nullable=False),
        sa.Column("memory_is_default", sa.Boolean(), nullable=False),
        sa.Column("gres", sa.Text(), nullable=False),
        sa.Column("features", sa.Text(), nullable=False),
        sa.Column("nodes_required", sa.Text(), nullable=False),
        sa.Column("nodes_excluded", sa.Text(), nullable=False),
        sa.Column("sharing", sa.Integer(), nullable=False),
        sa.Column("licenses", sa.Text(), nullable=False),
        sa.Column("reservation", sa.Text(), nullable=False),
        sa.Column("tasks_per_socket", sa.Integer(), nullable=False),
        sa.Column("tasks_per_core", sa.Integer(), nullable=False),
        sa.Column("tasks_per_gpu", sa.Integer(), nullable=False),
        sa.Column("sockets_per_node", sa.Integer(), nullable=False),
        sa.Column("cores_per_socket", sa.Integer(), nullable=False),
        sa.Column("threads_per_core", sa.Integer(), nullable=False),
        sa.Column("cpus_per_node_min", sa.Integer(), nullable=False),
        sa.Column("cpus_per_gpu", sa.Integer(), nullable=False),
        sa.Column("disk_mib", sa.BigInteger(), nullable=False),
        sa.Column("contiguous", sa.Boolean(), nullable=False),
        sa.Column("overcommit", sa.Boolean(), nullable=False),
        sa.Column("preferred", sa.Text(), nullable=False),
        sa.Column("tasks_follow", sa.Boolean(), nullable=False),
    )


def create_runs() -> None:
    """Make the tables of runs and of the nodes they held."""
    op.create_table(
        "runs",
        sa.Column("job_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("run", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("record_index", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("open_time_ns", sa.BigInteger(), nullable=False),
        sa.Column("eligible_time_ns", sa.BigInteger(), nullable=True),
        sa.Column("start_time_ns", sa.BigInteger(), nullable=True),
        sa.Column("end_time_ns", sa.BigInteger(), nullable=False),
        sa.Column("time_limit_s", sa.BigInteger(), nullable=True),
        sa.Column("partition", sa.Text(), nullable=False),
        sa.Column("batch_host", sa.Text(), nullable=False),
        sa.Column("exit_code", sa.Integer(), nullable=False),
        sa.Column("signal", sa.Integer(), nullable=False),
        sa.Column("killed_by", sa.BigInteger(), nullable=True),
        sa.Column("script_end_ns", sa.BigInteger(), nullable=True),
        sa.Column("script_exit_code", sa.Integer(), nullable=False),
        sa.Column("script_signal", sa.Integer(), nullable=False),
        sa.Column("unfenced", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("job_id", "run", name=op.f("pk_runs")),
        sa.ForeignKeyConstraint(
            ["job_id"], ["jobs.job_id"], name=op.f("fk_runs_jobs"), ondelete="CASCADE"
        ),
    )
    op.create_index(op.f("ix_runs_end_time_ns"), "runs", ["end_time_ns"])
    op.create_table(
        "run_nodes",
        sa.Column("job_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("run", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("cpus", sa.Integer(), nullable=False),
        sa.Column("memory_mib", sa.BigInteger(), nullable=False),
        sa.Column("gpus", sa.LargeBinary(length=8), nullable=False),
        sa.Column("cpu_set", sa.LargeBinary(), nullable=False),
        sa.Column("is_shared", sa.Boolean(), nullable=False),
        sa.Column("last_seen_ns", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("job_id", "run", "node", name=op.f("pk_run_nodes")),
        sa.ForeignKeyConstraint(
            ["job_id", "run"],
            ["runs.job_id", "runs.run"],
            name=op.f("fk_run_nodes_runs"),
            ondelete="CASCADE",
        ),
    )
    op.create_index(op.f("ix_run_nodes_node"), "run_nodes", ["node"])


def create_steps() -> None:
    """Make the tables of steps and of the nodes they used."""
    op.create_table(
        "steps",
        sa.Column("job_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("run", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("step_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("start_time_ns", sa.BigInteger(), nullable=False),
        sa.Column("end_time_ns", sa.BigInteger(), nullable=False),
        sa.Column("exit_code", sa.Integer(), nullable=False),
        sa.Column("signal", sa.Integer(), nullable=False),
        sa.Column("killed_by", sa.BigInteger(), nullable=True),
        sa.Column("tasks", sa.Integer(), nullable=False),
        sa.Column("dealing", sa.Integer(), nullable=False),
        sa.Column("time_limit_s", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("job_id", "run", "step_id", name=op.f("pk_steps")),
        sa.ForeignKeyConstraint(
            ["job_id", "run"],
            ["runs.job_id", "runs.run"],
            name=op.f("fk_steps_runs"),
            ondelete="CASCADE",
        ),
    )
    op.create_table(
        "step_nodes",
        sa.Column("job_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("run", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("step_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("cpus", sa.Integer(), nullable=False),
        sa.Column("memory_mib", sa.BigInteger(), nullable=False),
        sa.Column("gpus", sa.LargeBinary(length=8), nullable=False),
        sa.Column("cpu_set", sa.LargeBinary(), nullable=False),
        sa.Column("is_shared", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("job_id", "run", "step_id", "node", name=op.f("pk_step_nodes")),
        sa.ForeignKeyConstraint(
            ["job_id", "run", "step_id"],
            ["steps.job_id", "steps.run", "steps.step_id"],
            name=op.f("fk_step_nodes_steps"),
            ondelete="CASCADE",
        ),
    )


def create_notes() -> None:
    """Make the tables of why jobs wait, and of where their events are."""
    op.create_table(
        "group_reasons",
        sa.Column("partition", sa.Text(), nullable=False),
        sa.Column("shape", sa.LargeBinary(length=8), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("partition", "shape", name=op.f("pk_group_reasons")),
    )
    op.create_table(
        "job_events",
        sa.Column("job_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("log_index", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("job_id", "log_index", "position", name=op.f("pk_job_events")),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    """Remove the tables; the read model is rebuilt from the log when it is wanted again."""
    for table in (
        "job_events",
        "group_reasons",
        "step_nodes",
        "steps",
        "run_nodes",
        "runs",
        "jobs",
        "cursor",
    ):
        op.drop_table(table)
