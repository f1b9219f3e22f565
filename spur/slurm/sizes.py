"""Sizes of memory and counts with a unit, as Slurm's commands read and write them.

    parse_memory("2G")        ->  2048 (MiB)
    parse_count("1k")         ->  1024
    format_memory(64000)      ->  "62.50G"

Source: sbatch(1) --mem, --nodes, --gres.
"""

from __future__ import annotations

__all__ = ["COUNT_MAX", "format_memory", "parse_count", "parse_memory"]

COUNT_MAX = (1 << 31) - 1
"""The highest count and the most MiB that a request may name."""

_MIB = {"": (1, 1), "k": (1, 1024), "m": (1, 1), "g": (1 << 10, 1), "t": (1 << 20, 1)}
"""Of each unit: MiB as a fraction."""

_COUNTS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def parse_memory(text: str) -> int:
    """Return MiB, rounded up; a number alone is MiB, and a B may follow the unit.

    Raises: ValueError for anything else.
    """
    digits, unit = _cut(text)
    if len(unit) == 2 and unit[1] == "b":
        unit = unit[0]
    if unit not in _MIB:
        raise ValueError(f"{text!r} is no size: write 500, 500M, 2G or 1T")
    times, parts = _MIB[unit]
    return _checked(-(-digits * times // parts), text)


def parse_count(text: str) -> int:
    """Return a count; k, m and g stand for 1024 and its powers.

    Raises: ValueError for anything else.
    """
    digits, unit = _cut(text)
    if unit not in _COUNTS:
        raise ValueError(f"{text!r} is no count: write 4 or 1k")
    return _checked(digits * _COUNTS[unit], text)


def _cut(text: str) -> tuple[int, str]:
    unit = text.lstrip("0123456789")
    digits = text[: len(text) - len(unit)]
    if not digits or len(digits) > 12:
        raise ValueError(f"{text!r} does not begin with a number")
    return int(digits), unit.lower()


def _checked(count: int, text: str) -> int:
    if count > COUNT_MAX:
        raise ValueError(f"{text!r} is over {COUNT_MAX}")
    return count


def format_memory(mib: int) -> str:
    """Spell a size in the largest unit that keeps it exact to two places: 1000M, 20G, 62.50G."""
    if mib == 0:
        return "0"
    if mib % 512:
        return f"{mib}M"
    size, units = mib, "MGTP"
    parts = 1
    while size >= 1024 * parts and len(units) > 1:
        parts *= 1024
        units = units[1:]
    whole, rest = divmod(size, parts)
    if rest == 0:
        return f"{whole}{units[0]}"
    return f"{whole}.{rest * 100 // parts:02}{units[0]}"
