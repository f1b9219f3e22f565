"""The engine in memory as a cluster of one node inside the test's own process."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from spur.consensus.memory import MemoryLog
from spur.consensus.port import Refusal, SnapshotSource
from spur.events.envelope import Entry, EntryKind
from spur.testing.edge import AppendRefused, NodeStatus
from tests.contract.log.cluster import SizeRefused

__all__ = ["MemoryCluster"]


class _Bytes:
    """A machine that keeps every body it is given, and answers whoever proposed it."""

    def __init__(self) -> None:
        self.applied: list[bytes] = []
        self.leads = False
        self.waiting: dict[int, asyncio.Future[int]] = {}

    def load(self, snapshot: SnapshotSource) -> None:
        raise AssertionError("a log in memory has no snapshot to load")

    def restored(self, loaded: object) -> None:
        raise AssertionError("a log in memory has no snapshot to restore")

    def committed(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            if entry.kind == EntryKind.EVENTS:
                self.applied.append(entry.body)
                self.waiting.pop(entry.index).set_result(len(self.applied))

    def leading(self, term: int) -> None:
        self.leads = True

    def following(self, leader: int) -> None:
        self.leads = False

    def barrier_passed(self, token: int, index: int | None) -> None:
        raise AssertionError("nobody asked for a barrier")


class MemoryCluster:
    """Implements `LogCluster` for one node; it has no process to kill and no disk."""

    def __init__(self) -> None:
        self.nodes: Sequence[int] = ()
        self.patience_s = 1.0
        self._machine = _Bytes()
        self._log = MemoryLog(self._machine)

    async def start(self, count: int) -> None:
        if count != 1:
            raise SizeRefused(f"a log in memory has one node, not {count}")
        self.nodes = (1,)
        self._log.pump()

    async def append(self, node: int, data: bytes) -> int:
        entry = self._log.propose(EntryKind.EVENTS, data, ())
        if isinstance(entry, Refusal):
            raise AppendRefused(entry.code)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[int] = loop.create_future()
        self._machine.waiting[entry.index] = answer
        loop.call_soon(self._log.pump)
        return await answer

    async def applied(self, node: int) -> list[bytes]:
        return list(self._machine.applied)

    async def status(self, node: int) -> NodeStatus | None:
        return NodeStatus(
            leads=self._machine.leads, term=self._log.term, applied=len(self._machine.applied)
        )

    def ended(self) -> str:
        return ""

    async def stop(self) -> None:
        self.nodes = ()
