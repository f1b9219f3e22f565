"""Frames under arbitrary messages, arbitrary cuts of the stream, and arbitrary bytes."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from spur.values.errors import PeerFault
from spur.wire.calls import decode_from_client, decode_from_replica
from spur.wire.frames import PAYLOAD_BYTES_MAX, FrameDecoder, MessageLimit, encode_frames

LIMIT = MessageLimit(name="request", bytes_max=4 * PAYLOAD_BYTES_MAX)
SIZES = st.sampled_from([1, 2, 5, 6, 300, PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MAX + 1])


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(SIZES, max_size=6), st.lists(st.integers(0, 1_600_000), max_size=8))
def test_messages_survive_any_cutting_of_the_stream(sizes: list[int], cuts: list[int]) -> None:
    """However the network cuts the stream, the same messages come out in the same order."""
    messages = [bytes([n % 256]) * size for n, size in enumerate(sizes)]
    stream = b"".join(frame for message in messages for frame in encode_frames(message))
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    decoder = FrameDecoder(LIMIT)
    arrived = [
        message for first, last in pairwise(places) for message in decoder.feed(stream[first:last])
    ]
    assert arrived == messages
    decoder.finish()


@settings(max_examples=500, deadline=None, derandomize=True)
@given(st.lists(st.binary(max_size=64), max_size=8))
def test_garbage_never_does_more_than_refuse(chunks: list[bytes]) -> None:
    """Random bytes end in a refusal or in waiting for more, with bounded memory."""
    decoder = FrameDecoder(LIMIT)
    for chunk in chunks:
        try:
            decoder.feed(chunk)
        except PeerFault:
            break
        assert decoder.held_bytes <= 8 * 64


@settings(max_examples=1000, deadline=None, derandomize=True)
@given(st.binary(max_size=200))
def test_random_messages_never_do_more_than_refuse(data: bytes) -> None:
    """Random bytes inside good frames are a message or one sentence, for both sides."""
    for decode in (decode_from_client, decode_from_replica):
        refusal = ""
        try:
            decode(data)
        except PeerFault as fault:
            refusal = str(fault)
        assert not refusal or "cannot be read" in refusal
