"""The transport between replicas, over real sockets: what arrives, and who is refused."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from spur.client.address import TcpAddress
from spur.client.tls import TlsFiles
from spur.controller.authority import Authority
from spur.controller.net import NetSettings, PeerAddress, PeerCodec, PeerNet
from spur.server.credentials import write_credentials
from spur.testing.loops import Run, until
from spur.values.errors import OperatorFault, PeerFault
from spur.wire.frames import encode_frames
from spur.wire.hello import NO_NEWCOMERS, HostName, Lane, PeerIdentity, encode_hello

CLUSTER = bytes(range(16))
NOW = datetime.fromtimestamp(time.time(), UTC)
QUICK = NetSettings(
    hello_s=0.5, keepalive_s=0.05, silence_s_max=0.3, retry_first_s=0.01, retry_refused_s=0.05
)


class Told(msgspec.Struct, frozen=True, array_like=True):
    """A message of the test."""

    sender: int
    words: bytes


def decode(data: bytes) -> list[Told]:
    """Return a batch of the test's messages."""
    try:
        return msgspec.msgpack.decode(data, type=list[Told])
    except msgspec.DecodeError as error:
        raise PeerFault(f"an unreadable batch: {error}") from error


CODECS: dict[int, PeerCodec[Told]] = {
    kind: PeerCodec(encode=msgspec.msgpack.encode, decode=decode) for kind in (1, 2)
}


def route(message: Told) -> tuple[int, Lane]:
    """Send heartbeats on their lane, shell messages as another kind."""
    if message.words.startswith(b"beat"):
        return 1, Lane.HEARTBEAT
    return (2 if message.words.startswith(b"shell") else 1), Lane.BULK


NODES: list[Node] = []
"""What a test started; closed at its end, however it ends."""


class Node:
    """A replica's transport, with what it received and reported."""

    def __init__(
        self,
        me: PeerIdentity,
        tls: TlsFiles | None,
        settings: NetSettings = QUICK,
        codecs: dict[int, PeerCodec[Told]] = CODECS,
        *,
        newest_id: int = NO_NEWCOMERS,
    ) -> None:
        NODES.append(self)
        self.me = me
        self.got: list[tuple[int, bytes]] = []
        self.reports: list[tuple[int, str]] = []
        self.removed_by: list[int] = []
        self.net: PeerNet[Told] = PeerNet(
            me,
            codecs=codecs,
            route=route,
            on_messages=self.take,
            report=lambda peer, text: self.reports.append((peer, text)),
            tls=tls,
            insecure=tls is None,
            settings=settings,
            newest_id=lambda: newest_id,
            removed=self.removed_by.append,
        )

    def take(self, peer: int, messages: Sequence[Told]) -> None:
        """Keep what a peer sent."""
        self.got += [(peer, message.words) for message in messages]

    def tell(self, peer: int, words: Sequence[bytes]) -> None:
        """Send a peer some words."""
        self.net.send(peer, [Told(self.me.node_id, word) for word in words])

    def said(self, words: str) -> int:
        """Return how many reports hold these words."""
        return sum(words in text for _, text in self.reports)


def identity(number: int, **changed: Any) -> PeerIdentity:
    """Return what replica `number` says of itself."""
    me = PeerIdentity(
        cluster_id=CLUSTER, incarnation=1, node_id=number, disk_id=bytes([number]) * 16
    )
    return msgspec.structs.replace(me, **changed)


async def join(*nodes: Node) -> None:
    """Start nodes and tell each of all."""
    for node in nodes:
        await node.net.start("127.0.0.1", 0)
    introduce(*nodes)


def introduce(*nodes: Node) -> None:
    """Tell each node where all are, by the ids and disks of the members."""
    members = {
        number: PeerAddress(
            disk_id=bytes([number]) * 16, address=TcpAddress("127.0.0.1", node.net.port)
        )
        for number, node in enumerate(nodes, 1)
    }
    for node in nodes:
        node.net.set_members(members)


