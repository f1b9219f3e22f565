"""One command in a child of the worker: takes on what the launcher has, and runs as if cold."""

from __future__ import annotations

import fcntl
import gc
import os
import resource
import select
import signal
import socket
import struct
import sys
import time

from spur_cli import calling
from spur_cli.main import main
from spur_cli.warm.knock import (
    ENDED,
    FORM,
    PATIENCE_S,
    READY,
)
from spur_cli.warm.likeness import LIMITS, Likeness, Station, station_of

__all__ = ["Unlike", "serve", "tell"]

REQUEST_BYTES_MAX = 8 << 20
"""Of a command line with its environment; the kernel takes 6 MiB."""

_FILES = 4
"""The directory, and 0, 1, 2."""

_SETSIG = 10

_SIGNALS = sorted(map(int, signal.valid_signals()))


class Unlike(Exception):
    """The launcher is not to be served by us; it runs its command itself."""


def serve(line: socket.socket, own: Likeness) -> None:
    """Serve one launcher that is like us, and tell it the status of its command.

    Raises: Unlike when nothing was run.
    """
    line.settimeout(PATIENCE_S)
    pid, uid, gid = struct.unpack(
        "3i", line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    )
    try:
        if not pid or (uid, gid) != (os.getuid(), os.getgid()):
            raise Unlike
        station = station_of(pid, own)
        if station is None:
            raise Unlike
        tell(line, READY, os.getpid())
        request, fds = _receive(line)
        argv = _take_on(request, fds, station)
    except (OSError, ValueError) as error:
        raise Unlike from error
    line.setblocking(True)
    _end_with(line)
    calling.pid = pid
    tell(line, ENDED, _run(argv))


def tell(line: socket.socket, word: bytes, number: int) -> None:
    """Send a word with its number; a launcher that is gone hears nothing."""
    try:
        line.sendall(word + number.to_bytes(4, "big"))
    except OSError:
        return


def _receive(line: socket.socket) -> tuple[list[bytes], list[int]]:
    """Return the fields of a request, and its files. Raises: OSError, ValueError."""
    data, fds, _, _ = socket.recv_fds(line, 4, _FILES, socket.MSG_CMSG_CLOEXEC)
    if len(data) != 4 or len(fds) != _FILES:
        raise ValueError("no size with four files")
    size = int.from_bytes(data, "big")
    if size > REQUEST_BYTES_MAX:
        raise ValueError("too long")
    request = bytearray()
    while len(request) < size:
        more = line.recv(size - len(request))
        if not more:
            raise ValueError("cut short")
        request += more
    return bytes(request).split(b"\0"), fds


def _take_on(request: list[bytes], fds: list[int], station: Station) -> list[str]:
    """Become as the launcher is; return the words of its command. Raises: OSError, ValueError."""
    form, coding, in_coding, in_errors, out_coding, out_errors, count, *words = request
    if form != FORM or coding.decode() != sys.getfilesystemencoding():
        raise ValueError("another form")
    for number, limit in zip(LIMITS, station.limits, strict=True):
        if resource.getrlimit(number) != limit:
            resource.setrlimit(number, limit)
    os.umask(station.umask)
    _take_signals(station)
    here, *files = fds
    os.fchdir(here)
    os.close(here)
    for number, fd in enumerate(files):
        os.dup2(fd, number)
        os.close(fd)
    sys.stdin = os.fdopen(
        0, encoding=in_coding.decode(), errors=in_errors.decode(), newline="\n", closefd=False
    )
    sys.stdout = os.fdopen(
        1,
        "w",
        encoding=out_coding.decode(),
        errors=out_errors.decode(),
        newline="\n",
        closefd=False,
    )
    sys.stderr = os.fdopen(
        2,
        "w",
        buffering=1,
        encoding=out_coding.decode(),
        errors="backslashreplace",
        newline="\n",
        closefd=False,
    )
    argv = [os.fsdecode(word) for word in words[: int(count)]]
    os.environb.clear()
    for word in words[int(count) :]:
        key, _, value = word.partition(b"=")
        os.environb[key] = value
    time.tzset()
    sys.argv = argv
    return argv


def _take_signals(station: Station) -> None:
    """Ignore and block the same signals; an interpreter treats the others alike from its start."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number in _numbers(station.ignored):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, _numbers(station.blocked))


def _numbers(mask: int) -> list[int]:
    """Return the signals of a mask, but for those that the C library keeps for itself."""
    return [number for number in _SIGNALS if mask >> (number - 1) & 1]


def _end_with(line: socket.socket) -> None:
    """Be killed when the launcher's end of the line closes: it was one process for its caller."""
    fcntl.fcntl(line, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(line, _SETSIG, signal.SIGKILL)
    fcntl.fcntl(line, fcntl.F_SETFL, fcntl.fcntl(line, fcntl.F_GETFL) | os.O_ASYNC)
    ready, _, _ = select.select([line], [], [], 0)
    if ready:  # it ended before that, since it has nothing more to say
        raise Unlike


def _run(argv: list[str]) -> int:
    """Run a command as the launcher's file would."""
    gc.disable()
    try:
        status = main(argv)
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    return status & 0xFF
