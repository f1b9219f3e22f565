"""The supervisor's end of a step's stream: whoever is attached, and what is to be sent to them.

At most one is attached; who comes later takes their place. Output waits for somebody who reads
slowly, and the tasks wait with it. Once nobody is attached, a little is kept for the next one and
the rest is lost.
"""

from __future__ import annotations

import select
import socket
from collections import deque
from collections.abc import Callable

from spur.agent.control import STREAM, listen
from spur.agent.tending import Tending
from spur.values.errors import PeerFault
from spur.wire.frames import FrameDecoder
from spur.wire.streams import (
    TO_STEP_LIMIT,
    Attached,
    FromStep,
    Input,
    Output,
    Program,
    Signal,
    decode_to_step,
    stream_frames,
)

__all__ = ["HELD_BYTES_MAX", "Stream"]

HELD_BYTES_MAX = 1 << 20
"""Bytes that wait to be sent before the tasks have to wait, or what they write is lost."""

_RECEIVE_BYTES = 64 * 1024


class Stream:
    """What is said to, and heard from, whoever is attached."""

    def __init__(self, tending: Tending, directory: str, node: str) -> None:
        """Listen. Raises: OSError."""
        self.hear: Callable[[Program | Input | Signal], None] = lambda message: None
        """Called with each message."""
        self.drained: Callable[[], None] = lambda: None
        """Called when there is room for more output again."""
        self._tending = tending
        self._node = node
        self._client: socket.socket | None = None
        self._decoder = FrameDecoder(TO_STEP_LIMIT)
        self._waiting: deque[bytes] = deque()
        self._held_bytes = 0
        self._reads = True
        self._writes = False
        self._listener = listen(directory, STREAM)
        tending.watch(self._listener.fileno(), select.POLLIN, self._accept)

    @property
    def attached(self) -> bool:
        """Whether somebody is."""
        return self._client is not None

    @property
    def unsent(self) -> bool:
        """Whether something waits to be sent."""
        return bool(self._waiting)

    @property
    def is_full(self) -> bool:
        """Whether the tasks have to wait. They never do for nobody."""
        return self.attached and self._held_bytes >= HELD_BYTES_MAX

    def say(self, message: FromStep) -> None:
        """Send a message, in its turn; output is dropped when too much of it waits for nobody."""
        if not self.attached and isinstance(message, Output) and message.data:
            if self._held_bytes >= HELD_BYTES_MAX:
                return
        frames = stream_frames(message)
        self._waiting.append(frames)
        self._held_bytes += len(frames)
        if self.attached and not self._writes:
            self._flush()

    def pause(self, pauses: bool) -> None:
        """Read no input for now, or read it again."""
        if self._reads is pauses:
            self._reads = not pauses
            self._watch()

    def detach(self) -> None:
        """Let go of whoever is attached."""
        if self._client is not None:
            self._tending.forget(self._client.fileno())
            self._client.close()
            self._client = None
            self.drained()

    # -- inside

    def _accept(self, events: int) -> None:
        try:
            client, _ = self._listener.accept()
        except OSError:
            return
        self.detach()
        client.setblocking(False)
        self._client = client
        self._decoder = FrameDecoder(TO_STEP_LIMIT)
        self._reads, self._writes = True, False
        hello = stream_frames(Attached(self._node))
        self._waiting.appendleft(hello)
        self._held_bytes += len(hello)
        self._watch()
        self._flush()

    def _watch(self) -> None:
        if self._client is not None:
            events = (select.POLLIN if self._reads else 0) | (select.POLLOUT if self._writes else 0)
            self._tending.forget(self._client.fileno())
            self._tending.watch(self._client.fileno(), events, self._handle)

    def _handle(self, events: int) -> None:
        if events & select.POLLOUT:
            self._flush()
        if events & (select.POLLIN | select.POLLHUP | select.POLLERR):
            self._receive()

    def _flush(self) -> None:
        """Send as much as the socket takes."""
        was_full = self.is_full
        try:
            while self._waiting and self._client is not None:
                frames = self._waiting[0]
                sent = self._client.send(frames)
                self._held_bytes -= sent
                if sent == len(frames):
                    self._waiting.popleft()
                else:
                    self._waiting[0] = frames[sent:]
        except BlockingIOError:
            pass
        except OSError:
            self.detach()
            return
        if self._writes is not bool(self._waiting):
            self._writes = bool(self._waiting)
            self._watch()
        if was_full and not self.is_full:
            self.drained()

    def _receive(self) -> None:
        client = self._client
        if client is None:
            return
        try:
            data = client.recv(_RECEIVE_BYTES)
            messages = [decode_to_step(message) for message in self._decoder.feed(data)]
        except BlockingIOError:
            return
        except (OSError, PeerFault):
            self.detach()
            return
        if not data:
            self.detach()
        for message in messages:
            self.hear(message)
