"""pysyncobj's own classes on its public transport hook, with a clock and links moved by hand.

Links keep order and lose or repeat nothing, as TCP does; a broken link loses what was under way.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

from pysyncobj import SyncObj, SyncObjConf, replicated, syncobj
from pysyncobj.node import Node
from pysyncobj.transport import Transport

_NAMES = "ABC"
_CLIENT_BYTES = 40_000
"""Larger than half of a batch, so that two entries travel in two messages."""


class Clock:
    """The one clock of all nodes."""

    now_s = 100.0


class Wire:
    """Three nodes and the links between them."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        self._clock = clock
        self.links: set[frozenset[str]] = set()
        self.under_way: dict[tuple[str, str], list[Any]] = {}
        self.nodes: dict[str, Kept] = {}
        self._directory = directory
        for name in _NAMES:
            self.start(name)

    def start(self, name: str) -> None:
        """Start a node, or start it again: it knows what its files hold."""
        self.nodes[name] = Kept(self, name, self._directory)

    def stop(self, name: str) -> None:
        """End a node; its links break."""
        for other in _NAMES:
            self.cut(name, other)
        self.nodes[name].destroy()

    def connect(self, one: str, other: str) -> None:
        """Bring a link up, and tell both ends."""
        self.links.add(frozenset((one, other)))
        self.nodes[one].transport().connected(other)
        self.nodes[other].transport().connected(one)

    def cut(self, one: str, other: str) -> None:
        """Break a link, lose what is under way on it, and tell both ends."""
        if frozenset((one, other)) not in self.links:
            return
        self.links.discard(frozenset((one, other)))
        self.under_way.pop((one, other), None)
        self.under_way.pop((other, one), None)
        self.nodes[one].transport().disconnected(other)
        self.nodes[other].transport().disconnected(one)

    def deliver(self, source: str, target: str, count: int | None = None) -> None:
        """Hand over the oldest `count` messages of a link, all when None."""
        queue = self.under_way.get((source, target), [])
        taken = queue[:count]
        del queue[:count]
        for message in taken:
            self.nodes[target].transport().received(source, message)

    def tick(self, name: str, seconds: float = 0.0) -> None:
        """Move the clock on and let one node look at it."""
        self._clock.now_s += seconds
        self.nodes[name].doTick(0.0)

    def elect(self, name: str, voters: str) -> None:
        """Let a node's election time out, and carry all messages between it and the voters."""
        self.tick(name, 1.2)
        for _ in range(6):
            for voter in voters:
                self.deliver(name, voter)
                self.deliver(voter, name)
            self.tick(name, 0.11)


class Link(Transport):  # type: ignore[misc]  # pysyncobj has no types
    """One node's end of its links."""

    def __init__(self, node: Kept, own: Node, others: list[Node]) -> None:
        super().__init__(node, own, others)
        self._wire, self._own = node.wire, own.id
        node.end = self

    def send(self, node: Node, message: Any) -> bool:
        """Put a message on a link; False when it is down."""
        if frozenset((self._own, node.id)) not in self._wire.links:
            return False
        self._wire.under_way.setdefault((self._own, node.id), []).append(message)
        return True

    def connected(self, other: str) -> None:
        """Tell the node that a link came up."""
        self._onNodeConnected(Node(other))

    def disconnected(self, other: str) -> None:
        """Tell the node that a link broke."""
        self._onNodeDisconnected(Node(other))

    def received(self, source: str, message: Any) -> None:
        """Give the node a message."""
        self._onMessageReceived(Node(source), message)


class Kept(SyncObj):  # type: ignore[misc]  # pysyncobj has no types
    """The replicated object: the names that were kept, in order."""

    def __init__(self, wire: Wire, name: str, directory: Path) -> None:
        self.wire = wire
        self.kept: list[str] = []
        self.end: Link | None = None
        conf = SyncObjConf(
            autoTick=False,
            raftMinTimeout=1.0,
            raftMaxTimeout=1.1,
            journalFile=str(directory / f"journal-{name}"),
        )
        others = [Node(other) for other in _NAMES if other != name]
        super().__init__(Node(name), others, conf, transportClass=Link)

    def transport(self) -> Link:
        """Return this node's end of its links."""
        if self.end is None:
            raise RuntimeError("the node made no transport")
        return self.end

    @replicated  # type: ignore[untyped-decorator]  # pysyncobj has no types
    def keep(self, name: str, ballast: str) -> None:
        """Keep one name."""
        self.kept.append(name)


def voter_restarted(wire: Wire) -> dict[str, list[str]]:
    """Let C vote for A, restart C, and let B ask it in the same term."""
    wire.connect("A", "C")
    wire.connect("B", "C")
    wire.tick("A", 1.2)
    wire.tick("B")
    wire.deliver("A", "C", 1)
    wire.deliver("C", "A")
    wire.tick("A")
    request = wire.under_way[("B", "C")][:1]
    wire.stop("C")
    wire.start("C")
    wire.connect("B", "C")
    # The request was lost with the link; B's own words are said again.
    wire.under_way[("B", "C")] = request
    wire.deliver("B", "C")
    wire.deliver("C", "B")
    wire.tick("B")
    found: dict[str, list[str]] = {}
    for name in "AB":
        if wire.nodes[name]._isLeader():
            found.setdefault(str(wire.nodes[name].raftCurrentTerm), []).append(name)
    return found


def append_repeated_late(wire: Wire) -> dict[str, list[str]]:
    """Acknowledge e1 to e4 on A and B while the leader sends old batches again, then lose A."""
    for one, other in ("AB", "AC", "BC"):
        wire.connect(one, other)
    wire.elect("A", "BC")
    acknowledged: list[str] = []

    def append(name: str) -> None:
        def answered(_: object, reason: int) -> None:
            if reason == 0:
                acknowledged.append(name)

        wire.nodes["A"].keep(name, "x" * _CLIENT_BYTES, callback=answered)

    def send() -> None:
        wire.tick("A")
        wire.tick("A", 0.11)

    wire.cut("A", "C")
    wire.cut("B", "C")
    append("e1")
    append("e2")
    send()
    wire.cut("A", "B")  # loses e1 and e2, though the leader counts them as sent
    wire.connect("A", "B")
    wire.tick("A", 0.11)  # a heartbeat behind e2
    append("e3")
    append("e4")
    send()
    wire.deliver("A", "B")  # B lacks e2: two refusals, "reset", which arrive apart
    wire.deliver("B", "A", 1)
    wire.tick("A", 0.11)  # the leader sends e1 e2, then e3 e4
    wire.deliver("A", "B")
    wire.deliver("B", "A", 1)
    wire.tick("A", 0.11)  # the second refusal is old: the leader sends all of it once more
    wire.deliver("B", "A")
    wire.tick("A")  # B has everything: committed, acknowledged
    wire.deliver("A", "B", 1)  # the first of the repeated batches arrives
    wire.cut("A", "B")  # and A is lost for good
    wire.connect("B", "C")
    wire.elect("B", "C")
    wire.tick("C")
    return {"acknowledged": acknowledged, "kept": wire.nodes["B"].kept}


_SCRIPTS = {"voter-restarted": voter_restarted, "append-repeated-late": append_repeated_late}

if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    clock = Clock()
    syncobj.monotonicTime = lambda: clock.now_s
    print(json.dumps(_SCRIPTS[sys.argv[1]](Wire(Path(sys.argv[2]), clock))))
