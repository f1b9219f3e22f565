"""Lengths of time and points in time, as people type them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spur.slurm.timespec import (
    LIMIT_S_MAX,
    Moment,
    MomentError,
    format_duration,
    format_limit,
    format_long_duration,
    format_long_limit,
    format_moment,
    parse_moment,
    parse_time_limit,
)


class Noon:
    """A wall in UTC whose clock shows 08:39:35 on a Monday in November."""

    def now(self) -> int:
        return self.seconds(Moment(2026, 11, 30, 8, 39, 35))

    def moment(self, seconds: int) -> Moment:
        return Moment(*datetime.fromtimestamp(seconds, UTC).timetuple()[:6])

    def seconds(self, moment: Moment) -> int:
        first = datetime(*moment._replace(day=1), tzinfo=UTC)
        return int(first.timestamp()) + (moment.day - 1) * 86_400


LIMITS = [
    ("5", "5:00", "00:05:00"),
    ("0", "UNLIMITED", "UNLIMITED"),
    ("90", "1:30:00", "01:30:00"),
    ("10:30", "11:00", "00:11:00"),
    ("1:02:03", "1:03:00", "01:03:00"),
    ("1-2", "1-02:00:00", "1-02:00:00"),
    ("1-2:30", "1-02:30:00", "1-02:30:00"),
    ("1-2:3:4", "1-02:04:00", "1-02:04:00"),
    ("0-1", "1:00:00", "01:00:00"),
    ("00:05:00", "5:00", "00:05:00"),
    ("0:3600", "1:00:00", "01:00:00"),
    ("51:00:00", "2-03:00:00", "2-03:00:00"),
    ("UNLIMITED", "UNLIMITED", "UNLIMITED"),
    ("infinite", "UNLIMITED", "UNLIMITED"),
    ("-1", "UNLIMITED", "UNLIMITED"),
]


@pytest.mark.parametrize(("text", "short", "long"), LIMITS)
def test_time_limit_is_read_and_shown_as_slurm_does(text: str, short: str, long: str) -> None:
    """Someone types a limit in one of its spellings and looks it up with squeue and scontrol."""
    limit_s = parse_time_limit(text)
    assert format_limit(limit_s) == short
    assert format_long_limit(limit_s) == long


@pytest.mark.parametrize(
    "text",
    [
        "",
        "abc",
        "5m",
        "1.5",
        "-5",
        "1:2:3:4",
        "1-",
        "-",
        "1-2-3",
        ":",
        "5:",
        " 5",
        "\uff15",
        "9" * 19,
        "99999-0",
    ],
)
def test_no_time_limit_is_refused(text: str) -> None:
    """Someone's template leaves a value empty, or they write what only looks like a time."""
    with pytest.raises(ValueError, match=r"."):
        parse_time_limit(text)


def test_a_hundred_years_are_a_time_limit() -> None:
    """Someone wants no limit and knows no better way to say it."""
    assert parse_time_limit("36500-0") == 36_500 * 86_400


