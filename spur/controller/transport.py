"""Which kind of message travels on which lane between controllers.

Whatever an election hangs on is small and has the heartbeat's connection; entries, snapshots and
repairs share the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, get_args

from spur.client.address import parse_tcp_address
from spur.client.tls import TlsFiles
from spur.consensus.exchange import (
    ClockAsk,
    ClockTell,
    Exchange,
    decode_exchange,
    encode_exchange,
)
from spur.consensus.membership import Member
from spur.consensus.messages import (
    Append,
    AppendReply,
    Message,
    SnapshotChunk,
    SnapshotReply,
    decode_messages,
    encode_messages,
)
from spur.consensus.wal import WalIdentity
from spur.controller.net import PeerAddress, PeerCodec, PeerNet
from spur.wire.hello import NO_NEWCOMERS, Lane, PeerIdentity

__all__ = ["CODECS", "Traffic", "addresses_of", "make_net", "route"]

Traffic = Message | Exchange
"""Everything that one controller says to another."""

_RAFT = 1
_EXCHANGE = 2

CODECS: dict[int, PeerCodec[Any]] = {
    _RAFT: PeerCodec(encode_messages, decode_messages),
    _EXCHANGE: PeerCodec(encode_exchange, decode_exchange),
}

_BULK = (Append, AppendReply, SnapshotChunk, SnapshotReply)
_SMALL = (ClockAsk, ClockTell)

_ROUTES: dict[type[Any], tuple[int, Lane]] = {
    **{cls: (_RAFT, Lane.BULK if cls in _BULK else Lane.HEARTBEAT) for cls in get_args(Message)},
    **{
        cls: (_EXCHANGE, Lane.HEARTBEAT if cls in _SMALL else Lane.BULK)
        for cls in get_args(Exchange)
    },
}


def route(message: Traffic) -> tuple[int, Lane]:
    """Return a message's kind and lane."""
    return _ROUTES[type(message)]


def make_net(
    identity: WalIdentity,
    members: Sequence[Member],
    tls: TlsFiles | None,
    receive: Callable[[Traffic], None],
    report: Callable[[int, str], None],
    *,
    newest_id: Callable[[], int] = lambda: NO_NEWCOMERS,
    removed: Callable[[int], None] = lambda peer: None,
) -> PeerNet[Traffic]:
    """Return the transport to the other members, not yet started; without TLS it is insecure."""

    def on_messages(peer: int, messages: Sequence[Traffic]) -> None:
        for message in messages:
            receive(message)

    net: PeerNet[Traffic] = PeerNet(
        PeerIdentity(
            cluster_id=identity.cluster_id,
            incarnation=identity.incarnation,
            node_id=identity.node_id,
            disk_id=identity.disk_id,
        ),
        codecs=CODECS,
        route=route,
        on_messages=on_messages,
        report=report,
        tls=tls,
        insecure=tls is None,
        newest_id=newest_id,
        removed=removed,
    )
    net.set_members(addresses_of(members))
    return net


def addresses_of(members: Sequence[Member]) -> dict[int, PeerAddress]:
    """Return where members are, by their ids."""
    return {
        member.id: PeerAddress(member.disk_id, parse_tcp_address(member.raft_address))
        for member in members
    }
