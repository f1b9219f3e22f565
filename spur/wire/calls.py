"""Calls: the messages between a client and a replica, many at once over one connection.

    client                          replica
    Greeting(version, cluster)  ->
                                <-  Welcome(cluster, position)      or Goodbye
    Call(number, request)       ->
    Call(number, request)       ->
                                <-  Reply(number, position, outcome), in any order
                                <-  Goodbye(code, text): why the connection ends

The request and the answer inside are bytes here. They are decoded once, by the registry of
requests, so that one that cannot be read refuses that call and not the connection.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias, TypeVar

import msgspec
from msgspec import Meta

from spur.values.errors import PeerFault
from spur.wire.frames import MessageLimit

__all__ = [
    "ANSWER_BYTES_MAX",
    "CLUSTER_ID_SIZE",
    "FIRST_MESSAGE_LIMIT",
    "FROM_CLIENT_LIMIT",
    "FROM_REPLICA_LIMIT",
    "REQUEST_BYTES_MAX",
    "REQUEST_ID_SIZE",
    "WIRE_VERSION",
    "Answered",
    "Call",
    "Goodbye",
    "Greeting",
    "Refused",
    "Reply",
    "Welcome",
    "decode_from_client",
    "decode_from_replica",
    "decode_message",
    "encode",
]

WIRE_VERSION = 1
"""Of the messages in this file and in `hello.py`; both sides must speak the same."""

CLUSTER_ID_SIZE = 16
REQUEST_ID_SIZE = 16

REQUEST_BYTES_MAX = 8 << 20
"""Bytes of one encoded request, attachments included. Source: LOG-CONTRACT 2.3."""

ANSWER_BYTES_MAX = 32 << 20
"""Bytes of one encoded answer: 100 000 rows of 300 bytes."""

_ENVELOPE_BYTES_MAX = 4096
"""More than everything in a message but the request or answer can take."""

FIRST_MESSAGE_LIMIT = MessageLimit(name="greeting", bytes_max=1024)
FROM_CLIENT_LIMIT = MessageLimit(name="request", bytes_max=REQUEST_BYTES_MAX + _ENVELOPE_BYTES_MAX)
FROM_REPLICA_LIMIT = MessageLimit(name="answer", bytes_max=ANSWER_BYTES_MAX + _ENVELOPE_BYTES_MAX)

Index: TypeAlias = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
UserId: TypeAlias = Annotated[int, Meta(ge=0, le=(1 << 32) - 2)]
"""A uid or gid; the last number of 32 bits means "none" to the kernel."""

ClusterId: TypeAlias = Annotated[bytes, Meta(min_length=16, max_length=16)]
RequestId: TypeAlias = Annotated[bytes, Meta(min_length=16, max_length=16)]


class Greeting(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=1):
    """The first message of a client."""

    version: int
    cluster_id: Annotated[bytes, Meta(max_length=16)]
    """The cluster it means; empty when it takes the one it finds."""


class Call(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=2):
    """One request, with what finding its answer again needs."""

    number: Index
    """Names the call on this connection; the reply carries it."""
    request_id: RequestId
    """Chosen by the client; the same in every repetition (LOG-CONTRACT 3.5)."""
    since: Index
    """An index its side had seen committed before the first try."""
    incarnation: Index
    at_least: Index
    """With `incarnation`, the highest position its side has seen (LOG-CONTRACT 1.8)."""
    speaks_for: tuple[UserId, UserId] | None
    """(uid, gid) for whom it speaks; None for the caller itself."""
    request: bytes


class Welcome(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=3):
    """A replica's answer to a greeting."""

    version: int
    cluster_id: ClusterId
    replica: Index
    incarnation: Index
    index: Index
    """Committed when it was sent: a new client's first `since`."""


class Answered(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=1):
    """The request was carried out, or the query answered."""

    answer: bytes


class Refused(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=2):
    """A judged no, or "not here" (codes `not-leader`, `ask-again`, `busy`)."""

    code: str
    """A key of `spur.values.errors.ERROR_CODES`."""
    text: str
    hint: str = ""
    """What a person may do next."""
    leader: str = ""
    """RPC address of the replica that leads, when this one knows it."""


class Reply(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=4):
    """The outcome of one call, and the position of the state that gave it."""

    number: Index
    incarnation: Index
    index: Index
    outcome: Answered | Refused
    warning: str = ""
    """What a person must know of the answer: no quorum confirms it, and how old it is."""


class Goodbye(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=5):
    """Why the sender ends the connection; the last message on it."""

    code: str
    text: str


Message: TypeAlias = Greeting | Call | Welcome | Reply | Goodbye
M = TypeVar("M")

_encoder = msgspec.msgpack.Encoder()
_from_client: msgspec.msgpack.Decoder[Greeting | Call] = msgspec.msgpack.Decoder(Greeting | Call)
_from_replica: msgspec.msgpack.Decoder[Welcome | Reply | Goodbye] = msgspec.msgpack.Decoder(
    Welcome | Reply | Goodbye
)


def encode(message: Message) -> bytes:
    """Return the bytes of a message, not yet framed."""
    return _encoder.encode(message)


def decode_message(decoder: msgspec.msgpack.Decoder[M], data: bytes, what: str) -> M:
    """Return the message in these bytes.

    Raises: PeerFault with one sentence for anything that the decoder cannot read.
    """
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise PeerFault(f"{what} that cannot be read: {error}") from error


def decode_from_client(data: bytes) -> Greeting | Call:
    """Return what a client sent. Raises: PeerFault for anything else."""
    return decode_message(_from_client, data, "a call")


def decode_from_replica(data: bytes) -> Welcome | Reply | Goodbye:
    """Return what a replica sent. Raises: PeerFault for anything else."""
    return decode_message(_from_replica, data, "a reply")
