"""Points in time as SLURM_TIME_FORMAT asks."""

from __future__ import annotations

import time

import pytest

from spur.slurm.timespec import format_moment
from spur_cli.slurm.people import LocalCalendar

NOON = 1_796_040_000
DAY = 86_400


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


@pytest.mark.parametrize(
    ("form", "moment", "text"),
    [
        ("", NOON, "2026-11-30T12:00:00"),
        ("standard", NOON, "2026-11-30T12:00:00"),
        ("nonsense", NOON, "2026-11-30T12:00:00"),
        ("%H.%M", NOON, "12.00"),
        ("relative", NOON, "12:00:00"),
        ("relative", NOON - DAY, "Ystday 12:00"),
        ("relative", NOON + DAY, "Tomorr 12:00"),
        ("relative", NOON + 3 * DAY, "Thu 12:00"),
        ("relative", NOON - 10 * DAY, "20 Nov 12:00"),
        ("relative", NOON - 800 * DAY, "21 Sep 2024"),
    ],
)
def test_points_in_time_are_spelled_as_asked(
    monkeypatch: pytest.MonkeyPatch, form: str, moment: int, text: str
) -> None:
    """Somebody's shell sets the variable; a form without a % is none, and 0 is no time."""
    monkeypatch.setenv("SLURM_TIME_FORMAT", form)
    calendar = LocalCalendar(NOON)
    assert format_moment(moment, calendar) == text
    assert format_moment(0, calendar) == "N/A"
