"""A stream of messages over one socket, plain or under TLS.

    socket <-> (TLS) <-> frames <-> owner

Everything sent within one turn of the loop leaves in one write. TLS runs here on memory buffers
and not in the loop's own transport: it costs less that way, a failed handshake is seen by its
reason, and nothing depends on how a loop spells it.

A stream that is closed says its last word, stops sending, and reads on for a moment without
looking: closing a socket with unread bytes makes the kernel throw away the last word as well.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from typing import Protocol, cast

from spur.client.tls import TlsSide, tls_sentence
from spur.values.errors import PeerFault
from spur.wire.frames import FrameDecoder, MessageLimit, encode_frames

__all__ = ["LINGER_S", "Stream", "StreamOwner"]

LINGER_S = 1.0
"""How long a closed stream waits for the other side to read its last word."""

_WRITE_BYTES_MAX = 512 * 1024
"""Handed to the socket in one turn of the loop; bounds the time that encryption takes of it."""


class StreamOwner(Protocol):
    """Who uses a stream; its methods are called from the loop."""

    def opened(self, stream: Stream) -> None:
        """Hear that the stream is ready, its TLS handshake included."""

    def received(self, stream: Stream, messages: list[bytes]) -> None:
        """Take the messages that have come, oldest first."""

    def faulted(self, stream: Stream, sentence: str) -> None:
        """Hear why nothing more will come; the owner closes the stream, with or without a word."""

    def drained(self, stream: Stream) -> None:
        """Hear, once `tell_when_drained` was set, that the socket took what was queued."""

    def closed(self, stream: Stream) -> None:
        """Hear that the socket is gone; called once for each stream that was connected."""


class Stream(asyncio.Protocol):
    """Messages over one connection; see the head of this file."""

    def __init__(
        self,
        owner: StreamOwner,
        limit: MessageLimit,
        *,
        tls: TlsSide | None = None,
    ) -> None:
        self.owner = owner
        self.decoder = FrameDecoder(limit)
        self.tls = tls
        self.closing = False
        """True once `close` was called or a fault was met: nothing more is sent or read."""
        self.relieved = 0
        """How often the socket took more after it was stuck: whether a slow reader reads at all."""
        self.tell_when_drained = False
        """Set by an owner that waits, while bytes are queued or the socket is stuck."""
        self.remote: object = None
        """The other side's address as the kernel gives it; kept when the connection is gone."""
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._frames: deque[bytes] = deque()
        self._frames_size = 0
        self._flushing = False
        self._write_paused = False
        self._read_paused = False
        self._ended = False
        self._linger: asyncio.TimerHandle | None = None

    # -- for the owner

    @property
    def unsent_bytes(self) -> int:
        """Bytes given to `send` that the kernel has not taken."""
        transport = self._transport
        waiting = transport.get_write_buffer_size() if transport is not None else 0
        return self._frames_size + waiting

    @property
    def queued_bytes(self) -> int:
        """Bytes given to `send` that the socket was not given yet."""
        return self._frames_size

    @property
    def is_stuck(self) -> bool:
        """Whether the socket takes nothing at present."""
        return self._write_paused

    def extra(self, name: str) -> object:
        """Return what asyncio knows of the connection by this name; None when it is gone."""
        return self._transport.get_extra_info(name) if self._transport is not None else None

    def send(self, message: bytes) -> None:
        """Send a message with everything else of this turn of the loop; a no-op when closing."""
        if self.closing:
            return
        for frame in encode_frames(message):
            self._frames.append(frame)
            self._frames_size += len(frame)
        if not self._flushing and not self._write_paused:
            self._flushing = True
            self._loop.call_soon(self._flush)

    def flush(self) -> None:
        """Write now what waits, for a sender that has gathered all it has."""
        if self._frames and not self._write_paused and not self.closing:
            self._flush()

    def pause_reading(self) -> None:
        """Take nothing more from the socket until `resume_reading`."""
        if self._transport is not None and not self.closing and not self._read_paused:
            self._read_paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read again."""
        if self._transport is not None and self._read_paused:
            self._read_paused = False
            self._transport.resume_reading()

    def close(self, last: bytes | None = None, *, linger_s: float = LINGER_S) -> None:
        """Send what waits and this last message, then end the connection.

        What the other side has not read after `linger_s` is lost.
        """
        if self.closing:
            return
        if last is not None and (self.tls is None or self.tls.done):
            self.send(last)
        self.closing = True
        if self._transport is None:
            return
        self._linger = self._loop.call_later(linger_s, self.abort)
        self.resume_reading()
        if not self._write_paused:
            self._flush()

    def abort(self) -> None:
        """End the connection now, or as soon as it is made; what waits is not sent."""
        self.closing = True
        if self._transport is not None:
            self._transport.abort()

    # -- for the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, with the TLS handshake if there is one."""
        self._transport = cast(asyncio.Transport, transport)
        self.remote = transport.get_extra_info("peername")
        self._transport.set_write_buffer_limits(high=_WRITE_BYTES_MAX)
        if self.closing:
            self._transport.abort()
        elif self.tls is None:
            self.owner.opened(self)
        else:
            self._handshake(self.tls)

    def data_received(self, data: bytes) -> None:
        """Decrypt, cut into messages and hand on what came."""
        if self.closing:
            return
        tls = self.tls
        if tls is not None:
            tls.incoming.write(data)
            if not tls.done:
                self._handshake(tls)
                if not tls.done or self.closing:
                    return
            try:
                data = tls.decrypt()
            except ssl.SSLError as error:
                self.owner.faulted(self, tls_sentence(error))
                return
            if tls.outgoing.pending:
                self._write(tls.outgoing.read())
            if not data:
                return
        try:
            messages = self.decoder.feed(data)
            while messages:
                self.owner.received(self, messages)
                if self.closing:
                    return
                # What a wary decoder kept behind the first message may be whole already.
                messages = self.decoder.feed(b"") if self.decoder.held_bytes else []
        except PeerFault as fault:
            self.owner.faulted(self, str(fault))

    def eof_received(self) -> bool:
        """End the connection when the other side has nothing more to say."""
        if not self.closing:
            try:
                self.decoder.finish()
            except PeerFault as fault:
                self.owner.faulted(self, str(fault))
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the owner that the socket is gone."""
        self.closing = True
        if self._linger is not None:
            self._linger.cancel()
            self._linger = None
        self._transport = None
        self._frames.clear()
        self._frames_size = 0
        self.owner.closed(self)

    def pause_writing(self) -> None:
        """Keep what is sent: the socket takes no more."""
        self._write_paused = True

    def resume_writing(self) -> None:
        """Send what was kept."""
        self._write_paused = False
        self.relieved += 1
        if not self._flushing:
            self._flush()

    # -- inside

    def _handshake(self, tls: TlsSide) -> None:
        try:
            done = tls.handshake()
        except ssl.SSLError as error:
            self._write(tls.outgoing.read())
            self.owner.faulted(self, tls_sentence(error))
            return
        self._write(tls.outgoing.read())
        if done:
            self.owner.opened(self)

    def _flush(self) -> None:
        """Write what waits, as much as one turn may; end the connection once all is written."""
        self._flushing = False
        frames = self._frames
        if frames and self._transport is not None:
            if self._frames_size <= _WRITE_BYTES_MAX:
                data = b"".join(frames) if len(frames) > 1 else frames[0]
                frames.clear()
                self._frames_size = 0
            else:
                data = self._some_frames()
            self._write(data if self.tls is None else self.tls.encrypt(data))
            if frames and not self._write_paused:
                self._flushing = True
                self._loop.call_soon(self._flush)
        if self.tell_when_drained and not frames and not self._write_paused and not self.closing:
            self.tell_when_drained = False
            self.owner.drained(self)
        if self.closing and not frames and not self._ended and self._transport is not None:
            self._ended = True
            if self.tls is not None:
                self._write(self.tls.farewell())
            if self._transport.can_write_eof():
                self._transport.write_eof()

    def _some_frames(self) -> bytes:
        """Take as many frames as one write may hold, at least one."""
        taken: list[bytes] = []
        size = 0
        while self._frames and (not taken or size + len(self._frames[0]) <= _WRITE_BYTES_MAX):
            frame = self._frames.popleft()
            taken.append(frame)
            size += len(frame)
        self._frames_size -= size
        return b"".join(taken)

    def _write(self, data: bytes) -> None:
        if data and self._transport is not None:
            self._transport.write(data)
