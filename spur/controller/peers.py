"""One connection between two replicas: its hello, then one lane of messages.

    Handshake   from the socket to an accepted hello, on either side
    Link        one lane to one peer; dials again and again when this side is the one that dials

Of two replicas the one with the higher id dials: it was added later, so it knows the other, while
the other may not have heard of its addition yet. Every message carries one byte before its payload
that says what it is: 0 keeps the connection alive, 255 tells the other side that it was removed,
any other names a codec.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

import msgspec

from spur.client.address import TcpAddress
from spur.client.stream import Stream
from spur.client.tls import TlsSide
from spur.values.errors import InvariantBroken, PeerFault
from spur.wire.calls import FIRST_MESSAGE_LIMIT, Goodbye
from spur.wire.frames import MessageLimit
from spur.wire.hello import (
    NO_NEWCOMERS,
    HostName,
    Lane,
    PeerIdentity,
    decode_hello,
    encode_hello,
    format_host_name,
    judge_hello,
    not_a_member,
)

__all__ = [
    "NOT_YET",
    "PEER_LIMIT",
    "Addressed",
    "Handshake",
    "Link",
    "NetSettings",
    "PeerAddress",
    "PeerCodec",
    "PeerNetwork",
]

PEER_LIMIT = MessageLimit(name="peer message", bytes_max=16 << 20)
"""An entry of 4 MiB with the 8 MiB of a request's attachments, and room."""

NOT_YET = "not connected yet"
"""The status of a link that was never tried."""

_KEEPALIVE = b"\0"
_FAREWELL = b"\xff"

_REMOVED = "removed"
"""Code of a refusal that comes from the cluster: its caller is no member any more."""


class Addressed(Protocol):
    """What a message must tell of itself."""

    @property
    def sender(self) -> int:
        """Id of the replica that made it."""


M = TypeVar("M", bound=Addressed)


class PeerCodec(NamedTuple, Generic[M]):
    """How one kind of message becomes bytes and back."""

    encode: Callable[[Sequence[M]], bytes]
    decode: Callable[[bytes], Sequence[M]]
    """Raises `PeerFault` for bytes that are no such messages."""


class PeerAddress(msgspec.Struct, frozen=True, gc=False):
    """Where a member is, and on which disk it lives."""

    disk_id: bytes
    address: TcpAddress


@dataclass(frozen=True, kw_only=True, slots=True)
class NetSettings:
    """Limits and times of the connections between replicas."""

    bulk_unsent_bytes_max: int = 512 * 1024
    """What may wait for a peer; further messages are dropped. Source: LOG-CONTRACT 5.10."""
    heartbeat_unsent_bytes_max: int = 64 * 1024
    hello_s: float = 1.0
    """From dialling, or accepting, to an accepted hello."""
    keepalive_s: float = 0.5
    """A lane that was silent for so long says that it is alive."""
    silence_s_max: float = 2.0
    """A peer not heard for so long on a lane is dialled anew: after a cut of the network TCP would
    try the old connection again only after a pause as long as the cut."""
    retry_first_s: float = 0.02
    retry_s_max: float = 0.25
    retry_refused_s: float = 2.0
    """After a refusal, which only a person or another replica can mend."""
    incoming_max: int = 64
    """Accepted connections whose hello has not come yet."""


class PeerNetwork(Generic[M]):
    """What the connections of one replica share; made by `PeerNet`."""

    def __init__(
        self,
        me: PeerIdentity,
        settings: NetSettings,
        codecs: Mapping[int, PeerCodec[M]],
        on_messages: Callable[[int, Sequence[M]], None],
    ) -> None:
        self.me = me
        self.settings = settings
        self.codecs = codecs
        self.on_messages = on_messages
        self.server_tls: ssl.SSLContext | None = None
        self.client_tls: ssl.SSLContext | None = None
        self.disk_ids: dict[int, bytes] = {}
        self.newest_id: Callable[[], int] = lambda: NO_NEWCOMERS
        """Highest id that this replica's log can tell of."""
        self.removed: Callable[[int], None] = lambda peer: None
        """Called when a peer says that this replica was removed."""
        self.links: dict[tuple[int, Lane], Link[M]] = {}
        self.handshakes: set[Handshake[M]] = set()
        self.dropped: dict[int, int] = {}
        """Messages not sent, by peer, since the start."""
        self.changed: Callable[[int], None] = lambda peer: None
        """Called when a link of this peer has another status."""
        self.full: Callable[[int, Lane], None] = lambda peer, lane: None
        """Called when a lane begins to drop messages."""


