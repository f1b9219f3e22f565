"""The RPC server over TLS: who is known by a certificate, and who is refused."""

from __future__ import annotations

import asyncio
import os
import ssl
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from spur.client.tls import TlsFiles, client_context
from spur.controller.authority import Authority
from spur.events.envelope import Actor
from spur.server.credentials import write_credentials
from spur.testing.loops import Run, until
from spur.testing.rpc import (
    CLUSTER,
    GREETING,
    EchoServer,
    PlainClient,
    call,
    plain_client,
    serve,
)
from spur.wire.calls import (
    Answered,
    Welcome,
    encode,
)
from spur.wire.frames import encode_frames
from spur.wire.hello import HostName

NOW = datetime.fromtimestamp(time.time(), UTC)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The authority of the test's cluster."""
    return Authority.create(tmp_path_factory.mktemp("authority"), CLUSTER, NOW)


Files = Callable[..., TlsFiles]


@pytest.fixture(scope="module")
def files(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Files:
    """Return a maker of hosts' certificates."""

    def make(
        role: str, number: int = 1, by: Authority = authority, cluster_id: bytes = CLUSTER
    ) -> TlsFiles:
        issued = by.issue(HostName(cluster_id=cluster_id, role=role, id=number), NOW)
        return write_credentials(tmp_path_factory.mktemp("tls"), authority.certificate, issued)

    return make


async def tls_client(echo: EchoServer, context: ssl.SSLContext) -> PlainClient:
    """Return a client on the TLS port."""
    return PlainClient(
        *await asyncio.open_connection(
            "127.0.0.1", echo.server.port, ssl=context, server_hostname="x"
        )
    )


@pytest.mark.parametrize("role", ["controller", "admin", "login", "compute"])
def test_host_is_known_by_its_certificate(
    run: Run, tmp_path: Path, files: Files, role: str
) -> None:
    """A host of each role calls for itself and for a user; decide will judge what it may."""
    echo = EchoServer(tmp_path)

    async def main() -> None:
        client = await tls_client(echo, client_context(files(role, 9)))
        client.say(GREETING)
        assert isinstance(await client.hear(), Welcome)
        client.say(call(1), call(2, speaks_for=(1000, 100)))
        await client.hear_replies(2)
        via = "agent" if role in ("login", "compute") else "tls"
        assert [actor for _, actor, _ in echo.calls] == [
            Actor(uid=0, gid=0, host_id=9, host_role=role, via=via),
            Actor(uid=1000, gid=100, host_id=9, host_role=role, via="tls"),
        ]
        client.writer.close()

    run(serve(echo, main, files("controller")))


def test_large_messages_pass_under_tls(run: Run, tmp_path: Path, files: Files) -> None:
    """Eight megabytes there and back, under TLS."""
    echo = EchoServer(tmp_path)
    large = bytes(range(256)) * 32_000

    async def main() -> None:
        client = await tls_client(echo, client_context(files("admin")))
        client.say(GREETING)
        assert isinstance(await client.hear(), Welcome)
        client.say(call(1, large))
        [reply] = await client.hear_replies(1)
        assert reply.outcome == Answered(answer=large)
        client.writer.close()

    run(serve(echo, main, files("controller")))


def test_certificate_of_another_cluster_is_refused(run: Run, tmp_path: Path, files: Files) -> None:
    """Two clusters share an authority by mistake; the name in the certificate still tells."""
    echo = EchoServer(tmp_path)

    async def main() -> None:
        client = await tls_client(echo, client_context(files("admin", cluster_id=b"x" * 16)))
        client.say(GREETING)
        goodbye = await client.hear_goodbye()
        assert goodbye.code == "foreign-peer"
        assert goodbye.text.startswith(f"its certificate is of cluster {(b'x' * 16).hex()}; ")
        client.writer.close()

    run(serve(echo, main, files("controller")))
    assert echo.calls == []


def test_certificate_of_another_authority_is_refused(
    run: Run, tmp_path: Path, files: Files
) -> None:
    """A host of another cluster calls, and one that shows no certificate at all."""
    echo = EchoServer(tmp_path)
    other = Authority.create(tmp_path / "other", CLUSTER, NOW)
    foreign = client_context(files("admin", by=other))
    none = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    none.check_hostname = False
    none.verify_mode = ssl.CERT_NONE

    async def main() -> None:
        for context, sentence in (
            (foreign, "its certificate was not issued by this cluster's authority"),
            (none, "it showed no certificate"),
        ):
            client = await tls_client(echo, context)
            client.say(GREETING)
            with pytest.raises((ssl.SSLError, ConnectionError)):
                await client.hear()
            client.writer.close()
            await until(lambda: bool(echo.reports))
            assert sentence in echo.reports.pop()

    run(serve(echo, main, files("controller")))


def test_call_without_tls_is_refused_on_the_tls_port(
    run: Run, tmp_path: Path, files: Files
) -> None:
    """Something speaks plain frames, and garbage, to the TLS port."""
    echo = EchoServer(tmp_path)

    async def main() -> None:
        for first in (b"".join(encode_frames(encode(GREETING))), os.urandom(500)):
            reader, writer = await asyncio.open_connection("127.0.0.1", echo.server.port)
            writer.write(first)
            async with asyncio.timeout(3):
                await reader.read()
            writer.close()
        async with plain_client(echo) as client:
            client.say(call(1))
            assert len(await client.hear_replies(1)) == 1

    run(serve(echo, main, files("controller")))
    assert echo.reports
    assert all("it does not speak TLS 1.3 with us" in report for report in echo.reports)
