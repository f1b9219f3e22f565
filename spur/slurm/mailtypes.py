"""The events that a job's owner may be written to about.

Source: sbatch(1) --mail-type; transcripts of Slurm 22.05 for the order.
"""

from __future__ import annotations

__all__ = ["MAIL_TYPES", "mail_events"]

_EVENTS = (
    "ARRAY_TASKS",
    "INVALID_DEPEND",
    "BEGIN",
    "END",
    "FAIL",
    "REQUEUE",
    "STAGE_OUT",
    "TIME_LIMIT_50",
    "TIME_LIMIT_80",
    "TIME_LIMIT_90",
    "TIME_LIMIT",
)

_ALL = ("INVALID_DEPEND", "BEGIN", "END", "FAIL", "REQUEUE", "STAGE_OUT")
"""What ALL stands for."""

MAIL_TYPES = frozenset((*_EVENTS, "ALL", "NONE"))
"""Every word that --mail-type takes."""


def mail_events(text: str) -> str:
    """Return the events of a list in the order in which Slurm shows them; empty for none."""
    words = set(text.upper().split(","))
    if "NONE" in words:
        return ""
    if "ALL" in words:
        words.update(_ALL)
    return ",".join(event for event in _EVENTS if event in words)
