"""Which processes belong to an attempt, and ending them.

A supervisor adopts the orphans among its descendants, so all that a job starts stays below it,
whatever sessions and groups are made. Once control groups hold jobs, this module is their place.
"""

from __future__ import annotations

import contextlib
import os
import signal

__all__ = ["descendants", "kill_leftovers", "signal_all", "stop_all"]


def descendants(root: int) -> list[int]:
    """Return the living processes below one, itself left out; parents come first."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            parent = _parent(int(name))
            if parent is not None:
                children.setdefault(parent, []).append(int(name))
    found: list[int] = []
    waiting = [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def _parent(pid: int) -> int | None:
    """Return the parent of a process; None when it is gone, or ended and not yet collected."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, parent, *_ = file.read().rpartition(b")")[2].split()
    except (OSError, ValueError):
        return None
    return None if state in (b"Z", b"X") else int(parent)


def signal_all(root: int, number: int) -> int:
    """Send a signal to every process below one, and return how many there were."""
    found = descendants(root)
    for pid in found:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
    return len(found)


def stop_all(root: int) -> None:
    """Stop every process below one, those too that are made while others are being stopped."""
    stopped: set[int] = set()
    while fresh := set(descendants(root)) - stopped:
        for pid in fresh:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGSTOP)
        stopped |= fresh


def kill_leftovers(job_id: int, node: str, relay: str) -> int:
    """Kill what is left on a node of a job whose supervisors are dead, and return how many.

    They are known by the variables that every process of a job inherits; so for a job that has a
    living supervisor on the node this would kill more than is left over. `relay` is the socket of
    the node's agent: another cluster on the machine may have a job and a node of the same names.
    """
    job = b"SLURM_JOB_ID=%d" % job_id
    host = b"SLURMD_NODENAME=" + os.fsencode(node)
    agent = b"SPUR_SOCKET=" + os.fsencode(relay)
    count = 0
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            handle = os.pidfd_open(int(name))
        except OSError:
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                variables = file.read().split(b"\0")
            if job in variables and host in variables and agent in variables:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                count += 1
        except OSError:
            pass  # another user's, or gone meanwhile
        finally:
            os.close(handle)
    return count
