"""Whoever else reaches the ports: strangers are refused in a sentence, and nobody notices."""

from __future__ import annotations

import random
import socket
import ssl
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from spur.client.address import parse_tcp_address
from spur.client.tls import TlsFiles, client_context
from spur.consensus.disk import OsDisk
from spur.consensus.genesis import load_genesis
from spur.consensus.membership import Membership
from spur.controller.authority import Authority
from spur.server.credentials import write_credentials
from spur.testing.controllers import ControllerProcess, Controllers
from spur.testing.errands import configure, info, jobs, submit_many, until
from spur.wire.calls import WIRE_VERSION, Greeting, encode
from spur.wire.frames import FRAME_BYTES_MAX, encode_frames
from spur.wire.hello import Hello, HostName, Lane, encode_hello

FUZZ_SECONDS = 4.0
"""The budget of the test that sends garbage."""

GROWTH_MIB_MAX = 96
"""What the resident memory of a controller may grow by under garbage."""


@pytest.fixture(scope="module")
def controllers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controllers]:
    """Yield a running cluster of three that all tests here share."""
    cluster = Controllers.create(tmp_path_factory.mktemp("hosts"), 3, first_port=24020)
    cluster.start()
    with cluster.blocking() as client:
        configure(client)
    yield cluster
    assert [member.stop() for member in cluster.members] == [0, 0, 0]


def serves(controllers: Controllers) -> None:
    """See that the cluster takes submissions and has kept all of them."""
    with controllers.blocking() as client:
        before = jobs(client)
        more = submit_many(client, 3)
        assert jobs(client) == before | more


def identity(member: ControllerProcess) -> Hello:
    """Return what a controller says to its peers first."""
    genesis = load_genesis(OsDisk(str(member.directory)))
    number = int(member.directory.name[1:])
    found = Membership.decode(genesis.membership).member(number)
    assert found is not None
    return Hello(
        version=WIRE_VERSION,
        cluster_id=genesis.cluster_id,
        incarnation=genesis.incarnation,
        node_id=number,
        disk_id=found.disk_id,
        lane=int(Lane.BULK),
    )


def issued(controllers: Controllers, directory: Path, role: str, number: int) -> TlsFiles:
    """Return the files of a host that the cluster's own authority knows."""
    authority = Authority.open(controllers.members[0].directory / "authority")
    name = HostName(cluster_id=identity(controllers.members[0]).cluster_id, role=role, id=number)
    credentials = authority.issue(name, datetime.fromtimestamp(time.time(), UTC))
    return write_credentials(directory, authority.certificate, credentials)


def said_to(address: str, files: TlsFiles, *messages: bytes) -> bytes:
    """Connect over TLS, say something, and return all that is answered until the end."""
    heard = b""
    with (
        suppress(OSError),
        socket.create_connection(parse_tcp_address(address), 5) as plain,
        client_context(files).wrap_socket(plain) as secure,
    ):
        for message in messages:
            secure.sendall(message)
        while data := secure.recv(65536):
            heard += data
    return heard


def framed(message: bytes) -> bytes:
    """Return a message as it goes over the wire."""
    return b"".join(encode_frames(message))


def test_controller_of_another_cluster_is_refused(controllers: Controllers, tmp_path: Path) -> None:
    """Two clusters were given the same addresses; one member of the wrong one is started."""
    other = Controllers.create(tmp_path, 3, first_port=24020)
    controllers.members[2].stop()
    try:
        stranger = other.members[2]
        stranger.start()
        for member in controllers.members[:2]:
            until(
                "the stranger is refused",
                lambda member=member: "a caller from 127.0.0.1 was refused" in member.words(),  # type: ignore[misc]  # a lambda with a default
            )
        assert not info(other, stranger).leader
        serves(controllers)
        assert stranger.stop() == 0
        assert "its certificate was not issued by this cluster's authority" in stranger.words()
    finally:
        other.stop()
        controllers.start()
    until("it is back", lambda: info(controllers, controllers.members[2]).leader > 0)
    serves(controllers)


