"""What replicas tell each other beside Raft: clock readings, and bytes to repair a file with.

These messages carry no authority over the log: a reading is judged by the clock judge, and repair
bytes are checked against the chain or their own digest before they are used.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from spur.values.errors import PeerFault

__all__ = [
    "BlobPart",
    "ClockAsk",
    "ClockTell",
    "Exchange",
    "FetchBlob",
    "FetchSegment",
    "SegmentPart",
    "decode_exchange",
    "encode_exchange",
]


class _Exchange(
    msgspec.Struct, frozen=True, array_like=True, gc=False, tag_field="kind", kw_only=True
):
    sender: int
    to: int


class ClockAsk(_Exchange, frozen=True, tag=1):
    """Ask for a reading of the wall clock."""

    sent_mono_ns: int
    """The asker's monotonic clock; comes back untouched."""


class ClockTell(_Exchange, frozen=True, tag=2):
    """A reading of the wall clock."""

    sent_mono_ns: int
    wall_ns: int


class FetchSegment(_Exchange, frozen=True, tag=3):
    """Ask for the uncompressed bytes of a ledger segment, from an offset."""

    number: int
    offset: int


class SegmentPart(_Exchange, frozen=True, tag=4):
    """Bytes of a ledger segment; `total` is 0 when the sender does not hold it whole."""

    number: int
    offset: int
    total: int
    data: bytes


class FetchBlob(_Exchange, frozen=True, tag=5):
    """Ask for a blob, from an offset."""

    digest: bytes
    offset: int


class BlobPart(_Exchange, frozen=True, tag=6):
    """Bytes of a blob; `total` is 0 when the sender does not hold it."""

    digest: bytes
    offset: int
    total: int
    data: bytes


Exchange = ClockAsk | ClockTell | FetchSegment | SegmentPart | FetchBlob | BlobPart

_ENCODER = msgspec.msgpack.Encoder()
_DECODER: msgspec.msgpack.Decoder[list[Exchange]] = msgspec.msgpack.Decoder(list[Exchange])


def encode_exchange(messages: Sequence[Exchange]) -> bytes:
    """Return messages as one batch of bytes."""
    return _ENCODER.encode(messages)


def decode_exchange(data: bytes) -> list[Exchange]:
    """Return the messages of one batch. Raises: PeerFault for anything else."""
    try:
        return _DECODER.decode(data)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise PeerFault(f"unreadable exchange from a peer: {error}") from error