class Handshake(Generic[M]):
    """A connection until both hellos are accepted; then a link owns it."""

    def __init__(self, network: PeerNetwork[M], link: Link[M] | None) -> None:
        self._network = network
        self._link = link
        """The link that dials; None when the other side dialled."""
        self._stream: Stream | None = None
        self.outcome: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Empty once the hellos are accepted, else why not."""
        self.refused = False
        """Whether one side judged the other to be the wrong one."""

    @property
    def remote_host(self) -> str:
        """The address of the other side, without its port; empty when there never was one."""
        name = self._stream.remote if self._stream is not None else None
        return str(name[0]) if isinstance(name, tuple) else ""

    def make_stream(self) -> Stream:
        """Return the stream of this handshake."""
        network = self._network
        context = network.client_tls if self._link is not None else network.server_tls
        tls = TlsSide(context, server_side=self._link is None) if context is not None else None
        # Who was dialled may send a large message right behind its hello.
        limit = FIRST_MESSAGE_LIMIT if self._link is None else PEER_LIMIT
        self._stream = Stream(self, limit, tls=tls)
        network.handshakes.add(self)
        return self._stream

    def fail(self, sentence: str, *, refused: bool = False, code: str = "foreign-peer") -> None:
        """Give up; the other side hears why when it is a refusal."""
        if self.outcome.done():
            return
        self.refused = refused
        if self._stream is not None and refused:
            self._stream.close(encode_hello(Goodbye(code=code, text=sentence)))
        elif self._stream is not None:
            self._stream.abort()
        self._finish(sentence)

    def _finish(self, outcome: str) -> None:
        self._network.handshakes.discard(self)
        if not self.outcome.done():
            self.outcome.set_result(outcome)

    # -- owner of the stream

    def opened(self, stream: Stream) -> None:
        """Say hello first when dialling."""
        if self._link is not None:
            stream.send(encode_hello(self._network.me.hello(self._link.lane)))
            stream.flush()

    def received(self, stream: Stream, messages: list[bytes]) -> None:
        """Judge the other side's hello."""
        network = self._network
        try:
            hello = decode_hello(messages[0])
        except PeerFault as fault:
            self.fail(str(fault), refused=True)
            return
        if isinstance(hello, Goodbye):
            self.refused = True
            stream.close()
            self._finish(f"it refused this replica: {hello.text}")
            if hello.code == _REMOVED and self._link is not None and self._is_dialled(stream):
                network.removed(self._link.peer)
            return
        dialled = self._link.peer if self._link is not None else None
        names = stream.tls.names() if stream.tls is not None else None
        why = judge_hello(
            hello,
            names,
            network.me,
            network.disk_ids,
            dialled=dialled,
            newest_id=network.newest_id(),
        )
        if why is not None:
            gone = why == not_a_member(hello.node_id)
            self.fail(why, refused=True, code=_REMOVED if gone else "foreign-peer")
            return
        lane = Lane(hello.lane)
        if self._link is None:
            stream.send(encode_hello(network.me.hello(lane)))
            stream.flush()
        link = self._link or network.links.get((hello.node_id, lane))
        if link is None:
            link = Link(network, hello.node_id, lane, None)
            network.links[hello.node_id, lane] = link
        self._finish("")
        link.disk_id = hello.disk_id
        link.adopt(stream)
        if messages[1:]:
            link.received(stream, messages[1:])

    def _is_dialled(self, stream: Stream) -> bool:
        """Whether the other side is who was dialled, by its certificate."""
        if self._link is None or stream.tls is None:
            return False
        cluster_id = self._network.me.cluster_id
        name = HostName(cluster_id=cluster_id, role="controller", id=self._link.peer)
        return stream.tls.names() == (format_host_name(name),)

    def faulted(self, stream: Stream, sentence: str) -> None:
        """Give up: TLS failed or what came is no hello."""
        self.fail(sentence, refused=True)

    def drained(self, stream: Stream) -> None:
        """Nothing to do: a handshake never waits to send."""

    def closed(self, stream: Stream) -> None:
        """Give up, unless the outcome is known."""
        self._finish("it closed the connection before its hello")


