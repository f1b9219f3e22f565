"""Asking at the desk: a new host's first certificate, and any host's next one.

Whoever leads answers; another controller names it. The question may be asked again and again with
the same key: the answer is the same certificate.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable, Sequence

from spur.client.address import TcpAddress, parse_tcp_address
from spur.client.stream import Stream
from spur.client.tls import TlsSide, joining_context
from spur.values.errors import PeerFault, Rejection, SpurError
from spur.wire.desk import (
    DESK_LIMIT,
    DESK_VERSION,
    AskToJoin,
    AskToRenew,
    Certified,
    Desk,
    DeskRefused,
    Knock,
    decode_from_desk,
    encode_desk,
)
from spur.wire.hello import parse_host_name

__all__ = ["NoDesk", "ask_desk", "knock"]

VISIT_S = 10.0
"""How long one controller may take to answer."""

PAUSE_S = 0.2
"""Between two looks for whoever leads; an election takes 0.3 to 0.6 s."""

_AGAIN = ("not-leader", "ask-again", "busy")


class NoDesk(SpurError):
    """No controller could be asked."""


async def knock(addresses: Sequence[str]) -> tuple[Desk, str]:
    """Return what the first controller that answers says of itself, and that one's address.

    Nothing of it may be believed before it is checked, and nothing secret is said.

    Raises: NoDesk.
    """
    context = joining_context("")
    faults: list[str] = []
    for address in addresses:
        try:
            async with asyncio.timeout(VISIT_S), _Visit(address, context) as visit:
                return await visit.enter(), address
        except (OSError, PeerFault, TimeoutError) as error:
            faults.append(f"{address}: {_sentence(error)}")
    raise NoDesk("; ".join(faults))


async def ask_desk(
    addresses: Sequence[str],
    context: Callable[[], ssl.SSLContext],
    question: AskToJoin | AskToRenew,
    *,
    wait_s: float,
) -> Certified | Rejection:
    """Return the certificate, or why there is none.

    `context` makes what the controllers are checked with. Raises: NoDesk after `wait_s`, when none
    that leads was reached.
    """
    loop = asyncio.get_running_loop()
    end_s = loop.time() + wait_s
    made = context()
    last = "no controller was asked"
    queue = list(addresses)
    while True:
        address = queue.pop(0)
        try:
            async with asyncio.timeout(VISIT_S), _Visit(address, made) as visit:
                await visit.enter()
                answer = await visit.ask(question)
        except (OSError, PeerFault, TimeoutError) as error:
            last = f"{address}: {_sentence(error)}"
        else:
            if isinstance(answer, Certified):
                return answer
            if answer.code not in _AGAIN:
                return Rejection(answer.code, answer.text, answer.hint)
            last = f"{address}: {answer.text}"
            if answer.leader and answer.leader not in queue:
                queue.insert(0, answer.leader)
        if not queue:
            queue = list(addresses)
            await asyncio.sleep(PAUSE_S)
        if loop.time() > end_s:
            raise NoDesk(last)


def _sentence(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {VISIT_S:g} s"
    if isinstance(error, OSError) and error.errno and error.errno > 0:
        return os.strerror(error.errno)
    return str(error)


class _Visit:
    """Owner of one stream to a desk."""

    def __init__(self, address: str, context: ssl.SSLContext) -> None:
        self._address: TcpAddress = parse_tcp_address(address)
        self._checks = context.verify_mode is not ssl.CERT_NONE
        self._heard: asyncio.Queue[bytes | PeerFault] = asyncio.Queue()
        self._stream = Stream(self, DESK_LIMIT, tls=TlsSide(context, server_side=False))

    async def __aenter__(self) -> _Visit:
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: self._stream, *self._address)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stream.abort()

    async def enter(self) -> Desk:
        """Return who is behind the desk. Raises: PeerFault."""
        desk = await self._next()
        if not isinstance(desk, Desk):
            raise PeerFault(desk.text if isinstance(desk, DeskRefused) else "it speaks out of turn")
        if desk.version != DESK_VERSION:
            raise PeerFault(f"its desk speaks version {desk.version}; this is {DESK_VERSION}")
        return desk

    async def ask(self, question: AskToJoin | AskToRenew) -> Certified | DeskRefused:
        """Return the desk's answer. Raises: PeerFault."""
        self._stream.send(encode_desk(question))
        answer = await self._next()
        if isinstance(answer, Desk):
            raise PeerFault("it speaks out of turn")
        return answer

    async def _next(self) -> Desk | Certified | DeskRefused:
        heard = await self._heard.get()
        if isinstance(heard, PeerFault):
            raise heard
        return decode_from_desk(heard)

    # -- owner of the stream

    def opened(self, stream: Stream) -> None:
        """Check that it is a controller, and knock."""
        names = stream.tls.names() if stream.tls is not None else ()
        host = parse_host_name(names[0]) if len(names) == 1 else None
        if self._checks and (host is None or host.role != "controller"):
            shown = " and ".join(names) or "nobody"
            self.faulted(stream, f"its certificate names {shown}, which is no controller")
            return
        stream.send(encode_desk(Knock(version=DESK_VERSION)))
        stream.flush()

    def received(self, stream: Stream, messages: list[bytes]) -> None:
        """Keep what it says."""
        for message in messages:
            self._heard.put_nowait(message)

    def faulted(self, stream: Stream, sentence: str) -> None:
        """Give it up."""
        self._heard.put_nowait(PeerFault(sentence))
        stream.close()

    def drained(self, stream: Stream) -> None:
        """Nothing to do: little is said here."""

    def closed(self, stream: Stream) -> None:
        """Hear that it hung up."""
        self._heard.put_nowait(PeerFault("the connection ended"))
