"""The desk: where a host that has no certificate yet, or needs its next one, asks for it.

    new host                              controller
    Knock                             ->
                                      <-  Desk(cluster, authority, clock)
    AskToJoin(secret, signing request) ->
                                      <-  Certified, or DeskRefused that may name the leader

It is asked over TLS on the port of calls. A host that knocks for the first time knows nobody: it
reads the authority's certificate off the desk, holds it against its token, and knocks again, this
time believing nobody else. Only then does it show its secret. A host of the cluster asks with its
present certificate (`AskToRenew`).
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

from spur.values.jointoken import SECRET_SIZE
from spur.wire.calls import ClusterId, Index, decode_message
from spur.wire.frames import MessageLimit

__all__ = [
    "DESK_LIMIT",
    "DESK_VERSION",
    "AskToJoin",
    "AskToRenew",
    "Certified",
    "Desk",
    "DeskRefused",
    "Knock",
    "NewController",
    "decode_from_desk",
    "decode_knock",
    "decode_question",
    "encode_desk",
]

DESK_VERSION = 1
"""Of the messages in this file; both sides must speak the same."""

DESK_LIMIT = MessageLimit(name="message at the desk", bytes_max=256 * 1024)
"""A membership and the names of all the nodes that one host may serve."""

_Name: TypeAlias = Annotated[str, Meta(max_length=256)]
_Small: TypeAlias = Annotated[bytes, Meta(max_length=4096)]


class Knock(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=96):
    """The first message of a host."""

    version: int


class Desk(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=97):
    """Who is behind the desk. Believed by nobody who has not checked the authority."""

    version: int
    cluster_id: ClusterId
    authority: Annotated[bytes, Meta(max_length=16 * 1024)]
    """The authority's certificate as PEM."""
    clock_ns: Index
    """The controller's wall clock."""


class NewController(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What the cluster must know of a controller to be."""

    disk_id: Annotated[bytes, Meta(min_length=16, max_length=16)]
    raft_address: _Name
    rpc_address: _Name


class AskToJoin(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=98):
    """A new host's question."""

    secret: Annotated[bytes, Meta(min_length=SECRET_SIZE, max_length=SECRET_SIZE)]
    signing_request: _Small
    """As DER; it names the host, and the host's key has signed it."""
    role: _Name
    """What it means to be; empty for what the token says."""
    nodes: Annotated[tuple[_Name, ...], Meta(max_length=5000)]
    """Nodes that it means to serve; none of them for all that it may."""
    clock_ns: Index
    """Its wall clock."""
    controller: NewController | None
    """Given by a controller to be."""


class AskToRenew(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=99):
    """The question of a host of the cluster, whose connection shows who it is."""

    signing_request: _Small


class Certified(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=100):
    """The host's certificate, and what it needs to know to take part."""

    cluster_id: ClusterId
    authority: bytes
    certificate: bytes
    """As PEM."""
    role: str
    host_id: Index
    """Of a controller: its id in the membership."""
    nodes: tuple[str, ...]
    controllers: tuple[str, ...]
    """host:port of every controller's calls."""
    ends_ns: Index
    genesis: bytes = b""
    """For a controller alone."""
    members: bytes = b""
    """For a controller alone: the membership that it is part of."""


class DeskRefused(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=101):
    """Why there is no certificate."""

    code: str
    """A key of `spur.values.errors.ERROR_CODES`."""
    text: str
    hint: str = ""
    leader: str = ""
    """host:port of the controller that leads, when another one was asked."""


Question: TypeAlias = AskToJoin | AskToRenew

_encoder = msgspec.msgpack.Encoder()
_knock: msgspec.msgpack.Decoder[Knock] = msgspec.msgpack.Decoder(Knock)
_question: msgspec.msgpack.Decoder[Question] = msgspec.msgpack.Decoder(Question)
_from_desk: msgspec.msgpack.Decoder[Desk | Certified | DeskRefused] = msgspec.msgpack.Decoder(
    Desk | Certified | DeskRefused
)


def encode_desk(message: Knock | Desk | Question | Certified | DeskRefused) -> bytes:
    """Return the bytes of a message, not yet framed."""
    return _encoder.encode(message)


def decode_knock(data: bytes) -> Knock:
    """Return the first message of a host at the desk. Raises: PeerFault for anything else."""
    return decode_message(_knock, data, "a knock")


def decode_question(data: bytes) -> Question:
    """Return what a host asks at the desk. Raises: PeerFault for anything else."""
    return decode_message(_question, data, "a question")


def decode_from_desk(data: bytes) -> Desk | Certified | DeskRefused:
    """Return what the desk says. Raises: PeerFault for anything else."""
    return decode_message(_from_desk, data, "a word of the desk")
