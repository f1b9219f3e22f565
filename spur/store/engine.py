"""The database file: opened with SQLite's write-ahead log, and brought up to date by migrations.

A commit is not synced by itself: after a crash of the machine the last transactions may be gone,
whole, and their cursor with them, so they are folded again from the log.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from sqlite3 import Connection as SqliteConnection
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, inspect
from sqlalchemy.exc import DatabaseError, OperationalError

from spur.store.tables import REVISION
from spur.values.errors import SpurError

__all__ = ["MIGRATIONS", "UnusableDatabase", "open_engine", "remove_database", "writing"]

MIGRATIONS = "spur_migrations:controller"
"""Where Alembic finds the migrations."""

VERSIONS = "alembic_version"
"""Alembic's own table."""

_PRAGMAS = (
    "PRAGMA busy_timeout = 10000",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",
    "PRAGMA foreign_keys = ON",
)

_WRITES = "spur_writes"

_SUFFIXES = ("", "-wal", "-shm")


class UnusableDatabase(SpurError):
    """A file that is damaged, no database, or of a newer release."""


def open_engine(path: Path) -> Engine:
    """Return an engine on a database that has the newest tables; it is made if there is none.

    Raises: UnusableDatabase; sqlalchemy.exc.OperationalError when the machine does not let us.
    """
    engine = create_engine(f"sqlite:///{path}")
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    path.touch(mode=0o600)
    try:
        with writing(engine) as connection:
            if _revision(connection) != REVISION:
                _upgrade(connection)
    except (DatabaseError, UnusableDatabase) as error:
        engine.dispose()
        if isinstance(error, OperationalError):
            raise
        raise UnusableDatabase(f"{path} is no read model of this release: {error}") from error
    return engine


def _revision(connection: Connection) -> str:
    """Return the last migration that was run; empty for a database without tables."""
    if not inspect(connection).has_table(VERSIONS):
        return ""
    return connection.exec_driver_sql(f"SELECT version_num FROM {VERSIONS}").scalar() or ""


def _upgrade(connection: Connection) -> None:
    """Run the migrations. Raises: UnusableDatabase when they do not know where it is."""
    # Only a new database or a new release needs it, and a restart is not to wait for the import.
    from alembic import command
    from alembic.config import Config
    from alembic.util.exc import CommandError

    config = Config()
    config.set_main_option("script_location", MIGRATIONS)
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        raise UnusableDatabase(str(error)) from error


def remove_database(path: Path) -> None:
    """Remove a database that nobody has open; one that is not there is no fault."""
    for suffix in _SUFFIXES:
        path.with_name(path.name + suffix).unlink(missing_ok=True)


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """Yield a connection in a transaction that writes; it is committed at the end.

    It waits for another process that still writes, such as a predecessor that was just killed. A
    transaction that reads first and writes then would be told at once that the file is locked.
    """
    with engine.connect() as connection:
        connection = connection.execution_options(**{_WRITES: True})
        with connection.begin():
            yield connection


def _begin(connection: Connection) -> None:
    """Open each transaction ourselves: the driver would leave changes of tables out of it."""
    writes = connection.get_execution_options().get(_WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _prepare(connection: SqliteConnection, _: Any) -> None:
    connection.isolation_level = None
    for pragma in _PRAGMAS:
        connection.execute(pragma)
