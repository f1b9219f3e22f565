"""Frames: what is sent arrives as it was, and everything else is refused with one sentence."""

from __future__ import annotations

import pytest

from spur.values.errors import PeerFault
from spur.wire.frames import (
    FRAME_BYTES_MAX,
    PAYLOAD_BYTES_MAX,
    FrameDecoder,
    MessageLimit,
    encode_frames,
    framed_size,
)

LIMIT = MessageLimit(name="request", bytes_max=3 * PAYLOAD_BYTES_MAX)


@pytest.mark.parametrize(
    "size",
    [1, 200, PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MAX + 1, 2 * PAYLOAD_BYTES_MAX, LIMIT.bytes_max],
)
def test_message_arrives_as_it_was_sent(size: int) -> None:
    """A message of one byte, of exactly one frame and of several frames all arrive whole."""
    message = bytes(i % 251 for i in range(1000)) * (size // 1000 + 1)
    message = message[:size]
    frames = encode_frames(message)
    assert all(len(frame) <= FRAME_BYTES_MAX for frame in frames)
    assert sum(map(len, frames)) == framed_size(size)
    decoder = FrameDecoder(LIMIT)
    assert decoder.feed(b"".join(frames)) == [message]
    assert decoder.held_bytes == 0
    decoder.finish()


def test_messages_arrive_byte_by_byte() -> None:
    """A slow network delivers one byte at a time; both messages come out, in order."""
    stream = b"".join(encode_frames(b"first") + encode_frames(b"second"))
    decoder = FrameDecoder(LIMIT)
    arrived = [message for byte in stream for message in decoder.feed(bytes([byte]))]
    assert arrived == [b"first", b"second"]


def test_empty_message_is_not_sent() -> None:
    """The format has no empty message, and the sender hears of it, not the receiver."""
    with pytest.raises(ValueError, match="a message of 0 bytes"):
        encode_frames(b"")


def test_frame_too_long_is_refused_at_its_header() -> None:
    """A header claims four gigabytes: it is refused before a byte of them is waited for."""
    with pytest.raises(PeerFault, match=r"^frame too long: 4294967295 bytes; .* at most 262139$"):
        FrameDecoder(LIMIT).feed(b"\xff\xff\xff\xff\x50")


def test_message_too_long_is_refused_by_the_name_of_its_limit() -> None:
    """The fourth frame of a message that may have three is refused at its header."""
    decoder = FrameDecoder(LIMIT)
    whole = (PAYLOAD_BYTES_MAX).to_bytes(4, "big") + b"\x51" + bytes(PAYLOAD_BYTES_MAX)
    decoder.feed(whole + whole)
    with pytest.raises(PeerFault, match=r"^request too long: over 786417 bytes"):
        decoder.feed(whole[:5])


def test_first_message_over_a_small_limit_is_refused() -> None:
    """Someone not yet known sends a large first message; it is refused at its header."""
    decoder = FrameDecoder(MessageLimit(name="greeting", bytes_max=100))
    with pytest.raises(PeerFault, match=r"^greeting too long: over 100 bytes"):
        decoder.feed((101).to_bytes(4, "big") + b"\x50")


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"\x00\x00\x00\x01\x52x",
        b"\x00\x00\x00\x00\x50",
        b"\x00\x00\x00\x05\x51hello",
    ],
    ids=["http", "tls", "unknown-mark", "empty", "short-part"],
)
def test_garbage_is_named(garbage: bytes) -> None:
    """Something else speaks on our port: the sentence says that this is no frame."""
    with pytest.raises(PeerFault, match=r"^garbage where a frame should begin"):
        FrameDecoder(LIMIT).feed(garbage)


def test_cut_inside_a_message_is_said() -> None:
    """The connection ends in the middle of a frame, and between two frames of one message."""
    decoder = FrameDecoder(LIMIT)
    assert decoder.feed(encode_frames(b"hello")[0][:7]) == []
    with pytest.raises(PeerFault, match="cut inside a request: 7 bytes"):
        decoder.finish()
    decoder = FrameDecoder(LIMIT)
    assert decoder.feed(encode_frames(bytes(PAYLOAD_BYTES_MAX + 1))[0]) == []
    with pytest.raises(PeerFault, match=f"cut inside a request: {PAYLOAD_BYTES_MAX} bytes"):
        decoder.finish()


def test_wary_decoder_judges_what_follows_by_the_limit_that_it_is_given_then() -> None:
    """A first message and a longer one come in one piece, before anybody knows who sends them."""
    both = b"".join([*encode_frames(b"hello"), *encode_frames(b"x" * 100)])
    for known in (True, False):
        decoder = FrameDecoder(MessageLimit(name="greeting", bytes_max=10))
        decoder.is_wary = True
        assert decoder.feed(both) == [b"hello"]
        if known:
            decoder.limit = MessageLimit(name="call", bytes_max=100)
            decoder.is_wary = False
            assert decoder.feed(b"") == [b"x" * 100]
        else:
            with pytest.raises(PeerFault, match="greeting too long"):
                decoder.feed(b"")
