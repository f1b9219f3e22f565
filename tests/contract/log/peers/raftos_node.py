"""One raftos node behind an edge: its defaults, its own storage, the shim and nothing more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from raftos.state import State

from spur.testing.edge import DONE, REFUSED, UNKNOWN, EdgeServer, NodeStatus
from tests.contract.log.peers.arguments import Arguments, run_node
from tests.contract.log.peers.raftos_shim import raftos

_NAME = "data"


class RaftosNode:
    """Appends by setting one name again and again; the log is what was set."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def _state(self) -> Any:  # Any: raftos has no types
        return raftos.server.Node.nodes[0].state

    def _leads(self) -> bool:
        return bool(raftos.get_leader() == self._address)

    def append(self, data: bytes, answer: Callable[[int, bytes], None]) -> None:
        task = asyncio.ensure_future(self._append(data, answer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _append(self, data: bytes, answer: Callable[[int, bytes], None]) -> None:
        if not self._leads():
            answer(REFUSED, f"the leader is {raftos.get_leader()}".encode())
            return
        try:
            # JSON has no bytes; Latin-1 gives each byte its character.
            await State.set_value(_NAME, data.decode("latin-1"))
        except Exception as failure:  # whatever it raises, the client only learns that it failed
            answer(UNKNOWN, repr(failure).encode())
            return
        answer(DONE, EdgeServer.place(self._state.log.last_applied))

    def applied(self) -> Sequence[bytes]:
        log = self._state.log
        entries = (log[index] for index in range(1, log.last_applied + 1))
        return [entry["command"][_NAME].encode("latin-1") for entry in entries]

    def status(self) -> NodeStatus:
        log = self._state.log
        return NodeStatus(
            leads=self._leads(), term=self._state.storage.term, applied=log.last_applied
        )


async def start(arguments: Arguments) -> RaftosNode:
    """Start the node with raftos' default timers."""
    raftos.configure({"log_path": f"{arguments.dir}/"})
    await raftos.register(arguments.address, cluster=arguments.others)
    return RaftosNode(arguments.address)


if __name__ == "__main__":
    run_node(start)
