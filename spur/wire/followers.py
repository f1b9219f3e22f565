"""What the front and the processes that follow the log say to each other, over their own socket.

    front                              scheduler, projector
                                   <-  Follow(incarnation, index): all behind this
    Entries(entries, commit)       ->
    Role(leads, term)              ->
    Restart(why): begin anew       ->
                                   <-  Reached(index)
                                   <-  Cycled(took_us, ...): of the scheduler
                                   <-  Foresaw(starts)
                                   <-  ChildCall(number, request)
    ChildReply(number, index, ...) ->
    HistoryAsk(number, request)    ->
                                   <-  HistoryAnswer(number, outcome)

Only committed entries are sent, each once, in order. Source: LOG-CONTRACT 8.1.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from spur.wire.calls import ANSWER_BYTES_MAX, Answered, Refused, decode_message
from spur.wire.frames import MessageLimit
from spur.wire.jobs import StartView

__all__ = [
    "CHANNEL_LIMIT",
    "ENTRIES_BYTES",
    "ChildCall",
    "ChildReply",
    "Cycled",
    "Entries",
    "Follow",
    "Foresaw",
    "FromChild",
    "FromFront",
    "HistoryAnswer",
    "HistoryAsk",
    "Reached",
    "Restart",
    "Role",
    "StreamedEntry",
    "decode_from_child",
    "decode_from_front",
    "encode_channel",
]

ENTRIES_BYTES = 1 << 20
"""Bytes of bodies after which a message of entries is full; one entry may be longer alone."""

CHANNEL_LIMIT = MessageLimit(name="message of a channel", bytes_max=ANSWER_BYTES_MAX + (1 << 20))
"""An answer of the projector is the longest: entries and requests are shorter."""

StreamedEntry: TypeAlias = tuple[int, int, int, bytes]
"""index, term, kind and body of a committed entry."""


class Follow(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=1):
    """The first message of a child: how far it is."""

    incarnation: int
    index: int


class ChildCall(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=2):
    """A request that the child makes in the cluster's own name."""

    number: int
    request: bytes


class HistoryAnswer(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=3):
    """The outcome of a `HistoryAsk`."""

    number: int
    outcome: Answered | Refused
    warning: str = ""
    """Set when the answer is older than what was asked for: how far the child is."""


class Reached(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=4):
    """The child has taken in everything up to this entry."""

    index: int


class Cycled(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=5):
    """The scheduler made a plan."""

    took_us: int
    depth: int
    """Jobs that it looked at."""
    queue: int
    """Jobs that wait."""
    passed_over: int
    """Starts of jobs behind one that waits."""


class Foresaw(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=6):
    """When and where waiting jobs would start, in place of what was foreseen before."""

    starts: tuple[StartView, ...]


class Entries(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=1):
    """The next committed entries."""

    entries: tuple[StreamedEntry, ...]
    commit: int
    """How far the front is."""


class Role(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=2):
    """Whether this controller leads, and may be asked to decide; sent when that changes."""

    leads: bool
    term: int


class ChildReply(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=3):
    """The outcome of a `ChildCall`, and the entry it rests on."""

    number: int
    index: int
    outcome: Answered | Refused


class HistoryAsk(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=4):
    """A query for the read model, narrowed to what its caller may see.

    It is answered once the child is as new as asked for, or after a while with a warning.
    """

    number: int
    request: bytes
    at_least: int
    """The entry that the answer must not be older than."""


class Restart(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=5):
    """The child can't go on from where it is: it ends, and begins anew from a snapshot."""

    why: str


FromChild: TypeAlias = Follow | ChildCall | HistoryAnswer | Reached | Cycled | Foresaw
FromFront: TypeAlias = Entries | Role | ChildReply | HistoryAsk | Restart

_encoder = msgspec.msgpack.Encoder()
_from_child: msgspec.msgpack.Decoder[FromChild] = msgspec.msgpack.Decoder(FromChild)
_from_front: msgspec.msgpack.Decoder[FromFront] = msgspec.msgpack.Decoder(FromFront)


def encode_channel(message: FromChild | FromFront) -> bytes:
    """Return the bytes of a message, not yet framed."""
    return _encoder.encode(message)


def decode_from_child(data: bytes) -> FromChild:
    """Return what a child sent. Raises: PeerFault for anything else."""
    return decode_message(_from_child, data, "a message of a child")


def decode_from_front(data: bytes) -> FromFront:
    """Return what the front sent. Raises: PeerFault for anything else."""
    return decode_message(_from_front, data, "a message of the front")
