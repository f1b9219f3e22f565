"""Lengths of time in Slurm's forms."""

from __future__ import annotations

import pytest

from spur.values.timespec import parse_time_limit


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10", 600),
        ("10:00", 600),
        ("10:01", 660),
        ("1:00:00", 3_600),
        ("1-0", 86_400),
        ("1-2:30", 95_400),
        ("7-00:00:00", 604_800),
        ("0:1", 60),
        ("0", 0),
        ("infinite", None),
        ("UNLIMITED", None),
        ("-1", None),
    ],
)
def test_a_time_is_whole_minutes_rounded_up(text: str, seconds: int | None) -> None:
    """Every form of the manual."""
    assert parse_time_limit(text) == seconds


@pytest.mark.parametrize("text", ["", "x", "1:2:3:4", "1-", "-5", "1.5", "1 h", "99999999999"])
def test_a_malformed_time_is_refused(text: str) -> None:
    """Slips of the pen."""
    with pytest.raises(ValueError, match="it takes"):
        parse_time_limit(text)


def test_a_time_longer_than_slurm_can_keep_is_refused() -> None:
    """Minutes fit 31 bits."""
    with pytest.raises(ValueError, match="at most 2147483647 minutes"):
        parse_time_limit("2147483648")
