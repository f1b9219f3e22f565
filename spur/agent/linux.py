"""What Linux offers and Python 3.11 does not: prctl(2), and a host name of one's own.

Each function does nothing where the kernel or the caller's rights refuse: what it gives is wanted,
not needed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket

__all__ = [
    "adopt_orphans",
    "default_signals",
    "die_with_parent",
    "prepare_signals",
    "restore_signals",
    "take_host_name",
]

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_CLONE_NEWUTS = 0x04000000

_PYTHON_IGNORES = (signal.SIGPIPE, signal.SIGXFSZ)
"""Signals that Python ignores, since it wants the error instead."""

_libc = ctypes.CDLL(None, use_errno=True)


def adopt_orphans() -> None:
    """Make this process the parent of descendants whose own parent ends."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent(parent: int) -> None:
    """Have this process killed when its parent, the process with that id, ends."""
    _libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def take_host_name(name: str) -> None:
    """Give this process and its descendants a host name of their own; needs root."""
    if os.geteuid() == 0 and _libc.unshare(_CLONE_NEWUTS) == 0:
        with contextlib.suppress(OSError):
            socket.sethostname(name)


def default_signals() -> None:
    """Give every signal its default action, and block none."""
    for number in range(1, signal.NSIG):
        with contextlib.suppress(OSError, ValueError):  # SIGKILL, SIGSTOP, those of the C library
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def prepare_signals() -> None:
    """Let a process and those that it forks have the signals that Python wants, and no others."""
    default_signals()
    for number in _PYTHON_IGNORES:
        signal.signal(number, signal.SIG_IGN)


def restore_signals() -> None:
    """Take back `prepare_signals` and what was handled since, before another program starts."""
    for number in (*_PYTHON_IGNORES, signal.SIGCHLD, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
