"""One client's connection to the RPC server: greeting, calls in flight, and its limits."""

from __future__ import annotations

import os
import socket
import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from spur.client.stream import Stream
from spur.client.tls import TlsSide
from spur.events.envelope import Actor
from spur.server.once import Once
from spur.values.errors import InvariantBroken, PeerFault
from spur.wire.calls import (
    ANSWER_BYTES_MAX,
    FIRST_MESSAGE_LIMIT,
    FROM_CLIENT_LIMIT,
    WIRE_VERSION,
    Answered,
    Call,
    Goodbye,
    Greeting,
    Refused,
    Reply,
    Welcome,
    decode_from_client,
    encode,
)
from spur.wire.hello import HostName, parse_host_name

__all__ = [
    "NO_CERTIFICATE",
    "Handler",
    "Opening",
    "Respond",
    "RpcLimits",
    "Session",
    "Sessions",
]

Respond: TypeAlias = Callable[[Reply], None]
Handler: TypeAlias = Callable[[Call, Actor, Respond], None]
Opening: TypeAlias = Callable[[Stream, Actor | HostName | None, list[bytes]], bool]
"""`opening(stream, who, messages)` returns whether the stream has another owner from now on; `who`
is None for a host that showed no certificate."""

NO_CERTIFICATE = "it showed no certificate; hosts of this cluster have one"

_PEERCRED = struct.Struct("iII")
"""struct ucred: pid, uid, gid. Source: unix(7) SO_PEERCRED."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RpcLimits:
    """What one server, and one connection, may take."""

    connections_max: int = 2048
    user_connections_max: int = 256
    """Of one user on the Unix socket; root has no such limit."""
    calls_in_flight_max: int = 64
    """On one connection; further calls wait unread."""
    in_flight_bytes_max: int = 16 << 20
    """Bytes of requests in flight on one connection; further calls wait unread."""
    in_flight_bytes_total_max: int = 256 << 20
    """Bytes of requests in flight altogether; further calls are told `busy`."""
    queued_bytes_max: int = 1 << 20
    """Answers queued behind those in the socket; above it the next calls are not begun."""
    unsent_bytes_max: int = 64 << 20
    """Answers that wait to be read; above it the connection is cut."""
    held_bytes_total_max: int = 512 << 20
    """Unfinished requests and unread answers altogether; above it the largest holder is cut."""
    greeting_s: float = 5.0
    """From the connection to its greeting, the TLS handshake included."""
    message_s: float = 60.0
    """From the first to the last byte of a request."""
    unread_s: float = 30.0
    """How long a client may take nothing of its answers."""
    idle_s: float = 600.0
    """How long a connection may ask nothing."""
    sweep_s: float = 0.5
    """How often all of these times are looked at."""


class Sessions:
    """All connections of one server, and what they share."""

    def __init__(
        self,
        *,
        cluster_id: bytes,
        replica: int,
        handler: Handler,
        position: Callable[[], tuple[int, int]],
        once: Once,
        limits: RpcLimits,
        opening: Opening | None = None,
        is_member: Callable[[int], bool] = lambda number: True,
    ) -> None:
        self.is_member = is_member
        """Tells whether a controller of this id was not removed."""
        self.opening = opening
        """Takes a stream whose first message is no greeting, if it knows what it is."""
        self.cluster_id = cluster_id
        self.replica = replica
        self.handler = handler
        self.position = position
        self.once = once
        self.limits = limits
        self.open: set[Session] = set()
        self.in_flight_bytes = 0
        self.emptied: Callable[[], object] = lambda: None
        """Called when the last session has ended."""

    def count_of_user(self, uid: int) -> int:
        """Return how many connections of the Unix socket are this user's."""
        return sum(s.is_local and s.actor is not None and s.actor.uid == uid for s in self.open)

    def local_actor(self, uid: int, gid: int) -> Actor:
        """Return the actor for a user of this host."""
        return Actor(uid=uid, gid=gid, host_id=self.replica, host_role="controller", via="socket")

    def sweep(self, passed_s: float) -> None:
        """Judge every connection's times, and what all of them hold together."""
        held = 0
        for session in tuple(self.open):
            session.look(passed_s)
            held += session.held_bytes
        while held > self.limits.held_bytes_total_max:
            largest = max(self.open, key=lambda session: session.held_bytes)
            size = largest.held_bytes
            held -= size
            largest.cut("busy", f"{size} bytes are held for it, and too many altogether")
            largest.stream.abort()


