"""Rows that are being written: kept in memory through a batch, then written in one go.

An arm of a fold sees plain dictionaries by key. Most rows are changed several times in a short
life, so a batch writes each once, and rows stay in memory until there are too many.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Table, bindparam, insert, select, update

from spur.store.tables import (
    group_reasons,
    job_events,
    jobs,
    run_nodes,
    runs,
    step_nodes,
    steps,
)
from spur.values.errors import InvariantBroken

__all__ = ["ROWS_KEPT_MAX", "Row", "Rows", "TableRows"]

Row = dict[str, Any]
"""Column to value."""

Key = tuple[Any, ...]

ROWS_KEPT_MAX = 10_000
"""Rows of one table that stay in memory between batches; about 20 MB of jobs."""


class TableRows:
    """The rows of one table that a batch meets."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._keys = [column.name for column in table.primary_key]
        self._rows: dict[Key, Row] = {}
        self._new: dict[Key, Row] = {}
        self._changed: dict[Key, Row] = {}
        is_it = [table.c[name] == bindparam(f"the_{name}") for name in self._keys]
        self._select = select(table).where(*is_it)
        self._insert = insert(table)
        others = [column.name for column in table.columns if column.name not in self._keys]
        self._update = (
            update(table).where(*is_it).values({name: bindparam(name) for name in others})
        )
        self.connection: Connection | None = None
        """Open while a batch is folded."""

    def get(self, *key: Any) -> Row | None:
        """Return a row that must not be written to, or None."""
        row = self._rows.get(key)
        if row is None and self.connection is not None:
            found = self.connection.execute(self._select, self._named(key)).mappings().first()
            if found is not None:
                row = self._rows[key] = dict(found)
        return row

    def __getitem__(self, key: Key) -> Row:
        """Return a row that must be there.

        Raises: InvariantBroken when it is not: the model does not fit the log.
        """
        row = self.get(*key)
        if row is None:
            raise InvariantBroken(f"the read model has no row {key} in {self.table.name}")
        return row

    def insert(self, row: Row) -> None:
        """Add a row that is not there yet."""
        key = tuple(row[name] for name in self._keys)
        self._rows[key] = self._new[key] = row

    def change(self, *key: Any, **values: Any) -> None:
        """Change columns of a row. Raises: InvariantBroken when there is none."""
        row = self[key]
        row.update(values)
        if key not in self._new:
            self._changed[key] = row

    def put(self, row: Row) -> None:
        """Add a row, or replace the one with its key."""
        key = tuple(row[name] for name in self._keys)
        if self.get(*key) is None:
            self.insert(row)
        else:
            self.change(*key, **row)

    def write(self, connection: Connection) -> None:
        """Write what was added and changed since the last time."""
        if self._new:
            connection.execute(self._insert, list(self._new.values()))
        if self._changed:
            named = [row | self._named(key) for key, row in self._changed.items()]
            connection.execute(self._update, named)
        self._new.clear()
        self._changed.clear()
        if len(self._rows) > ROWS_KEPT_MAX:
            self._rows.clear()

    def forget(self) -> None:
        """Keep nothing: the transaction was taken back."""
        self._rows.clear()
        self._new.clear()
        self._changed.clear()

    def _named(self, key: Key) -> Row:
        return {f"the_{name}": value for name, value in zip(self._keys, key, strict=True)}


class Rows:
    """Every table that events are folded into."""

    def __init__(self) -> None:
        self.jobs = TableRows(jobs)
        self.runs = TableRows(runs)
        self.run_nodes = TableRows(run_nodes)
        self.group_reasons = TableRows(group_reasons)
        self.steps = TableRows(steps)
        self.step_nodes = TableRows(step_nodes)
        self._tables = (
            self.jobs,
            self.runs,
            self.run_nodes,
            self.group_reasons,
            self.steps,
            self.step_nodes,
        )
        self._insert_events = insert(job_events)
        self._events: list[Row] = []

    def note_event(self, job_id: int, index: int, position: int) -> None:
        """Note where an event of a job is."""
        self._events.append({"job_id": job_id, "log_index": index, "position": position})

    def begin(self, connection: Connection) -> None:
        """Read through this connection until `write` or `forget`."""
        for table in self._tables:
            table.connection = connection

    def write(self, connection: Connection) -> None:
        """Write all that was added and changed."""
        for table in self._tables:
            table.write(connection)
            table.connection = None
        if self._events:
            connection.execute(self._insert_events, self._events)
            self._events.clear()

    def forget(self) -> None:
        """Keep nothing: the transaction was taken back."""
        for table in self._tables:
            table.forget()
            table.connection = None
        self._events.clear()
