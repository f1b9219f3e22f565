"""The migrations of the read model lead to its tables, and back."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Column, Connection, Integer, MetaData, create_engine, inspect, text
from sqlalchemy.exc import IntegrityError

from spur.store.tables import METADATA, REVISION, jobs, run_nodes
from spur.values.jobspec import JobSpec, ResourceAsk
from spur.values.tres import NodeShare


@pytest.fixture
def connection() -> Iterator[Connection]:
    engine = create_engine("sqlite://")
    with engine.connect() as opened:
        opened.execute(text("PRAGMA foreign_keys = ON"))
        yield opened
    engine.dispose()


def configuration(connection: Connection | None = None, **options: Any) -> Config:
    config = Config(**options)
    config.set_main_option("script_location", "spur_migrations:controller")
    config.attributes["connection"] = connection
    return config


def differences(connection: Connection, metadata: MetaData) -> list[Any]:
    options = {"compare_type": True, "compare_server_default": True}
    return list(compare_metadata(MigrationContext.configure(connection, opts=options), metadata))


def test_upgrade_from_empty_gives_the_tables(connection: Connection) -> None:
    """A new release starts on a machine without a read model."""
    command.upgrade(configuration(connection), "head")
    assert differences(connection, METADATA) == []


def test_difference_is_found(connection: Connection) -> None:
    """Someone adds a column to the tables and forgets the migration."""
    command.upgrade(configuration(connection), "head")
    changed = MetaData()
    for table in METADATA.sorted_tables:
        table.to_metadata(changed)
    changed.tables["runs"].append_column(Column("energy_joules", Integer))
    found = differences(connection, changed)
    assert [(step[0], step[2], step[3].name) for step in found] == [
        ("add_column", "runs", "energy_joules")
    ]


def test_newest_migration_is_the_one_that_the_tables_name() -> None:
    """Someone adds a migration: a model that is at the former one must be brought on."""
    assert ScriptDirectory.from_config(configuration()).get_current_head() == REVISION


def test_each_migration_has_a_way_back(connection: Connection) -> None:
    """A release is taken back: each step down and up again leaves the tables as they were."""
    config = configuration(connection)
    script = ScriptDirectory.from_config(config)
    revisions = [step.revision for step in script.walk_revisions()][::-1]
    for revision in revisions:
        command.upgrade(config, revision)
        before = schema(connection)
        command.downgrade(config, "-1")
        command.upgrade(config, revision)
        assert schema(connection) == before
    command.downgrade(config, "base")
    assert inspect(connection).get_table_names() == ["alembic_version"]


def schema(connection: Connection) -> list[str]:
    rows = connection.execute(text("SELECT sql FROM sqlite_master ORDER BY name"))
    return [str(row[0]) for row in rows]


def test_migrations_can_be_written_for_postgresql(capsys: pytest.CaptureFixture[str]) -> None:
    """A site wants its accounting in PostgreSQL and asks to see the statements first."""
    written = io.StringIO()
    config = configuration(output_buffer=written)
    config.cmd_opts = type("Options", (), {"x": ["url=postgresql://db.example/spur"]})()
    command.upgrade(config, "head", sql=True)
    assert "CREATE TABLE run_nodes" in written.getvalue()
    assert "gpus BYTEA NOT NULL" in written.getvalue()


def test_migration_without_a_database_changes_nothing() -> None:
    """Someone runs the migrations and names no database: they are told what is missing."""
    with pytest.raises(SystemExit, match="no database was named; nothing was changed"):
        command.upgrade(configuration(), "head")


def test_cursor_is_a_single_row(connection: Connection) -> None:
    """A faulty writer adds a second cursor: the database refuses it."""
    command.upgrade(configuration(connection), "head")
    insert = (
        "INSERT INTO cursor (id, incarnation, log_index, chain, time_ns, model_version)"
        " VALUES ({}, 0, 1, '', 1, 1)"
    )
    connection.execute(text(insert.format(1)))
    with pytest.raises(IntegrityError, match="ck_cursor_one_row"):
        connection.execute(text(insert.format(2)))


def test_run_belongs_to_a_job(connection: Connection) -> None:
    """A faulty writer records the run of a job that is not there: the database refuses it."""
    command.upgrade(configuration(connection), "head")
    insert = (
        "INSERT INTO runs (job_id, run, record_index, state, reason, attempt, open_time_ns,"
        " end_time_ns, paused_ns, partition, batch_host, exit_code, signal, script_exit_code,"
        " script_signal, unfenced)"
        " VALUES (7, 0, 1, 'PENDING', 'None', 0, 1, 9, 0, '', '', 0, 0, 0, 0, 0)"
    )
    with pytest.raises(IntegrityError, match="FOREIGN KEY"):
        connection.execute(text(insert))


def test_every_field_of_a_job_spec_has_its_column() -> None:
    """Someone adds an option to jobs: accounting shall be able to show it."""
    wanted = {*JobSpec.__struct_fields__, *ResourceAsk.__struct_fields__} - {"ask"}
    assert wanted - {column.name for column in jobs.columns} == set()
    assert set(NodeShare.__struct_fields__) - {column.name for column in run_nodes.columns} == set()
