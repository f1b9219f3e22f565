"""When an entry of a crontab is due: minutes, hours, days, months and weekdays as masks."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from spur.values.zones import Zone, local_of, utc_of

__all__ = ["CronTime", "next_time"]

DAYS_LOOKED_MAX = 366 * 9
"""29 February comes again after eight years at the latest."""


class CronTime(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """Bit i of a mask: i is meant. Source: crontab(5)."""

    minutes: int
    hours: int
    days: int
    """Of the month, from bit 1."""
    months: int
    """From bit 1."""
    weekdays: int
    """Sunday is 0."""
    either_day: bool
    """Whether a day of the month or of the week is enough: both were named."""


def next_time(entry: CronTime, zone: Zone, after_s: int) -> int | None:
    """Return the first moment after one at which an entry is due; None when it never is.

    Both in seconds since 1970 UTC.
    """
    day = local_of(zone, after_s).replace(hour=0, minute=0, second=0, microsecond=0)
    for _ in range(DAYS_LOOKED_MAX):
        if _is_day(entry, day.month, day.day, (day.weekday() + 1) % 7):
            for hour in (hour for hour in range(24) if entry.hours >> hour & 1):
                for minute in (each for each in range(60) if entry.minutes >> each & 1):
                    found_s = utc_of(zone, day + timedelta(hours=hour, minutes=minute))
                    if found_s > after_s:
                        return found_s
        day += timedelta(days=1)
    return None


def _is_day(entry: CronTime, month: int, day: int, weekday: int) -> bool:
    if not entry.months >> month & 1:
        return False
    of_month, of_week = bool(entry.days >> day & 1), bool(entry.weekdays >> weekday & 1)
    return of_month or of_week if entry.either_day else of_month and of_week
