"""The events that a job's owner may be written to about, and what is written.

Source: sbatch(1) --mail-type; transcripts of Slurm 22.05 for the order.
"""

from __future__ import annotations

from collections.abc import Iterable

from spur.slurm.timespec import format_long_duration

__all__ = [
    "MAIL_TYPES",
    "mail_content",
    "mail_events",
    "read_mail_content",
    "spell_kind",
    "spell_subject",
]

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


def mail_content(options: Iterable[tuple[str, bytes]]) -> bytes:
    """Return the content of the attachment "mail": the events, and on a line of its own to whom.

    Empty when no mail is asked for. Nobody named is the job's owner.
    """
    given = dict(options)
    events = mail_events(given.get("mail-type", b"").decode("ascii", "replace"))
    return b"%s\n%s" % (events.encode(), given.get("mail-user", b"")) if events else b""


def read_mail_content(content: bytes) -> tuple[frozenset[str], str]:
    """Return the events, and to whom it goes; empty for the job's owner."""
    events, _, user = content.partition(b"\n")
    words = frozenset(word for word in events.decode("ascii", "replace").split(",") if word)
    return words, user.decode("utf-8", "surrogateescape")


_KINDS = {
    "BEGIN": "Began",
    "END": "Ended",
    "FAIL": "Failed",
    "REQUEUE": "Requeued",
    "INVALID_DEPEND": "Invalid dependency",
    "TIME_LIMIT": "Reached time limit",
    "TIME_LIMIT_90": "Reached 90% of time limit",
    "TIME_LIMIT_80": "Reached 80% of time limit",
    "TIME_LIMIT_50": "Reached 50% of time limit",
}


def spell_kind(kind: str) -> str:
    """Return what a subject says of an event."""
    return _KINDS[kind]


def spell_subject(
    called: str, name: str, kind: str, *, waited_s: int | None, ran_s: int | None, ended: str
) -> str:
    """Return the subject of a mail.

    `called` is how the job is named, such as "Job_id=5"; `ended` how it ended, or empty.
    """
    words = f"Slurm {called} Name={name} {spell_kind(kind)}"
    if waited_s is not None:
        words += f", Queued time {format_long_duration(waited_s)}"
    if ran_s is not None:
        words += f", Run time {format_long_duration(ran_s)}"
    return f"{words}, {ended}" if ended else words
