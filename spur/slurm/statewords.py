"""States of jobs in two spellings, and what may be typed for them.

Source: squeue(1) JOB STATE CODES, --states; transcripts of Slurm 22.05.
"""

from __future__ import annotations

from spur.values.states import JobState

__all__ = ["COMPLETING", "LIVE_STATES", "compact", "parse_state"]

COMPLETING = "COMPLETING"
"""What a job is shown as whose nodes have still to report it dead."""

_COMPACT = {
    "BOOT_FAIL": "BF",
    "CANCELLED": "CA",
    "COMPLETED": "CD",
    "CONFIGURING": "CF",
    COMPLETING: "CG",
    "DEADLINE": "DL",
    "FAILED": "F",
    "NODE_FAIL": "NF",
    "OUT_OF_MEMORY": "OOM",
    "PENDING": "PD",
    "PREEMPTED": "PR",
    "RUNNING": "R",
    "REQUEUED": "RQ",
    "SUSPENDED": "S",
    "TIMEOUT": "TO",
    "RESV_DEL_HOLD": "RD",
    "REQUEUE_FED": "RF",
    "REQUEUE_HOLD": "RH",
    "RESIZING": "RS",
    "REVOKED": "RV",
    "SIGNALING": "SI",
    "SPECIAL_EXIT": "SE",
    "STAGE_OUT": "SO",
    "STOPPED": "ST",
}

_LONG = {short: word for word, short in _COMPACT.items()}

LIVE_STATES = (JobState.PENDING, JobState.RUNNING, JobState.SUSPENDED)
"""What squeue shows when no states are asked, besides what is completing."""


def compact(word: str) -> str:
    """Return the short spelling of a state."""
    return _COMPACT[word]


def parse_state(text: str) -> JobState | str | None:
    """Return the state that is meant; a word alone for one of Slurm's that no job of ours is in.

    None when Slurm has no such state either.
    """
    word = text.upper()
    word = _LONG.get(word, word)
    if word not in _COMPACT:
        return None
    return JobState(word) if word in JobState.__members__ else word
