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
from types import FrameType

__all__ = ["adopt_orphans", "die_with_parent", "prepare_signals", "take_host_name"]

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_CLONE_NEWUTS = 0x04000000

_libc = ctypes.CDLL(None, use_errno=True)
# Looked up before any process is forked: each that did so itself would touch eighty pages.
_prctl, _unshare = _libc.prctl, _libc.unshare


def adopt_orphans() -> None:
    """Make this process the parent of descendants whose own parent ends."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent(parent: int) -> None:
    """Have this process killed when its parent, the process with that id, ends."""
    _prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def take_host_name(name: str) -> None:
    """Give this process and its descendants a host name of their own; needs root."""
    if os.geteuid() == 0 and _unshare(_CLONE_NEWUTS) == 0:
        with contextlib.suppress(OSError):
            socket.sethostname(name)


def prepare_signals() -> None:
    """Give this process, and those that it forks, signals that end nothing by surprise.

    Every signal has its default action and none is blocked, but for those that a daemon must not
    die of: they are taken by a handler that does nothing, and not ignored, so that the programs
    which are executed later find the default.
    """
    for number in range(1, signal.NSIG):
        with contextlib.suppress(OSError, ValueError):  # SIGKILL, SIGSTOP, those of the C library
            signal.signal(number, signal.SIG_DFL)
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGCHLD):
        signal.signal(number, _do_nothing)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _do_nothing(number: int, frame: FrameType | None) -> None:
    pass
