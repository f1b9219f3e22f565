"""Constraints on the features of nodes: what --constraint asks, read into tests of nodes.

    parse_features("intel&(ib|roce)")     every node has intel, and ib or roce
    parse_features("[rack1|rack2]")       every node has rack1, or every node has rack2
    parse_features("intel*2&amd*1")       two nodes have intel, one has amd

Source: sbatch(1) --constraint.
"""

from __future__ import annotations

import re
from typing import NamedTuple, TypeAlias

__all__ = ["ANY_NODE", "WAYS_MAX", "Alternative", "Test", "has_features", "parse_features"]

Test: TypeAlias = str | tuple["Test", ...]
"""A feature; or "&" or "|" followed by the tests of which all, or one, must hold."""

ANY_NODE: Test = ("&",)
"""The test that every node passes."""

_TOKENS = re.compile(r"[^\s,&|*()\[\]!]+|[,&|*()\[\]]|.", re.DOTALL)

_DEPTH_MAX = 32
"""Brackets within brackets."""

WAYS_MAX = 256
"""Ways to meet one constraint: each pair of alternatives that must both hold multiplies them."""


class Alternative(NamedTuple):
    """One way to meet a constraint."""

    every: Test
    """What each node of the job must pass."""
    some: tuple[tuple[Test, int], ...]
    """Tests, and how many nodes must pass each; a node counts for one of them alone."""


def parse_features(text: str) -> tuple[Alternative, ...]:
    """Return the ways to meet a constraint, best first. Raises: ValueError when it is malformed."""
    if not text:
        return (Alternative(ANY_NODE, ()),)
    return _Reader(text).all()


def has_features(features: frozenset[str], test: Test) -> bool:
    """Whether a node of these features passes a test."""
    if isinstance(test, str):
        return test in features
    verdicts = (has_features(features, part) for part in test[1:])
    return all(verdicts) if test[0] == "&" else any(verdicts)


class _Reader:
    """Tokens of one constraint, read from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = _TOKENS.findall(text)
        self._place = 0
        self._depth = 0
        self._brackets = 0

    def all(self) -> tuple[Alternative, ...]:
        """Read to the end."""
        found = self._any(is_choice=False)
        if self._place < len(self._tokens):
            raise self._malformed()
        return found

    def _malformed(self) -> ValueError:
        return ValueError(f"constraint {self._text!r} can't be read")

    def _take(self, *wanted: str) -> str:
        """Return the next token when it is one of these, else nothing."""
        if self._place < len(self._tokens) and self._tokens[self._place] in wanted:
            self._place += 1
            return self._tokens[self._place - 1]
        return ""

    def _any(self, *, is_choice: bool) -> tuple[Alternative, ...]:
        """Read alternatives; with `is_choice`, all nodes must meet the same."""
        found = [self._both()]
        while self._take("|"):
            found.append(self._both())
        if len(found) == 1:
            return found[0]
        plain = [ways[0].every for ways in found if len(ways) == 1 and not ways[0].some]
        if is_choice or len(plain) < len(found):
            if sum(map(len, found)) > WAYS_MAX:
                raise ValueError(f"constraint {self._text!r} has more than {WAYS_MAX} ways to meet")
            return tuple(way for ways in found for way in ways)
        return (Alternative(("|", *plain), ()),)

    def _both(self) -> tuple[Alternative, ...]:
        """Read what must all hold; a comma stands for "and"."""
        ways = self._one()
        while self._take("&", ","):
            others = self._one()
            if len(ways) * len(others) > WAYS_MAX:
                raise ValueError(f"constraint {self._text!r} has more than {WAYS_MAX} ways to meet")
            ways = tuple(
                Alternative(_and(way.every, other.every), way.some + other.some)
                for way in ways
                for other in others
            )
        return ways

    def _one(self) -> tuple[Alternative, ...]:
        """Read a feature, or what stands in brackets, with its number of nodes."""
        opening = self._take("(", "[")
        if opening:
            self._depth += 1
            self._brackets += opening == "["
            if self._depth > _DEPTH_MAX or self._brackets > 1:
                raise self._malformed()
            ways = self._any(is_choice=opening == "[")
            if not self._take(")" if opening == "(" else "]"):
                raise self._malformed()
            self._depth -= 1
        else:
            ways = (Alternative(self._feature(), ()),)
        return self._counted(ways)

    def _feature(self) -> str:
        token = self._tokens[self._place] if self._place < len(self._tokens) else ""
        if not token or token in ",&|*()[]!" or token.isspace():
            raise self._malformed()
        self._place += 1
        return token

    def _counted(self, ways: tuple[Alternative, ...]) -> tuple[Alternative, ...]:
        if not self._take("*"):
            return ways
        digits = self._feature()
        if not (digits.isascii() and digits.isdigit()) or any(way.some for way in ways):
            raise self._malformed()
        return tuple(Alternative(ANY_NODE, ((way.every, int(digits)),)) for way in ways)


def _and(first: Test, second: Test) -> Test:
    if first == ANY_NODE:
        return second
    return first if second == ANY_NODE else ("&", first, second)
