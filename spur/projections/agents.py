"""Agents: how far the sequence of reports of each node was heard (LOG-CONTRACT 7.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spur.projections.tables import Row
from spur.values.errors import SpurError
from spur.values.ids import NodeName

if TYPE_CHECKING:
    from spur.projections.state import State

__all__ = ["OutboxRow", "ReportOutOfOrder", "is_heard", "note_report"]


class ReportOutOfOrder(SpurError):
    """A report that was heard before, or one behind it, is in an entry."""


class OutboxRow(Row, frozen=True):
    """The outbox that a node sends from, and its newest report; its key is the node's name."""

    outbox: bytes
    """Random bytes that the agent made with the outbox; another one begins another sequence."""
    number: int


def is_heard(state: State, node: NodeName, outbox: bytes, number: int) -> bool:
    """Whether this report, or one behind it, has been heard."""
    row = state.outboxes.get(node)
    return row is not None and row.outbox == outbox and number <= row.number


def note_report(state: State, node: NodeName, outbox: bytes, number: int) -> None:
    """Move the node's sequence on. Numbers rise; a gap is what a restored cluster leaves.

    Raises: ReportOutOfOrder when the report was heard before.
    """
    if is_heard(state, node, outbox, number):
        raise ReportOutOfOrder(f"report {number} of node {node} was heard before")
    state.outboxes.put(node, OutboxRow(outbox, number))
