"""When entries of crontabs are due, in local time with its changes."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spur.slurm.crontab import BadCrontab, parse_cron_time, read_crontab
from spur.values.crontimes import next_time
from spur.values.zones import UTC_ZONE, local_of, parse_zone, utc_of

BERLIN = parse_zone("CET-1CEST,M3.5.0,M10.5.0/3")

RULES = {
    "Europe/Berlin": "CET-1CEST,M3.5.0,M10.5.0/3",
    "America/New_York": "EST5EDT,M3.2.0,M11.1.0",
    "Australia/Sydney": "AEST-10AEDT,M10.1.0,M4.1.0/3",
    "Asia/Kolkata": "IST-5:30",
    "America/Sao_Paulo": "<-03>3",
}


def at(text: str) -> int:
    """Return a moment of UTC in seconds."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def due(fields: str, after: str, rule: str = "UTC0") -> str:
    """Return when an entry is due next, in UTC."""
    found = next_time(parse_cron_time(fields), parse_zone(rule), at(after))
    assert found is not None
    return datetime.fromtimestamp(found, UTC).strftime("%Y-%m-%dT%H:%M")


@given(
    name=st.sampled_from(sorted(RULES)),
    moment=st.integers(min_value=at("2024-01-01"), max_value=at("2036-12-31")),
)
def test_rules_say_what_tables_say(name: str, moment: int) -> None:
    """Local time by the rule is local time by the system's table, and comes back."""
    zone = parse_zone(RULES[name])
    table = datetime.fromtimestamp(moment, UTC).astimezone(ZoneInfo(name)).replace(tzinfo=None)
    assert local_of(zone, moment) == table
    assert local_of(zone, utc_of(zone, table)) == table


@pytest.mark.parametrize(
    ("fields", "after", "found"),
    [
        ("* * * * *", "2026-11-30T12:00", "2026-11-30T12:01"),
        ("*/15 * * * *", "2026-11-30T12:46", "2026-11-30T13:00"),
        ("5 4 * * *", "2026-11-30T04:05", "2026-12-01T04:05"),
        ("0 8-17/3 * * mon-fri", "2026-11-28T00:00", "2026-11-30T08:00"),
        ("0 0 1 jan *", "2026-11-30T12:00", "2027-01-01T00:00"),
        ("0 0 29 2 *", "2026-11-30T12:00", "2028-02-29T00:00"),
        ("0 0 13 * 5", "2026-11-30T12:00", "2026-12-04T00:00"),
        ("0 0 * * 7", "2026-11-30T12:00", "2026-12-06T00:00"),
        ("@fika", "2026-11-30T16:00", "2026-12-01T15:00"),
        ("0,30 1,2 * * *", "2026-11-30T01:30", "2026-11-30T02:00"),
    ],
)
def test_an_entry_is_due_next(fields: str, after: str, found: str) -> None:
    """As crontab(5) has it; a day of the month or of the week is enough when both are named."""
    assert due(fields, after) == found


def test_what_never_comes_is_never_due() -> None:
    """Someone means the last of February."""
    assert next_time(parse_cron_time("0 0 31 2 *"), UTC_ZONE, at("2026-11-30")) is None


def test_summer_time_moves_an_entry_with_the_clock() -> None:
    """Eight in the morning stays eight; half past two is left out once, and comes once."""
    rule = RULES["Europe/Berlin"]
    assert due("0 8 * * *", "2026-03-28T12:00", rule) == "2026-03-29T06:00"
    assert due("0 8 * * *", "2026-10-24T12:00", rule) == "2026-10-25T07:00"
    assert due("30 2 * * *", "2026-03-28T12:00", rule) == "2026-03-29T01:30"
    assert due("30 2 * * *", "2026-10-24T12:00", rule) == "2026-10-25T00:30"
    assert due("30 2 * * *", "2026-10-25T00:30", rule) == "2026-10-26T01:30"


@pytest.mark.parametrize("text", ["", "CET", "CET-1CEST,M3", "CET-1CEST,M13.1.0,M10.5.0", "x y"])
def test_what_is_no_rule_is_refused(text: str) -> None:
    """A request may hold anything."""
    with pytest.raises(ValueError, match="rule"):
        parse_zone(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("60 * * * * x", "line 1: '60' is no minute, which is from 0 to 59"),
        ("\n* * * foo * x", "line 2: 'foo' is no month, which is from 1 to 12"),
        ("5-1 * * * * x", "line 1: '5-1' is no minute: it goes backwards"),
        ("* * * * *", "line 1: there is no command"),
        ("@daily", "line 1: there is no command"),
        ("@never x", "line 1: '@never' is no time: it takes five fields, or a word such as @daily"),
        ("#SCRON --time='5\n", "line 1: options cannot be read: No closing quotation"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(text: str, why: str) -> None:
    """Nothing is handed in then."""
    with pytest.raises(BadCrontab) as raised:
        read_crontab(text)
    assert str(raised.value) == why


def test_options_stand_before_their_entry() -> None:
    """Comments and blank lines are passed over; options go to the next entry alone."""
    text = "# a\n\n#SCRON -t 5 --mem=1G\n#SCRON -J x # why\n0 1 * * * a b | c\n@hourly d\n"
    first, second = read_crontab(text)
    assert (first.line, first.options, first.command) == (
        5,
        ("-t", "5", "--mem=1G", "-J", "x"),
        "a b | c",
    )
    assert (second.options, second.command) == ((), "d")
