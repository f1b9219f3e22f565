"""Host lists as `scontrol show hostlist` and `show hostnames` take them from people.

They are more patient than configuration is: blanks part names as commas do, empty ones are passed
over, and repetitions and order are kept. Only numbers in brackets are checked.

Source: scontrol(1) show hostnames; transcripts of Slurm 22.05.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cmp_to_key

__all__ = ["BadHostlist", "expand_words", "fold_words"]

HOSTS_MAX = 65_536
"""Names that one pair of brackets may stand for. Source: MAX_RANGE of Slurm's hostlist."""

_WORD = re.compile(r"(?:\[[^\]]*\]|[^\[\]\s,])+")
_PIECE = re.compile(r"\[([^\]]*)\]|([^\[\]]+)")
_RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?\Z")
_NUMBERED = re.compile(r"(.*?)([0-9]{1,18})\Z")


class BadHostlist(Exception):
    """The text is no host list: the lines that Slurm's reader writes, without the program."""

    def __init__(self, *lines: str) -> None:
        super().__init__(*lines)
        self.lines = lines


def expand_words(text: str) -> list[str]:
    """Return the names that a list stands for, in the order written. Raises: BadHostlist."""
    names: list[str] = []
    for word in _WORD.findall(text):
        pieces = _PIECE.findall(word)
        if len(pieces) > 1 and pieces[-1][1]:
            # Text behind the last bracket.
            raise BadHostlist
        found = [""]
        for brackets, plain in pieces:
            endings = [plain] if plain else _numbers(brackets)
            found = [name + ending for name in found for ending in endings]
        names += found
    return names


def _numbers(brackets: str) -> list[str]:
    found: list[str] = []
    for text in brackets.split(","):
        match = _RANGE.match(text)
        if match is None:
            raise BadHostlist(f"_parse_single_range: Invalid range: `{text}'")
        first, last = match.group(1), match.group(2) or match.group(1)
        if int(last) < int(first):
            raise BadHostlist(f"_parse_single_range: Invalid range: `{text}'")
        if int(last) - int(first) >= HOSTS_MAX:
            raise BadHostlist(f"_parse_single_range: Too many hosts in range `{text}'")
        width = len(first)
        found += [f"{number:0{width}d}" for number in range(int(first), int(last) + 1)]
    return found


def fold_words(names: Iterable[str], *, sorts: bool) -> str:
    """Return a short list for the names, in their order or by number, repetitions kept."""
    parts: list[tuple[str, list[list[str]]]] = []  # prefix, and ranges of first and last number
    for prefix, number in (
        sorted(map(_cut, names), key=cmp_to_key(_compare)) if sorts else map(_cut, names)
    ):
        if not number or not parts or parts[-1][0] != prefix or not parts[-1][1]:
            parts.append((prefix, [[number, number]] if number else []))
            continue
        last = parts[-1][1][-1]
        if number == f"{int(last[1]) + 1:0{len(last[0])}d}":
            last[1] = number
        else:
            parts[-1][1].append([number, number])
    return ",".join(prefix + _spelled(ranges) for prefix, ranges in parts)


def _cut(name: str) -> tuple[str, str]:
    match = _NUMBERED.match(name)
    return (name, "") if match is None else (match.group(1), match.group(2))


def _compare(one: tuple[str, str], other: tuple[str, str]) -> int:
    """Return which stands first: by number, but by width where leading zeros keep them apart."""
    if one[0] != other[0]:
        return -1 if one[0] < other[0] else 1
    first, second = one[1], other[1]
    widths = len(first), len(second)
    if widths[0] != widths[1] and "0" in (first[:1], second[:1]):
        return widths[0] - widths[1]
    return int(first or 0) - int(second or 0)


def _spelled(ranges: list[list[str]]) -> str:
    texts = [first if first == last else f"{first}-{last}" for first, last in ranges]
    if not texts:
        return ""
    return texts[0] if len(texts) == 1 and "-" not in texts[0] else f"[{','.join(texts)}]"
