"""Whether two processes are alike in all that a command inherits and a worker can't take on.

Both are of one machine; what the kernel tells of them in /proc is compared word by word, so that a
command runs with the rights, the confinement and the session that its caller has, or not here.
"""

from __future__ import annotations

import os
import resource
from typing import NamedTuple

__all__ = ["LIMITS", "Likeness", "Station", "likeness_of", "station_of"]

LIMITS = tuple(
    sorted({value for name, value in vars(resource).items() if name.startswith("RLIMIT_")})
)

_STATUS = (
    "Uid",
    "Gid",
    "Groups",
    "CapInh",
    "CapPrm",
    "CapEff",
    "CapBnd",
    "CapAmb",
    "NoNewPrivs",
    "Seccomp",
    "Seccomp_filters",
    "Cpus_allowed",
    "Mems_allowed",
)
"""Rights, and where it may run. Not every kernel has all of these, nor of the files below."""

_CHANGING = ("cgroup", "oom_score_adj")

_FIXED = ("loginuid", "sessionid", "attr/current", "personality")
"""The login that the audit knows, a security module's label, and how calls are understood."""

_NAMESPACES = (
    "cgroup",
    "ipc",
    "mnt",
    "net",
    "pid",
    "pid_for_children",
    "time",
    "time_for_children",
    "user",
    "uts",
)


class Station(NamedTuple):
    """What a process has that another can take on."""

    umask: int
    ignored: int
    """Signals: bit n - 1 is signal n."""
    blocked: int
    limits: tuple[tuple[int, int], ...]
    """In the order of `LIMITS`."""


class Likeness(NamedTuple):
    """What two processes must have in common."""

    fixed: tuple[object, ...]
    """What nobody changes from outside while a process runs."""
    changing: tuple[object, ...]


def likeness_of(pid: int) -> Likeness:
    """Return what a process is like. Raises: OSError when it is gone or may not be looked at."""
    return Likeness(_fixed(pid), _changing(pid, _status(pid)))


def station_of(pid: int, own: Likeness) -> Station | None:
    """Return what to take on for a process; None when it is not like us.

    `own` is our likeness, or that of the process that forked us.

    Raises: OSError when it is gone or may not be looked at.
    """
    status = _status(pid)
    here = os.getpid()
    if _fixed(pid) != own.fixed or _changing(pid, status) != _changing(here, _status(here)):
        return None
    return Station(
        umask=int(status[b"Umask"], 8),
        ignored=int(status[b"SigIgn"], 16),
        blocked=int(status[b"SigBlk"], 16),
        limits=tuple([resource.prlimit(pid, number) for number in LIMITS]),
    )


def _status(pid: int) -> dict[bytes, bytes]:
    lines = (_read(f"/proc/{pid}/status") or b"").split(b"\n")
    return dict(line.partition(b":\t")[::2] for line in lines)


def _changing(pid: int, status: dict[bytes, bytes]) -> tuple[object, ...]:
    return (
        *[status.get(name.encode()) for name in _STATUS],
        *[_read(f"/proc/{pid}/{name}") for name in _CHANGING],
        os.getpriority(os.PRIO_PROCESS, pid),
        os.sched_getscheduler(pid),
    )


def _fixed(pid: int) -> tuple[object, ...]:
    root = os.stat(f"/proc/{pid}/root")
    return (
        root.st_dev,
        root.st_ino,
        *[_read(f"/proc/{pid}/{name}") for name in _FIXED],
        *[_link(f"/proc/{pid}/ns/{name}") for name in _NAMESPACES],
    )


def _read(path: str) -> bytes | None:
    """Return a small file of the kernel; None where there is no such thing."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        return os.read(fd, 65536)
    except OSError:
        return None  # a label, where no security module gives any
    finally:
        os.close(fd)


def _link(path: str) -> str | None:
    try:
        return os.readlink(path)
    except FileNotFoundError:
        return None