@pytest.fixture(name="run")
def run_and_close(run: Run) -> Run:
    """Run a test's coroutine and close what it started."""

    def whole(main: Awaitable[None]) -> None:
        async def closing() -> None:
            try:
                await main
            finally:
                for node in NODES:
                    await node.net.close()
                NODES.clear()

        run(closing())

    return whole


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The authority of the test's cluster."""
    return Authority.create(tmp_path_factory.mktemp("authority"), CLUSTER, NOW)


@pytest.fixture(scope="module")
def files(
    authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., TlsFiles]:
    """Return a maker of certificates: of a replica, unless told otherwise."""

    def make(
        number: int, role: str = "controller", by: Authority = authority, now: datetime = NOW
    ) -> TlsFiles:
        issued = by.issue(HostName(cluster_id=CLUSTER, role=role, id=number), now)
        return write_credentials(tmp_path_factory.mktemp("tls"), authority.certificate, issued)

    return make


Files = Callable[..., TlsFiles]


def test_three_replicas_hear_each_other(run: Run, files: Files) -> None:
    """Three replicas start; a message of each lane and kind reaches everyone, in order."""

    async def main() -> None:
        nodes = [Node(identity(n), files(n)) for n in (1, 2, 3)]
        await join(*nodes)
        await until(
            lambda: all(n.net.is_connected(p) for n in nodes for p in {1, 2, 3} - {n.me.node_id})
        )
        for node in nodes:
            for peer in (1, 2, 3):
                if peer != node.me.node_id:
                    node.tell(peer, [b"beat", b"append 1", b"append 2", b"shell"])
        await until(lambda: all(len(node.got) == 8 for node in nodes))
        for node in nodes:
            for peer in {1, 2, 3} - {node.me.node_id}:
                mine = [message for sender, message in node.got if sender == peer]
                assert sorted(mine) == [b"append 1", b"append 2", b"beat", b"shell"]
                assert mine.index(b"append 1") < mine.index(b"append 2")
            assert sorted(text.split(" at ")[0] for _, text in node.reports) == sorted(
                f"replica {peer}" for peer in {1, 2, 3} - {node.me.node_id}
            )
            assert node.said("is connected") == 2

    run(main())


def test_message_of_many_frames_arrives(run: Run, files: Files) -> None:
    """An entry of several megabytes is sent alone, though it is over the unsent limit."""

    async def main() -> None:
        one, two = Node(identity(1), files(1)), Node(identity(2), files(2))
        await join(one, two)
        await until(lambda: one.net.is_connected(2))
        large = bytes(range(256)) * 16_000
        one.tell(2, [large])
        await until(lambda: bool(two.got))
        assert two.got == [(1, large)]
        assert one.net.dropped == {}

    run(main())


def test_replica_that_comes_back_is_dialled_at_once(run: Run, files: Files) -> None:
    """A replica is restarted: it is said once that it is gone and once that it is there again."""

    async def main() -> None:
        one, two = Node(identity(1), files(1)), Node(identity(2), files(2))
        await join(one, two)
        await until(lambda: two.net.is_connected(1))
        port = one.net.port
        await one.net.close()
        await until(lambda: two.said("Connection refused") > 0)
        await asyncio.sleep(0.2)
        again = Node(identity(1), files(1))
        await again.net.start("127.0.0.1", port)
        again.net.set_members(
            {2: PeerAddress(disk_id=b"\2" * 16, address=TcpAddress("127.0.0.1", two.net.port))}
        )
        await until(lambda: two.net.is_connected(1), wait_s=0.6)
        assert two.said("is connected") == 2
        assert two.said("Connection refused") == 1
        two.tell(1, [b"welcome back"])
        await until(lambda: again.got == [(2, b"welcome back")])

    run(main())


