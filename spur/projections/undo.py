"""Undo: take back the tail above the commit index (LOG-CONTRACT 3.2, 3.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from spur.projections.tables import Undo

if TYPE_CHECKING:
    from spur.projections.state import State

__all__ = ["UndoRecord", "forget_undo", "undo_to", "undo_writes"]


class UndoRecord(msgspec.Struct, frozen=True):
    """What one applied entry wrote over; kept until the entry is committed."""

    index: int
    term: int
    """Term, chain and time are those before the entry."""
    chain: bytes
    time_ns: int
    writes: Undo
    """Table, key and former row of every write, in order."""


def undo_writes(writes: Undo) -> None:
    """Take back writes, the last one first."""
    for table, key, former in reversed(writes):
        table.restore(key, former)


def undo_to(state: State, index: int) -> None:
    """Make the state what it was after this entry.

    Raises: ValueError when the entries above it are no longer held, because they were committed.
    """
    undo = state.undo
    if index > state.index or state.index - index > len(undo):
        raise ValueError(
            f"entry {index} is outside what can be undone: "
            f"{state.index - len(undo)} to {state.index}"
        )
    while state.index > index:
        record = undo.pop()
        undo_writes(record.writes)
        state.index = record.index - 1
        state.term = record.term
        state.chain = record.chain
        state.time_ns = record.time_ns


def forget_undo(state: State, index: int) -> None:
    """Give up the means to undo this entry and those before it: they are committed."""
    undo = state.undo
    while undo and undo[0].index <= index:
        undo.popleft()
