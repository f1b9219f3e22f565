"""Signals of a command that waits: noted as they come, and taken when it looks."""

from __future__ import annotations

import os
import select
import signal

__all__ = ["FORWARDED", "Signals"]

FORWARDED = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGWINCH, signal.SIGURG)
"""What srun passes on to its tasks."""

_TAKEN = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGCONT)


class Signals:
    """Catches signals and wakes whoever waits for `fd`."""

    def __init__(self) -> None:
        """Begin to catch."""
        self.fd, self._write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        for number in (*_TAKEN, *FORWARDED):
            signal.signal(number, _noted)

    def close(self) -> None:
        """Take no more note of signals; their handlers stay."""
        signal.set_wakeup_fd(-1)
        os.close(self.fd)
        os.close(self._write)

    def taken(self) -> list[int]:
        """Return the signals that came since the last look."""
        try:
            return list(os.read(self.fd, 256))
        except BlockingIOError:
            return []

    def wait(self, seconds: float) -> bool:
        """Wait, at most so long, for a signal that ends a command; whether there was one."""
        readable, _, _ = select.select([self.fd], [], [], seconds)
        ends = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
        return bool(readable) and any(number in ends for number in self.taken())


def _noted(number: int, frame: object) -> None:
    """Do nothing: the number is in the pipe."""
