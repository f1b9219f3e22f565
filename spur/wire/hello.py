"""Who is at the other end: names in certificates, and the hello between replicas.

A certificate of the cluster names its host by one URI:

    spur://<cluster id, 32 hex digits>/<role>/<id>

Between replicas the dialling side sends a `Hello`, the other side judges it and answers with its
own; either may answer with a `Goodbye` that says why not. Raft's messages follow.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Annotated

import msgspec
from msgspec import Meta

from spur.wire.calls import WIRE_VERSION, ClusterId, Goodbye, Index, decode_message

__all__ = [
    "HOST_ROLES",
    "NO_NEWCOMERS",
    "Hello",
    "HostName",
    "Lane",
    "PeerIdentity",
    "decode_hello",
    "encode_hello",
    "format_host_name",
    "judge_hello",
    "not_a_member",
    "parse_host_name",
]

HOST_ROLES = ("controller", "admin", "login", "compute")
"""What a host may be. Source: LOG-CONTRACT 6.1."""

NO_NEWCOMERS = (1 << 63) - 1
"""For a log that tells of everybody."""

_HOST_NAME = re.compile(r"spur://([0-9a-f]{32})/([a-z]+)/(0|[1-9][0-9]{0,18})")


class Lane(IntEnum):
    """The two connections of a pair of replicas."""

    BULK = 0
    HEARTBEAT = 1


class HostName(msgspec.Struct, frozen=True, gc=False):
    """The name that a certificate gives its host."""

    cluster_id: bytes
    role: str
    """One of `HOST_ROLES`."""
    id: int


class Hello(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=6):
    """The first message of a replica to another, in both directions."""

    version: int
    cluster_id: ClusterId
    incarnation: Index
    node_id: Index
    disk_id: Annotated[bytes, Meta(max_length=64)]
    """Random, written when the directory was made; another disk is another member."""
    lane: Annotated[int, Meta(ge=0, le=1)]


class PeerIdentity(msgspec.Struct, frozen=True, gc=False):
    """What a replica knows of itself, and with `Hello` of another."""

    cluster_id: bytes
    incarnation: int
    node_id: int
    disk_id: bytes

    def hello(self, lane: Lane) -> Hello:
        """Return what this replica says first on a lane."""
        return Hello(
            version=WIRE_VERSION,
            cluster_id=self.cluster_id,
            incarnation=self.incarnation,
            node_id=self.node_id,
            disk_id=self.disk_id,
            lane=lane,
        )


_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Hello | Goodbye] = msgspec.msgpack.Decoder(Hello | Goodbye)


def encode_hello(message: Hello | Goodbye) -> bytes:
    """Return the bytes of a hello or of a refusal, not yet framed."""
    return _encoder.encode(message)


def decode_hello(data: bytes) -> Hello | Goodbye:
    """Return the first message of a replica. Raises: PeerFault for anything else."""
    return decode_message(_decoder, data, "a hello")


def format_host_name(name: HostName) -> str:
    """Return the URI of a host name."""
    return f"spur://{name.cluster_id.hex()}/{name.role}/{name.id}"


def parse_host_name(uri: str) -> HostName | None:
    """Return the host that a URI names; None when it names no host of any cluster."""
    match = _HOST_NAME.fullmatch(uri)
    if match is None or match[2] not in HOST_ROLES:
        return None
    return HostName(cluster_id=bytes.fromhex(match[1]), role=match[2], id=int(match[3]))


def not_a_member(node_id: int) -> str:
    """Return what is said to a replica that was removed, or never was added."""
    return f"replica {node_id} is not a member of this cluster"


def judge_hello(
    hello: Hello,
    names: tuple[str, ...] | None,
    me: PeerIdentity,
    disk_ids: dict[int, bytes],
    *,
    dialled: int | None,
    newest_id: int = NO_NEWCOMERS,
) -> str | None:
    """Return why a replica's hello is refused, as one sentence, or None when it is accepted.

    `names` are the URIs of its certificate, None without TLS. `disk_ids` are the other members by
    id. `dialled` is whom this side meant to reach, None when the other side dialled. `newest_id` is
    the highest id that this side's log can tell of: one above it may have been added since.
    """
    if hello.version != WIRE_VERSION:
        return f"it speaks version {hello.version} of the wire; this replica speaks {WIRE_VERSION}"
    if hello.cluster_id != me.cluster_id:
        return f"it belongs to cluster {hello.cluster_id.hex()}; this is {me.cluster_id.hex()}"
    if names is not None:
        name = HostName(cluster_id=me.cluster_id, role="controller", id=hello.node_id)
        expected = format_host_name(name)
        if names != (expected,):
            shown = " and ".join(names) or "nobody"
            return f"its certificate names {shown}; the replica it says it is has {expected}"
    if dialled is not None and hello.node_id != dialled:
        return f"it is replica {hello.node_id}; replica {dialled} was expected at this address"
    if hello.node_id == me.node_id:
        return f"it says it is replica {hello.node_id}, as this one is; an id is used once"
    is_newcomer = hello.node_id not in disk_ids and hello.node_id > newest_id
    if hello.node_id not in disk_ids and not is_newcomer:
        return not_a_member(hello.node_id)
    if hello.incarnation != me.incarnation:
        return (
            f"it is of incarnation {hello.incarnation} of the cluster; this replica is of"
            f" {me.incarnation}"
        )
    if not is_newcomer and hello.disk_id != disk_ids[hello.node_id]:
        return (
            f"replica {hello.node_id} has another disk than the member of that id; a replica"
            " that lost its disk is removed and added with a new id"
        )
    return None
