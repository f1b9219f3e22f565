"""A client's connection to one replica: greeting, then many calls at once."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable

from spur.client.address import Address, UnixAddress
from spur.client.pursuit import Cluster
from spur.client.stream import Stream
from spur.client.tls import TlsSide
from spur.values.errors import PeerFault, SpurError
from spur.wire.calls import (
    FROM_REPLICA_LIMIT,
    REQUEST_ID_SIZE,
    WIRE_VERSION,
    Call,
    Goodbye,
    Greeting,
    Reply,
    Welcome,
    decode_from_replica,
    encode,
)
from spur.wire.cluster import ShowReplica
from spur.wire.declare import encode_request

__all__ = ["Connection", "Lost"]

PROBE = encode_request(ShowReplica())
"""What every replica answers at once, by itself."""

PROBE_S = 0.1
"""Between two probes of one connection."""


class Lost(SpurError):
    """A connection could not be made, or ended before the reply."""

    def __init__(self, sentence: str, goodbye: Goodbye | None = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.goodbye = goodbye


class Connection:
    """Owner of one stream of a client."""

    def __init__(self, cluster: Cluster, context: ssl.SSLContext | None) -> None:
        tls = TlsSide(context, server_side=False) if context is not None else None
        self.stream = Stream(self, FROM_REPLICA_LIMIT, tls=tls)
        self.heard = 0
        """Grows with whatever the replica sends."""
        self._cluster = cluster
        self._welcome: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting: dict[int, asyncio.Future[Reply]] = {}
        self._number = 0
        self._lost: Lost | None = None
        self._probed_s = -PROBE_S

    @classmethod
    async def open(
        cls, address: Address, cluster: Cluster, context: ssl.SSLContext | None
    ) -> Connection:
        """Return a connection that has been welcomed. Raises: Lost."""
        loop = asyncio.get_running_loop()
        connection = cls(cluster, None if isinstance(address, UnixAddress) else context)
        try:
            if isinstance(address, UnixAddress):
                await loop.create_unix_connection(lambda: connection.stream, address.path)
            else:
                await loop.create_connection(lambda: connection.stream, *address)
        except OSError as error:
            raise Lost(os.strerror(error.errno) if error.errno else str(error)) from error
        try:
            await asyncio.shield(connection._welcome)
        except asyncio.CancelledError:
            connection.stream.abort()
            raise
        return connection

    @property
    def is_lost(self) -> bool:
        """Whether nothing can be asked any more."""
        return self._lost is not None

    async def ask(self, make: Callable[[int], Call]) -> Reply:
        """Send a call, made for the next number, and return its reply. Raises: Lost."""
        if self._lost is not None:
            raise self._lost
        self._number += 1
        number = self._number
        reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting[number] = reply
        try:
            self.stream.send(encode(make(number)))
            return await reply
        finally:
            self._waiting.pop(number, None)

    def probe(self) -> None:
        """Ask for a sign of life, once for all who wait: whatever comes counts in `heard`."""
        now_s = asyncio.get_running_loop().time()
        if self._lost is None and now_s - self._probed_s >= PROBE_S:
            self._probed_s = now_s
            self._number += 1
            incarnation, index = self._cluster.incarnation, self._cluster.index
            call = Call(self._number, bytes(REQUEST_ID_SIZE), index, incarnation, 0, None, PROBE)
            self.stream.send(encode(call))

    def end(self, sentence: str, goodbye: Goodbye | None = None) -> None:
        """Give the connection up; whoever waits for a reply hears why."""
        if self._lost is None:
            self._lost = Lost(sentence, goodbye)
            if not self._welcome.done():
                self._welcome.set_exception(self._lost)
                self._welcome.exception()
            for reply in self._waiting.values():
                if not reply.done():
                    reply.set_exception(Lost(sentence, goodbye))
        self.stream.close()

    # -- owner of the stream

    def opened(self, stream: Stream) -> None:
        """Check whom the certificate names, and greet."""
        if stream.tls is not None:
            why = self._cluster.judge_host(stream.tls.names())
            if why is not None:
                self.end(why, Goodbye(code="foreign-peer", text=why))
                return
        greeting = Greeting(version=WIRE_VERSION, cluster_id=self._cluster.cluster_id)
        stream.send(encode(greeting))
        stream.flush()

    def received(self, stream: Stream, messages: list[bytes]) -> None:
        """Give replies to those who wait for them."""
        self.heard += 1
        try:
            for data in messages:
                self._take(decode_from_replica(data))
        except PeerFault as fault:
            self.faulted(stream, str(fault))

    def faulted(self, stream: Stream, sentence: str) -> None:
        """Give up a connection that broke the rules."""
        self.end(sentence, Goodbye(code="protocol", text=sentence))

    def drained(self, stream: Stream) -> None:
        """Nothing to do: whoever asks waits for the reply."""

    def closed(self, stream: Stream) -> None:
        """Hear that the socket is gone."""
        self.end("the connection ended")

    def _take(self, message: Welcome | Reply | Goodbye) -> None:
        if isinstance(message, Reply):
            reply = self._waiting.get(message.number)
            if reply is not None and not reply.done():
                reply.set_result(message)
        elif isinstance(message, Goodbye):
            self.end(message.text, message)
        elif not self._welcome.done():
            why = self._cluster.judge_welcome(message)
            if why is not None:
                self.end(why, Goodbye(code="foreign-peer", text=why))
            else:
                self._welcome.set_result(None)