class Link(Generic[M]):
    """One lane to one peer."""

    def __init__(
        self, network: PeerNetwork[M], peer: int, lane: Lane, address: TcpAddress | None
    ) -> None:
        self._network = network
        self.peer = peer
        self.lane = lane
        self.address = address
        """None for a member of whose addition this replica has not heard yet; it dials."""
        self.disk_id = b""
        """As its hello said; empty before that."""
        self.status = NOT_YET
        """Empty while connected, else why not, as the end of a sentence about the peer."""
        self._stream: Stream | None = None
        self._ended = asyncio.Event()
        self._dialler: asyncio.Task[None] | None = None
        self._heard = False
        self._sent = False
        self._silent_s = 0.0
        self._dropping = False
        self._dropped_lately = False
        settings = network.settings
        self._unsent_bytes_max = (
            settings.bulk_unsent_bytes_max
            if lane is Lane.BULK
            else settings.heartbeat_unsent_bytes_max
        )

    # -- life

    def dial(self) -> None:
        """Keep this link connected from this side until `close`."""
        self._dialler = asyncio.get_running_loop().create_task(self._dial_always())

    def dismiss(self) -> None:
        """End the link, and let the peer know that it is no member any more."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close(_FAREWELL)
        self.close()

    def close(self) -> asyncio.Task[None] | None:
        """End the link for ever; return the task that must be waited for, if there is one."""
        if self._stream is not None:
            self._stream.abort()
        if self._dialler is not None:
            self._dialler.cancel()
        return self._dialler

    def adopt(self, stream: Stream) -> None:
        """Use a connection whose hello was accepted; a former one is ended."""
        former, self._stream = self._stream, stream
        stream.owner = self
        stream.decoder.limit = PEER_LIMIT
        self._ended.clear()
        self._heard, self._silent_s, self._dropping = True, 0.0, False
        if former is not None:
            former.abort()
        self._set_status("")

    def watch(self, passed_s: float) -> None:
        """Keep the connection alive, or end it when the peer has been silent for too long."""
        stream = self._stream
        if stream is None:
            return
        if not self._dropped_lately:
            self._dropping = False
        self._dropped_lately = False
        self._silent_s = 0.0 if self._heard else self._silent_s + passed_s
        self._heard = False
        silence_s_max = self._network.settings.silence_s_max
        if self._silent_s >= silence_s_max:
            stream.abort()
            self._lost(f"nothing was heard for {silence_s_max:g} s")
            return
        if not self._sent:
            stream.send(_KEEPALIVE)
        self._sent = False

    # -- messages

    def send(self, kind: int, messages: Sequence[M]) -> None:
        """Send messages of one kind, as one frame and at once; drop them when they don't fit."""
        stream = self._stream
        if stream is None:
            self._drop(len(messages))
            return
        if stream.unsent_bytes >= self._unsent_bytes_max:
            self._drop_as_full(len(messages))
            return
        payload = self._network.codecs[kind].encode(messages)
        size = len(payload)
        unsent = stream.unsent_bytes
        fits = not unsent or unsent + size <= self._unsent_bytes_max
        if fits and size < PEER_LIMIT.bytes_max:
            self._sent = True
            stream.send(bytes((kind,)) + payload)
            stream.flush()
        elif len(messages) > 1:
            half = len(messages) // 2
            self.send(kind, messages[:half])
            self.send(kind, messages[half:])
        elif not fits:
            self._drop_as_full(1)
        else:
            raise InvariantBroken(
                f"one message of {size} bytes for replica {self.peer}; at most"
                f" {PEER_LIMIT.bytes_max - 1} can be sent"
            )

    def _drop_as_full(self, count: int) -> None:
        self._dropped_lately = True
        if not self._dropping:
            self._dropping = True
            self._network.full(self.peer, self.lane)
        self._drop(count)

    def _drop(self, count: int) -> None:
        dropped = self._network.dropped
        dropped[self.peer] = dropped.get(self.peer, 0) + count

    # -- owner of the stream

    def opened(self, stream: Stream) -> None:
        """Nothing to do: a link owns a stream only after its hello."""

    def received(self, stream: Stream, messages: list[bytes]) -> None:
        """Decode and hand on what the peer sent."""
        self._heard = True
        network = self._network
        try:
            for message in messages:
                if message == _KEEPALIVE:
                    continue
                if message == _FAREWELL:
                    network.removed(self.peer)
                    continue
                codec = network.codecs.get(message[0])
                if codec is None:
                    raise PeerFault(f"it sent a message of kind {message[0]}, which nobody knows")
                batch = codec.decode(message[1:])
                for told in batch:
                    if told.sender != self.peer:
                        raise PeerFault(f"it sent a message as replica {told.sender}")
                network.on_messages(self.peer, batch)
        except PeerFault as fault:
            self.faulted(stream, str(fault))

    def faulted(self, stream: Stream, sentence: str) -> None:
        """End the connection that broke the rules."""
        stream.abort()
        if stream is self._stream:
            self._lost(sentence)

    def drained(self, stream: Stream) -> None:
        """Nothing to do: a full link drops."""

    def closed(self, stream: Stream) -> None:
        """Hear that a connection is gone; the former one of two says nothing."""
        if stream is self._stream:
            self._lost("the connection ended")

    def _lost(self, sentence: str) -> None:
        self._stream = None
        self._ended.set()
        self._set_status(sentence)

    # -- dialling

    async def _dial_always(self) -> None:
        settings = self._network.settings
        delay_s = settings.retry_first_s
        while True:
            sentence, refused = await self._dial_once()
            if not sentence:
                await self._ended.wait()
                delay_s = settings.retry_first_s
            else:
                self._set_status(sentence)
            await asyncio.sleep(settings.retry_refused_s if refused else delay_s)
            delay_s = min(2 * delay_s, settings.retry_s_max)

    async def _dial_once(self) -> tuple[str, bool]:
        """Return why no connection came to be, empty when one did, and whether it was refused."""
        if self.address is None:
            raise InvariantBroken(f"replica {self.peer} is to be dialled, and nobody knows where")
        handshake = Handshake(self._network, self)
        loop = asyncio.get_running_loop()
        sentence = f"no answer within {self._network.settings.hello_s:g} s"
        try:
            async with asyncio.timeout(self._network.settings.hello_s):
                await loop.create_connection(handshake.make_stream, *self.address)
                sentence = await asyncio.shield(handshake.outcome)
        except TimeoutError:
            handshake.fail(sentence)
            sentence = handshake.outcome.result()
        except OSError as error:
            sentence = f"it cannot be reached: {_os_sentence(error)}"
            handshake.fail(sentence)
        except asyncio.CancelledError:
            handshake.fail("this replica stops")
            raise
        return sentence, handshake.refused

    def _set_status(self, status: str) -> None:
        if status != self.status:
            self.status = status
            self._network.changed(self.peer)


def _os_sentence(error: OSError) -> str:
    """Return what went wrong, without the address that differs between tries."""
    return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
