"""raftos' own classes, with timers that never run and datagrams delivered by hand.

UDP may lose, delay, reorder and repeat a datagram; nothing else is done to them here.
"""

from __future__ import annotations

import asyncio
import copy
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raftos import state as raftos_state

from tests.contract.log.peers.raftos_shim import raftos

_PORTS = {"A": 1, "B": 2, "C": 3}
_NAMES = {port: name for name, port in _PORTS.items()}
_HOST = "127.0.0.1"


class _StillTimer:
    """Stands in for raftos' Timer: it never fires, so that the script decides what happens."""

    def __init__(self, interval: object, callback: Callable[[], None]) -> None:
        self.callback = callback

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def reset(self) -> None: ...


@dataclass
class Datagram:
    """One message under way."""

    source: str
    target: str
    data: dict[str, Any]

    @property
    def kind(self) -> str:
        """The message's name."""
        return str(self.data["type"])


class Wire:
    """Three nodes and everything they have sent to each other."""

    def __init__(self, directory: Path) -> None:
        raftos.configure({"log_path": f"{directory}/"})
        self.under_way: list[Datagram] = []
        self.nodes: dict[str, Any] = {}
        for name in _PORTS:
            self.start(name)

    def start(self, name: str) -> None:
        """Start a node, or start it again: it knows what its files hold."""
        # `State.leader` is one for the whole process, so each node gets a class of its own.
        kind = type(f"State{name}", (raftos_state.State,), {})
        self.nodes[name] = kind(_Server(self, name))
        self.nodes[name].start()

    async def deliver(self, *datagrams: Datagram) -> None:
        """Hand datagrams over, in this order."""
        for datagram in datagrams:
            data = copy.deepcopy(datagram.data)
            data["sender"] = (_HOST, _PORTS[datagram.source])
            self.nodes[datagram.target].request_handler(data)
        await self.settle()

    async def settle(self) -> None:
        """Let the nodes' own tasks send what they owe."""
        for _ in range(10):
            await asyncio.sleep(0)

    async def take(self, source: str, target: str, kind: str = "") -> list[Datagram]:
        """Take what is under way from one node to another off the wire."""
        await self.settle()
        taken = [
            datagram
            for datagram in self.under_way
            if (datagram.source, datagram.target) == (source, target)
            and kind in ("", datagram.kind)
        ]
        self.under_way = [datagram for datagram in self.under_way if datagram not in taken]
        return taken

    async def pass_on(self, *pair: str, rounds: int = 12) -> None:
        """Deliver everything between the named nodes, and lose everything else."""
        for _ in range(rounds):
            await self.settle()
            batch, self.under_way = self.under_way, []
            for datagram in batch:
                if datagram.source in pair and datagram.target in pair:
                    await self.deliver(datagram)

    async def elect(self, candidate: str, voter: str) -> None:
        """Carry one vote request and its answer."""
        await self.deliver(*await self.take(candidate, voter, "request_vote"))
        await self.deliver(*await self.take(voter, candidate, "request_vote_response"))

    def leads(self, name: str) -> bool:
        """Return whether a node believes that it leads."""
        return isinstance(self.nodes[name].state, raftos_state.Leader)


class _Server:
    """What raftos' State needs of its server."""

    def __init__(self, wire: Wire, name: str) -> None:
        self.host, self.port = _HOST, _PORTS[name]
        self.loop = asyncio.get_running_loop()
        self.cluster = {(_HOST, port) for other, port in _PORTS.items() if other != name}
        self.cluster_count = len(self.cluster)
        self._wire, self._name = wire, name

    async def send(self, data: dict[str, Any], target: str | tuple[str, int]) -> None:
        port = int(target.split(":")[1]) if isinstance(target, str) else target[1]
        datagram = Datagram(self._name, _NAMES[port], copy.deepcopy(data))
        self._wire.under_way.append(datagram)

    def broadcast(self, data: dict[str, Any]) -> None:
        for target in sorted(self.cluster):
            self._wire.nodes[self._name].loop.create_task(self.send(data, target))


async def voter_restarted(directory: Path) -> dict[str, list[str]]:
    """Let C vote for A, restart C, and let B ask it in the same term."""
    wire = Wire(directory)
    wire.nodes["A"].to_candidate()
    wire.nodes["B"].to_candidate()
    await wire.elect("A", "C")
    wire.start("C")
    await wire.elect("B", "C")
    found: dict[str, list[str]] = {}
    for name in "AB":
        if wire.leads(name):
            found.setdefault(str(wire.nodes[name].storage.term), []).append(name)
    return found


async def append_repeated_late(directory: Path) -> dict[str, list[str]]:
    """Acknowledge five entries on A and B, repeat the first datagram, then lose A."""
    wire = Wire(directory)
    wire.nodes["A"].to_candidate()
    await wire.pass_on("A", "B", "C")
    acknowledged: list[str] = []
    late: list[Datagram] = []
    for number in range(1, 6):
        name = f"e{number}"
        command = asyncio.ensure_future(wire.nodes["A"].state.execute_command({name: "value"}))
        await wire.settle()
        if number == 1:
            late = [datagram for datagram in wire.under_way if datagram.target == "B"][:1]
        await wire.pass_on("A", "B")
        wire.nodes["A"].state.heartbeat()
        await wire.pass_on("A", "B")
        if command.done():
            acknowledged.append(name)
    await wire.deliver(*late)
    wire.under_way.clear()
    for _ in range(3):
        # B's own timers would bring it here; a refused candidacy is followed by another.
        wire.nodes["B"].to_follower()
        wire.nodes["B"].to_candidate()
        await wire.pass_on("B", "C")
        if wire.leads("B"):
            break
    kept = [name for entry in wire.nodes["B"].log.cache for name in entry["command"]]
    return {"acknowledged": acknowledged, "kept": kept}


_SCRIPTS = {"voter-restarted": voter_restarted, "append-repeated-late": append_repeated_late}

if __name__ == "__main__":
    raftos_state.Timer = _StillTimer
    print(json.dumps(asyncio.run(_SCRIPTS[sys.argv[1]](Path(sys.argv[2])))))
