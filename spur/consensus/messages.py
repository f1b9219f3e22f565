"""What replicas say to each other: plain values with integer tags, and their bounded codec.

Tags and the order of fields are the protocol between releases: add at the end, never reuse.
Pure; who may send what is the transport's business (mutual TLS), what it means is the core's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypeAlias

import msgspec

from spur.events.envelope import Entry
from spur.values.errors import PeerFault

__all__ = [
    "ENCODED_BYTES_MAX",
    "MESSAGES_MAX",
    "Append",
    "AppendReply",
    "BarrierAsk",
    "BarrierTell",
    "Heartbeat",
    "HeartbeatReply",
    "Message",
    "PreVote",
    "PreVoteReply",
    "ReplicaId",
    "SnapshotChunk",
    "SnapshotReply",
    "TimeoutNow",
    "Vote",
    "VoteReply",
    "decode_messages",
    "encode_messages",
]

ENCODED_BYTES_MAX = 32 << 20
"""Longest batch of messages that is decoded; one entry of 4 MiB with its blobs fits well."""

MESSAGES_MAX = 4096
"""Most messages of one batch."""

ReplicaId: TypeAlias = int
"""1 to 16 for members of the genesis, else the index of the membership entry plus 15."""

Natural: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]


class PreVote(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=1):
    """Would you vote for me? Asked before a term is raised, so that nobody is disturbed."""

    sender: Natural
    to: Natural
    term: Natural
    """The term that the sender would campaign in: one above its own."""
    last: Natural
    last_term: Natural


class PreVoteReply(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=2):
    """The answer to a pre-vote; it promises nothing."""

    sender: Natural
    to: Natural
    term: Natural
    """The term asked for when granted, else the sender's own."""
    granted: bool


class Vote(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=3):
    """Vote for me in this term."""

    sender: Natural
    to: Natural
    term: Natural
    last: Natural
    last_term: Natural
    transfer: bool = False
    """The leader itself asked for this campaign, so a live leader is no reason to refuse."""


class VoteReply(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=4):
    """The answer to a vote request; a granted one was durable before it left."""

    sender: Natural
    to: Natural
    term: Natural
    granted: bool


class Append(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=5):
    """Entries that follow (prev, prev_term); empty to ask whether that one is there."""

    sender: Natural
    to: Natural
    term: Natural
    prev: Natural
    prev_term: Natural
    commit: Natural
    acked: Natural
    """The highest index that the receiver has acknowledged to this leader as durable. A receiver
    whose log does not reach it has lost what it promised to keep."""
    entries: tuple[Entry, ...] = ()


class AppendReply(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=6):
    """The answer to an append; an acknowledgement was durable before it left."""

    sender: Natural
    to: Natural
    term: Natural
    prev: Natural
    """The prev index that this answers; a refusal is of this one and no other."""
    index: Natural
    """Acknowledged up to here; in a refusal, where the logs may still agree."""
    refused: bool = False
    hint_term: Natural = 0
    """In a refusal, the term of the sender's entry at `index`."""
    lost: bool = False
    """In a refusal: the sender had acknowledged this index and does not hold it any more."""


class Heartbeat(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=7):
    """I lead this term. Small, and on a connection of its own."""

    sender: Natural
    to: Natural
    term: Natural
    commit: Natural
    """At most what the receiver has acknowledged, so it needs no comparison of logs."""
    round: Natural
    """The newest round of read barriers; echoed."""


class HeartbeatReply(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=8):
    """You lead, as far as I know."""

    sender: Natural
    to: Natural
    term: Natural
    round: Natural


class SnapshotChunk(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=9):
    """One chunk of the snapshot at (index, index_term); number 0 is the manifest."""

    sender: Natural
    to: Natural
    term: Natural
    index: Natural
    index_term: Natural
    number: Natural
    count: Natural
    """Chunks in all, the manifest included."""
    data: bytes


class SnapshotReply(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=10):
    """How far the snapshot at `index` is durable on the sender."""

    sender: Natural
    to: Natural
    term: Natural
    index: Natural
    next: Natural
    """The number of the chunk wanted next."""
    done: bool = False
    """The sender's log reaches `index`: by this snapshot, or it did before."""


class TimeoutNow(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=11):
    """Campaign at once: the leader hands the lead over."""

    sender: Natural
    to: Natural
    term: Natural


class BarrierAsk(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=12):
    """A follower asks its leader which index a read must have seen."""

    sender: Natural
    to: Natural
    term: Natural
    number: Natural
    """Chosen by the follower; no two of its questions share one, not even over a restart."""


class BarrierTell(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=13):
    """The answer to a barrier question."""

    sender: Natural
    to: Natural
    term: Natural
    number: Natural
    index: Natural
    """0 when the sender does not lead (any more)."""


Message: TypeAlias = (
    PreVote
    | PreVoteReply
    | Vote
    | VoteReply
    | Append
    | AppendReply
    | Heartbeat
    | HeartbeatReply
    | SnapshotChunk
    | SnapshotReply
    | TimeoutNow
    | BarrierAsk
    | BarrierTell
)

_ENCODER = msgspec.msgpack.Encoder()
_DECODER: msgspec.msgpack.Decoder[list[Message]] = msgspec.msgpack.Decoder(list[Message])


def encode_messages(messages: Sequence[Message]) -> bytes:
    """Return messages as one batch of bytes."""
    return _ENCODER.encode(messages)


def decode_messages(data: bytes) -> list[Message]:
    """Return the messages of one batch.

    Raises: PeerFault when the batch is too long, holds too many messages, or is not of them.
    """
    if len(data) > ENCODED_BYTES_MAX:
        raise PeerFault(
            f"batch of {len(data)} bytes from a peer, at most {ENCODED_BYTES_MAX} are read; "
            "nothing of it was taken"
        )
    try:
        messages = _DECODER.decode(data)
    except (msgspec.MsgspecError, RecursionError) as fault:
        raise PeerFault(f"unreadable batch from a peer: {fault}") from fault
    if len(messages) > MESSAGES_MAX:
        raise PeerFault(
            f"batch of {len(messages)} messages from a peer, at most {MESSAGES_MAX} are read; "
            "nothing of it was taken"
        )
    return messages
