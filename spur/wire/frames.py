"""Frames: how messages are cut out of a stream of bytes.

A frame is a header of five bytes and a payload:

    u32 payload length, big-endian | u8 mark | payload

The mark is 0x50 for the last frame of a message and 0x51 (MORE) when the message goes on in the
next frame. A frame is at most 256 KiB, header included; a frame with MORE is exactly that long, so
a message has one spelling and at most ceil(limit / frame) parts. Messages are never empty and are
never interleaved.

Everything that can be refused is refused at the header, before its payload is waited for.
"""

from __future__ import annotations

from struct import Struct

import msgspec

from spur.values.errors import PeerFault

__all__ = [
    "FRAME_BYTES_MAX",
    "HEADER_SIZE",
    "PAYLOAD_BYTES_MAX",
    "FrameDecoder",
    "MessageLimit",
    "encode_frames",
    "framed_size",
]

FRAME_BYTES_MAX = 256 * 1024
"""Bytes of the longest frame, header included."""

HEADER_SIZE = 5
PAYLOAD_BYTES_MAX = FRAME_BYTES_MAX - HEADER_SIZE

_LAST = 0x50
_MORE = 0x51
_HEADER = Struct(">IB")


class MessageLimit(msgspec.Struct, frozen=True, gc=False):
    """A named bound on the bytes of one message."""

    name: str
    """What the message is, as the sentence of a refusal calls it."""
    bytes_max: int


def framed_size(size: int) -> int:
    """Return the bytes that a message of this size takes on the wire."""
    return size + HEADER_SIZE * (-(-size // PAYLOAD_BYTES_MAX))


def encode_frames(message: bytes) -> list[bytes]:
    """Return the frames of a message, to be written one after the other.

    Raises: ValueError for an empty message, which the format does not have.
    """
    size = len(message)
    if size <= PAYLOAD_BYTES_MAX:
        if not size:
            raise ValueError("a message of 0 bytes; a message has at least one")
        return [_HEADER.pack(size, _LAST) + message]
    frames: list[bytes] = []
    whole = (size - 1) // PAYLOAD_BYTES_MAX * PAYLOAD_BYTES_MAX
    for start in range(0, whole, PAYLOAD_BYTES_MAX):
        part = message[start : start + PAYLOAD_BYTES_MAX]
        frames.append(_HEADER.pack(PAYLOAD_BYTES_MAX, _MORE) + part)
    frames.append(_HEADER.pack(size - whole, _LAST) + message[whole:])
    return frames


class FrameDecoder:
    """Turns received bytes into messages, holding at most one unfinished message.

    After a `PeerFault` the stream has lost its footing and the decoder must not be fed again.
    """

    __slots__ = ("_buffer", "_parts", "_parts_size", "is_wary", "limit")

    def __init__(self, limit: MessageLimit) -> None:
        self.limit = limit
        """May be exchanged between messages: a peer that is not known yet gets a small one."""
        self.is_wary = False
        """Whether it hands out one message at a time and looks no further: who gets that message
        may exchange the limit for what lies behind it, which `feed` then finds."""
        self._buffer = bytearray()
        self._parts: list[bytes] = []
        self._parts_size = 0

    @property
    def held_bytes(self) -> int:
        """Bytes of an unfinished message that wait for the rest."""
        return len(self._buffer) + self._parts_size

    def feed(self, data: bytes) -> list[bytes]:
        """Return the messages that these bytes finish, oldest first.

        Raises: PeerFault for what is no frame, and for a frame or message over its limit. Messages
        that came before the fault in the same bytes are dropped with it.
        """
        buffer = self._buffer
        source: bytes | bytearray = data
        if buffer:
            buffer += data
            source = buffer
        messages: list[bytes] = []
        start, end = 0, len(source)
        while end - start >= HEADER_SIZE and not (self.is_wary and messages):
            length, mark = _HEADER.unpack_from(source, start)
            self._check(length, mark)
            stop = start + HEADER_SIZE + length
            if stop > end:
                break
            payload = bytes(memoryview(source)[start + HEADER_SIZE : stop])
            start = stop
            if mark == _MORE:
                self._parts.append(payload)
                self._parts_size += length
            elif self._parts:
                self._parts.append(payload)
                messages.append(b"".join(self._parts))
                self._parts = []
                self._parts_size = 0
            else:
                messages.append(payload)
        if source is buffer:
            del buffer[:start]
        elif start < end:
            buffer += memoryview(data)[start:]
        return messages

    def finish(self) -> None:
        """Check that the stream ends between two messages.

        Raises: PeerFault when it was cut inside one.
        """
        if self.held_bytes:
            raise PeerFault(
                f"the connection was cut inside a {self.limit.name}: {self.held_bytes} bytes of it"
                " had come; nothing of it was used"
            )

    def _check(self, length: int, mark: int) -> None:
        """Refuse what the header alone shows to be wrong."""
        if mark != _LAST and mark != _MORE:
            raise PeerFault(
                f"garbage where a frame should begin: mark 0x{mark:02x}; a frame has"
                f" 0x{_LAST:02x} or 0x{_MORE:02x}"
            )
        if length > PAYLOAD_BYTES_MAX:
            raise PeerFault(
                f"frame too long: {length} bytes; a frame holds at most {PAYLOAD_BYTES_MAX}"
            )
        if length == 0 or (mark == _MORE and length != PAYLOAD_BYTES_MAX):
            raise PeerFault(
                f"garbage where a frame should begin: a part of {length} bytes; a last part has at"
                f" least 1, every other exactly {PAYLOAD_BYTES_MAX}"
            )
        size = self._parts_size + length
        if size > self.limit.bytes_max or (mark == _MORE and size == self.limit.bytes_max):
            raise PeerFault(
                f"{self.limit.name} too long: over {self.limit.bytes_max} bytes, its limit;"
                " nothing of it was used"
            )
