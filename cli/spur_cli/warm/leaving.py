"""Leaving a worker behind, for the commands that follow."""

from __future__ import annotations

import contextlib
import os
import signal
import sys

from spur_cli.warm.knock import door_of

__all__ = ["leave"]

_WORKER = "spur_cli.warm.worker"
"""A fresh interpreter runs it: what we have read and changed is not for others."""

_KEPT = ("LANG", "LC_ALL", "LC_CTYPE")
"""Variables that a worker is born with: they settle the interpreter's coding."""


def leave(install: list[str]) -> None:
    """Start a worker that outlives us, unless we run inside a job, whose end is to end all."""
    door = None if "SLURM_JOB_ID" in os.environ else door_of(install)
    if door is None or os.fork():
        return
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
        if fd > 2:
            with contextlib.suppress(OSError):
                os.close(fd)
    code = (
        "import sys\n"
        f"sys.path += {install!r}\n"
        "sys.modules['typing_extensions'] = None\n"
        f"from {_WORKER} import work\n"
        f"work({door!r})\n"
    )
    kept = {key: value for key, value in os.environ.items() if key in _KEPT}
    os.execve(sys.executable, [sys.executable, "-IS", "-c", code], {"PATH": os.defpath, **kept})


def _open_files() -> list[int]:
    return [int(name) for name in os.listdir("/proc/self/fd")]
