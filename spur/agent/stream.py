"""The supervisor's end of a step's stream: whoever is attached, and what is to be sent to them.

At most one is attached; who comes later takes their place. What was sent is kept until it is said
to be taken. Output waits for somebody who reads slowly, and for a while for somebody whose
connection broke off, and the tasks wait with it. Once nobody comes back, a little is kept for the
next one and the rest is lost.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Callable

from spur.agent.control import STREAM, listen
from spur.agent.tending import Tending
from spur.values.errors import PeerFault
from spur.wire.frames import FrameDecoder
from spur.wire.resending import Outgoing
from spur.wire.streams import (
    TO_STEP_LIMIT,
    Attached,
    Begin,
    FilePiece,
    FromStep,
    Input,
    Output,
    Program,
    PutFile,
    Resize,
    Signal,
    Taken,
    ToStep,
    decode_to_step,
    stream_frames,
)

__all__ = ["AWAITED_S", "HELD_BYTES_MAX", "Stream", "Told"]

Told = Program | Input | Signal | Resize | PutFile | FilePiece
"""What a step is told by whoever is attached."""

HELD_BYTES_MAX = 1 << 20
"""Bytes that wait to be taken before the tasks have to wait, or what they write is lost."""

UNTAKEN_BYTES_MAX = 8 << 20
"""Bytes that are read though it was not said that the last ones were taken: srun sends far less."""

AWAITED_S = 90.0
"""How long one whose connection broke off is waited for; srun tries for less."""

_RECEIVE_BYTES = 64 * 1024


class Stream:
    """What is said to, and heard from, whoever is attached."""

    def __init__(self, tending: Tending, directory: str, node: str) -> None:
        """Listen. Raises: OSError."""
        self.hear: Callable[[Told], None] = lambda message: None
        """Called with each message."""
        self.overheard: Callable[[FromStep], None] = lambda message: None
        """Called with what is said, for those who listen too."""
        self.drained: Callable[[], None] = lambda: None
        """Called when there is room for more output again."""
        self._tending = tending
        self._node = node
        self._client: socket.socket | None = None
        self._decoder = FrameDecoder(TO_STEP_LIMIT)
        self._out = Outgoing()
        self._taken = 0
        self._has_begun = False
        """Whether whoever is attached has said from where they go on."""
        self._is_awaited = False
        """Whether somebody is attached, or may come back."""
        self._is_paused = False
        """Nothing is said to be taken: whoever is attached soon sends no more."""
        self._untaken_bytes = 0
        self._writes = False
        self._listener = listen(directory, STREAM)
        tending.watch(self._listener.fileno(), select.POLLIN, self._accept)

    @property
    def attached(self) -> bool:
        """Whether somebody is."""
        return self._client is not None

    @property
    def is_owed(self) -> bool:
        """Whether somebody has yet to take something."""
        return self._is_awaited and self._out.is_kept

    @property
    def is_full(self) -> bool:
        """Whether the tasks have to wait. They never do for nobody."""
        return self._is_awaited and self._out.kept_bytes >= HELD_BYTES_MAX

    def say(self, message: FromStep) -> None:
        """Send a message, in its turn; output is dropped when too much of it waits for nobody."""
        self.overheard(message)
        if not self._is_awaited and isinstance(message, Output) and message.data:
            if self._out.kept_bytes >= HELD_BYTES_MAX:
                return
        self._out.add(stream_frames(message))
        if self._has_begun and not self._writes:
            self._flush()

    def pause(self, pauses: bool) -> None:
        """Ask for no more input for now, or ask for it again."""
        if self._is_paused is not pauses:
            self._is_paused = pauses
            if not pauses:
                self._tell_taken()

    def let_go(self) -> None:
        """Wait for nobody any more, attached or not."""
        self._disconnect()
        self._is_awaited = False
        self._tending.alarm(None, self.let_go)
        self.drained()

    def hurry(self, within_s: float) -> None:
        """Wait no longer than this for somebody who is not attached."""
        if self._is_awaited and not self.attached:
            self._tending.alarm(within_s, self.let_go)

    # -- inside

    def _accept(self, events: int) -> None:
        try:
            client, _ = self._listener.accept()
        except OSError:
            return
        self._disconnect()
        client.setblocking(False)
        self._client = client
        self._decoder = FrameDecoder(TO_STEP_LIMIT)
        self._is_awaited = True
        self._untaken_bytes = 0
        self._tending.alarm(None, self.let_go)
        self._writes = False
        self._watch()
        try:
            # A new socket takes so short a message at once.
            client.send(stream_frames(Attached(self._node, self._taken)))
        except OSError:
            self._lose()

    def _lose(self) -> None:
        """Whoever was attached is gone, and may come back."""
        self._disconnect()
        self._tending.alarm(AWAITED_S, self.let_go)

    def _disconnect(self) -> None:
        self._has_begun = False
        if self._client is not None:
            self._tending.forget(self._client.fileno())
            self._client.close()
            self._client = None

    def _watch(self) -> None:
        if self._client is not None:
            events = select.POLLIN | (select.POLLOUT if self._writes else 0)
            self._tending.forget(self._client.fileno())
            self._tending.watch(self._client.fileno(), events, self._handle)

    def _handle(self, events: int) -> None:
        if events & select.POLLOUT:
            self._flush()
        if events & (select.POLLIN | select.POLLHUP | select.POLLERR):
            self._receive()

    def _flush(self) -> None:
        """Send as much as the socket takes."""
        waits = False
        try:
            while self._client is not None and (piece := self._out.piece()) is not None:
                self._out.sent(self._client.send(piece))
        except BlockingIOError:
            waits = True
        except OSError:
            self._lose()
            return
        if self._writes is not waits:
            self._writes = waits
            self._watch()

    def _receive(self) -> None:
        client = self._client
        if client is None:
            return
        taken = self._taken
        try:
            data = client.recv(_RECEIVE_BYTES)
            for message in self._decoder.feed(data):
                self._take(decode_to_step(message), len(message))
        except BlockingIOError:
            return
        except (OSError, PeerFault):
            data = b""
        if not data:
            if self._client is client:
                self._lose()
        elif self._taken > taken and not self._is_paused:
            self._tell_taken()
        elif self._has_begun and not self._writes:
            self._flush()

    def _tell_taken(self) -> None:
        self._untaken_bytes = 0
        if self._has_begun:
            self._out.add_aside(stream_frames(Taken(self._taken)))
            if not self._writes:
                self._flush()

    def _take(self, message: ToStep, size: int) -> None:
        """Take a message. Raises: PeerFault for one that is out of place."""
        was_full = self.is_full
        if isinstance(message, Begin):
            self._out.begin_again(message.taken)
            self._has_begun = True
        elif not self._has_begun:
            raise PeerFault("a message of a stream came before it had begun")
        elif isinstance(message, Taken):
            self._out.taken(message.count)
        else:
            self._untaken_bytes += size
            if self._untaken_bytes > UNTAKEN_BYTES_MAX:
                raise PeerFault("more came over a stream than was asked for")
            self._taken += 1
            self.hear(message)
        if was_full and not self.is_full:
            self.drained()
