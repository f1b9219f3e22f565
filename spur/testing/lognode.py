"""A bare log node: the product's engine, disk and transport, and a list of bytes as its state.

    python -m spur.testing.lognode --dir DIR --edge PORT [--insecure]

The directory is one that `give_birth` made. Contract suite and benchmarks use it to measure and
test the log without the scheduler on top. With `--insecure` neither peers nor clients use TLS.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from spur.client.address import parse_tcp_address
from spur.client.tls import credentials_in, server_context
from spur.consensus.disk import OsDisk
from spur.consensus.driver import Driver
from spur.consensus.opening import ReplicaOptions, open_replica
from spur.consensus.port import Refusal, SnapshotSource
from spur.consensus.replica import Replica
from spur.controller.birth import TLS_DIRECTORY
from spur.controller.clocks import MachineClocks
from spur.controller.settings import load_settings
from spur.controller.transport import make_net
from spur.events.envelope import (
    Actor,
    Entry,
    EntryKind,
    Envelope,
    RequestMark,
    StoredEvent,
)
from spur.server.process import run_daemon, run_until_stopped, tune_interpreter
from spur.testing.edge import DONE, REFUSED, UNKNOWN, EdgeServer, NodeStatus
from spur.values.errors import OperatorFault

__all__ = ["LogNode", "main"]

Answer = Callable[[int, bytes], None]

_ENCODER = msgspec.msgpack.Encoder()
_ENVELOPE = msgspec.msgpack.Decoder(Envelope)
_BYTES = msgspec.msgpack.Decoder(bytes)
_MARK = RequestMark(principal="edge", id=b"", since=0, hash=b"", answer=b"", part=1, parts=1)
_ACTOR = Actor(uid=0, gid=0, host_id=0, host_role="cluster", via="edge")


class LogNode:
    """Implements `Machine` and `EdgeNode`: keeps what is committed, in order."""

    def __init__(self) -> None:
        self.replica: Replica
        self.driver: Driver
        self._applied: list[bytes] = []
        self._waiting: dict[int, tuple[int, Answer]] = {}
        self._leads = False

    # -- EdgeNode
    def append(self, data: bytes, answer: Answer) -> None:
        entry = (
            self.replica.propose(EntryKind.EVENTS, _wrap(data), ())
            if self._leads
            else Refusal("not-leader", self.replica.leader)
        )
        if isinstance(entry, Refusal):
            answer(REFUSED, entry.code.encode())
            return
        self._waiting[entry.index] = (entry.term, answer)
        self.driver.wake()

    def applied(self) -> Sequence[bytes]:
        return self._applied

    def status(self) -> NodeStatus:
        core = self.replica.core
        return NodeStatus(leads=self._leads, term=core.term, applied=len(self._applied))

    # -- Machine
    def load(self, snapshot: SnapshotSource) -> None:
        raise OperatorFault("a bare log node keeps no snapshots; its directory holds one")

    def restored(self, loaded: object) -> None:
        raise OperatorFault("a bare log node was given a snapshot that it could not load")

    def committed(self, entries: Sequence[Entry]) -> None:
        applied, waiting = self._applied, self._waiting
        for entry in entries:
            if entry.kind == EntryKind.EVENTS:
                applied.append(_unwrap(entry.body))
            found = waiting.pop(entry.index, None)
            if found is not None:
                if found[0] == entry.term:
                    found[1](DONE, EdgeServer.place(len(applied)))
                else:
                    found[1](REFUSED, b"another leader's entry took its place")

    def leading(self, term: int) -> None:
        self._leads = True

    def following(self, leader: int) -> None:
        self._leads = False
        waiting, self._waiting = self._waiting, {}
        for _, answer in waiting.values():
            answer(UNKNOWN, b"leadership was lost")

    def barrier_passed(self, token: int, index: int | None) -> None:
        raise OperatorFault("a bare log node asks no barrier")


def _wrap(data: bytes) -> bytes:
    """The engine may look into an entry for its attachments, so data travels in an envelope."""
    event = StoredEvent(
        type="bytes", version=1, flags=0, payload=msgspec.Raw(_ENCODER.encode(data))
    )
    envelope = Envelope(
        version=1,
        time_ns=0,
        command="append",
        request=_MARK,
        actor=_ACTOR,
        events=(event,),
        attachments=(),
    )
    return _ENCODER.encode(envelope)


def _unwrap(body: bytes) -> bytes:
    return _BYTES.decode(_ENVELOPE.decode(body).events[0].payload)


async def _run(directory: Path, edge_port: int, *, insecure: bool) -> None:
    settings = load_settings(directory)
    node = LogNode()
    replica = node.replica = open_replica(
        OsDisk(str(directory)),
        me=settings.node_id,
        rng=random.SystemRandom(),
        clocks=MachineClocks(),
        options=ReplicaOptions(),
    )
    tls = None if insecure else credentials_in(directory / TLS_DIRECTORY)
    failed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
    net = make_net(
        replica.identity, replica.neighbours(), tls, lambda m: node.driver.receive(m), _report
    )
    node.driver = Driver(
        replica,
        net,
        before_turn=_nothing,
        on_tick=_nothing,
        on_fatal=failed.set_result,
        tick_s=settings.tick_ms / 1000,
    )
    replica.attach(node)
    await net.start(*parse_tcp_address(settings.raft_address))
    server = EdgeServer(node)
    await server.listen("127.0.0.1", edge_port, server_context(tls) if tls else None)
    node.driver.start()
    fault = await run_until_stopped(failed)
    server.close()
    await net.close()
    await node.driver.stop()
    if fault is not None:
        raise fault


def _nothing() -> None:
    """Do what a bare node does before a turn and at a tick."""


def _report(peer: int, sentence: str) -> None:
    sys.stderr.write(f"lognode: {sentence}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one node until SIGTERM; the exit status is 0, or 1 after a fault."""
    parser = argparse.ArgumentParser(prog="lognode", description=__doc__.splitlines()[0])
    parser.add_argument("--dir", type=Path, required=True, help="directory of the node")
    parser.add_argument("--edge", type=int, required=True, help="port for clients")
    parser.add_argument("--insecure", action="store_true", help="no TLS, for measuring")
    options = parser.parse_args(arguments)
    tune_interpreter()
    try:
        run_daemon(_run(options.dir, options.edge, insecure=options.insecure))
    except OperatorFault as fault:
        sys.stderr.write(f"lognode: {fault}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
