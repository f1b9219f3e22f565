"""Local time by a rule, without a table: what the last line of a zone's file says.

    CET-1CEST,M3.5.0,M10.5.0/3      an hour east of UTC, from the last Sunday of March on two

Source: POSIX.1-2017, 8.3, TZ; tzfile(5).
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

__all__ = ["UTC_ZONE", "Zone", "local_of", "parse_zone", "utc_of"]

_NAME = r"(?:<[A-Za-z0-9+-]+>|[A-Za-z]+)"
_TIME = r"[+-]?\d{1,3}(?::\d\d(?::\d\d)?)?"
_ZONE = re.compile(rf"{_NAME}({_TIME})(?:{_NAME}({_TIME})?(?:,([^,]+),([^,]+))?)?\Z")
_RULE = re.compile(rf"(?:M(\d{{1,2}})\.(\d)\.(\d)|(J?)(\d{{1,3}}))(?:/({_TIME}))?\Z")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None)


class _Rule(NamedTuple):
    """When summer time begins or ends."""

    month: int
    """0: `week` is a day of the year."""
    week: int
    weekday: int
    """Sunday is 0."""
    leaps: bool
    """Of a day of the year: whether 29 February counts."""
    time_s: int


class Zone(NamedTuple):
    """A rule for local time."""

    offset_s: int
    """East of UTC."""
    summer_s: int
    begin: _Rule | None
    """None where there is no summer time."""
    end: _Rule | None


UTC_ZONE = Zone(0, 0, None, None)


def _seconds(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    hours, minutes, seconds = (*text.lstrip("+-").split(":"), "0", "0")[:3]
    return sign * (int(hours) * 3600 + int(minutes) * 60 + int(seconds))


def _rule(text: str) -> _Rule:
    match = _RULE.match(text)
    if match is None:
        raise ValueError(f"{text!r} is no rule for summer time")
    time_s = _seconds(match[6]) if match[6] else 7200
    if match[1]:
        month, week, weekday = int(match[1]), int(match[2]), int(match[3])
        if not (1 <= month <= 12 and 1 <= week <= 5 and weekday <= 6):
            raise ValueError(f"{text!r} is no rule for summer time")
        return _Rule(month, week, weekday, leaps=True, time_s=time_s)
    day = int(match[5])
    if not (match[4] == "J") <= day <= 365:
        raise ValueError(f"{text!r} is no rule for summer time")
    return _Rule(0, day, 0, leaps=not match[4], time_s=time_s)


def parse_zone(text: str) -> Zone:
    """Read a rule. Raises: ValueError."""
    match = _ZONE.match(text)
    if match is None:
        raise ValueError(f"{text!r} is no rule for local time")
    offset_s = -_seconds(match[1])
    if match[3] is None:
        return Zone(offset_s, offset_s, None, None)
    summer_s = -_seconds(match[2]) if match[2] else offset_s + 3600
    return Zone(offset_s, summer_s, _rule(match[3]), _rule(match[4]))


def _moment(rule: _Rule, year: int) -> datetime:
    """Return the local time at which a rule takes hold in a year."""
    if not rule.month:
        day = date(year, 1, 1).toordinal() + rule.week - (0 if rule.leaps else 1)
        is_leap = date(year, 12, 31).timetuple().tm_yday == 366
        if not rule.leaps and is_leap and rule.week >= 60:
            day += 1
        found = date.fromordinal(day)
    else:
        first = date(year, rule.month, 1)
        days = (rule.weekday - (first.weekday() + 1)) % 7 + 7 * (rule.week - 1)
        found = first + timedelta(days=days)
        while found.month != rule.month:
            found -= timedelta(days=7)
    return _EPOCH + timedelta(
        days=found.toordinal() - date(1970, 1, 1).toordinal(), seconds=rule.time_s
    )


def _is_summer(zone: Zone, utc: datetime) -> bool:
    if zone.begin is None or zone.end is None:
        return False
    year = (utc + timedelta(seconds=zone.offset_s)).year
    begin = _moment(zone.begin, year) - timedelta(seconds=zone.offset_s)
    end = _moment(zone.end, year) - timedelta(seconds=zone.summer_s)
    return begin <= utc < end if begin < end else not end <= utc < begin


def local_of(zone: Zone, utc_s: int) -> datetime:
    """Return the local time, without a zone, of a moment in seconds since 1970 UTC."""
    utc = _EPOCH + timedelta(seconds=utc_s)
    offset_s = zone.summer_s if _is_summer(zone, utc) else zone.offset_s
    return utc + timedelta(seconds=offset_s)


def utc_of(zone: Zone, local: datetime) -> int:
    """Return the moment of a local time; of one that is there twice the first.

    One that is left out in spring is as long after the change as it would be without.
    """
    found = []
    for offset_s in sorted({zone.offset_s, zone.summer_s}, reverse=True):
        seconds = int((local - _EPOCH) / timedelta(seconds=1)) - offset_s
        if local_of(zone, seconds) == local:
            return seconds
        found.append(seconds)
    return max(found)