class Session:
    """Owner of one stream of the server."""

    def __init__(self, server: Sessions, *, tls: TlsSide | None) -> None:
        self.is_local = tls is None
        self.actor: Actor | None = None
        """Who calls when a call speaks for nobody else; None until that is known."""
        self.stream = Stream(self, FIRST_MESSAGE_LIMIT, tls=tls)
        self.stream.decoder.is_wary = True
        self._server = server
        self._host: HostName | None = None
        self._greeted = False
        self._calls: dict[int, int] = {}
        self._calls_bytes = 0
        self._waiting: deque[Call] = deque()
        self._starting = False
        self._closed = False
        self._active = False
        self._quiet_s = 0.0
        self._stuck_s = 0.0
        self._relieved = 0
        server.open.add(self)

    @property
    def held_bytes(self) -> int:
        """Bytes of unfinished requests and unread answers."""
        return self.stream.decoder.held_bytes + self.stream.unsent_bytes

    # -- owner of the stream

    def opened(self, stream: Stream) -> None:
        """Learn who is calling, from the kernel or from the certificate."""
        limits = self._server.limits
        if len(self._server.open) > limits.connections_max:
            self.cut("limit-exceeded", f"too many connections; at most {limits.connections_max}")
        elif stream.tls is None:
            self._meet_user(stream)
        elif stream.tls.has_certificate():
            self._meet_host(stream.tls.names())

    def received(self, stream: Stream, messages: list[bytes]) -> None:
        """Take a greeting, then calls."""
        self._active = True
        if not self._greeted and self._hand_over(stream, messages):
            return
        try:
            for data in messages:
                message = decode_from_client(data)
                if isinstance(message, Greeting):
                    self._greet(message)
                elif not self._greeted:
                    raise PeerFault("a call before the greeting")
                else:
                    self._waiting.append(message)
                if stream.closing:
                    return
        except PeerFault as fault:
            self.faulted(stream, str(fault))
            return
        self._start_waiting()

    def _hand_over(self, stream: Stream, messages: list[bytes]) -> bool:
        """Let another owner have a stream that begins with something else than calls."""
        opening, who = self._server.opening, self._host or self.actor
        if opening is not None and opening(stream, who, messages):
            self._forget()
            return True
        if who is None:
            self.cut("foreign-peer", NO_CERTIFICATE)
        return who is None

    def faulted(self, stream: Stream, sentence: str) -> None:
        """End the connection that broke the rules, with one sentence to both sides."""
        self.cut("protocol", sentence)

    def drained(self, stream: Stream) -> None:
        """Go on with the calls that waited for their predecessors' answers to be read."""
        self._start_waiting()

    def closed(self, stream: Stream) -> None:
        """Forget the connection; answers that still come go nowhere."""
        self._forget()

    def _forget(self) -> None:
        self._closed = True
        self._server.open.discard(self)
        self._server.in_flight_bytes -= self._calls_bytes
        self._calls.clear()
        self._calls_bytes = 0
        self._waiting.clear()
        if not self._server.open:
            self._server.emptied()

    # -- limits

    def look(self, passed_s: float) -> None:
        """Judge the times of the connection; called at every sweep."""
        limits, stream = self._server.limits, self.stream
        if stream.closing:
            return
        if self._active or (self._calls and not stream.decoder.held_bytes) or stream.unsent_bytes:
            self._active = False
            self._quiet_s = 0.0
        else:
            self._quiet_s += passed_s
        is_stuck = stream.is_stuck and stream.relieved == self._relieved
        self._stuck_s = self._stuck_s + passed_s if is_stuck else 0.0
        self._relieved = stream.relieved
        if self._stuck_s >= limits.unread_s:
            self.cut("timed-out", f"it took none of its answers for {limits.unread_s:g} s")
        elif not self._greeted and self._quiet_s >= limits.greeting_s:
            self.cut("timed-out", f"no greeting within {limits.greeting_s:g} s")
        elif stream.decoder.held_bytes and self._quiet_s >= limits.message_s:
            self.cut("timed-out", f"a request was not finished within {limits.message_s:g} s")
        elif self._quiet_s >= limits.idle_s:
            stream.close(encode(Goodbye(code="timed-out", text="nothing was asked for too long")))

    def cut(self, code: str, sentence: str) -> None:
        """End the connection and say why, to the client and in the log."""
        if self.stream.closing:
            return
        source = self._source()
        self._server.once.report(source, f"a caller ({source}) was refused: {sentence}")
        if self.stream.is_stuck:
            self.stream.abort()
        else:
            self.stream.close(encode(Goodbye(code=code, text=sentence)))

    # -- who

    def _meet_user(self, stream: Stream) -> None:
        lent = stream.extra("socket")
        data: bytes = lent.getsockopt(  # type: ignore[attr-defined]  # what loops lend has no type
            socket.SOL_SOCKET, socket.SO_PEERCRED, _PEERCRED.size
        )
        _, uid, gid = _PEERCRED.unpack(data)
        limit = self._server.limits.user_connections_max
        if uid != 0 and self._server.count_of_user(uid) >= limit:
            self.cut("limit-exceeded", f"too many connections of user {uid}; at most {limit}")
            return
        self.actor = self._server.local_actor(uid, gid)

    def _meet_host(self, names: tuple[str, ...]) -> None:
        host = parse_host_name(names[0]) if len(names) == 1 else None
        if host is None:
            shown = " and ".join(names) or "nobody"
            self.cut("foreign-peer", f"its certificate names {shown}; a host's names one host")
        elif host.cluster_id != self._server.cluster_id:
            self.cut(
                "foreign-peer",
                f"its certificate is of cluster {host.cluster_id.hex()}; this is"
                f" {self._server.cluster_id.hex()}",
            )
        elif host.role == "controller" and not self._server.is_member(host.id):
            self.cut("foreign-peer", f"controller {host.id} is not a member of this cluster")
        else:
            self._host = host
            via = "agent" if host.role in ("login", "compute") else "tls"
            self.actor = Actor(uid=0, gid=0, host_id=host.id, host_role=host.role, via=via)

    def _source(self) -> str:
        if self._host is not None:
            return f"{self._host.role} {self._host.id}"
        if self.is_local:
            return f"user {self.actor.uid}" if self.actor is not None else "a user of this host"
        remote = self.stream.remote
        return str(remote[0]) if isinstance(remote, tuple) else "unknown"

    def _actor_of(self, call: Call) -> Actor | Refused:
        """Return for whom a call speaks. Source: LOG-CONTRACT 6.1.

        Whoever runs this process owns its keys and its log: to let that user speak for others, as
        root may, gives nothing away, and lets a cluster of one ordinary user do without root.
        """
        actor = self.actor
        if actor is None:
            raise InvariantBroken("a call was taken from a connection of nobody")
        if self._host is not None and self._host.role == "controller":
            if not self._server.is_member(self._host.id):
                return Refused(
                    code="not-permitted",
                    text=f"controller {self._host.id} was removed from this cluster; nothing was"
                    " done",
                )
        if call.speaks_for is None:
            return actor
        uid, gid = call.speaks_for
        if self._host is not None:
            return Actor(
                uid=uid, gid=gid, host_id=actor.host_id, host_role=actor.host_role, via="tls"
            )
        if actor.uid not in (0, os.geteuid()) and (uid, gid) != (actor.uid, actor.gid):
            return Refused(
                code="not-permitted",
                text=f"user {actor.uid} speaks for user {uid}; only root of this host and"
                " whoever runs this daemon speak for others; nothing was done",
            )
        return self._server.local_actor(uid, gid)

    # -- calls

    def _greet(self, greeting: Greeting) -> None:
        server = self._server
        if greeting.version != WIRE_VERSION:
            self.cut(
                "protocol",
                f"it speaks version {greeting.version} of the wire; this controller speaks"
                f" {WIRE_VERSION}",
            )
            return
        if greeting.cluster_id not in (b"", server.cluster_id):
            self.cut(
                "foreign-peer",
                f"it means cluster {greeting.cluster_id.hex()}; this is {server.cluster_id.hex()}",
            )
            return
        self._greeted = True
        self.stream.decoder.limit = FROM_CLIENT_LIMIT
        self.stream.decoder.is_wary = False
        incarnation, index = server.position()
        welcome = Welcome(
            version=WIRE_VERSION,
            cluster_id=server.cluster_id,
            replica=server.replica,
            incarnation=incarnation,
            index=index,
        )
        self.stream.send(encode(welcome))

    def _start_waiting(self) -> None:
        """Begin calls as far as the limits allow; read on only when none is left waiting."""
        if self._starting or self.stream.closing:
            return
        self._starting = True
        limits, waiting, stream = self._server.limits, self._waiting, self.stream
        while (
            waiting
            and len(self._calls) < limits.calls_in_flight_max
            and self._calls_bytes < limits.in_flight_bytes_max
        ):
            if stream.is_stuck or stream.queued_bytes > limits.queued_bytes_max:
                stream.tell_when_drained = True
                break
            self._start(waiting.popleft())
            if stream.closing:
                break
        self._starting = False
        if waiting:
            stream.pause_reading()
        else:
            stream.resume_reading()

    def _start(self, call: Call) -> None:
        if call.number in self._calls:
            self.faulted(self.stream, f"call number {call.number} is in use already")
            return
        server = self._server
        size = len(call.request)
        self._calls[call.number] = size
        self._calls_bytes += size
        server.in_flight_bytes += size
        actor = self._actor_of(call)
        if isinstance(actor, Refused):
            self._refuse(call, actor)
        elif server.in_flight_bytes > server.limits.in_flight_bytes_total_max:
            self._refuse(
                call, Refused(code="busy", text="too many requests wait; nothing was done")
            )
        else:
            server.handler(call, actor, self._respond)

    def _refuse(self, call: Call, refused: Refused) -> None:
        incarnation, index = self._server.position()
        self._respond(
            Reply(number=call.number, incarnation=incarnation, index=index, outcome=refused)
        )

    def _respond(self, reply: Reply) -> None:
        """Send the outcome of a call; a no-op when the client is gone."""
        if self._closed:
            return
        size = self._calls.pop(reply.number, None)
        if size is None:
            raise InvariantBroken(f"call {reply.number} was answered twice, or never made")
        self._calls_bytes -= size
        self._server.in_flight_bytes -= size
        outcome = reply.outcome
        if isinstance(outcome, Answered) and len(outcome.answer) > ANSWER_BYTES_MAX:
            text = f"an answer of {len(outcome.answer)} bytes; at most {ANSWER_BYTES_MAX}"
            self._calls[reply.number] = 0
            self._respond(
                Reply(
                    number=reply.number,
                    incarnation=reply.incarnation,
                    index=reply.index,
                    outcome=Refused(code="limit-exceeded", text=text, hint="ask for less at once"),
                )
            )
            return
        limit = self._server.limits.unsent_bytes_max
        if self.stream.unsent_bytes > limit:
            self.cut("limit-exceeded", f"over {limit} bytes of answers wait to be read")
            return
        self.stream.send(encode(reply))
        if self._waiting:
            self._start_waiting()
