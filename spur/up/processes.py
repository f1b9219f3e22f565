"""Processes that outlive the command that starts them: found again, and ended, by their own files.

A file names pid, boot and the moment of the start as the kernel counts it, so a process that got
the same pid later is never taken for ours.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import msgspec

import spur
from spur.server.files import write_whole
from spur.up.layout import Places
from spur.values.errors import OperatorFault

__all__ = ["Mark", "children_of", "find", "memory_kib", "require_running", "start", "stop"]

STOP_S = 15.0
"""How long a process may take to end after SIGTERM."""

_FORKS = {"spur.agent.forker": "spur.agent.supervisor"}
"""What a program forks: its children run its command line, and are something else."""

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_FOREIGN = ("SLURM_", "SBATCH_", "SQUEUE_", "SINFO_", "SPUR_", "PYTHON")
"""Variables of the caller that no daemon inherits: they are about the caller's own work."""


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """Which process it is."""

    pid: int
    started: int
    """Clock ticks from the boot to its start. Source: proc(5) stat, field 22."""
    boot: str


def start(places: Places, name: str, module: str, arguments: Sequence[str]) -> Mark:
    """Start a program of ours in a session of its own, with its words going to its log."""
    with places.log(name).open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", module, *arguments],
            cwd=places.directory,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=_environment(),
            start_new_session=True,
        )
    mark = _mark_of(process.pid)
    if mark is None:  # it is ours to reap, so it can't be gone: a zombie at most
        mark = Mark(pid=process.pid, started=0, boot="")
    write_whole(places.pid(name), msgspec.json.encode(mark))
    # Whoever calls may live on: the process is looked at in /proc, and reaped if it is a child.
    process.returncode = 0
    return mark


def find(places: Places, name: str) -> Mark | None:
    """Return the process of this name if it runs."""
    try:
        mark = msgspec.json.decode(places.pid(name).read_bytes(), type=Mark)
    except (FileNotFoundError, msgspec.DecodeError, msgspec.ValidationError):
        return None
    with suppress(ChildProcessError):
        os.waitpid(mark.pid, os.WNOHANG)
    return mark if _mark_of(mark.pid) == mark else None


def stop(places: Places, names: Sequence[str]) -> list[str]:
    """End these processes together; return the names of those that ran.

    A process that does not end in time is killed.
    """
    ended = []
    waiting: dict[str, int] = {}
    for name in names:
        mark = find(places, name)
        if mark is None:
            continue
        with suppress(ProcessLookupError):
            descriptor = os.pidfd_open(mark.pid)
            if _mark_of(mark.pid) != mark:
                os.close(descriptor)
                continue
            signal.pidfd_send_signal(descriptor, signal.SIGCONT)
            signal.pidfd_send_signal(descriptor, signal.SIGTERM)
            waiting[name] = descriptor
            ended.append(name)
    end_s = time.monotonic() + STOP_S
    for name, descriptor in waiting.items():
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        if not poll.poll(max(0.0, end_s - time.monotonic()) * 1000):
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            poll.poll(1000)
        os.close(descriptor)
        find(places, name)
        places.pid(name).unlink(missing_ok=True)
    return ended


def require_running(places: Places, names: Sequence[str]) -> None:
    """See that these processes run. Raises: OperatorFault with the last words of one that ended."""
    for name in names:
        if find(places, name) is None:
            log = places.log(name)
            lines = log.read_text(errors="replace").splitlines() if log.exists() else []
            last = lines[-1] if lines else "it said nothing"
            raise OperatorFault(f"{name} ended: {last}\nhint: all it said is in {log}")


def children_of(pid: int, forks: str = "") -> Iterator[tuple[int, str]]:
    """Yield pid and module of each process of ours below this one.

    What the process forked without executing anything is of the module `forks`, if one is given.
    """
    own = _module_of(pid)
    try:
        threads = os.listdir(f"/proc/{pid}/task")
        children = [
            int(word)
            for thread in threads
            for word in Path(f"/proc/{pid}/task/{thread}/children").read_text().split()
        ]
    except OSError:
        return
    for child in children:
        module = _module_of(child)
        if module and forks and module == own:
            yield child, forks
        elif module:
            yield child, module
            yield from children_of(child, _FORKS.get(module, ""))


def memory_kib(pid: int) -> int:
    """Return the memory that a process has for itself, with its share of what it has in common.

    Source: proc(5) smaps_rollup, Pss; 0 when it may not be read.
    """
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    return 0


def _module_of(pid: int) -> str:
    """Return which module of ours a process runs; empty for another program."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return ""
    for flag, word in pairwise(words):
        if flag == "-m" and word.startswith("spur."):
            return word
    return ""


def _mark_of(pid: int) -> Mark | None:
    """Return who has this pid now; None for nobody, or for one that has ended already."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()
    if fields[0] in "ZX":
        return None
    return Mark(pid=pid, started=int(fields[19]), boot=_BOOT.read_text().strip())


def _environment() -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(_FOREIGN)}
    """Return what a daemon inherits; it finds the packages where we found them."""
    ours = os.path.dirname(os.path.dirname(os.path.abspath(spur.__file__)))
    folders = [ours, *(os.path.abspath(folder) for folder in sys.path if os.path.isdir(folder))]
    return {**kept, "PYTHONPATH": os.pathsep.join(dict.fromkeys(folders))}
