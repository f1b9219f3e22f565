"""The log without disk or peers: one member, for tests and tools that need a log and no Raft.

It keeps the order of calls of `spur.consensus.port` and no more: what is proposed is committed, and
reaches the machine at the next `pump`, never from inside `propose`.
"""

from __future__ import annotations

from collections.abc import Sequence

from spur.consensus.port import Machine, Refusal
from spur.events.envelope import Entry, EntryKind

__all__ = ["MemoryLog"]

_ME = 1


class MemoryLog:
    """Implements `Log`: leads in term 1 from the first `pump` on, and is gone with its process."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._entries: list[Entry] = []
        self._given = 0
        self._barriers: list[int] = []
        self._term = 0

    @property
    def last(self) -> int:
        return len(self._entries)

    @property
    def term(self) -> int:
        return self._term

    @property
    def leader(self) -> int:
        return _ME if self._term else 0

    def entries(self, first: int, last: int) -> Sequence[Entry]:
        return self._entries[first - 1 : last]

    def propose(self, kind: int, body: bytes, blobs: tuple[bytes, ...]) -> Entry | Refusal:
        if not self._term:
            return Refusal(code="not-leader")
        entry = Entry(index=self.last + 1, term=self._term, kind=kind, body=body, blobs=blobs)
        self._entries.append(entry)
        return entry

    def barrier(self, token: int) -> bool:
        if self._term:
            self._barriers.append(token)
        return self._term > 0

    def pump(self) -> None:
        """Tell the machine all that happened since the last call."""
        if not self._term:
            self._term = 1
            self._entries.append(Entry(index=1, term=1, kind=EntryKind.NOOP, body=b""))
            self._machine.leading(self._term)
        fresh, self._given = self._entries[self._given :], self.last
        if fresh:
            self._machine.committed(fresh)
        passed, self._barriers = self._barriers, []
        for token in passed:
            self._machine.barrier_passed(token, self._given)
