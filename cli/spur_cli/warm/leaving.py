"""Leaving a worker behind, for the commands that follow."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import sys

from spur_cli.warm.knock import PATIENCE_S, Door, door_of

__all__ = ["leave"]

_WORKER = "spur_cli.warm.worker"
"""A fresh interpreter runs it: what we have read and changed is not for others."""

_KEPT = ("LANG", "LC_ALL", "LC_CTYPE")
"""Variables that a worker is born with: they settle the interpreter's coding."""


def leave(install: list[str]) -> None:
    """Start a worker that outlives us, unless we run inside a job, whose end is to end all.

    The command is done, so nothing that goes wrong here is told, such as a limit of processes.
    """
    with contextlib.suppress(OSError):
        door = None if "SLURM_JOB_ID" in os.environ else door_of(install)
        lock = None if door is None else _lock(door)
        if door is not None and lock is not None and not os.fork():
            _become_worker(install, door, lock)


def _lock(door: Door) -> int | None:
    """Return a file whose lock is ours until the worker listens; None when there is another.

    Of a hundred commands that begin at once one leaves a worker. Raises: OSError.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    lock = os.open(door[0] + b"/leaving", flags, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    if _somebody_listens(door):  # since we knocked
        os.close(lock)
        return None
    return lock


def _somebody_listens(door: Door) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.settimeout(PATIENCE_S)
        try:
            line.connect(door[0] + b"/" + door[1])
        except (FileNotFoundError, ConnectionRefusedError):
            return False
    return True


def _become_worker(install: list[str], door: Door, lock: int) -> None:
    """Never returns."""
    try:
        _execute_worker(install, door, lock)
    finally:
        os._exit(1)


def _execute_worker(install: list[str], door: Door, lock: int) -> None:
    os.setsid()
    if os.fork():
        os._exit(0)
    os.chdir("/")
    os.umask(0o077)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    for fd in _open_files():
        if fd > 2 and fd != lock:
            with contextlib.suppress(OSError):
                os.close(fd)
    os.set_inheritable(lock, True)
    code = (
        "import sys\n"
        f"sys.path += {install!r}\n"
        "sys.modules['typing_extensions'] = None\n"
        f"from {_WORKER} import work\n"
        f"work({door!r}, lock={lock})\n"
    )
    kept = {key: value for key, value in os.environ.items() if key in _KEPT}
    os.execve(sys.executable, [sys.executable, "-IS", "-c", code], {"PATH": os.defpath, **kept})


def _open_files() -> list[int]:
    return [int(name) for name in os.listdir("/proc/self/fd")]
