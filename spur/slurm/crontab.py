"""A crontab as scrontab reads it: comments, options of the next entry, and entries.

    #SCRON --time=10
    */5 8-17 * * mon-fri  ./look.sh

Source: scrontab(1); crontab(5).
"""

from __future__ import annotations

import shlex
from typing import NamedTuple

from spur.values.crontimes import CronTime

__all__ = ["BadCrontab", "CrontabEntry", "parse_cron_time", "read_crontab"]

_SHORTS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
    "@elevenses": "0 11 * * *",
    "@fika": "0 15 * * *",
    "@teatime": "0 16 * * *",
}

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]

_FIELDS = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of month", 1, 31, ()),
    ("month", 1, 12, tuple(_MONTHS)),
    ("day of week", 0, 7, tuple(_WEEKDAYS)),
)

ENTRIES_MAX = 1_000


class BadCrontab(ValueError):
    """A line that cannot be read, and why."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"line {line}: {why}")
        self.line = line
        self.why = why


class CrontabEntry(NamedTuple):
    """What is run when."""

    line: int
    time: CronTime
    options: tuple[str, ...]
    """Of its #SCRON lines, as words of a command line."""
    command: str


def parse_cron_time(text: str) -> CronTime:
    """Read five fields, or a word such as @daily. Raises: ValueError."""
    words = _SHORTS.get(text.lower(), text).split()
    if len(words) != len(_FIELDS):
        raise ValueError(f"{text!r} is no time: it takes five fields, or a word such as @daily")
    minutes, hours, days, months, weekdays = (
        _mask(word, *field) for word, field in zip(words, _FIELDS, strict=True)
    )
    weekdays = (weekdays | weekdays >> 7) & 0x7F  # Sunday is 0 and 7
    either_day = not words[2].startswith("*") and not words[4].startswith("*")
    return CronTime(minutes, hours, days, months, weekdays, either_day)


def _mask(text: str, name: str, low: int, high: int, names: tuple[str, ...]) -> int:
    mask = 0
    for part in text.split(","):
        span, slash, step_text = part.partition("/")
        step = _number(step_text, name, 1, high, ()) if slash else 1
        if span == "*":
            first, last = low, high
        else:
            begin, dash, end = span.partition("-")
            first = _number(begin, name, low, high, names)
            last = _number(end, name, low, high, names) if dash else high if slash else first
        if first > last:
            raise ValueError(f"{part!r} is no {name}: it goes backwards")
        for value in range(first, last + 1, step):
            mask |= 1 << value
    return mask


def _number(text: str, name: str, low: int, high: int, names: tuple[str, ...]) -> int:
    word = text.lower()
    if word in names:
        return names.index(word) + (1 if low == 1 else 0)
    if not (word.isascii() and word.isdigit() and low <= int(word) <= high):
        raise ValueError(f"{text!r} is no {name}, which is from {low} to {high}")
    return int(word)


def read_crontab(text: str) -> list[CrontabEntry]:
    """Return the entries, in order. Raises: BadCrontab."""
    found: list[CrontabEntry] = []
    options: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.strip()
        if words.startswith("#SCRON"):
            try:
                options += shlex.split(words[len("#SCRON") :], comments=True)
            except ValueError as error:
                raise BadCrontab(number, f"options cannot be read: {error}") from error
            continue
        if not words or words.startswith("#"):
            continue
        count = 1 if words.startswith("@") else len(_FIELDS)
        parts = words.split(None, count)
        if len(parts) <= count:
            raise BadCrontab(number, "there is no command")
        try:
            time = parse_cron_time(" ".join(parts[:count]))
        except ValueError as error:
            raise BadCrontab(number, str(error)) from error
        found.append(CrontabEntry(number, time, tuple(options), parts[count]))
        options = []
        if len(found) > ENTRIES_MAX:
            raise BadCrontab(number, f"a crontab has at most {ENTRIES_MAX} entries")
    return found