def test_peer_with_a_wrong_certificate_is_refused_and_said_once(
    controllers: Controllers, tmp_path: Path
) -> None:
    """A compute node's keys are used to speak as controller 1, again and again."""
    files = issued(controllers, tmp_path, "compute", 7)
    member = controllers.members[1]
    hello = framed(encode_hello(identity(controllers.members[0])))
    for _ in range(5):
        assert b"its certificate names spur://" in said_to(member.raft_address, files, hello)
    said = "a caller from 127.0.0.1 was refused: its certificate names spur://"
    until("it is said", lambda: said in member.words())
    assert member.words().count(said) == 1
    serves(controllers)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"version": WIRE_VERSION + 1}, "it speaks version 2 of the wire; this replica speaks 1"),
        ({"cluster_id": bytes(16)}, f"it belongs to cluster {'0' * 32}; this is "),
        ({"incarnation": 9}, "it is of incarnation 9 of the cluster; this replica is of 0"),
        ({"disk_id": bytes(16)}, "replica 1 has another disk than the member of that id"),
        ({"node_id": 2}, "its certificate names spur://"),
    ],
)
def test_peer_that_is_not_what_it_should_be_is_refused(
    controllers: Controllers, changes: dict[str, object], what: str
) -> None:
    """Another release, cluster, restore or disk calls with a good certificate."""
    first, member = controllers.members[:2]
    hello = msgspec.structs.replace(identity(first), **changes)
    files = Controllers([first]).credentials
    heard = said_to(member.raft_address, files, framed(encode_hello(hello)))
    assert what.encode() in heard
    until("it is said", lambda: what in member.words())
    serves(controllers)


def test_client_of_another_version_is_refused(controllers: Controllers) -> None:
    """A client of a later release calls."""
    greeting = framed(encode(Greeting(version=WIRE_VERSION + 1, cluster_id=b"")))
    member = controllers.members[0]
    heard = said_to(member.rpc_address, controllers.credentials, greeting)
    assert b"it speaks version 2 of the wire; this controller speaks 1" in heard


# -- garbage
def garbage(rng: random.Random) -> bytes:
    """Return bytes that are nearly right in one of several ways."""
    noise = rng.randbytes(rng.randrange(1, 2000))
    size = rng.choice((0, 1, 5, FRAME_BYTES_MAX, FRAME_BYTES_MAX + 1, 1 << 31, (1 << 32) - 1))
    mark = rng.choice((0x50, 0x51, rng.randrange(256)))
    return rng.choice(
        (
            noise,
            size.to_bytes(4, "big") + bytes((mark,)) + noise,
            framed(noise),
            framed(noise)[: rng.randrange(1, 5 + len(noise))],
            framed(encode(Greeting(version=WIRE_VERSION, cluster_id=b""))) + framed(noise),
            framed(encode(Greeting(version=WIRE_VERSION, cluster_id=b""))) + noise,
        )
    )


def throw(rng: random.Random, controllers: Controllers, hello: bytes) -> None:
    """Send garbage to one port of one controller, inside TLS or not, then leave."""
    member = rng.choice(controllers.members)
    kind = rng.randrange(5)
    data = garbage(rng)
    with suppress(OSError):
        if kind == 0:
            with socket.socket(socket.AF_UNIX) as local:
                local.settimeout(2)
                local.connect(member.socket.removeprefix("unix:"))
                local.sendall(data)
                leave(rng, local)
            return
        address = member.raft_address if kind % 2 else member.rpc_address
        with socket.create_connection(parse_tcp_address(address), 2) as plain:
            if kind < 3:
                plain.sendall(data)
                leave(rng, plain)
                return
            with client_context(controllers.credentials).wrap_socket(plain) as secure:
                secure.sendall(hello + data if kind % 2 else data)
                leave(rng, secure)


def leave(rng: random.Random, connected: socket.socket) -> None:
    """Hang up at once, after listening for a moment, or in the middle of something."""
    if rng.random() < 0.3:
        connected.settimeout(0.05)
        with suppress(TimeoutError, ssl.SSLError):
            connected.recv(4096)


def resident_mib(members: Sequence[ControllerProcess]) -> list[float]:
    """Return the resident memory of each controller."""
    found = []
    for member in members:
        for line in Path(f"/proc/{member.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                found.append(int(line.split()[1]) / 1024)
    return found


def test_garbage_on_every_port_disturbs_nobody(controllers: Controllers) -> None:
    """Scanners and broken programs reach the ports; the cluster serves, and its memory is bounded.

    Frames too long, cut, or of garbage, in clear and inside TLS, before and after a greeting, and
    from a peer after its hello.
    """
    serves(controllers)
    before = resident_mib(controllers.members)
    terms = {info(controllers, member).term for member in controllers.members}
    pids = [member.pid for member in controllers.members]
    rng = random.Random(20)
    hello = framed(encode_hello(identity(controllers.members[0])))
    end_s, thrown = time.monotonic() + FUZZ_SECONDS, 0
    while time.monotonic() < end_s:
        throw(rng, controllers, hello)
        thrown += 1
        if thrown % 50 == 0:
            serves(controllers)
    assert thrown > 100
    serves(controllers)
    assert [member.pid for member in controllers.members] == pids
    assert all(member.is_running for member in controllers.members)
    assert len(terms) == 1
    after = resident_mib(controllers.members)
    growths = [now - then for now, then in zip(after, before, strict=True)]
    assert max(growths) < GROWTH_MIB_MAX
    for member in controllers.members:
        assert "Traceback" not in member.words()
