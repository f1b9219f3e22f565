"""Lengths of time as Slurm writes them.

    minutes, minutes:seconds, hours:minutes:seconds,
    days-hours, days-hours:minutes, days-hours:minutes:seconds,
    INFINITE or UNLIMITED

Source: slurm.conf(5) MaxTime, sbatch(1) --time.
"""

from __future__ import annotations

import re

__all__ = ["TIME_LIMIT_GRAMMAR", "TIME_LIMIT_S_MAX", "parse_time_limit"]

TIME_LIMIT_GRAMMAR = "minutes, minutes:seconds, [days-]hours:minutes:seconds, or UNLIMITED"
"""What `parse_time_limit` takes, for sentences."""

TIME_LIMIT_S_MAX = 60 * ((1 << 31) - 1)
"""The longest limit that is a number. Source: Slurm keeps minutes in 31 bits."""

_PLAIN = re.compile(r"([0-9]{1,10})(?::([0-9]{1,10}))?(?::([0-9]{1,10}))?\Z")
_DAYS = re.compile(r"([0-9]{1,10})-([0-9]{1,10})(?::([0-9]{1,10}))?(?::([0-9]{1,10}))?\Z")
_MINUTE_S = 60
_HOUR_S = 60 * _MINUTE_S
_DAY_S = 24 * _HOUR_S


def parse_time_limit(text: str) -> int | None:
    """Return seconds, whole minutes rounded up; None for no limit.

    Raises: ValueError saying what would be right.
    """
    if text.upper() in ("INFINITE", "UNLIMITED", "-1"):
        return None
    if match := _DAYS.match(text):
        days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
        total_s = days * _DAY_S + hours * _HOUR_S + minutes * _MINUTE_S + seconds
    elif match := _PLAIN.match(text):
        numbers = [int(part) for part in match.groups() if part is not None]
        if len(numbers) == 3:
            total_s = numbers[0] * _HOUR_S + numbers[1] * _MINUTE_S + numbers[2]
        else:
            total_s = numbers[0] * _MINUTE_S + (numbers[1] if len(numbers) == 2 else 0)
    else:
        raise ValueError(f"it takes {TIME_LIMIT_GRAMMAR}")
    total_s = -(-total_s // _MINUTE_S) * _MINUTE_S
    if total_s > TIME_LIMIT_S_MAX:
        raise ValueError(f"it takes at most {TIME_LIMIT_S_MAX // _MINUTE_S} minutes")
    return total_s
