"""The narrow door to a bare log node: append bytes, read back what was applied, ask who leads.

Contract suite and benchmarks speak it to every engine alike, the measured peers included, so it
needs nothing but the standard library.

    frame    u32 length of the rest | u32 request number | u8 code | body        (big-endian)
    APPEND   body: the data                   DONE: u64 place of the data among all applied
    APPLIED  body: u64 first place wanted     DONE: (u32 length, data)*, a page; empty past the end
    STATUS   body: none                       DONE: u8 leads, u64 term, u64 applied

A node answers a number once: DONE, REFUSED (nothing was appended, and never will be) or UNKNOWN
(it may yet be). Answers of one connection may come in any order.
"""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

__all__ = [
    "APPEND",
    "APPLIED",
    "DONE",
    "FRAME_BYTES_MAX",
    "PAGE_BYTES",
    "REFUSED",
    "STATUS",
    "UNKNOWN",
    "AppendRefused",
    "AppendUnknown",
    "EdgeClient",
    "EdgeNode",
    "EdgeServer",
    "NodeStatus",
]

APPEND, APPLIED, STATUS = 1, 2, 3
DONE, REFUSED, UNKNOWN = 0, 1, 2

FRAME_BYTES_MAX = 8 << 20
"""A longer frame closes the connection."""
PAGE_BYTES = 1 << 20
"""A page of applied data ends once it is this long; one entry always fits."""

_HEAD = struct.Struct(">IIB")
_LENGTH = struct.Struct(">I")
_PLACE = struct.Struct(">Q")
_STATUS = struct.Struct(">?QQ")
_HEAD_REST = _HEAD.size - _LENGTH.size


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeStatus:
    """What a node says of itself."""

    leads: bool
    term: int
    applied: int
    """How many appended pieces of data it has applied."""


class EdgeNode(Protocol):
    """What stands behind an edge."""

    def append(self, data: bytes, answer: Callable[[int, bytes], None]) -> None:
        """Append data and call `answer` once.

        The answer is DONE with the place (`EdgeServer.place`), or REFUSED or UNKNOWN with a reason.
        """

    def applied(self) -> Sequence[bytes]:
        """Return all data applied here, in the log's order."""

    def status(self) -> NodeStatus:
        """Return what this node now believes."""


class AppendRefused(Exception):
    """The node refused: nothing was appended."""


class AppendUnknown(Exception):
    """No answer tells whether the data is, or will be, in the log."""


class EdgeServer:
    """Serves one node to any number of connections."""

    def __init__(self, node: EdgeNode) -> None:
        self._node = node
        self._server: asyncio.Server | None = None

    @staticmethod
    def place(position: int) -> bytes:
        """Encode the place of a piece of data, counted from 1 over all that was appended."""
        return _PLACE.pack(position)

    async def listen(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> None:
        """Accept connections from now on."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _ServerConnection(self._node), host, port, ssl=tls
        )

    def close(self) -> None:
        """Stop accepting; open connections end with the process."""
        if self._server is not None:
            self._server.close()


class _Frames(asyncio.Protocol):
    """Cuts what arrives into frames and hands each on."""

    def __init__(self) -> None:
        self._rest = b""
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have the methods of asyncio's, but not its base class.
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._rest:
            data = self._rest + data
        at, size = 0, len(data)
        while size - at >= _HEAD.size:
            length, number, code = _HEAD.unpack_from(data, at)
            if not _HEAD_REST <= length <= FRAME_BYTES_MAX:
                self.abort()
                return
            end = at + _LENGTH.size + length
            if end > size:
                break
            self.frame_received(number, code, data[at + _HEAD.size : end])
            at = end
        self._rest = data[at:] if at else data

    def frame_received(self, number: int, code: int, body: bytes) -> None:
        raise NotImplementedError

    def send(self, number: int, code: int, body: bytes) -> None:
        if self.transport is not None:
            self.transport.write(_HEAD.pack(_HEAD_REST + len(body), number, code) + body)

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None


class _ServerConnection(_Frames):
    def __init__(self, node: EdgeNode) -> None:
        super().__init__()
        self._node = node

    def frame_received(self, number: int, code: int, body: bytes) -> None:
        if code == APPEND:
            self._node.append(body, lambda outcome, text: self.send(number, outcome, text))
        elif code == APPLIED and len(body) == _PLACE.size:
            self.send(number, DONE, _page(self._node.applied(), _PLACE.unpack(body)[0]))
        elif code == STATUS and not body:
            now = self._node.status()
            self.send(number, DONE, _STATUS.pack(now.leads, now.term, now.applied))
        else:
            self.abort()


def _page(applied: Sequence[bytes], first: int) -> bytes:
    pieces: list[bytes] = []
    room = PAGE_BYTES
    for place in range(max(first, 1) - 1, len(applied)):
        data = applied[place]
        pieces += (_LENGTH.pack(len(data)), data)
        room -= len(data) + _LENGTH.size
        if room <= 0:
            break
    return b"".join(pieces)


class EdgeClient(_Frames):
    """One connection to a node; any number of requests may be under way on it."""

    def __init__(self) -> None:
        super().__init__()
        self._number = 0
        self._waiting: dict[int, asyncio.Future[bytes]] = {}

    @classmethod
    async def connect(cls, host: str, port: int, tls: ssl.SSLContext | None = None) -> EdgeClient:
        """Return a client once it is connected.

        Raises: OSError when nobody listens there, or TLS does not come about.
        """
        loop = asyncio.get_running_loop()
        _, client = await loop.create_connection(cls, host, port, ssl=tls)
        return client

    async def append(self, data: bytes) -> int:
        """Append data and return its place once it is acknowledged.

        Raises: AppendRefused, AppendUnknown.
        """
        place: int = _PLACE.unpack(await self._ask(APPEND, data))[0]
        return place

    async def applied(self) -> list[bytes]:
        """Return all that the node has applied. Raises: AppendUnknown when the connection ends."""
        found: list[bytes] = []
        while page := await self._ask(APPLIED, _PLACE.pack(len(found) + 1)):
            at = 0
            while at < len(page):
                start = at + _LENGTH.size
                at = start + _LENGTH.unpack_from(page, at)[0]
                found.append(page[start:at])
        return found

    async def status(self) -> NodeStatus:
        """Return what the node believes. Raises: AppendUnknown when the connection ends."""
        leads, term, applied = _STATUS.unpack(await self._ask(STATUS, b""))
        return NodeStatus(leads=leads, term=term, applied=applied)

    def close(self) -> None:
        """End the connection; what is under way becomes unknown."""
        if self.transport is not None:
            self.transport.close()

    def _ask(self, code: int, body: bytes) -> asyncio.Future[bytes]:
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        if self.transport is None:
            answer.set_exception(AppendUnknown("the connection has ended"))
            return answer
        self._number = number = (self._number + 1) & 0xFFFFFFFF
        self._waiting[number] = answer
        self.send(number, code, body)
        return answer

    def frame_received(self, number: int, code: int, body: bytes) -> None:
        answer = self._waiting.pop(number, None)
        if answer is None:
            # A number is answered once; a second answer means the node lost track.
            self.abort()
        elif answer.done():
            return
        elif code == DONE:
            answer.set_result(body)
        elif code == REFUSED:
            answer.set_exception(AppendRefused(body.decode("utf-8", "replace")))
        else:
            answer.set_exception(AppendUnknown(body.decode("utf-8", "replace")))

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        waiting, self._waiting = self._waiting, {}
        for answer in waiting.values():
            if not answer.done():
                answer.set_exception(AppendUnknown("the connection ended before the answer"))
