"""Jobs that come again, as users' crontabs say."""

from __future__ import annotations

from spur.events.declare import Event, Stored, event
from spur.values.crontimes import CronTime
from spur.values.ids import JobId

__all__ = ["CronEntry", "CronEntryEnded", "CronRepeated", "CrontabSet"]


class CronEntry(Stored, frozen=True):
    """One entry, and the job that stands for it now."""

    job_id: JobId
    time: CronTime


@event("crontab.set")
class CrontabSet(Event, frozen=True):
    """A user's crontab took the place of the former one; its jobs were submitted in this entry."""

    uid: int
    zone: str
    """The rule for local time, as POSIX spells TZ."""
    entries: tuple[CronEntry, ...]
    attachments: tuple[int, ...]
    """The text of the crontab, by position among the envelope's attachments; none takes it away."""


@event("crontab.repeated")
class CronRepeated(Event, frozen=True):
    """The job of an entry ended: the next one, equal in all else, waits for its time."""

    uid: int
    from_id: JobId
    job_id: JobId
    """The next of the counter."""
    begin_ns: int


@event("crontab.entry-ended")
class CronEntryEnded(Event, frozen=True):
    """An entry comes no more, until the crontab is set anew: its job was cancelled."""

    uid: int
    job_id: JobId
