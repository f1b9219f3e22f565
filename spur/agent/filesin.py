"""Files that guests hand over to a node of a run, each written by a process of the run's user.

Source: sbcast(1).
"""

from __future__ import annotations

import os
import signal
import socket
import zlib
from contextlib import suppress
from typing import NoReturn

from spur.agent.guests import Guest
from spur.agent.identity import Unlaunchable, User, find_user
from spur.agent.linux import die_with_parent
from spur.agent.taskpipes import InputPipe
from spur.agent.tending import Tending
from spur.wire.agents import LaunchOrder
from spur.wire.streams import FilePiece, FilePut, PutFile, ToStep

__all__ = ["FileGuests"]

_PIECE_BYTES = 256 * 1024

_BROKEN = 5
"""EIO: the writer died, or there is no saying why it failed."""

_NOBODY = 13
"""EACCES: there is no such user here."""


class FileGuests:
    """Who hands over files to a node."""

    def __init__(self, tending: Tending, order: LaunchOrder) -> None:
        """Files are written for the run of this order."""
        self._tending, self._order = tending, order

    def take(self, connection: socket.socket) -> None:
        """Let one in, with one file."""
        guest = Guest(self._tending, connection, self._order.node)
        guest.hear = _File(self._tending, self._order, guest).hear


class _File:
    """One file on its way."""

    def __init__(self, tending: Tending, order: LaunchOrder, guest: Guest) -> None:
        self._tending, self._order, self._guest = tending, order, guest
        self._pipe: InputPipe | None = None
        self._pid = 0

    def hear(self, message: ToStep) -> None:
        if isinstance(message, PutFile) and not self._pid:
            self._begin(message)
        elif isinstance(message, FilePiece) and self._pipe is not None:
            self._pipe.put(message.data)
            self._balance()

    def _begin(self, what: PutFile) -> None:
        try:
            user = find_user(self._order.uid, self._order.gid)
        except Unlaunchable:
            self._guest.say(FilePut(_NOBODY))
            return
        reader, writer = os.pipe()
        parent = os.getpid()
        pid = os.fork()
        if not pid:
            _write(reader, writer, what, user, parent)
        os.close(reader)
        self._pid = pid
        self._pipe = InputPipe(self._tending, writer, self._balance)
        self._tending.aside[pid] = self._ended
        self._guest.gone = self._give_up

    def _balance(self) -> None:
        if self._pipe is not None:
            self._guest.pause(self._pipe.is_full)

    def _ended(self, status: int) -> None:
        self._close()
        self._guest.gone = lambda: None
        self._guest.say(FilePut(os.WEXITSTATUS(status) if os.WIFEXITED(status) else _BROKEN))

    def _give_up(self) -> None:
        """The guest is gone before the end: what was written so far stays, and is no whole file."""
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        self._tending.aside[self._pid] = lambda status: None
        self._close()

    def _close(self) -> None:
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None


def _write(reader: int, writer: int, what: PutFile, user: User, parent: int) -> NoReturn:
    """Be the process that writes; it exits with the number of what went wrong."""
    number = _BROKEN
    try:
        os.close(writer)
        os.setsid()
        if os.geteuid() == 0:
            os.setgroups(user.groups)
            os.setresgid(user.gid, user.gid, user.gid)
            os.setresuid(user.uid, user.uid, user.uid)
        die_with_parent(parent)
        os.umask(0)
        flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if what.forces else os.O_EXCL)
        file = os.open(what.path, flags, what.mode & 0o700)
        inflate = zlib.decompressobj() if what.is_compressed else None
        while data := os.read(reader, _PIECE_BYTES):
            content = data if inflate is None else inflate.decompress(data)
            while content:
                content = content[os.write(file, content) :]
        os.fchmod(file, what.mode)
        if what.keeps_times:
            os.utime(file, ns=(what.atime_ns, what.mtime_ns))
        os.close(file)
        number = 0
    except OSError as error:
        number = error.errno or _BROKEN
    finally:
        os._exit(number)
