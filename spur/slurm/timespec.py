"""Lengths of time and points in time, as Slurm's commands read and write them.

    parse_time_limit("1-12")      ->  129600     d-h; also m, m:s, h:m:s, d-h:m, d-h:m:s
    format_duration(93600)        ->  "1-02:00:00"     squeue
    format_long_duration(5400)    ->  "01:30:00"       scontrol
    parse_moment("now+1hour", calendar)

Source: sbatch(1) --time, --begin; squeue(1); scontrol(1).
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, Protocol

from spur.values import timespec

__all__ = [
    "LIMIT_S_MAX",
    "UNLIMITED_S",
    "Calendar",
    "Moment",
    "MomentError",
    "format_duration",
    "format_limit",
    "format_long_duration",
    "format_long_limit",
    "format_moment",
    "parse_moment",
    "parse_time_limit",
]

UNLIMITED_S = 0
"""How the state spells "no limit"."""

LIMIT_S_MAX = (1 << 32) - 1
"""Seconds of the longest time limit, 136 years: people write a hundred for no limit."""

# -- lengths of time


def parse_time_limit(text: str) -> int:
    """Return seconds, whole minutes rounded up; `UNLIMITED_S` for 0 and for the words.

    Raises: ValueError for anything that is no time.
    """
    limit_s = timespec.parse_time_limit(text)
    if limit_s is None:
        return UNLIMITED_S
    if limit_s > LIMIT_S_MAX:
        raise ValueError(f"{text!r} is longer than {LIMIT_S_MAX} s")
    return limit_s


@lru_cache(maxsize=256)  # of the thousands of jobs that wait none has run
def format_duration(seconds: int) -> str:
    """Spell a length of time as squeue and sinfo do: 0:06, 20:00, 1:00:00, 1-02:00:00."""
    minutes, rest_s = divmod(max(seconds, 0), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}-{hours:02}:{minutes:02}:{rest_s:02}"
    if hours:
        return f"{hours}:{minutes:02}:{rest_s:02}"
    return f"{minutes}:{rest_s:02}"


def format_long_duration(seconds: int) -> str:
    """Spell a length of time as scontrol does: 00:05:00, 1-02:00:00."""
    minutes, rest_s = divmod(max(seconds, 0), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    start = f"{days}-" if days else ""
    return f"{start}{hours:02}:{minutes:02}:{rest_s:02}"


def format_limit(limit_s: int) -> str:
    """Spell a time limit as squeue does."""
    return "UNLIMITED" if limit_s == UNLIMITED_S else format_duration(limit_s)


def format_long_limit(limit_s: int) -> str:
    """Spell a time limit as scontrol does."""
    return "UNLIMITED" if limit_s == UNLIMITED_S else format_long_duration(limit_s)


# -- points in time


class Moment(NamedTuple):
    """A date and a time of day, by the clock on the wall."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int


class Calendar(Protocol):
    """The zone of the person who types, and what time it is there."""

    def now(self) -> int:
        """Return the seconds since 1970."""

    def moment(self, seconds: int) -> Moment:
        """Return what the clock on the wall shows then."""

    def seconds(self, moment: Moment) -> int:
        """Return when the clock shows this; a day of 32 is the first of the next month.

        Raises: ValueError or OverflowError when no clock ever does.
        """


class MomentError(ValueError):
    """A text that is no point in time."""

    def __init__(self, text: str, position: int) -> None:
        super().__init__(f"Invalid time specification (pos={position}): {text}")


_UNITS_S = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
_HOURS = {"midnight": 0, "elevenses": 11, "noon": 12, "fika": 15, "teatime": 16}


def _unspelled(seconds: int) -> str:
    return ""


