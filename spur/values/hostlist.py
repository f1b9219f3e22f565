"""Host lists: many names in few characters, such as n[1-4,07],login1.

Grammar, after hostlist of Slurm:

    list   = name {"," name}
    name   = text ["[" range {"," range} "]"] text ...
    range  = digits ["-" digits]

Digits keep their leading zeros: n[08-11] is n08, n09, n10, n11. Several brackets multiply.
Source: scontrol(1) show hostnames, hostlist.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from spur.values.ids import NAME_GRAMMAR, is_name

__all__ = ["HOSTS_MAX", "expand_list", "format_hostlist", "parse_hostlist"]

HOSTS_MAX = 65_536
"""Names that one list may stand for. Source: MAX_RANGE of Slurm's hostlist."""

_PIECE = re.compile(r"\[([^\[\]]*)\]|([^\[\],]+)")
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?\Z")
_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})\Z")


@lru_cache(maxsize=256)
def parse_hostlist(text: str) -> tuple[str, ...]:
    """Return the names in the order written, repetitions left out; empty text gives none.

    The newest lists are remembered: a configuration is looked at many times as it is judged.

    Raises: ValueError saying which part is wrong and what would be right.
    """
    names = dict.fromkeys(expand_list(text))
    for name in names:
        if not is_name(name):
            raise ValueError(f"{name!r} is no host name: it takes {NAME_GRAMMAR}")
    return tuple(names)


def expand_list(text: str) -> tuple[str, ...]:
    """Return what a list stands for, be it hosts, files or switches, with repetitions.

    Raises: ValueError saying which part is wrong and what would be right.
    """
    names: list[str] = []
    for part in _parts(text):
        names.extend(_expand(part, len(names)))
    return tuple(names)


def _parts(text: str) -> list[str]:
    """Cut a list at the commas outside brackets."""
    parts = []
    depth = 0
    begin = 0
    for place, letter in enumerate(text):
        if letter == "[":
            depth += 1
        elif letter == "]":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[begin:place])
            begin = place + 1
        if not 0 <= depth <= 1:
            raise ValueError(f"brackets do not match in host list {text!r}")
    if depth:
        raise ValueError(f"brackets do not match in host list {text!r}")
    parts.append(text[begin:])
    if parts == [""]:
        return []
    if "" in parts:
        raise ValueError(f"host list {text!r} has an empty name between commas")
    return parts


def _expand(part: str, already: int) -> list[str]:
    """Return the names of one part; `already` counts those of the parts before it."""
    names = [""]
    for brackets, plain in _PIECE.findall(part):
        endings = _numbers(brackets, part) if not plain else [plain]
        if already + len(names) * len(endings) > HOSTS_MAX:
            raise ValueError(f"a host list stands for at most {HOSTS_MAX} names")
        names = [name + ending for name in names for ending in endings]
    return names


def _numbers(brackets: str, part: str) -> list[str]:
    """Return the numbers of one pair of brackets, with their leading zeros."""
    found: list[str] = []
    for text in brackets.split(","):
        match = _RANGE.match(text)
        if match is None:
            raise ValueError(f"{text!r} in {part!r} is no range: write 4, 1-4 or 01-12")
        first, last = match.group(1), match.group(2) or match.group(1)
        if int(last) < int(first):
            raise ValueError(f"{text!r} in {part!r} runs backwards")
        if int(last) - int(first) >= HOSTS_MAX:
            raise ValueError(f"a host list stands for at most {HOSTS_MAX} names")
        width = len(first)
        found.extend(f"{number:0{width}d}" for number in range(int(first), int(last) + 1))
    return found


def format_hostlist(names: Iterable[str]) -> str:
    """Return the shortest list that `parse_hostlist` reads as these names, sorted by number."""
    numbered: dict[str, set[str]] = {}
    plain: set[str] = set()
    for name in names:
        match = _NUMBERED.match(name)
        if match is None:
            plain.add(name)
        else:
            numbered.setdefault(match.group(1), set()).add(match.group(2))
    parts = sorted(plain)
    for prefix, numbers in sorted(numbered.items()):
        parts.append(prefix + _fold(sorted(numbers, key=lambda text: (int(text), len(text)))))
    return ",".join(parts)


def _fold(numbers: list[str]) -> str:
    """Return numbers as ranges in brackets, or the one number bare."""
    ranges: list[tuple[str, str]] = []
    for text in numbers:
        if ranges:
            first, last = ranges[-1]
            if text == f"{int(last) + 1:0{len(first)}d}":
                ranges[-1] = (first, text)
                continue
        ranges.append((text, text))
    texts = [first if first == last else f"{first}-{last}" for first, last in ranges]
    return texts[0] if len(numbers) == 1 else f"[{','.join(texts)}]"
