"""Values of sacctmgr's options, both ways: what is typed, and what is shown.

    parse_resources("cpu=4,mem=10G")  ->  {"cpu": 4, "mem": 10240}
    format_resources(...)             ->  "cpu=4,mem=10G"

Source: sacctmgr(1); transcripts of Slurm 22.05.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from spur.slurm.timespec import format_long_duration
from spur.values.accounts import Settings

__all__ = [
    "QOS_FLAGS",
    "BadValue",
    "format_resources",
    "format_seconds",
    "parse_count",
    "parse_factor",
    "parse_minutes",
    "parse_resources",
    "parse_seconds",
]

QOS_FLAGS = (
    "DenyOnLimit",
    "EnforceUsageThreshold",
    "NoDecay",
    "NoReserve",
    "OverPartQOS",
    "PartitionMaxNodes",
    "PartitionMinNodes",
    "PartitionTimeLimit",
    "Relative",
    "RequiresReservation",
    "UsageFactorSafe",
)

_PLAIN = ("cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages")
"""Resources without a name of their own, in the order of Slurm's numbers."""

_NAMED = ("bb", "gres", "ic", "license")

_UNITS = ("", "K", "M", "G", "T", "P")
"""Each 1024 of the one before; memory without a unit is in M."""

_TIME = re.compile(r"(?:(\d{1,9})-)?(\d{1,9})(?::(\d{1,2}))?(?::(\d{1,2}))?\Z")


class BadValue(ValueError):
    """A value that its option can't have; the text is Slurm's sentence, empty for none."""


def parse_count(text: str, name: str) -> int | None:
    """Return a number; None for -1, which takes the limit away. Raises: BadValue."""
    if text == "-1":
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise BadValue(f"Invalid value for {name} ({text})")
    return int(text)


def parse_factor(text: str, name: str) -> int | None:
    """Return a factor in millionths; None for -1. Raises: BadValue."""
    if text == "-1":
        return None
    if not re.fullmatch(r"\d{1,9}(\.\d{1,12})?|\.\d{1,12}", text):
        raise BadValue(f"Invalid value for {name} ({text})")
    whole, _, part = text.partition(".")
    return int(whole or "0") * 1_000_000 + int(f"{part}000000"[:6])


def parse_minutes(text: str) -> int | None:
    """Return the seconds of a time limit, of which a lone number is minutes; None for -1.

    Raises: BadValue.
    """
    return _seconds(text, lone_s=60)


def parse_seconds(text: str) -> int | None:
    """Return seconds, which a lone number is; None for -1. Raises: BadValue."""
    return _seconds(text, lone_s=1)


def _seconds(text: str, *, lone_s: int) -> int | None:
    if text == "-1" or text.lower() in ("infinite", "unlimited"):
        return None
    found = _TIME.match(text)
    if found is None:
        raise BadValue("")
    days, first, second, third = found.groups()
    if days is not None:
        hours, minutes, seconds = int(first), int(second or 0), int(third or 0)
        return int(days) * 86_400 + hours * 3_600 + minutes * 60 + seconds
    if second is None:
        return int(first) * lone_s
    if third is None:
        return int(first) * 60 + int(second)
    return int(first) * 3_600 + int(second) * 60 + int(third)


def parse_resources(text: str) -> dict[str, int | None]:
    """Return numbers by resource; None takes one away. Raises: BadValue."""
    found: dict[str, int | None] = {}
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        kind, slash, _ = name.lower().partition("/")
        name = f"{kind}{name[len(kind) :]}"
        if name not in _PLAIN and not (slash and kind in _NAMED):
            raise BadValue(f"slurmdb_format_tres_str: no TRES known by type {name}")
        if not equals:
            raise BadValue(f"slurmdb_format_tres_str: no value given for TRES type '{name}'")
        found[name] = None if value == "-1" else _amount(name, value)
    return found


def _amount(name: str, text: str) -> int:
    digits = text.rstrip("KkMmGgTtPp")
    unit = text[len(digits) :].upper()
    if not digits.isascii() or not digits.isdigit() or len(digits) > 15 or len(unit) > 1:
        raise BadValue(f"slurmdb_format_tres_str: invalid value '{text}' for TRES type '{name}'")
    number, power = int(digits), _UNITS.index(unit)
    if not unit:
        return number
    if name in ("mem", "vmem"):
        power -= 2
    return number << (10 * power) if power >= 0 else -(-number // 1024)


def format_resources(settings: Settings, name: str) -> str:
    """Spell the numbers of one limit in the order of Slurm's resources."""
    found = [
        (setting.resource, setting.value)
        for setting in settings
        if setting.name == name and isinstance(setting.value, int)
    ]
    return ",".join(f"{resource}={_spelled(resource, value)}" for resource, value in _sorted(found))


def _sorted(pairs: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    return sorted(
        pairs,
        key=lambda pair: (_PLAIN.index(pair[0]) if pair[0] in _PLAIN else len(_PLAIN), pair[0]),
    )


def _spelled(resource: str, value: int) -> str:
    if resource not in ("mem", "vmem"):
        return str(value)
    unit = "M"
    for larger in "GTP":
        if not value or value % 1024:
            break
        value, unit = value // 1024, larger
    return f"{value}{unit}"


def format_seconds(seconds: int | None) -> str:
    """Spell a length of time; empty for none."""
    return "" if seconds is None else format_long_duration(seconds)