@given(st.integers(1, LIMIT_S_MAX // 60))
def test_shown_limit_is_read_back(minutes: int) -> None:
    """A tool reads the limit that squeue shows and submits the next job with it."""
    limit_s = minutes * 60
    assert parse_time_limit(format_long_duration(limit_s)) == limit_s
    shown = format_duration(limit_s)
    assert parse_time_limit(shown) == limit_s


def test_used_time_is_shown_to_the_second() -> None:
    """A job started six seconds ago."""
    assert [format_duration(n) for n in (-1, 0, 6, 3599, 3600, 93_588)] == [
        "0:00",
        "0:00",
        "0:06",
        "59:59",
        "1:00:00",
        "1-01:59:48",
    ]


MOMENTS = [
    ("now", "2026-11-30T08:39:35"),
    ("now+90seconds", "2026-11-30T08:41:05"),
    ("now+60", "2026-11-30T08:40:35"),
    ("now+5minutes", "2026-11-30T08:44:35"),
    ("now+2hours", "2026-11-30T10:39:35"),
    ("now + 1 day", "2026-12-01T08:39:35"),
    ("now+1week", "2026-12-07T08:39:35"),
    ("now-1hour", "2026-11-30T07:39:35"),
    ("midnight", "2026-12-01T00:00:00"),
    ("noon", "2026-11-30T12:00:00"),
    ("elevenses", "2026-11-30T11:00:00"),
    ("fika", "2026-11-30T15:00:00"),
    ("teatime", "2026-11-30T16:00:00"),
    ("today", "2026-11-30T00:00:00"),
    ("tomorrow", "2026-12-01T00:00:00"),
    ("16:00", "2026-11-30T16:00:00"),
    ("07:00", "2026-12-01T07:00:00"),
    ("4:30pm", "2026-11-30T16:30:00"),
    ("12:15 AM", "2026-12-01T00:15:00"),
    ("16:00:30", "2026-11-30T16:00:30"),
    ("2030-01-20", "2030-01-20T00:00:00"),
    ("2030-01-20T12:34", "2030-01-20T12:34:00"),
    ("2030-01-20T12:34:00", "2030-01-20T12:34:00"),
    ("2030-01-20 12:34", "2030-01-20T12:34:00"),
    ("12:34 2030-01-20", "2030-01-20T12:34:00"),
    ("tomorrow 16:00", "2026-12-01T16:00:00"),
    ("010130", "2030-01-01T00:00:00"),
    ("01/20/30", "2030-01-20T00:00:00"),
    ("01.20.30", "2030-01-20T00:00:00"),
    ("0120", "2027-01-20T00:00:00"),
    ("12/24", "2026-12-24T00:00:00"),
    ("uts1900000000", "2030-03-17T17:46:40"),
]


@pytest.mark.parametrize(("text", "shown"), MOMENTS)
def test_moment_is_read_as_slurm_does(text: str, shown: str) -> None:
    """Someone defers a job and looks at its start time."""
    assert format_moment(parse_moment(text, Noon()), Noon()) == shown


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("2030-1-2", 0),
        ("abc", 0),
        ("now+x", 3),
        ("now*3", 3),
        ("now+1fortnight", 4),
        ("tomorrow+1hour", 8),
        ("1900000000", 0),
        ("utsx", 0),
        ("4pm", 1),
        ("0", -1),
        ("", 0),
        ("25:00", 0),
        ("13:00pm", 0),
        ("12:60", 3),
        ("1:2:3:4", 0),
        ("13/01", 0),
        ("2030-13-01", 5),
        ("noon midnight", 5),
        ("today tomorrow", 6),
        ("9999999-01-01", 0),
    ],
)
def test_no_moment_is_refused_with_its_place(text: str, position: int) -> None:
    """Someone mistypes when a job shall begin."""
    with pytest.raises(MomentError) as refused:
        parse_moment(text, Noon())
    assert str(refused.value) == f"Invalid time specification (pos={position}): {text}"


def test_moment_that_no_calendar_has_is_refused() -> None:
    """The machine's calendar ends before the year that someone typed."""

    class Short(Noon):
        def seconds(self, moment: Moment) -> int:
            if moment.year > 2100:
                raise OverflowError("no such year")
            return super().seconds(moment)

    with pytest.raises(MomentError):
        parse_moment("2200-01-01", Short())


@given(st.text(max_size=24))
def test_any_text_is_a_moment_or_refused(text: str) -> None:
    """A template fills --begin with something that nobody looked at."""
    try:
        assert isinstance(parse_moment(text, Noon()), int)
    except MomentError:
        return


def test_no_moment_has_a_word() -> None:
    """A job that did not start has no start time."""
    assert (format_moment(0, Noon()), format_moment(0, Noon(), empty="Unknown")) == (
        "N/A",
        "Unknown",
    )