@pytest.mark.parametrize(
    ("wrong", "heard_by_one", "heard_by_strange"),
    [
        ({"cluster_id": b"x" * 16}, "it belongs to cluster 7878", "it belongs to cluster 7878"),
        ({"incarnation": 2}, "it is of incarnation 2 of the cluster", "incarnation 2"),
        ({"disk_id": b"9" * 16}, "replica 2 has another disk", "replica 2 has another disk"),
        ({"node_id": 9}, "its certificate names spur://", "its certificate names spur://"),
    ],
    ids=["cluster", "incarnation", "disk", "node"],
)
def test_wrong_replica_is_refused_with_one_sentence(
    run: Run, files: Files, wrong: dict[str, object], heard_by_one: str, heard_by_strange: str
) -> None:
    """Replica 2 is not what the others expect: both sides say why, once, whatever the retries."""

    async def main() -> None:
        one, two = Node(identity(1), files(1)), Node(identity(2), files(2))
        strange = Node(identity(2, **wrong), files(2))
        await two.net.start("127.0.0.1", 0)
        await strange.net.start("127.0.0.1", 0)
        await one.net.start("127.0.0.1", 0)
        introduce(one, two)
        await until(lambda: one.net.is_connected(2))
        await two.net.close()
        address = TcpAddress("127.0.0.1", one.net.port)
        strange.net.set_members({1: PeerAddress(disk_id=b"\1" * 16, address=address)})
        await until(lambda: one.said("a caller from 127.0.0.1 was refused: ") > 0)
        await until(lambda: strange.said("it refused this replica: ") > 0)
        await asyncio.sleep(0.3)
        assert one.said(heard_by_one) == 1
        assert strange.said(heard_by_strange) == 1
        assert not one.net.is_connected(2)

    run(main())


def test_certificate_of_another_authority_is_refused(
    run: Run, files: Files, tmp_path: Path
) -> None:
    """A replica with a certificate of another cluster's authority: each side says so once."""
    other = Authority.create(tmp_path / "other", CLUSTER, NOW)

    async def main() -> None:
        one, two = Node(identity(1), files(1, by=other)), Node(identity(2), files(2))
        await join(one, two)
        await until(lambda: two.said("was not issued by this cluster's authority") > 0)
        await until(lambda: one.said("it refused our certificate") > 0)
        await asyncio.sleep(0.3)
        assert two.said("was not issued by this cluster's authority") == 1
        assert len(two.reports) == 1
        assert len(one.reports) == 1

    run(main())


def test_dialler_checks_the_certificate_too(run: Run, files: Files, tmp_path: Path) -> None:
    """Something with a foreign certificate listens at a member's address."""
    other = Authority.create(tmp_path / "other", CLUSTER, NOW)

    async def main() -> None:
        one, two = Node(identity(1), files(1)), Node(identity(2), files(2, by=other))
        await join(one, two)
        await until(lambda: one.said("was not issued by this cluster's authority") == 1)

    run(main())


def test_expired_certificate_is_said(run: Run, files: Files) -> None:
    """Nobody renewed the certificate of replica 2."""

    async def main() -> None:
        one = Node(identity(1), files(1))
        two = Node(identity(2), files(2, now=NOW - timedelta(days=400)))
        await join(one, two)
        await until(lambda: one.said("was refused: its certificate has expired") == 1)

    run(main())


def test_agent_is_no_replica(run: Run, files: Files) -> None:
    """A compute host dials the replicas' port with its own good certificate."""

    async def main() -> None:
        agent, two = Node(identity(1), files(1, "compute")), Node(identity(2), files(2))
        await join(agent, two)
        await until(lambda: two.said("its certificate names spur://") == 1)
        assert two.said("/compute/1; the replica it says it is has spur://") == 1

    run(main())


def test_other_replica_at_the_address_is_refused(run: Run, files: Files) -> None:
    """The addresses of replicas 1 and 2 are exchanged: replica 3 says whom it found."""

    async def main() -> None:
        one, two, three = (Node(identity(n), files(n)) for n in (1, 2, 3))
        for node in (one, two, three):
            await node.net.start("127.0.0.1", 0)
        introduce(two, one, three)
        await until(lambda: three.said("it is replica 2; replica 1 was expected") == 1)
        await until(lambda: three.said("it is replica 1; replica 2 was expected") == 1)
        assert not three.net.is_connected(2)

    run(main())


