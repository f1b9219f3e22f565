"""Host lists: read as Slurm reads them, written as short as they can be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spur.values.hostlist import HOSTS_MAX, format_hostlist, parse_hostlist


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ()),
        ("login1", ("login1",)),
        ("n[1-3]", ("n1", "n2", "n3")),
        ("n[1,4-5],login", ("n1", "n4", "n5", "login")),
        ("n[08-11]", ("n08", "n09", "n10", "n11")),
        ("r[1-2]n[1-2]", ("r1n1", "r1n2", "r2n1", "r2n2")),
        ("n[1-2]-ib", ("n1-ib", "n2-ib")),
        ("n2,n1,n2", ("n2", "n1")),
    ],
)
def test_a_list_stands_for_its_names(text: str, names: tuple[str, ...]) -> None:
    """The forms that people write in configuration files and options."""
    assert parse_hostlist(text) == names


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("n[1-", "brackets do not match"),
        ("n1]", "brackets do not match"),
        ("n[[1]]", "brackets do not match"),
        ("a,,b", "empty name between commas"),
        (",", "empty name between commas"),
        ("n[]", "is no range"),
        ("n[1,]", "is no range"),
        ("n[a-b]", "is no range"),
        ("n[4-1]", "runs backwards"),
        ("n 1", "is no host name"),
        ("-n1", "is no host name"),
        ("n/1", "is no host name"),
        ("\N{ARABIC-INDIC DIGIT ONE}", "is no host name"),
        (f"n[0-{HOSTS_MAX}]", f"at most {HOSTS_MAX}"),
        ("n[0-999][0-999]", f"at most {HOSTS_MAX}"),
        ("n[1-40000],m[1-40000]", f"at most {HOSTS_MAX}"),
        ("n" * 65, "is no host name"),
    ],
)
def test_another_list_is_refused_with_what_would_be_right(text: str, why: str) -> None:
    """A typing error, or a list that would stand for millions of names."""
    with pytest.raises(ValueError, match=why):
        parse_hostlist(text)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ((), ""),
        (("login1",), "login1"),
        (("n3", "n1", "n2"), "n[1-3]"),
        (("n9", "n10", "n8"), "n[8-10]"),
        (("n08", "n09", "n10"), "n[08-10]"),
        (("n1", "n01", "b"), "b,n[1,01]"),
        (("n1", "m1", "n3"), "m1,n[1,3]"),
    ],
)
def test_names_are_written_short_and_sorted_by_number(names: tuple[str, ...], text: str) -> None:
    """What people are shown."""
    assert format_hostlist(names) == text


NAMES = st.builds(str.__add__, st.sampled_from("abc"), st.text("0189", max_size=3))


@given(st.sets(NAMES, max_size=20))
def test_what_is_written_is_read_as_the_same_names(names: set[str]) -> None:
    """Any set of names survives being written and read."""
    assert set(parse_hostlist(format_hostlist(names))) == names
