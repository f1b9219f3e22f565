"""The stream of one node to its tasks, over as many connections as it takes.

A connection ends when the agent of this host or of the node is started again. Another one is tried
for, and goes on where the last one was: see `spur.wire.resending`.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

from spur.slurm.wording import SlurmError
from spur.values.errors import PeerFault
from spur.wire.calls import Goodbye, decode_from_replica
from spur.wire.frames import FrameDecoder
from spur.wire.resending import Outgoing
from spur.wire.streams import (
    FROM_STEP_LIMIT,
    Attached,
    Begin,
    FromStep,
    StreamRefused,
    Taken,
    ToStep,
    counts,
    decode_from_step,
    stream_frames,
)

__all__ = ["Lost", "NodeStream"]

TRIED_S = 60.0
"""How long a connection is tried for again; the node waits for longer."""

FIRST_TRIED_S = 10.0
"""The same for a node that has never answered."""

PAUSES_S = (0.05, 1.0)
"""The first and the longest between two tries; each is twice the one before."""

TOLD_BYTES = 128 * 1024
"""What is taken without telling the node: a little of what it keeps."""

_READ_BYTES = 256 * 1024

Dial = Callable[[], socket.socket]
"""Returns a connection to this host's agent. Raises: OSError, SlurmError."""


class Lost(Exception):
    """The node is not reached any more; the text says why."""


class NodeStream:
    """What is said to one node, and heard from it."""

    def __init__(
        self,
        node: str,
        tasks: tuple[int, ...],
        dial: Dial,
        opening: bytes,
        *,
        tried_s: float = TRIED_S,
    ) -> None:
        """Begin a stream by its opening. Raises: as `dial`."""
        self.node = node
        self.tasks = tasks
        self.is_over = False
        self.was_attached = False
        self._dial = dial
        self._opening = opening
        self._tried_s = tried_s
        self._out = Outgoing()
        self._head = bytearray()
        """What is sent before anything else."""
        self._is_attached = False
        self._taken = 0
        self._untold_bytes = 0
        self._decoder = FrameDecoder(FROM_STEP_LIMIT)
        self._socket: socket.socket | None = None
        self._lost_s: float | None = None
        """Since when no connection has got an answer."""
        self._why = ""
        self._pause_s = PAUSES_S[0]
        self._dial_s = 0.0
        self._use(dial())

    @property
    def waiting_bytes(self) -> int:
        """How much waits to be taken."""
        return self._out.kept_bytes

    @property
    def is_writing(self) -> bool:
        """Whether something waits for room on the connection."""
        return bool(self._head) or (self._is_attached and self._out.piece() is not None)

    @property
    def due_s(self) -> float | None:
        """When another connection is to be tried, on the monotonic clock; None while there is one.

        `try_again` is to be called then.
        """
        return self._dial_s if self._socket is None else None

    def fileno(self) -> int:
        """Return the descriptor to wait for; -1 while there is no connection."""
        return -1 if self._socket is None else self._socket.fileno()

    def send(self, message: ToStep) -> None:
        """Say something, now or when there is a connection that takes it."""
        self._out.add(stream_frames(message))
        self.flush()

    def flush(self) -> None:
        """Send what waits, as far as the connection takes it."""
        connection = self._socket
        if connection is None:
            return
        try:
            while self._head:
                del self._head[: connection.send(self._head)]
            while self._is_attached and (piece := self._out.piece()) is not None:
                self._out.sent(connection.send(piece))
        except BlockingIOError:
            return
        except OSError:
            # What the other side said before it hung up is still to be read.
            self._head.clear()
            self._is_attached = False

    def receive(self) -> list[FromStep]:
        """Return what the tasks said. Raises: Lost when there is nothing more to wait for."""
        connection = self._socket
        if connection is None:
            return []
        try:
            data = connection.recv(_READ_BYTES)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            self._break("its stream ended")
            return []
        found: list[FromStep] = []
        raw = b""
        try:
            for raw in self._decoder.feed(data):
                self._take(decode_from_step(raw), found)
        except PeerFault as fault:
            raise Lost(_goodbye_of(raw) or str(fault)) from fault
        self._untold_bytes += len(data)
        return found

    def tell_taken(self) -> None:
        """Say that all was dealt with that was received, where it is time to."""
        if self.is_over or self._untold_bytes >= TOLD_BYTES:
            self._untold_bytes = 0
            self._out.add_aside(stream_frames(Taken(self._taken)))
            self.flush()

    def try_again(self) -> None:
        """Try another connection. Raises: Lost when that was tried for long enough."""
        if self._socket is not None or time.monotonic() < self._dial_s:
            return
        try:
            self._use(self._dial())
        except (OSError, SlurmError) as error:
            self._break(str(error))

    def close(self) -> None:
        """End the stream."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    # -- inside
    def _use(self, connection: socket.socket) -> None:
        self._socket = connection
        self._decoder = FrameDecoder(FROM_STEP_LIMIT)
        self._head = bytearray(self._opening)
        self._is_attached = False
        self.flush()

    def _take(self, message: FromStep, found: list[FromStep]) -> None:
        """Deal with what is said about the connection; the rest is for the loop."""
        if isinstance(message, Attached):
            self._out.begin_again(message.taken)
            self._head += stream_frames(Begin(self._taken))
            self._is_attached = self.was_attached = True
            self._lost_s, self._pause_s = None, PAUSES_S[0]
            self.flush()
        elif isinstance(message, Taken):
            self._out.taken(message.count)
        elif isinstance(message, StreamRefused):
            if message.code != "unreachable":
                raise Lost(message.text)
            self._break(message.text)
        elif counts(message):
            self._taken += 1
            found.append(message)

    def _break(self, why: str) -> None:
        """The connection is gone: try another after a pause. Raises: Lost."""
        self.close()
        now = time.monotonic()
        if self._lost_s is None:
            self._lost_s, self._why = now, why
        tried_s = self._tried_s if self.was_attached else min(FIRST_TRIED_S, self._tried_s)
        if now - self._lost_s >= tried_s:
            raise Lost(why if not self.was_attached else self._why)
        self._dial_s = now + self._pause_s
        self._pause_s = min(2 * self._pause_s, PAUSES_S[1])


def _goodbye_of(data: bytes) -> str:
    """Return why a controller hangs up on srun, which it takes for a client; empty otherwise."""
    try:
        message = decode_from_replica(data)
    except PeerFault:
        return ""
    if not isinstance(message, Goodbye):
        return ""
    return f"the socket is no agent's: {message.text}; name an agent's in SPUR_AGENT_SOCKET"