def test_slow_peer_costs_a_bounded_memory(run: Run, files: Files) -> None:
    """A peer stops reading: at most the limit waits for it, the rest is dropped, and it is said."""

    async def main() -> None:
        one, two = Node(identity(1), files(1), NetSettings()), Node(identity(2), files(2))
        await join(one, two)
        await until(lambda: one.net.is_connected(2))
        link = two.net._network.links[1, Lane.BULK]
        await until(lambda: link._stream is not None)
        assert link._stream is not None
        link._stream.pause_reading()
        for _ in range(200):
            one.tell(2, [bytes(64 * 1024)])
            await asyncio.sleep(0)
        stream = one.net._network.links[2, Lane.BULK]._stream
        assert stream is not None
        assert stream.unsent_bytes <= 512 * 1024 + 1024
        assert one.net.dropped[2] > 20
        assert one.said("its bulk lane drops messages") == 1
        one.tell(2, [b"beat"])
        await until(lambda: (1, b"beat") in two.got)
        link._stream.resume_reading()
        await until(lambda: stream.unsent_bytes == 0)
        one.tell(2, [b"after"])
        await until(lambda: (1, b"after") in two.got)

    run(main())


def test_batch_over_the_limit_sends_what_fits(run: Run, files: Files) -> None:
    """A batch larger than the room left is sent in its first part, in order."""

    async def main() -> None:
        one, two = Node(identity(1), files(1), NetSettings()), Node(identity(2), files(2))
        await join(one, two)
        await until(lambda: one.net.is_connected(2))
        one.tell(2, [bytes([n]) * 300_000 for n in range(60)])
        await until(lambda: bool(two.got))
        await asyncio.sleep(0.05)
        kept = [message[0] for _, message in two.got]
        assert kept == sorted(kept)
        assert len(kept) + one.net.dropped.get(2, 0) == 60

    run(main())


def test_silent_peer_is_dialled_anew(run: Run, files: Files) -> None:
    """The network swallows everything without a word: after the limit the peer is dialled again."""

    async def main() -> None:
        one, two = Node(identity(1), files(1)), Node(identity(2), files(2))
        await join(one, two)
        await until(lambda: one.net.is_connected(2) and two.net.is_connected(1))
        for lane in Lane:
            stream = two.net._network.links[1, lane]._stream
            assert stream is not None
            stream.closing = True
        # Whoever looks first ends the connection, and the other only sees it end.
        silence = "nothing was heard for 0.3 s"
        await until(lambda: one.said(silence) + two.said(silence) >= 1)
        await until(lambda: one.said("is connected") >= 2)

    run(main())


def test_idle_peers_stay_connected(run: Run, files: Files) -> None:
    """Two followers have nothing to say to each other for several times the silence limit."""

    async def main() -> None:
        one, two = Node(identity(1), files(1)), Node(identity(2), files(2))
        await join(one, two)
        await until(lambda: one.net.is_connected(2))
        await asyncio.sleep(0.6)
        assert len(one.reports) == len(two.reports) == 1

    run(main())


@pytest.mark.parametrize(
    ("payload", "sentence"),
    [
        (b"\x07what", "it sent a message of kind 7, which nobody knows"),
        (b"\x01\xc1", "an unreadable batch"),
        (b"\x01" + msgspec.msgpack.encode([Told(3, b"vote")]), "it sent a message as replica 3"),
    ],
    ids=["unknown-kind", "garbage", "other-sender"],
)
def test_peer_that_breaks_the_rules_is_cut(
    run: Run, files: Files, payload: bytes, sentence: str
) -> None:
    """A member sends what nobody can read: the lane is cut, and it is said why."""

    async def main() -> None:
        one, two = Node(identity(1), files(1)), Node(identity(2), files(2))
        await join(one, two)
        await until(lambda: one.net.is_connected(2) and two.net.is_connected(1))
        stream = one.net._network.links[2, Lane.BULK]._stream
        assert stream is not None
        stream.send(payload)
        await until(lambda: two.said(sentence) == 1)
        await until(lambda: two.said("is connected") == 2)
        assert two.got == []

    run(main())


