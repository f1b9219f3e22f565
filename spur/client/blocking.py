"""The blocking client of the command line: one call at a time, with a socket and nothing more.

It imports no event loop, and TLS only when an address needs it: a command starts in milliseconds.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from spur.client.address import Address, UnixAddress, parse_address
from spur.client.pursuit import Cluster, Pursuit
from spur.values.errors import InvariantBroken, PeerFault, Rejection
from spur.wire.calls import (
    FROM_REPLICA_LIMIT,
    REQUEST_ID_SIZE,
    WIRE_VERSION,
    Goodbye,
    Greeting,
    Reply,
    Welcome,
    decode_from_replica,
    encode,
)
from spur.wire.declare import Answer, Done, Request, decode_as, encode_request
from spur.wire.frames import FrameDecoder, encode_frames

if TYPE_CHECKING:
    import ssl

    from spur.client.tls import TlsFiles

__all__ = ["BlockingClient"]

A = TypeVar("A", bound=Answer)

CONNECT_S = 1.0
"""From dialling to the welcome."""

ATTEMPT_S = 2.0
"""How long one replica may be silent before another one is asked."""

LAST_TRY_DIVISOR = 3
"""What everybody refused so far is not tried again in the last third of the time: an agent that
passes commands on takes more than a second to say that no controller leads."""

_READ_BYTES = 256 * 1024


class _Lost(Exception):
    """A replica could not be asked, or did not reply."""

    def __init__(self, sentence: str, goodbye: Goodbye | None = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.goodbye = goodbye


class BlockingClient:
    """Speaks with the leader of one cluster, one call after the other."""

    def __init__(
        self,
        addresses: Sequence[str],
        *,
        tls: TlsFiles | None = None,
        cluster_id: bytes = b"",
        deadline_s: float = 30.0,
        attempt_s: float = ATTEMPT_S,
    ) -> None:
        """Prepare; the first call connects.

        Raises: ValueError for an address that is none.
        """
        self._tls = tls
        self._context: ssl.SSLContext | None = None
        self._cluster = Cluster(
            [parse_address(text) for text in addresses],
            cluster_id=cluster_id,
            has_tls=tls is not None,
        )
        self._deadline_s = deadline_s
        self._attempt_s = attempt_s
        self._link: _Link | None = None

    def __enter__(self) -> BlockingClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def position(self) -> tuple[int, int]:
        """The highest (incarnation, index) that an answer has shown."""
        return self._cluster.incarnation, self._cluster.index

    def do(
        self, request: Request, *, speaks_for: tuple[int, int] | None = None
    ) -> Done | Rejection:
        """Have a request carried out that has no other answer. Raises: as `ask`."""
        return self.ask(request, Done, speaks_for=speaks_for)

    def ask(
        self,
        request: Request,
        expected: type[A],
        *,
        speaks_for: tuple[int, int] | None = None,
        request_id: bytes | None = None,
        since: int | None = None,
        deadline_s: float | None = None,
        warn: Callable[[str], None] | None = None,
    ) -> A | Rejection:
        """Return the answer to a request, asking until it is known or the deadline passes.

        `request_id` and `since` are those of an `OutcomeUnknown`, to go on where it stopped.
        With `warn`, an answer that no quorum of controllers stands behind is taken as well, and
        `warn` is told how old it may be; without it such an answer is asked for again.

        Raises: Unreachable when no replica was asked; OutcomeUnknown when the request was sent and
        its outcome is not known; PeerFault for an answer of another kind; OperatorFault when TLS
        files cannot be used.
        """
        pursuit = Pursuit(
            self._cluster,
            encode_request(request),
            request_id or os.urandom(REQUEST_ID_SIZE),
            since=since,
            speaks_for=speaks_for,
            warn=warn,
        )
        refused = pursuit.too_long()
        if refused is not None:
            return refused
        wait_s = self._deadline_s if deadline_s is None else deadline_s
        outcome = self._pursue(pursuit, time.monotonic() + wait_s, wait_s)
        if isinstance(outcome, Rejection):
            return outcome
        return decode_as(outcome, expected)

    def close(self) -> None:
        """End the connection."""
        if self._link is not None:
            self._link.close()
            self._link = None

    # -- inside

    def _pursue(self, pursuit: Pursuit, end_s: float, wait_s: float) -> bytes | Rejection:
        while True:
            address = pursuit.address()
            try:
                reply = self._try(address, pursuit, end_s)
            except _Lost as lost:
                self.close()
                pursuit.lost(address, lost.sentence, lost.goodbye)
                if pursuit.is_hopeless():
                    raise pursuit.give_up(wait_s - (end_s - time.monotonic())) from lost
            else:
                outcome = pursuit.judge(address, reply)
                if outcome is not None:
                    return outcome if isinstance(outcome, Rejection) else outcome.answer
            left_s = end_s - time.monotonic()
            # Cut off by the deadline, a last try would make an unknown outcome of a known refusal.
            least_s = 0 if pursuit.is_open else wait_s / LAST_TRY_DIVISOR
            if left_s <= pursuit.pause_s + least_s:
                raise pursuit.give_up(wait_s - left_s)
            time.sleep(pursuit.pause_s)

    def _try(self, address: Address, pursuit: Pursuit, end_s: float) -> Reply:
        """Ask one replica once. Raises: _Lost."""
        link = self._link
        if link is None or link.address != address:
            self.close()
            link = self._link = _Link(address, self._cluster, self._context_for(address))
            link.open(min(end_s, time.monotonic() + CONNECT_S))
        return link.ask(pursuit, min(end_s, time.monotonic() + self._attempt_s))

    def _context_for(self, address: Address) -> ssl.SSLContext | None:
        if isinstance(address, UnixAddress) or self._tls is None:
            return None
        if self._context is None:
            from spur.client.tls import client_context

            self._context = client_context(self._tls)
        return self._context


class _Link:
    """One connection to one replica."""

    def __init__(self, address: Address, cluster: Cluster, context: ssl.SSLContext | None) -> None:
        self.address = address
        self._cluster = cluster
        self._context = context
        self._decoder = FrameDecoder(FROM_REPLICA_LIMIT)
        self._socket: socket.socket | None = None
        self._messages: list[bytes] = []
        self._number = 0

    def open(self, end_s: float) -> None:
        """Connect, greet and be welcomed. Raises: _Lost."""
        try:
            self._socket = self._connect(end_s)
            self._check_host(self._socket)
        except OSError as error:
            raise _lost(error) from error
        self._send(
            encode(Greeting(version=WIRE_VERSION, cluster_id=self._cluster.cluster_id)), end_s
        )
        message = self._hear(end_s)
        if not isinstance(message, Welcome):
            raise _Lost("it sent a reply before its welcome")
        why = self._cluster.judge_welcome(message)
        if why is not None:
            raise _Lost(why, Goodbye(code="foreign-peer", text=why))

    def ask(self, pursuit: Pursuit, end_s: float) -> Reply:
        """Send the request and return its reply. Raises: _Lost."""
        self._number += 1
        self._send(encode(pursuit.call(self._number)), end_s)
        while True:
            message = self._hear(end_s)
            if isinstance(message, Reply) and message.number == self._number:
                return message

    def close(self) -> None:
        """End the connection."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _connect(self, end_s: float) -> socket.socket:
        wait_s = max(0.001, end_s - time.monotonic())
        if isinstance(self.address, UnixAddress):
            plain = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket = plain
            plain.settimeout(wait_s)
            plain.connect(self.address.path)
            return plain
        plain = socket.create_connection(self.address, timeout=wait_s)
        self._socket = plain
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return plain if self._context is None else self._context.wrap_socket(plain)

    def _check_host(self, connected: socket.socket) -> None:
        if self._context is None:
            return
        import ssl

        from spur.client.tls import names_of

        if not isinstance(connected, ssl.SSLSocket):
            raise InvariantBroken("a connection that should be under TLS is not")
        why = self._cluster.judge_host(names_of(connected))
        if why is not None:
            raise _Lost(why, Goodbye(code="foreign-peer", text=why))

    def _send(self, message: bytes, end_s: float) -> None:
        connected = self._ready(end_s)
        try:
            for frame in encode_frames(message):
                connected.sendall(frame)
        except OSError as error:
            # What the replica said before it hung up tells more than the broken pipe.
            goodbye = self._last_word()
            raise (_Lost(goodbye.text, goodbye) if goodbye else _lost(error)) from error

    def _hear(self, end_s: float) -> Welcome | Reply:
        """Return the next message. Raises: _Lost."""
        while not self._messages:
            connected = self._ready(end_s)
            try:
                data = connected.recv(_READ_BYTES)
                if not data:
                    self._decoder.finish()
                    raise _Lost("the connection ended")
                self._messages += self._decoder.feed(data)
            except OSError as error:
                raise _lost(error) from error
            except PeerFault as fault:
                raise _Lost(str(fault), Goodbye(code="protocol", text=str(fault))) from fault
        try:
            message = decode_from_replica(self._messages.pop(0))
        except PeerFault as fault:
            raise _Lost(str(fault), Goodbye(code="protocol", text=str(fault))) from fault
        if isinstance(message, Goodbye):
            raise _Lost(message.text, message)
        return message

    def _last_word(self) -> Goodbye | None:
        """Return the goodbye that lies unread in the socket, if there is one."""
        try:
            self._hear(time.monotonic() + 0.1)
        except _Lost as lost:
            return lost.goodbye
        return None

    def _ready(self, end_s: float) -> socket.socket:
        """Return the socket, set to wait until then. Raises: _Lost when the time is over."""
        left_s = end_s - time.monotonic()
        if self._socket is None or left_s <= 0:
            raise _Lost("no reply in time")
        self._socket.settimeout(left_s)
        return self._socket


def _lost(error: OSError) -> _Lost:
    """Return what went wrong with a socket."""
    if isinstance(error, TimeoutError):
        return _Lost("no reply in time")
    if type(error).__module__ == "ssl":
        import ssl

        from spur.client.tls import tls_sentence

        if isinstance(error, ssl.SSLError):
            sentence = tls_sentence(error)
            return _Lost(sentence, Goodbye(code="protocol", text=sentence))
    return _Lost(os.strerror(error.errno) if error.errno else str(error))