def format_moment(seconds: int, calendar: Calendar, *, empty: str = "N/A") -> str:
    """Spell a point in time in the person's zone; 0 is `empty`.

    A calendar that has a way of its own to spell one (`spelled`) is asked first.
    """
    if seconds == 0:
        return empty
    spelled: str = getattr(calendar, "spelled", _unspelled)(seconds)
    if spelled:
        return spelled
    at = calendar.moment(seconds)
    return f"{at.year:04}-{at.month:02}-{at.day:02}T{at.hour:02}:{at.minute:02}:{at.second:02}"


def parse_moment(text: str, calendar: Calendar, *, is_past: bool = False) -> int:
    """Return the seconds since 1970 that a text like 16:00, now+1hour or 2030-01-20T12:34 means.

    A time of day that has passed is tomorrow's; a date without a year that has passed is next
    year's; a date alone begins at midnight. With `is_past`, for those who look back, it is today's
    and this year's.

    Raises: MomentError saying where the text stops making sense.
    """
    if text[:3].lower() == "uts":
        digits = text[3:]
        if not (digits.isascii() and digits.isdigit()) or len(digits) > 11:
            raise MomentError(text, 0)
        return int(digits)
    if text[:3].lower() == "now":
        return calendar.now() + _delta(text)
    return _When(text, calendar, is_past=is_past).result()


def _delta(text: str) -> int:
    """Return the seconds that what follows "now" adds."""
    rest = text[3:].strip().lower()
    if not rest:
        return 0
    digits = rest[1:].lstrip()
    unit = digits.lstrip("0123456789")
    digits = digits[: len(digits) - len(unit)]
    if rest[0] not in "+-" or not digits or len(digits) > 11:
        raise MomentError(text, 3)
    unit = unit.strip()
    size_s = 1 if not unit else _UNITS_S.get(unit.removesuffix("s"), 0)
    if not size_s:
        raise MomentError(text, 4)
    return int(digits) * size_s * (-1 if rest[0] == "-" else 1)