@pytest.mark.parametrize(
    "first",
    [b"", b"GET / HTTP/1.1\r\n\r\n", struct.pack(">IB", 4, 0x50) + b"what", b"\xff" * 70_000],
    ids=["nothing", "http", "no-hello", "large"],
)
def test_stranger_on_the_port_does_no_harm(run: Run, first: bytes) -> None:
    """Without TLS, for a benchmark: garbage is refused, and the replicas' talk goes on."""

    async def main() -> None:
        one, two = Node(identity(1), None), Node(identity(2), None)
        await join(one, two)
        await until(lambda: one.net.is_connected(2))
        loop = asyncio.get_running_loop()
        with socket.socket() as stranger:
            stranger.setblocking(False)
            await loop.sock_connect(stranger, ("127.0.0.1", two.net.port))
            if first:
                await loop.sock_sendall(stranger, first)
            async with asyncio.timeout(3):
                while await loop.sock_recv(stranger, 4096):
                    pass
        assert two.said("a caller from 127.0.0.1 was refused: ") == 1
        one.tell(2, [b"still here"])
        await until(lambda: two.got == [(1, b"still here")])

    run(main())


def test_spoilt_streams_harm_nobody(run: Run) -> None:
    """Two hundred strangers send spoilt hellos and batches: the members' talk goes on."""
    rng = random.Random(21)
    hello = encode_hello(identity(1).hello(Lane.BULK))
    batch = b"\x01" + msgspec.msgpack.encode([Told(1, b"stray")])
    good = b"".join(frame for part in (hello, batch, batch) for frame in encode_frames(part))

    def spoilt() -> bytes:
        data = bytearray(good)
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(data))
            if rng.randrange(2):
                data[at] ^= 1 << rng.randrange(8)
            else:
                data[at:at] = rng.randbytes(rng.randrange(1, 30))
        return bytes(data)

    async def one(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(spoilt())
        with suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(0.2):
                await reader.read()
        writer.transport.abort()

    async def main() -> None:
        one_node, two = Node(identity(1), None), Node(identity(2), None)
        await join(one_node, two)
        for _ in range(5):
            await asyncio.gather(*(one(two.net.port) for _ in range(40)))
        assert len(two.net._network.handshakes) <= QUICK.incoming_max
        await until(lambda: one_node.net.is_connected(2) and two.net.is_connected(1))
        await until(lambda: two.net._network.handshakes == set())
        one_node.tell(2, [b"still here"])
        await until(lambda: (1, b"still here") in two.got)

    run(main())


def test_crowd_of_strangers_is_bounded(run: Run) -> None:
    """Many connections that say nothing: only so many wait, and a member still gets through."""

    async def main() -> None:
        two = Node(identity(2), None, NetSettings(incoming_max=4))
        await two.net.start("127.0.0.1", 0)
        loop = asyncio.get_running_loop()
        crowd = [socket.socket() for _ in range(20)]
        for stranger in crowd:
            stranger.setblocking(False)
            await loop.sock_connect(stranger, ("127.0.0.1", two.net.port))
        await until(lambda: len(two.net._network.handshakes) == 4)
        await asyncio.sleep(0.05)
        assert len(two.net._network.handshakes) == 4
        await two.net.close()
        for stranger in crowd:
            stranger.close()

    run(main())


def test_no_tls_must_be_said(files: Files) -> None:
    """Leaving out the TLS files by mistake does not open the port to everyone."""

    async def main() -> None:
        with pytest.raises(OperatorFault, match="replicas speak TLS"):
            PeerNet(
                identity(1),
                codecs=CODECS,
                route=route,
                on_messages=lambda peer, messages: None,
                report=lambda peer, text: None,
                tls=None,
            )

    asyncio.run(main())


def test_port_in_use_is_said(files: Files) -> None:
    """Another process has the port."""

    async def main() -> None:
        one, two = Node(identity(1), files(1)), Node(identity(2), files(2))
        await one.net.start("127.0.0.1", 0)
        with pytest.raises(OperatorFault, match=r"cannot listen for replicas on 127\.0\.0\.1"):
            await two.net.start("127.0.0.1", one.net.port)
        await one.net.close()
        await two.net.close()

    asyncio.run(main())


def test_member_that_moved_is_dialled_at_its_new_address(run: Run, files: Files) -> None:
    """The membership gives replica 1 another address, then leaves it out."""

    async def main() -> None:
        old, new, two = (Node(identity(n), files(n)) for n in (1, 1, 2))
        for node in (old, new, two):
            await node.net.start("127.0.0.1", 0)
        introduce(old, two)
        await until(lambda: two.net.is_connected(1))
        introduce(new, two)
        await until(lambda: two.net.is_connected(1))
        two.tell(1, [b"moved"])
        await until(lambda: new.got == [(2, b"moved")])
        two.net.set_members({})
        await until(lambda: not new.net.is_connected(2))
        two.tell(1, [b"gone"])
        await asyncio.sleep(0.1)
        assert old.got == []
        assert not two.net.is_connected(1)

    run(main())


def members_of(*nodes: Node) -> dict[int, PeerAddress]:
    """Return the members that these nodes make."""
    return {
        node.me.node_id: PeerAddress(node.me.disk_id, TcpAddress("127.0.0.1", node.net.port))
        for node in nodes
    }


def test_newcomer_is_heard_before_its_addition_is(run: Run, files: Files) -> None:
    """Replica 17 was added; the log of replica 1 does not tell of it yet, and then does."""

    async def main() -> None:
        one, new = Node(identity(1), files(1), newest_id=16), Node(identity(17), files(17))
        for node in (one, new):
            await node.net.start("127.0.0.1", 0)
        one.net.set_members(members_of(one))
        new.net.set_members(members_of(one, new))
        await until(lambda: new.net.is_connected(1))
        new.tell(1, [b"hello"])
        await until(lambda: one.got == [(17, b"hello")])
        one.tell(17, [b"welcome"])
        await until(lambda: new.got == [(1, b"welcome")])
        one.net.set_members(members_of(one, new))
        one.tell(17, [b"now we know"])
        await until(lambda: (1, b"now we know") in new.got)
        assert one.said("replica 17 is connected") == 1
        assert new.removed_by == []

    run(main())


def test_newcomer_with_another_disk_is_cut_when_its_addition_is_heard_of(
    run: Run, files: Files
) -> None:
    """What dialled as replica 17 is not the member that the log names so."""

    async def main() -> None:
        one = Node(identity(1), files(1), newest_id=16)
        new = Node(identity(17, disk_id=b"x" * 16), files(17))
        for node in (one, new):
            await node.net.start("127.0.0.1", 0)
        one.net.set_members(members_of(one))
        new.net.set_members(members_of(one))
        await until(lambda: one.net.is_connected(17))
        right = {17: PeerAddress(identity(17).disk_id, TcpAddress("127.0.0.1", new.net.port))}
        one.net.set_members(members_of(one) | right)
        await until(lambda: one.said("replica 17 has another disk") > 0)
        assert not one.net.is_connected(17)

    run(main())


@pytest.mark.parametrize("removed", [1, 2])
def test_removed_replica_is_told(run: Run, files: Files, removed: int) -> None:
    """One of two replicas removes the other while they are connected."""

    async def main() -> None:
        nodes = {number: Node(identity(number), files(number)) for number in (1, 2)}
        await join(*nodes.values())
        gone, stays = nodes.pop(removed), *nodes.values()
        await until(lambda: stays.net.is_connected(removed))
        stays.net.set_members(members_of(stays))
        await until(lambda: stays.me.node_id in gone.removed_by)
        stays.tell(removed, [b"nothing"])
        await asyncio.sleep(0.1)
        assert gone.got == []

    run(main())


def test_replica_that_was_away_when_it_was_removed_is_told(run: Run, files: Files) -> None:
    """It comes back and dials as if nothing had happened."""

    async def main() -> None:
        one, two = Node(identity(1), files(1)), Node(identity(2), files(2))
        for node in (one, two):
            await node.net.start("127.0.0.1", 0)
        one.net.set_members(members_of(one))
        two.net.set_members(members_of(one, two))
        await until(lambda: two.removed_by != [])
        assert one.said("was refused: replica 2 is not a member of this cluster") == 1

    run(main())
