"""The read model: rows that follow the log by a cursor kept in the same transaction.

    model = Model.open(path)
    model.fold(entries)          # committed ones, in order; those behind the cursor are passed over

It can be dropped and made anew from the log at any time, and is when it belongs to another history
or was made by other arms.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Engine, insert, select, update

from spur.events.cluster import ClusterRestored
from spur.events.codec import decode_envelope
from spur.events.envelope import Entry, EntryKind, chain_next
from spur.projections.apply import At
from spur.store import jobs as _jobs
from spur.store import runs as _runs
from spur.store import steps as _steps
from spur.store.engine import UnusableDatabase, open_engine, remove_database, writing
from spur.store.folds import fold_event
from spur.store.rows import Rows
from spur.store.tables import MODEL_VERSION, cursor
from spur.values.errors import InvariantBroken

__all__ = ["SUBJECTS", "Cursor", "Model"]

SUBJECTS = (_jobs, _runs, _steps)
"""The files of this room that hold arms."""


class Cursor(msgspec.Struct, frozen=True, gc=False):
    """The last entry whose rows are in the model."""

    incarnation: int
    index: int
    """0 before the first entry."""
    chain: bytes
    """The log's chain value at that entry."""
    time_ns: int


class Model:
    """One database file and its cursor; one process writes."""

    def __init__(self, engine: Engine, at: Cursor) -> None:
        self.engine = engine
        self.cursor = at
        self._rows = Rows()

    @classmethod
    def open(cls, path: Path, beginning: Cursor, *, anew: bool = False) -> Model:
        """Open the model of a log that begins so; make it anew if it can't be used as it is."""
        if anew:
            remove_database(path)
        try:
            engine = open_engine(path)
            found = _read_cursor(engine)
        except UnusableDatabase:
            found = None
        else:
            if found is not None:
                return cls(engine, found)
            engine.dispose()
        remove_database(path)
        engine = open_engine(path)
        model = cls(engine, beginning)
        with writing(engine) as connection:
            connection.execute(insert(cursor), {"id": 1, **_cursor_row(beginning)})
        return model

    def fold(self, entries: Sequence[Entry]) -> None:
        """Write what committed entries say, and move the cursor, in one transaction.

        Raises: InvariantBroken, UnreadableRecord, sqlalchemy.exc.SQLAlchemyError; nothing was
        written.
        """
        at = self.cursor
        rows = self._rows
        try:
            with writing(self.engine) as connection:
                rows.begin(connection)
                for entry in entries:
                    if entry.index > at.index:
                        at = _fold_entry(rows, at, entry)
                rows.write(connection)
                connection.execute(update(cursor), _cursor_row(at))
        except BaseException:
            rows.forget()
            raise
        self.cursor = at

    def close(self) -> None:
        """Close the database."""
        self.engine.dispose()


def _fold_entry(rows: Rows, at: Cursor, entry: Entry) -> Cursor:
    """Fold one entry; return where the model then is."""
    index = entry.index
    if index != at.index + 1:
        raise InvariantBroken(f"the read model is at entry {at.index}, and was given {index}")
    chain = chain_next(at.chain, entry)
    if entry.kind != EntryKind.EVENTS:
        return Cursor(at.incarnation, index, chain, at.time_ns)
    envelope, events = decode_envelope(entry.body, index)
    incarnation = at.incarnation
    for position, event in enumerate(events):
        if isinstance(event, ClusterRestored):
            incarnation = event.incarnation
        place = At(index, position, envelope.time_ns, envelope.actor, envelope.attachments)
        fold_event(rows, place, event)
    return Cursor(incarnation, index, chain, envelope.time_ns)


def _cursor_row(at: Cursor) -> dict[str, Any]:
    return {
        "incarnation": at.incarnation,
        "log_index": at.index,
        "chain": at.chain,
        "time_ns": at.time_ns,
        "model_version": MODEL_VERSION,
    }


def _read_cursor(engine: Engine) -> Cursor | None:
    """Return where a model is; None when there is none of this version."""
    with engine.connect() as connection:
        row = connection.execute(select(cursor)).mappings().first()
    if row is None or row["model_version"] != MODEL_VERSION:
        return None
    return Cursor(row["incarnation"], row["log_index"], row["chain"], row["time_ns"])
