"""What replicas tell each other beside Raft: clock readings, and bytes to repair a file with.

These messages carry no authority over the log: a reading is judged by the clock judge, and repair
bytes are checked against the chain or their own digest before they are used. A new controller gets
the key of the certificates' authority the same way; the shell deals with that.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from spur.values.errors import PeerFault

__all__ = [
    "AuthorityAsk",
    "AuthorityTell",
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
    """A reading of the wall clock, and how far the sender is."""

    sent_mono_ns: int
    wall_ns: int
    stable: int
    """Up to here its log is durable."""
    history_from: int
    """First index from which on its ledger is whole."""
    erased_to: int
    """What entries up to here erased is gone there."""
    free_mib: int
    """Free space on its disk; -1 when it has not looked yet."""
    has_authority: bool = False
    """Whether it can sign certificates; who does not tell is believed to be unable."""


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


class AuthorityAsk(_Exchange, frozen=True, tag=7):
    """Ask for the cluster's authority: what a controller lacks that was added later."""


class AuthorityTell(_Exchange, frozen=True, tag=8):
    """The cluster's authority, as PEM. Goes from member to member over mutual TLS alone."""

    certificate: bytes
    key: bytes


Exchange = (
    ClockAsk
    | ClockTell
    | FetchSegment
    | SegmentPart
    | FetchBlob
    | BlobPart
    | AuthorityAsk
    | AuthorityTell
)

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
