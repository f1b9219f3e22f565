"""Signals of a command that waits: noted as they come, and taken when it looks."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["FORWARDED", "Interrupted", "Signals"]

FORWARDED = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGWINCH, signal.SIGURG)
"""What srun passes on to its tasks."""

_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

_TAKEN = (*_ENDS, signal.SIGCONT)


class Interrupted(BaseException):
    """A signal that ends a command came while it waited for somebody else."""


class Signals:
    """Catches signals and wakes whoever waits for `fd`."""

    def __init__(self) -> None:
        """Begin to catch."""
        self.fd, self._write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        self._is_ended = self._raises = False
        for number in (*_TAKEN, *FORWARDED):
            signal.signal(number, self._noted)

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
        return bool(readable) and any(number in _ENDS for number in self.taken())

    @contextmanager
    def interrupting(self) -> Iterator[None]:
        """Let a signal that ends a command cut short what is done in here, by `Interrupted`.

        One that came before cuts it short at once.
        """
        self._raises = True
        try:
            if self._is_ended:
                raise Interrupted
            yield
        finally:
            self._raises = False

    def _noted(self, number: int, frame: object) -> None:
        """Take note; the number is in the pipe as well."""
        if number in _ENDS:
            self._is_ended = True
            if self._raises:
                raise Interrupted
