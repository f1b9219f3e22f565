"""Guests of a supervisor: who speaks with an attempt beside the one who started it.

Of a step they hear what its tasks write, and write to their input. To the nodes of a run they hand
over files. A guest that takes nothing is shown out: the tasks wait for nobody but their own srun.
"""

from __future__ import annotations

import select
import socket
from collections import deque
from collections.abc import Callable

from spur.agent.tending import Tending
from spur.values.errors import PeerFault
from spur.wire.frames import FrameDecoder
from spur.wire.streams import (
    TO_STEP_LIMIT,
    Attached,
    Finished,
    FromStep,
    Output,
    Taken,
    ToStep,
    counts,
    decode_to_step,
    stream_frames,
)

__all__ = ["Audience", "Guest"]

UNHEARD_BYTES_MAX = 1 << 20
"""What waits for a guest before it is shown out."""

PAST_BYTES_MAX = 64 * 1024
"""How much of what was written last a new guest of a step is shown."""

_RECEIVE_BYTES = 64 * 1024


class Guest:
    """One guest's connection."""

    def __init__(self, tending: Tending, connection: socket.socket, node: str) -> None:
        """Greet it."""
        self.hear: Callable[[ToStep], None] = lambda message: None
        """Called with each message."""
        self.gone: Callable[[], None] = lambda: None
        """Called once the connection has ended."""
        connection.setblocking(False)
        self._tending = tending
        self._connection: socket.socket | None = connection
        self._decoder = FrameDecoder(TO_STEP_LIMIT)
        self._out = bytearray()
        self._taken = 0
        self._is_paused = False
        self._writes = False
        self._watch()
        self.say(Attached(node))

    @property
    def unheard_bytes(self) -> int:
        """How much waits for it."""
        return len(self._out)

    def say(self, message: FromStep) -> None:
        """Send a message."""
        if self._connection is not None:
            self._out += stream_frames(message)
            self._flush()

    def pause(self, pauses: bool) -> None:
        """Ask for nothing more for now, or ask again."""
        if self._is_paused is not pauses:
            self._is_paused = pauses
            if not pauses:
                self.say(Taken(self._taken))

    def close(self) -> None:
        """Show it out."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._out.clear()
            self._tending.forget(connection.fileno())
            connection.close()
            self.gone()

    # -- inside

    def _watch(self) -> None:
        if self._connection is not None:
            events = select.POLLIN | (select.POLLOUT if self._writes else 0)
            self._tending.forget(self._connection.fileno())
            self._tending.watch(self._connection.fileno(), events, self._handle)

    def _handle(self, events: int) -> None:
        if events & select.POLLOUT:
            self._flush()
        if events & ~select.POLLOUT:
            self._receive()

    def _flush(self) -> None:
        waits = False
        try:
            while self._out and self._connection is not None:
                del self._out[: self._connection.send(self._out)]
        except BlockingIOError:
            waits = True
        except OSError:
            self.close()
            return
        if self._writes is not waits:
            self._writes = waits
            self._watch()

    def _receive(self) -> None:
        connection = self._connection
        if connection is None:
            return
        before = self._taken
        try:
            data = connection.recv(_RECEIVE_BYTES)
            for raw in self._decoder.feed(data):
                message = decode_to_step(raw)
                if counts(message):
                    self._taken += 1
                    self.hear(message)
        except BlockingIOError:
            return
        except (OSError, PeerFault):
            data = b""
        if not data:
            self.close()
        elif self._taken > before and not self._is_paused:
            self.say(Taken(self._taken))


class Audience:
    """The guests of a step."""

    def __init__(self, tending: Tending, node: str, hear: Callable[[ToStep], None]) -> None:
        """Nobody is there; `hear` is called with what a guest says."""
        self._tending, self._node, self._hear = tending, node, hear
        self._guests: list[Guest] = []
        self._past: deque[FromStep] = deque()
        self._past_bytes = 0

    @property
    def is_owed(self) -> bool:
        """Whether somebody has yet to be told something."""
        return any(guest.unheard_bytes for guest in self._guests)

    def take(self, connection: socket.socket) -> None:
        """Let one more in, and say what was said last."""
        guest = Guest(self._tending, connection, self._node)
        guest.hear = self._hear
        guest.gone = lambda: self._guests.remove(guest)
        self._guests.append(guest)
        for message in self._past:
            guest.say(message)

    def say(self, message: FromStep) -> None:
        """Tell everybody."""
        if isinstance(message, Output | Finished):
            self._keep(message)
        for guest in tuple(self._guests):
            if guest.unheard_bytes > UNHEARD_BYTES_MAX:
                guest.close()
            else:
                guest.say(message)

    def close(self) -> None:
        """Show everybody out."""
        for guest in tuple(self._guests):
            guest.close()

    def _keep(self, message: FromStep) -> None:
        self._past.append(message)
        self._past_bytes += _size(message)
        while self._past_bytes > PAST_BYTES_MAX:
            self._past_bytes -= _size(self._past.popleft())


def _size(message: FromStep) -> int:
    return len(message.data) if isinstance(message, Output) else 0
