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
from spur.projections.cluster import ClusterRow, ConfigRow, HostRow, RoleKey, RoleRow, newborn
from spur.projections.counters import CounterRow
from spur.projections.indexes import Oldest, Spread
from spur.projections.membership import MembershipRow
from spur.projections.nodes import NodeBlockRow, NodeRow, names_in_block
from spur.projections.partitions import PartitionRow
from spur.projections.requests import RequestKey, RequestRow
from spur.projections.tables import Journal, Table
from spur.projections.undo import UndoRecord
from spur.values.ids import HostId, NodeName, PartitionName

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
        self.config: Table[int, ConfigRow] = Table("config", int, ConfigRow, journal)
        self.host_of_name: Spread[HostId, HostRow] = Spread(lambda _, row: (row.name,))
        self.hosts: Table[HostId, HostRow] = Table(
            "hosts", int, HostRow, journal, self.host_of_name
        )
        self.roles: Table[RoleKey, RoleRow] = Table("roles", RoleKey, RoleRow, journal)
        self.block_of_node: Spread[str, NodeBlockRow] = Spread(names_in_block)
        self.node_blocks: Table[str, NodeBlockRow] = Table(
            "node_blocks", str, NodeBlockRow, journal, self.block_of_node
        )
        self.nodes: Table[NodeName, NodeRow] = Table("nodes", str, NodeRow, journal)
        self.partitions: Table[PartitionName, PartitionRow] = Table(
            "partitions", str, PartitionRow, journal
        )
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
    def checkpoint_index(self) -> int:
        """The entry of the last checkpoint; 0 before the first."""
        return self.cluster[1].checkpoint_index

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