class _When:
    """A reader of dates and times of day, in either order."""

    def __init__(self, text: str, calendar: Calendar, *, is_past: bool) -> None:
        self.text = text
        self.calendar = calendar
        self.is_past = is_past
        self.today = calendar.moment(calendar.now())
        self.date: tuple[int, int, int] | None = None
        self.time: tuple[int, int, int] | None = None
        self.has_year = True

    def result(self) -> int:
        """Read all of it and return the seconds since 1970."""
        position = 0
        text = self.text
        while position < len(text):
            if text[position].isspace() or (text[position] in "Tt" and self._is_between(position)):
                position += 1
                continue
            position = self._token(position)
        if self.date is None and self.time is None:
            raise MomentError(text, 0)
        return self._seconds()

    def _is_between(self, position: int) -> bool:
        """Whether a T here parts a date from the time behind it."""
        return self.date is not None and self.text[position + 1 : position + 2].isdigit()

    def _token(self, position: int) -> int:
        """Take one date, time or word; return where it ends."""
        end = position
        while end < len(self.text) and (self.text[end].isalnum() or self.text[end] in ":/.-"):
            if self.text[end] in "Tt" and self._is_date(self.text[position:end]):
                break
            end += 1
        token = self.text[position:end].lower()
        if not token:
            raise MomentError(self.text, position)
        if token in _HOURS:
            self._set_time((_HOURS[token], 0, 0), position)
        elif token in ("today", "tomorrow"):
            ahead = token == "tomorrow"
            self._set_date((self.today.year, self.today.month, self.today.day + ahead), position)
        elif ":" in token:
            end = self._clock(token, position, end)
        else:
            self._calendar_day(token, position)
        return end

    @staticmethod
    def _is_date(text: str) -> bool:
        return len(text) >= 4 and text[-1].isdigit()

    def _set_time(self, time: tuple[int, int, int], position: int) -> None:
        if self.time is not None:
            raise MomentError(self.text, position)
        self.time = time

    def _set_date(self, date: tuple[int, int, int], position: int) -> None:
        if self.date is not None:
            raise MomentError(self.text, position)
        self.date = date

    def _clock(self, token: str, position: int, end: int) -> int:
        """Take HH:MM[:SS] and an AM or PM, glued or behind a blank; return where it ends."""
        half = ""
        if token[-2:] in ("am", "pm"):
            token, half = token[:-2], token[-2:]
        else:
            rest = self.text[end:].lstrip()
            if rest[:2].lower() in ("am", "pm") and not rest[2:3].isalnum():
                half = rest[:2].lower()
                end = len(self.text) - len(rest) + 2
        parts = token.split(":")
        if len(parts) not in (2, 3) or not all(_is_number(part, 2) for part in parts):
            raise MomentError(self.text, position)
        hour, minute, second = (*map(int, parts), 0)[:3]
        if hour <= 23 and not half:
            position += _faults_at(parts, ((0, 23), (0, 59), (0, 59)))
        if half:
            if not 1 <= hour <= 12:
                raise MomentError(self.text, position)
            hour = hour % 12 + (12 if half == "pm" else 0)
        if hour > 23 or minute > 59 or second > 59:
            raise MomentError(self.text, position)
        self._set_time((hour, minute, second), position)
        return end

    def _calendar_day(self, token: str, position: int) -> None:
        """Take YYYY-MM-DD, MMDD[YY], MM/DD[/YY] or MM.DD[.YY]."""
        if "-" in token:
            parts = token.split("-")
            widths = (4, 2, 2)
            year_at, month_at, day_at = 0, 1, 2
        else:
            mark = "/" if "/" in token else "."
            parts = (
                token.split(mark)
                if mark in token
                else [token[start : start + 2] for start in range(0, len(token), 2)]
            )
            widths = (2, 2, 2)
            year_at, month_at, day_at = 2, 0, 1
        good = len(parts) == 3 or (len(parts) == 2 and year_at == 2)
        if not good or not all(map(_is_wide, parts, widths)):
            raise MomentError(self.text, position + _odd_letter(token))
        numbers = [int(part) for part in parts]
        self.has_year = len(numbers) == 3
        year = numbers[year_at] if self.has_year else self.today.year
        if self.has_year and year_at == 2:
            year += 2000
        month, day = numbers[month_at], numbers[day_at]
        if not (1 <= month <= 12 and 1 <= day <= 31):
            if year_at == 0:
                position += _faults_at(parts, ((0, 9999), (1, 12), (1, 31)))
            raise MomentError(self.text, position)
        self._set_date((year, month, day), position)

    def _seconds(self) -> int:
        now = self.calendar.now()
        date = self.date or self.today[:3]
        found = self._at(date, self.time or (0, 0, 0))
        if self.is_past or found >= now or (self.date is not None and self.has_year):
            return found
        year, month, day = date
        if self.date is None:
            return self._at((year, month, day + 1), self.time or (0, 0, 0))
        return self._at((year + 1, month, day), self.time or (0, 0, 0))

    def _at(self, date: tuple[int, int, int], time: tuple[int, int, int]) -> int:
        try:
            return self.calendar.seconds(Moment(*date, *time))
        except (ValueError, OverflowError) as error:
            raise MomentError(self.text, 0) from error


def _faults_at(parts: list[str], bounds: tuple[tuple[int, int], ...]) -> int:
    """Return where the first of these numbers begins that is out of its bounds; 0 for none."""
    start = 0
    for part, (least, most) in zip(parts, bounds, strict=False):
        if not least <= int(part) <= most:
            return start
        start += len(part) + 1
    return 0


def _odd_letter(token: str) -> int:
    """Return where a date of digits alone stops being one: behind a month of one digit or two."""
    digits = token[: len(token) - len(token.lstrip("0123456789"))][:2]
    if not digits:
        return 0
    return len(digits) if 1 <= int(digits) <= 12 else len(digits) - 2


def _is_number(text: str, digits_max: int) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= digits_max


def _is_wide(text: str, width: int) -> bool:
    return _is_number(text, width) and len(text) == width
