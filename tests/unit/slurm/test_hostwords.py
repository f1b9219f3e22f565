"""Host lists as people type them for scontrol."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spur.slurm.hostwords import BadHostlist, expand_words, fold_words

INVALID = "_parse_single_range: Invalid range: `{}'"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n[1-3,5]", "n1 n2 n3 n5"),
        ("n[09-11]", "n09 n10 n11"),
        ("rack[0-1]node[1-2]", "rack0node1 rack0node2 rack1node1 rack1node2"),
        ("n1,,n2 n1", "n1 n2 n1"),
        (",", ""),
        ("(null)", "(null)"),
        ("n[5,1,3]", "n5 n1 n3"),
    ],
)
def test_list_is_read_with_patience(text: str, names: str) -> None:
    """Somebody pastes what another command printed."""
    assert expand_words(text) == names.split()


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("n[3-1]", (INVALID.format("3-1"),)),
        ("n[]", (INVALID.format(""),)),
        ("n[-1]", (INVALID.format("-1"),)),
        ("n[ 1-2 ]", (INVALID.format(" 1-2 "),)),
        ("n[1-100000]", ("_parse_single_range: Too many hosts in range `1-100000'",)),
        ("n[1-2]suffix", ()),
    ],
)
def test_bad_brackets_are_told_in_slurms_words(text: str, lines: tuple[str, ...]) -> None:
    """A range runs backwards, or is none."""
    with pytest.raises(BadHostlist) as refused:
        expand_words(text)
    assert refused.value.lines == lines


@pytest.mark.parametrize(
    ("text", "kept", "in_order"),
    [
        ("n3,n1,n2", "n[3,1-2]", "n[1-3]"),
        ("n1,n1,n2", "n[1,1-2]", "n[1,1-2]"),
        ("n[1-3],n[2-5]", "n[1-3,2-5]", "n[1-2,2-3,3-5]"),
        ("n8,n08,n9,n09", "n[8,08,9,09]", "n[8-9,08-09]"),
        ("n11,n09,n10", "n[11,09-10]", "n[09-11]"),
        ("n100,n99,n98", "n[100,99,98]", "n[98-100]"),
        ("b,a,n1", "b,a,n1", "a,b,n1"),
        ("g1,n1,g2", "g1,n1,g2", "g[1-2],n1"),
        ("", "", ""),
    ],
)
def test_names_are_folded_in_their_order_or_by_number(text: str, kept: str, in_order: str) -> None:
    """Slurm's `hostlist` keeps the order, and `hostlistsorted` does not."""
    assert fold_words(expand_words(text), sorts=False) == kept
    assert fold_words(expand_words(text), sorts=True) == in_order


@given(st.lists(st.from_regex(r"\A[a-c][0-9]{0,3}\Z"), max_size=12))
def test_folding_loses_nothing(names: list[str]) -> None:
    """Whatever is folded is read back, in its order."""
    assert expand_words(fold_words(names, sorts=False)) == names
    assert sorted(expand_words(fold_words(names, sorts=True))) == sorted(names)
