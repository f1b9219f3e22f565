"""The agent's side of the warm process: asking for supervisors, hearing of them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable

from spur.agent.notices import (
    NOTICE_BYTES_MAX,
    Claimed,
    Ended,
    Fork,
    Forked,
    Gone,
    NotForked,
    decode_notice,
    encode_notice,
)

__all__ = ["Lost", "Warm", "WarmNotice"]

WarmNotice = Claimed | Ended | Gone


class Lost(Exception):
    """The warm process has ended; its supervisors live on, and another one can be started."""


class Warm:
    """One warm process. All methods are for the loop that started it."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        channel: socket.socket,
        on_notice: Callable[[WarmNotice], None],
        on_lost: Callable[[], None],
    ) -> None:
        """Use `Warm.start`."""
        self._process = process
        self._channel = channel
        self._on_notice = on_notice
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._number = 0
        self._asked: dict[int, asyncio.Future[int]] = {}
        self._unsent: deque[bytes] = deque()
        self._life = os.pidfd_open(process.pid)
        self._loop.add_reader(channel.fileno(), self._read)
        self._loop.add_reader(self._life, self._lose)

    @classmethod
    async def start(
        cls,
        on_notice: Callable[[WarmNotice], None],
        on_lost: Callable[[], None] = lambda: None,
    ) -> Warm:
        """Start a warm process.

        `on_notice` hears of every supervisor that this one forks: `Claimed` when its user's code
        is about to run, `Ended` when its outcome is on disk, `Gone` when the process has ended.
        `on_lost` is called when the warm process ends without having been closed.

        Raises: OSError when there is no process to be had.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        with theirs:
            try:
                process = _spawn(theirs.fileno())
            except OSError:
                ours.close()
                raise
        return cls(process, ours, on_notice, on_lost)

    @property
    def pid(self) -> int:
        """The warm process's id."""
        return self._process.pid

    async def fork(self, directory: str) -> int:
        """Have a supervisor forked for the manifest in a directory, and return its process id.

        Raises: Lost; OSError when the machine has no room for a process.
        """
        if self._life < 0:
            raise Lost("the warm process has ended")
        self._number += 1
        asked: asyncio.Future[int] = self._loop.create_future()
        self._asked[self._number] = asked
        self._unsent.append(encode_notice(Fork(self._number, directory)))
        self._write()
        return await asked

    def close(self) -> None:
        """Let the warm process end; supervisors live on."""
        if self._life >= 0:
            self._end()
            self._process.wait()

    def _end(self) -> None:
        self._loop.remove_reader(self._channel.fileno())
        self._loop.remove_writer(self._channel.fileno())
        self._loop.remove_reader(self._life)
        os.close(self._life)
        self._life = -1
        self._channel.close()
        for asked in self._asked.values():
            if not asked.done():
                asked.set_exception(Lost("the warm process has ended"))
        self._asked.clear()

    def _lose(self) -> None:
        self._read()
        if self._life >= 0:
            self._end()
            self._process.wait()
            self._on_lost()

    def _write(self) -> None:
        """Send what is unsent, as far as the socket takes it."""
        try:
            while self._unsent:
                self._channel.send(self._unsent[0])
                self._unsent.popleft()
        except BlockingIOError:
            self._loop.add_writer(self._channel.fileno(), self._write)
            return
        except OSError:
            return  # its end is seen at the pidfd
        self._loop.remove_writer(self._channel.fileno())

    def _read(self) -> None:
        """Take every packet that is there."""
        with contextlib.suppress(BlockingIOError, ConnectionError):
            while packet := self._channel.recv(NOTICE_BYTES_MAX):
                self._take(packet)

    def _take(self, packet: bytes) -> None:
        notice = decode_notice(packet)
        if isinstance(notice, Claimed | Ended | Gone):
            self._on_notice(notice)
            return
        asked = self._asked.pop(notice.number, None)
        if asked is None or asked.done():
            return
        if isinstance(notice, Forked):
            asked.set_result(notice.pid)
        elif isinstance(notice, NotForked):
            asked.set_exception(OSError(notice.why))


def _spawn(channel: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "spur.agent.forker", str(channel)],
        pass_fds=(channel,),
        stdin=subprocess.DEVNULL,
    )
