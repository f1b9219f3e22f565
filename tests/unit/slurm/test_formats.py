"""The formats of squeue and sinfo, on a table of two columns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spur.slurm.formats import Column, Layout, parse_format, parse_long_format

NAME = Column[str]("Name", "j", "NAME", lambda row: row, "name", "squeue(1)")
TIME = Column[str]("TimeUsed", "M", "TIME", lambda row: row, "time", "squeue(1)", cuts=False)
LETTERS = {"j": NAME, "M": TIME}
NAMES = {"name": NAME, "timeused": TIME}


def shown(layout: Layout[str], row: str = "alphabet") -> tuple[str, str]:
    return layout.header(), layout.line(row)


@pytest.mark.parametrize(
    ("text", "header", "line"),
    [
        ("%j", "NAME", "alphabet"),
        ("%10j|", "NAME      |", "alphabet  |"),
        ("%.10j|", "      NAME|", "  alphabet|"),
        ("%.3j", "NAM", "alp"),
        ("%3j", "NAM", "alp"),
        ("%.0j", "NAME", "alphabet"),
        ("%.6M", "  TIME", "alphabet"),
        ("job: %j end", "job: NAME end", "job: alphabet end"),
        ("%j%%", "NAME", "alphabet"),
        ("%", "", ""),
        ("", "", ""),
        ("text", "text", "text"),
        (r"%j\t%j", r"NAME\tNAME", r"alphabet\talphabet"),
        ("%ALL", "NAME|TIME", "alphabet|alphabet"),
    ],
)
def test_short_format_is_laid_out(text: str, header: str, line: str) -> None:
    """Someone types -o and looks at the columns."""
    layout = parse_format(text, LETTERS)
    assert shown(layout) == (header, line)
    assert layout.unknown == ()


@pytest.mark.parametrize(
    ("text", "unknown", "header"),
    [
        ("%q", ("q",), "%q"),
        ("%.8q|%j", ("q",), "%.8q|NAME"),
        ("%5", ("",), "%5"),
        ("%*j", ("*",), "%*j"),
    ],
)
def test_unknown_letter_is_named_and_the_rest_shown(
    text: str, unknown: tuple[str, ...], header: str
) -> None:
    """Someone uses a letter of another command."""
    layout = parse_format(text, LETTERS)
    assert (layout.unknown, layout.header()) == (unknown, header)


@pytest.mark.parametrize(
    ("text", "header", "line"),
    [
        ("name", f"{'NAME':20}", f"{'alphabet':20}"),
        ("NAME:5", "NAME ", "alpha"),
        ("name:.10", "      NAME", "  alphabet"),
        ("name:0", "NAME", "alphabet"),
        ("name:xx", "NAMExx", "alphabetxx"),
        ("name: ,timeused:4", "NAME TIME", "alphabet alphabet"),
        ("name:5|,name:5", "NAME |NAME ", "alpha|alpha"),
        (",", "", ""),
        ("name:1,,name:1", "NN", "aa"),
    ],
)
def test_long_format_is_laid_out(text: str, header: str, line: str) -> None:
    """Someone types -O and looks at the columns."""
    layout = parse_long_format(text, NAMES)
    assert shown(layout) == (header, line)
    assert layout.unknown == ()


def test_unknown_name_is_named_and_left_out() -> None:
    """Someone asks for a column that this version does not have."""
    layout = parse_long_format("nosuch,name:4", NAMES)
    assert (layout.unknown, layout.header()) == (("nosuch",), "NAME")


@given(st.text(max_size=40))
def test_any_text_is_a_format(text: str) -> None:
    """A script makes formats out of what it is given."""
    for layout in (parse_format(text, LETTERS), parse_long_format(text, NAMES)):
        assert isinstance(layout.header() + layout.line("x"), str)


def test_endless_width_is_bounded() -> None:
    """Someone types a width with too many digits."""
    assert len(parse_format("%999999999999j", LETTERS).line("x")) == 65_535
