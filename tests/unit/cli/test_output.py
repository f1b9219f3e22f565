"""The forms of a result: one set of rows, three ways to show them."""

from __future__ import annotations

import pytest

from spur_cli.output.parsable import format_field
from spur_cli.output.result import Column, Form, Listing, Record, Value
from spur_cli.output.show import show

COLUMNS = (Column("index", "INDEX", is_right=True), Column("events", "EVENTS"))
ROWS: list[dict[str, Value]] = [
    {"index": 9, "events": ["job.held"]},
    {"index": 10, "events": ["job.submitted", "job.held"]},
]


def listing(rows: list[dict[str, Value]]) -> Listing:
    """Return a listing of these rows."""
    return Listing(columns=COLUMNS, rows=rows, empty="no entries")


def test_table_lines_up_and_is_not_cut_off_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Output goes to a file: no colour, no wrapping at 80 columns, however long a cell is."""
    long = "x" * 300
    show(listing([*ROWS, {"index": 11, "events": [long]}]), Form.TABLE)
    assert capsys.readouterr().out == (
        f"INDEX  EVENTS\n    9  job.held\n   10  job.submitted, job.held\n   11  {long}\n"
    )


def test_table_of_nothing_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """A person asks for entries and there are none."""
    show(listing([]), Form.TABLE)
    assert capsys.readouterr().out == "no entries\n"


def test_table_shows_control_characters_as_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    """A job's name holds an escape sequence and something like markup: neither has an effect."""
    show(listing([{"index": 1, "events": ["\x1b[31mred\x07 [bold]b[/bold]"]}]), Form.TABLE)
    assert capsys.readouterr().out == ("INDEX  EVENTS\n    1  \\x1b[31mred\\x07 [bold]b[/bold]\n")


def test_json_listing_is_one_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A script reads entries one by one, and an empty answer is no line at all."""
    show(listing(ROWS), Form.JSON)
    assert capsys.readouterr().out == (
        '{"index":9,"events":["job.held"]}\n{"index":10,"events":["job.submitted","job.held"]}\n'
    )
    show(listing([]), Form.JSON)
    assert capsys.readouterr().out == ""


def test_parsable_listing_has_a_header_and_one_line_a_row(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A shell script parts the lines at the bar."""
    show(listing(ROWS), Form.PARSABLE)
    assert capsys.readouterr().out == (
        'INDEX|EVENTS\n9|["job.held"]\n10|["job.submitted","job.held"]\n'
    )


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (None, ""),
        (True, "yes"),
        (False, "no"),
        (-3, "-3"),
        ("a|b\\c\nd", "a\\|b\\\\c\\nd"),
        ({"name": "a|b"}, '{"name":"a\\|b"}'),
    ],
)
def test_parsable_field_keeps_one_row_on_one_line(value: Value, field: str) -> None:
    """Names hold bars, backslashes and line breaks: the borders stay where they are."""
    assert format_field(value) == field


def test_record_shows_its_fields_when_it_has_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A person asks for the head of a log: names to the left, values in line."""
    show(Record(fields={"index": 7, "chain": "ab", "sealed": False, "gone": None}), Form.TABLE)
    assert capsys.readouterr().out == "index   7\nchain   ab\nsealed  no\ngone    -\n"
