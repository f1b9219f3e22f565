"""srun --multi-prog: which task executes what, from a file.

    0        ./leader --port 5
    1-3,7    ./worker %t of rank, %o of its row
    *        ./rest

Source: srun(1) MULTIPLE PROGRAM CONFIGURATION; transcripts of Slurm 22.05.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

__all__ = ["BadPrograms", "Programs", "parse_programs"]

_BLANKS = b" \t\r\f\v"

_QUOTE = ord("'")


class BadPrograms(Exception):
    """The file is none; the text is what Slurm says, a line for each sentence."""


class _Row(NamedTuple):
    number: int
    """Of the line."""
    ranks: bytes
    command: bytes


class Programs(NamedTuple):
    """What a file says."""

    path: str
    rows: tuple[_Row, ...]

    @property
    def tasks(self) -> int:
        """How many tasks the file names."""
        last = 0
        for row in self.rows:
            if row.ranks != b"*":
                with suppress(ValueError):
                    last = max([last, *(high + 1 for _, high in _ranges(row.ranks))])
        return max(last, 1)

    def argv(self, tasks: int, more: tuple[bytes, ...]) -> list[tuple[bytes, ...]]:
        """Return the words of each of so many tasks, `more` behind them. Raises: BadPrograms."""
        found: dict[int, tuple[bytes, ...]] = {}
        for row in self.rows:
            try:
                self._take(row, found, tasks, more)
            except ValueError as error:
                why = [str(error)] if str(error) else []
                raise BadPrograms(
                    "\n".join(
                        [*why, f"Line {row.number} of configuration file {self.path} invalid"]
                    )
                ) from error
        for task in range(tasks):
            if task not in found:
                raise BadPrograms(
                    f"Configuration file {self.path} invalid, no record for task id {task}"
                )
        return [found[task] for task in range(tasks)]

    @staticmethod
    def _take(
        row: _Row, found: dict[int, tuple[bytes, ...]], tasks: int, more: tuple[bytes, ...]
    ) -> None:
        if row.ranks == b"*":
            for task in range(tasks):
                if task not in found:
                    found[task] = _words(row.command, task, task) + more
            return
        offset = 0
        for low, high in _ranges(row.ranks):
            for task in range(low, high + 1):
                if task < tasks:
                    if task in found:
                        raise ValueError(f"Duplicate record for task {task}")
                    found[task] = _words(row.command, task, offset) + more
                offset += 1


def parse_programs(path: str, content: bytes) -> Programs:
    """Read a file. Raises: BadPrograms for a line without a program."""
    rows = []
    begun = b""
    for number, line in enumerate(content.split(b"\n"), 1):
        line = begun + line
        begun = b""
        if line.endswith(b"\\"):
            begun = line[:-1]
            continue
        line = line.strip(_BLANKS)
        if not line or line.startswith(b"#"):
            continue
        ranks, _, command = line.replace(b"\t", b" ").partition(b" ")
        if not command.strip(_BLANKS):
            raise BadPrograms(f"Line {number} of configuration file {path} invalid")
        rows.append(_Row(number, ranks, command.strip(_BLANKS)))
    return Programs(path, tuple(rows))


def _ranges(text: bytes) -> list[tuple[int, int]]:
    """Return the ranges of a list of ranks. Raises: ValueError for what is none."""
    found = []
    for part in text.split(b","):
        low, dash, high = part.partition(b"-")
        if not low.isdigit() or (high and not high.isdigit()):
            raise ValueError(
                f"Invalid task range specification ({text.decode('utf-8', 'replace')})"
            )
        first = int(low)
        last = int(high or 0) if dash else first
        if last < first:
            raise ValueError(f"Invalid task range, {first}-{last}")
        found.append((first, last))
    return found


def _words(command: bytes, task: int, offset: int) -> tuple[bytes, ...]:
    """Return the words of a line: parted by blanks; %t and %o filled in.

    What single quotes hold is taken as it is; double quotes are letters like others.
    """
    words: list[bytes] = []
    word, is_quoted, is_begun = bytearray(), False, False
    place = 0
    while place < len(command):
        letter = command[place]
        pair = command[place : place + 2]
        if is_quoted and letter != _QUOTE:
            word.append(letter)
        elif letter == _QUOTE:
            is_quoted, is_begun = not is_quoted, True
        elif letter in _BLANKS:
            if is_begun:
                words.append(bytes(word))
            word, is_begun = bytearray(), False
        else:
            is_begun = True
            if pair in (b"%t", b"%o"):
                word += b"%d" % (task if pair == b"%t" else offset)
                place += 1
            else:
                word.append(letter)
        place += 1
    if is_begun:
        words.append(bytes(word))
    return tuple(words)
