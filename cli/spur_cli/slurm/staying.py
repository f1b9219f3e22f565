"""A command's word to the agent of its host that its allocation is to end with it."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from contextlib import suppress

from spur.slurm.wording import SlurmError
from spur.values.ids import JobId
from spur.wire.streams import STREAM_VERSION, Stay, stream_frames

__all__ = ["Staying"]

PAUSE_S = 0.5
"""Between two tries to reach an agent that is away."""


class Staying:
    """A connection that lasts as long as this process."""

    def __init__(self, dial: Callable[[], socket.socket], job_id: JobId) -> None:
        """Connect, as far as that can be done now; `keep` goes on."""
        self._dial = dial
        self._job_id = job_id
        self._socket: socket.socket | None = None
        self._next_s = 0.0
        self._is_understood = True
        self.keep()

    @property
    def due_s(self) -> float | None:
        """When `keep` is to be called, on the monotonic clock; None while all is well."""
        return self._next_s if self._socket is None and self._is_understood else None

    def fileno(self) -> int:
        """Return the descriptor that tells when to call `keep`; -1 for none."""
        return -1 if self._socket is None else self._socket.fileno()

    def keep(self) -> None:
        """See to the connection: take another one where it broke off."""
        if self._socket is not None:
            self._look(self._socket)
        now = time.monotonic()
        if self._socket is None and self._is_understood and now >= self._next_s:
            self._next_s = now + PAUSE_S
            try:
                self._socket = self._dial()
                self._socket.send(stream_frames(Stay(STREAM_VERSION, self._job_id)))
            except (OSError, SlurmError):
                self._close()

    def leave(self) -> None:
        """End by oneself: the allocation is ended in another way, or is not to be ended."""
        self._is_understood = False
        if self._socket is not None:
            with suppress(OSError):
                self._socket.send(stream_frames(Stay(STREAM_VERSION, JobId(0))))
            self._close()

    def _look(self, connection: socket.socket) -> None:
        try:
            said = connection.recv(1, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            said = b""
        # An agent says nothing to us: whoever speaks is a controller that does not know this.
        self._is_understood = not said
        self._close()

    def _close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
