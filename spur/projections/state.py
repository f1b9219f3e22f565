"""State: every table of the cluster, and how far along the log it is.

One line per table, after the indexes that it keeps; a row's type lives in its subject's file.
Importing this module imports every subject, and so registers every arm of `apply`, every
reaction, due time and invariant.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from spur.events.envelope import chain_genesis
from spur.projections.cluster import ClusterRow, CounterRow, MembershipRow, newborn
from spur.projections.indexes import Oldest
from spur.projections.requests import RequestKey, RequestRow
from spur.projections.tables import Journal, Table
from spur.projections.undo import UndoRecord

__all__ = ["State", "new_state"]


class State:
    """All tables and the position in the log that they stand for. Written by `apply` alone."""

    def __init__(self) -> None:
        journal = Journal()
        self.journal = journal
        #: Entries applied and not yet known to be committed, oldest first.
        self.undo: deque[UndoRecord] = deque()

        # -- position
        self.index = 0
        self.term = 0
        #: Chain value of the last entry (LOG-CONTRACT 1.7).
        self.chain = b""
        #: Stamp of the last entry that had one.
        self.time_ns = 0

        # -- tables
        self.cluster: Table[int, ClusterRow] = Table("cluster", int, ClusterRow, journal)
        self.membership: Table[int, MembershipRow] = Table(
            "membership", int, MembershipRow, journal
        )
        self.counters: Table[str, CounterRow] = Table("counters", str, CounterRow, journal)
        self.requests_oldest: Oldest[RequestKey, RequestRow] = Oldest(lambda _, row: row.index)
        self.requests: Table[RequestKey, RequestRow] = Table(
            "requests", RequestKey, RequestRow, journal, self.requests_oldest
        )

    def tables(self) -> Iterator[Table[Any, Any]]:
        """Yield every table in order of declaration."""
        for value in vars(self).values():
            if isinstance(value, Table):
                yield value

    @property
    def unsettled(self) -> int:
        """How many rows the running digests do not count as they are now."""
        return sum(table.unsettled for table in self.tables())


def new_state(genesis: bytes, *, cluster_id: bytes, incarnation: int) -> State:
    """Return the state before entry 1 of a cluster born with this genesis record."""
    state = State()
    state.chain = chain_genesis(genesis)
    state.cluster.fill({1: newborn(cluster_id, incarnation)})
    return state
