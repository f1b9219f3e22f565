"""The pipes between a supervisor and the tasks of a step."""

from __future__ import annotations

import contextlib
import os
import select
from collections import deque
from collections.abc import Callable

from spur.agent.stream import HELD_BYTES_MAX, Stream
from spur.agent.tending import Tending
from spur.wire.streams import CHUNK_BYTES_MAX, Output

__all__ = ["InputPipe", "OutputPipe"]


class OutputPipe:
    """Carries what a task writes to the stream."""

    def __init__(self, tending: Tending, stream: Stream, task: int, fd: int, number: int) -> None:
        """Carry from the descriptor `number`; `fd` is 1 or 2."""
        self._tending, self._stream = tending, stream
        self._task, self._fd, self._number = task, fd, number
        os.set_blocking(number, False)
        self.resume()

    @property
    def is_open(self) -> bool:
        """Whether more may come."""
        return self._number >= 0

    def resume(self) -> None:
        """Read again, after a time in which the stream was full."""
        if self.is_open:
            self._tending.watch(self._number, select.POLLIN, self._read)

    def _read(self, events: int) -> None:
        if self._stream.is_full:
            self._tending.forget(self._number)
            return
        try:
            data = os.read(self._number, CHUNK_BYTES_MAX)
        except BlockingIOError:
            return
        except OSError:  # a terminal whose other side is closed says so in this way
            data = b""
        if not data:
            self._tending.forget(self._number)
            os.close(self._number)
            self._number = -1
        self._stream.say(Output(self._task, self._fd, data))


class InputPipe:
    """Carries input to a task."""

    def __init__(
        self, tending: Tending, number: int, changed: Callable[[], None], *, end: bytes = b""
    ) -> None:
        """Carry to the descriptor `number`; `changed` is called when less of it waits.

        `end` is what a terminal is sent at the end of the input; a pipe is closed.
        """
        self._end = end
        self._tending, self._number, self._changed = tending, number, changed
        self._waiting: deque[bytes] = deque()
        self._held_bytes = 0
        self._ends = False
        self._watches = False
        os.set_blocking(number, False)

    @property
    def is_full(self) -> bool:
        """Whether the one who sends has to wait."""
        return self._held_bytes >= HELD_BYTES_MAX

    def put(self, data: bytes) -> None:
        """Hand over input; empty is its end."""
        if self._number < 0 or self._ends:
            return
        data = data or self._end
        if data:
            self._waiting.append(data)
            self._held_bytes += len(data)
        else:
            self._ends = True
        self._write(0)

    def _write(self, events: int) -> None:
        try:
            while self._waiting:
                data = self._waiting[0]
                written = os.write(self._number, data)
                self._held_bytes -= written
                if written == len(data):
                    self._waiting.popleft()
                else:
                    self._waiting[0] = data[written:]
        except BlockingIOError:
            if not self._watches:
                self._watches = True
                self._tending.watch(self._number, select.POLLOUT, self._write)
            self._changed()
            return
        except OSError:  # the task reads no more
            self._waiting.clear()
            self._held_bytes = 0
            self._ends = True
        if self._watches:
            self._watches = False
            self._tending.forget(self._number)
        if self._ends:
            self.close()
        self._changed()

    def close(self) -> None:
        """Let the task see the end of its input."""
        if self._number >= 0:
            self._tending.forget(self._number)
            with contextlib.suppress(OSError):
                os.close(self._number)
            self._number = -1
