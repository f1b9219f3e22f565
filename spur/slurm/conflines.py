"""The lines of Slurm's configuration files: comments, continuation, quotes, Include.

    # a comment; \\# is no comment
    Key=value Key="a value with blanks" \\
        Key=value on the same line
    Include other.conf

Everything here is as Slurm's own reader has it: a comment begins anywhere, even inside quotes; a
backslash at the end joins the next line. Source: slurm.conf(5), Slurm's parse_config.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

__all__ = ["INCLUDE_DEPTH_MAX", "Line", "Pair", "Place", "includes_of", "read_lines"]

INCLUDE_DEPTH_MAX = 10
"""Files that may include each other in a chain."""

_PAIR = re.compile(r'\s*([A-Za-z0-9_.]+)\s*=\s*(?:"([^"]*)"|(\S+))(?=\s|\Z)')
_NO_VALUE = re.compile(r"\s*([A-Za-z0-9_.]+)\s*=\s*\Z")
_KEPT = re.compile(r"(?:[^\\#]|\\.|\\\Z)*", re.DOTALL)
"""What stands before a comment."""
_JOINED = re.compile(r"(?<!\\)((?:\\\\)*)\\\s*\Z")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_INCLUDE = re.compile(r"\s*include\s+(\S+)\s*\Z", re.IGNORECASE)


class Place(NamedTuple):
    """Where something is written."""

    file: str
    line: int
    """From 1."""
    order: tuple[int, ...]
    """Sorts places as the files are read."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Pair(NamedTuple):
    """One key=value."""

    key: str
    value: str


class Line(NamedTuple):
    """The pairs of one line, continued lines joined."""

    place: Place
    pairs: tuple[Pair, ...]


Blame = Callable[[Place, str], None]


def includes_of(text: str) -> list[str]:
    """Return the names of the files that a text includes, as written, in order."""
    return [match[1] for _, line in _joined(text) if (match := _INCLUDE.match(line))]


def read_lines(files: Mapping[str, str], name: str, number: int, blame: Blame) -> Iterator[Line]:
    """Yield the lines of a file and of those that it includes.

    `files` has every text under the name that an Include line gives it; `number` sorts the places
    of several files. What is wrong goes to `blame`, and reading goes on behind it.
    """
    yield from _lines(files, name, (number,), (name,), blame)


def _lines(
    files: Mapping[str, str],
    name: str,
    order: tuple[int, ...],
    chain: tuple[str, ...],
    blame: Blame,
) -> Iterator[Line]:
    for number, text in _joined(files[name]):
        place = Place(name, number, (*order, number))
        if include := _INCLUDE.match(text):
            wanted = include[1]
            if wanted not in files:
                blame(place, f"the included file {wanted!r} is not there")
            elif wanted in chain:
                blame(place, f"the file {wanted!r} includes itself")
            elif len(chain) >= INCLUDE_DEPTH_MAX:
                blame(place, f"files include each other more than {INCLUDE_DEPTH_MAX} deep")
            else:
                yield from _lines(files, wanted, place.order, (*chain, wanted), blame)
            continue
        pairs = tuple(_pairs(text, place, blame))
        if pairs:
            yield Line(place, pairs)


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line with the number it begins at; continued lines are one."""
    begin, held = 0, ""
    for number, raw in enumerate(text.split("\n"), start=1):
        begin = begin or number
        kept = _KEPT.match(raw)
        line = kept[0] if kept else ""
        if joined := _JOINED.search(line):
            held += line[: joined.end(1)]
            continue
        whole = _ESCAPE.sub(r"\1", held + line)
        if whole.strip():
            yield begin, whole
        begin, held = 0, ""
    if held.strip():
        yield begin, _ESCAPE.sub(r"\1", held)


def _pairs(text: str, place: Place, blame: Blame) -> Iterator[Pair]:
    """Yield the pairs of a line; the first thing that is none ends it."""
    end = 0
    while text[end:].strip():
        match = _PAIR.match(text, end)
        if match is None:
            rest = text[end:].strip()
            if empty := _NO_VALUE.match(text, end):
                blame(place, f"{empty[1]} has no value")
            else:
                blame(place, f"{rest!r} can't be read: it takes key=value")
            return
        quoted, plain = match[2], match[3]
        if quoted is None and plain.startswith('"'):
            blame(place, f"the quotes of {match[1]} are not closed")
            return
        yield Pair(match[1], plain if quoted is None else quoted)
        end = match.end()
