"""What is said to a job that is ended, and how its end is told.

Source: transcripts of Slurm 22.05.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Mapping
from typing import NamedTuple

from spur.values.states import JobState

__all__ = [
    "LAUNCH_FAILED_SIGNAL",
    "EarlySignal",
    "cancelled_sentence",
    "early_signal",
    "exit_of",
    "spoken_by",
]

LAUNCH_FAILED_SIGNAL = 53
"""The signal that an attempt is said to have ended by when its files could not be opened."""

_CAUSES: dict[str, str] = {
    JobState.TIMEOUT: " DUE TO TIME LIMIT",
    JobState.PREEMPTED: " DUE TO PREEMPTION",
    JobState.REQUEUED: " DUE TO JOB REQUEUE",
    JobState.NODE_FAIL: " DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS",
}

_SILENT = (JobState.COMPLETED, JobState.FAILED)
"""Ends that come from the job itself: what is left of it is ended without a word."""


def cancelled_sentence(what: str, node: str, state: str) -> str:
    """Return the sentence for a job's or a step's errors, at the present local time.

    `what` is such as "JOB 5" or "STEP 5.0". Empty when nothing is said.
    """
    if state in _SILENT:
        return ""
    moment = time.strftime("%Y-%m-%dT%H:%M:%S")
    return f"*** {what} ON {node} CANCELLED AT {moment}{_CAUSES.get(state, '')} ***"


def spoken_by(own_host_name: bool, node: str) -> str:
    """Return what sentences of the supervisor begin with; where nodes share a host, which it is."""
    return f"slurmstepd-{node}: error: " if own_host_name else "slurmstepd: error: "


def exit_of(status: int) -> tuple[int, int, bool]:
    """Return exit code, signal, and whether a core was left, of a status of waitpid(2)."""
    if os.WIFSIGNALED(status):
        return 0, os.WTERMSIG(status), os.WCOREDUMP(status)
    return os.WEXITSTATUS(status), 0, False


class EarlySignal(NamedTuple):
    """A signal that a job wants some time before its limit is reached."""

    number: int
    to_script: bool
    """To the batch script alone; else to the steps alone."""
    after_s: float
    """From now."""


_EARLY = re.compile(r"(?:(?P<flags>[RBrb]+):)?(?:SIG)?(?P<name>\w+)(?:@(?P<ahead>\d+))?", re.I)

AHEAD_S = 60
"""How long before the limit when the submission does not say."""


def early_signal(options: Mapping[str, bytes], limit_ns: int, now_ns: int) -> EarlySignal | None:
    """Return what --signal of a submission asks for; None when nothing, or without a limit.

    Both times are UTC. Source: sbatch(1) --signal.
    """
    match = _EARLY.fullmatch(options.get("signal", b"").decode("ascii", "replace"))
    if match is None or not limit_ns:
        return None
    name = match["name"].upper()
    try:
        number = int(name) if name.isdigit() else signal.Signals[f"SIG{name}"].value
    except KeyError:
        return None
    ahead_s = AHEAD_S if match["ahead"] is None else int(match["ahead"])
    after_s = max((limit_ns - now_ns) / 1e9 - ahead_s, 0.0)
    return EarlySignal(number, "B" in (match["flags"] or "").upper(), after_s)
