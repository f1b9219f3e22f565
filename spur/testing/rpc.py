"""A server with a handler that tests steer, and a client as plain as can be."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from spur.client.tls import TlsFiles
from spur.events.envelope import Actor
from spur.server.rpc import RpcLimits, RpcServer
from spur.server.sessions import Respond
from spur.wire.calls import (
    FROM_REPLICA_LIMIT,
    Answered,
    Call,
    Goodbye,
    Greeting,
    Refused,
    Reply,
    Welcome,
    decode_from_replica,
    encode,
)
from spur.wire.frames import FrameDecoder, encode_frames

__all__ = [
    "CLUSTER",
    "GREETING",
    "EchoServer",
    "PlainClient",
    "ServerThread",
    "call",
    "plain_client",
    "serve",
]

CLUSTER = bytes(range(16))
GREETING = Greeting(version=1, cluster_id=CLUSTER)


def call(number: int, request: bytes = b"hello", **changed: Any) -> Call:
    """Return a call of this number."""
    made = Call(
        number=number,
        request_id=number.to_bytes(16, "big"),
        since=5,
        incarnation=1,
        at_least=5,
        speaks_for=None,
        request=request,
    )
    return msgspec.structs.replace(made, **changed)


class EchoServer:
    """A server whose handler answers with the request, or keeps it for the test to answer."""

    def __init__(
        self, directory: Path, limits: RpcLimits | None = None, *, replica: int = 2
    ) -> None:
        self.path = str(directory / f"{replica}.sock")
        self.judge: Callable[[Call], Answered | Refused] | None = None
        """Makes the outcomes, instead of the echo."""
        self.index = 8
        """Of the answers."""
        self.calls: list[tuple[Call, Actor, Respond]] = []
        self.keeps = False
        self.reports: list[str] = []
        self.server = RpcServer(
            cluster_id=CLUSTER,
            replica=replica,
            handler=self.take,
            position=lambda: (1, 7),
            report=self.reports.append,
            limits=limits,
        )

    def take(self, made: Call, actor: Actor, respond: Respond) -> None:
        """Answer a call, or keep it."""
        self.calls.append((made, actor, respond))
        if not self.keeps:
            self.answer(made, respond)

    def answer(self, made: Call, respond: Respond, answer: bytes | None = None) -> None:
        """Answer a call with its own request, or something else."""
        outcome: Answered | Refused
        if self.judge is not None:
            outcome = self.judge(made)
        else:
            outcome = Answered(answer=made.request if answer is None else answer)
        respond(Reply(number=made.number, incarnation=1, index=self.index, outcome=outcome))


class ServerThread:
    """Runs a coroutine's servers on a loop of its own, for clients that block."""

    def __init__(self, *servers: EchoServer, files: TlsFiles | None = None) -> None:
        self._servers = servers
        self._files = files
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self) -> ServerThread:
        self._thread.start()
        self.run(self._start())
        return self

    def __exit__(self, *error: object) -> None:
        self.run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, main: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine on the servers' loop and wait for it."""
        asyncio.run_coroutine_threadsafe(main, self._loop).result(timeout=10)

    async def _start(self) -> None:
        for echo in self._servers:
            await echo.server.start_unix(echo.path)
            if self._files is not None:
                await echo.server.start_tls("127.0.0.1", 0, self._files)

    async def _stop(self) -> None:
        for echo in self._servers:
            await echo.server.close()
        await asyncio.sleep(0.01)


class PlainClient:
    """A client as plain as can be, that sends whatever a test wants."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.decoder = FrameDecoder(FROM_REPLICA_LIMIT)
        self.messages: list[Welcome | Reply | Goodbye] = []

    def say(self, *messages: Greeting | Call) -> None:
        """Send messages."""
        for message in messages:
            self.writer.writelines(encode_frames(encode(message)))

    async def hear(self) -> Welcome | Reply | Goodbye | None:
        """Return the next message; None when the connection has ended."""
        async with asyncio.timeout(5):
            while not self.messages:
                data = await self.reader.read(1 << 16)
                if not data:
                    self.decoder.finish()
                    return None
                self.messages += map(decode_from_replica, self.decoder.feed(data))
        return self.messages.pop(0)

    async def hear_replies(self, count: int) -> list[Reply]:
        """Return the next replies."""
        heard = [await self.hear() for _ in range(count)]
        return [reply for reply in heard if isinstance(reply, Reply)]

    async def hear_goodbye(self) -> Goodbye:
        """Return why the connection ends, which it then does."""
        last = await self.hear()
        if not isinstance(last, Goodbye):
            raise AssertionError(f"a goodbye was expected, and {last} came")
        following = await self.hear()
        if following is not None:
            raise AssertionError(f"after the goodbye came {following}")
        return last


@asynccontextmanager
async def plain_client(echo: EchoServer, *, greet: bool = True) -> AsyncIterator[PlainClient]:
    """Return a client on the Unix socket that has been welcomed."""
    made = PlainClient(*await asyncio.open_unix_connection(echo.path))
    try:
        if greet:
            made.say(GREETING)
            welcome = await made.hear()
            if not isinstance(welcome, Welcome):
                raise AssertionError(f"a welcome was expected, and {welcome} came")
        yield made
    finally:
        made.writer.close()


def serve(
    echo: EchoServer, main: Callable[[], Awaitable[None]], files: TlsFiles | None = None
) -> Awaitable[None]:
    """Run a test while its server listens."""

    async def whole() -> None:
        await echo.server.start_unix(echo.path)
        try:
            if files is not None:
                await echo.server.start_tls("127.0.0.1", 0, files)
            await main()
        finally:
            await echo.server.close()

    return whole()
