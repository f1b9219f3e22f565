"""Requests about crontabs: jobs that come again."""

from __future__ import annotations

from spur.values.crontimes import CronTime
from spur.values.jobspec import JobSpec
from spur.wire.declare import Answer, Attachment, Part, Request, answer, request

__all__ = ["CronAsk", "CrontabText", "ReadCrontab", "SetCrontab"]


class CronAsk(Part, frozen=True):
    """One entry: a batch job, and when it is due."""

    time: CronTime
    spec: JobSpec
    attachments: tuple[int, ...]
    """Which of the request's attachments are this job's, by position."""


@request
class SetCrontab(Request, frozen=True, tag="crontab.set"):
    """Take a crontab in place of the user's former one; without entries and text there is none.

    Jobs of the former that wait are cancelled; those that run end as they would, for the last time.
    """

    zone: str
    """The rule for local time that the entries are meant in, as POSIX spells TZ."""
    entries: tuple[CronAsk, ...]
    attachments: tuple[Attachment, ...]
    """The first is the text of the crontab, if there is one: "crontab"."""
    uid: int | None = None
    """Whose; None for the caller's. Another's takes an administrator."""


@request
class ReadCrontab(Request, frozen=True, tag="crontab.read"):
    """Return a crontab's text."""

    uid: int | None = None


@answer
class CrontabText(Answer, frozen=True, tag="crontab.text"):
    """What a user handed in last."""

    content: bytes
    is_there: bool
