"""One pysyncobj node behind an edge: its defaults, with the journal and dump files it offers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from pysyncobj import FAIL_REASON, SyncObj, SyncObjConf, replicated

from spur.testing.edge import DONE, REFUSED, UNKNOWN, EdgeServer, NodeStatus
from tests.contract.log.peers.arguments import Arguments, run_node

_NOT_APPENDED = (
    FAIL_REASON.QUEUE_FULL,
    FAIL_REASON.MISSING_LEADER,
    FAIL_REASON.DISCARDED,
    FAIL_REASON.REQUEST_DENIED,
)
"""Reasons after which the command is not in the log and never will be."""


class Kept(SyncObj):  # type: ignore[misc]  # pysyncobj has no types
    """The replicated object: everything that was appended, in order."""

    def __init__(self, arguments: Arguments) -> None:
        self.kept: list[bytes] = []
        files = {
            "journalFile": str(arguments.dir / "journal"),
            "fullDumpFile": str(arguments.dir / "dump"),
        }
        super().__init__(arguments.address, arguments.others, SyncObjConf(**files))

    @replicated  # type: ignore[untyped-decorator]  # pysyncobj has no types
    def keep(self, data: bytes) -> int:
        """Take one piece of data and return its place."""
        self.kept.append(data)
        return len(self.kept)


class PysyncobjNode:
    """Passes appends to the object, whose answers come from its own thread."""

    def __init__(self, arguments: Arguments) -> None:
        self._object = Kept(arguments)
        self._loop = asyncio.get_running_loop()

    def append(self, data: bytes, answer: Callable[[int, bytes], None]) -> None:
        def answered(place: int | None, reason: int) -> None:
            self._loop.call_soon_threadsafe(_answer, answer, place, reason)

        self._object.keep(data, callback=answered)

    def applied(self) -> Sequence[bytes]:
        return list(self._object.kept)

    def status(self) -> NodeStatus:
        return NodeStatus(
            leads=self._object._isLeader(),
            term=self._object.raftCurrentTerm,
            applied=len(self._object.kept),
        )


def _answer(answer: Callable[[int, bytes], None], place: int | None, reason: int) -> None:
    if reason == FAIL_REASON.SUCCESS and place is not None:
        answer(DONE, EdgeServer.place(place))
    elif reason in _NOT_APPENDED:
        answer(REFUSED, f"reason {reason}".encode())
    else:
        answer(UNKNOWN, f"reason {reason}".encode())


async def start(arguments: Arguments) -> PysyncobjNode:
    """Start the node's thread."""
    return PysyncobjNode(arguments)


if __name__ == "__main__":
    run_node(start)
