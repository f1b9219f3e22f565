"""Constraints: which nodes meet them."""

from __future__ import annotations

import pytest

from spur.values.features import Alternative, has_features, parse_features


@pytest.mark.parametrize(
    ("text", "features", "holds"),
    [
        ("", "", True),
        ("intel", "intel ib", True),
        ("intel&ib", "intel", False),
        ("intel,ib", "intel ib", True),
        ("intel|amd", "amd", True),
        ("intel|amd", "ib", False),
        ("(intel|amd)&ib", "amd ib", True),
        ("intel|amd&ib", "intel", True),
        ("amd&(ib|(roce&fast))", "amd fast", False),
        ("amd&(ib|(roce&fast))", "amd fast roce", True),
        ("a.b-c=1", "a.b-c=1", True),
    ],
)
def test_a_node_meets_a_constraint(text: str, features: str, holds: bool) -> None:
    """Someone asks for nodes of some features."""
    (way,) = parse_features(text)
    assert way.some == ()
    assert has_features(frozenset(features.split()), way.every) is holds


def test_counts_say_how_many_nodes_need_a_feature() -> None:
    """intel*2&amd*1: three nodes of two kinds, in brackets or not."""
    wanted = (Alternative(("&",), (("intel", 2), ("amd", 1))),)
    assert parse_features("intel*2&amd*1") == wanted
    assert parse_features("[intel*2&amd*1]") == wanted
    assert parse_features("(a|b)*2") == (Alternative(("&",), ((("|", "a", "b"), 2),)),)


def test_brackets_are_a_choice_for_all_nodes() -> None:
    """[rack1|rack2]&ib: all nodes in one rack."""
    assert parse_features("[rack1|rack2]&ib") == (
        Alternative(("&", "rack1", "ib"), ()),
        Alternative(("&", "rack2", "ib"), ()),
    )


@pytest.mark.parametrize(
    "text",
    [
        "[intel",
        "intel]",
        "!intel",
        "&",
        "a&",
        "a||b",
        "a*",
        "a*b",
        "(a*2)*3",
        "a b",
        "[a]&[b]",
        "*2",
        "(" * 40 + "a" + ")" * 40,
    ],
)
def test_a_malformed_constraint_is_refused(text: str) -> None:
    """Someone mistypes a constraint."""
    with pytest.raises(ValueError, match="can't be read"):
        parse_features(text)
