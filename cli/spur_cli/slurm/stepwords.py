"""What srun writes of its tasks: their output, labelled and cut at lines, and how they ended.

Source: srun(1) --label, --unbuffered; transcripts of Slurm 22.05.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable

from spur.wire.streams import TaskEnded

__all__ = ["Labels", "ended_sentence", "exit_status"]

LINE_BYTES_MAX = 64 * 1024
"""A longer line is written in pieces, so that no task fills srun's memory."""


class Labels:
    """Cuts the output of tasks at lines, and puts the number of the task before each."""

    def __init__(self, *, width: int, is_labelled: bool, is_buffered: bool) -> None:
        """Begin; `width` is that of the longest number."""
        self._width = width
        self._is_labelled = is_labelled
        self._is_buffered = is_buffered
        self._begun: dict[tuple[int, int], bytes] = {}

    def put(self, task: int, fd: int, data: bytes) -> bytes:
        """Return what is to be written; empty data is the end, and gives the line left over."""
        if not self._is_labelled and not self._is_buffered:
            return data
        held = self._begun.pop((task, fd), b"") + data
        if not data:
            lines = [held + b"\n" if self._is_labelled else held] if held else []
        else:
            *whole, rest = held.split(b"\n")
            lines = [line + b"\n" for line in whole]
            if len(rest) > LINE_BYTES_MAX:
                lines.append(rest + b"\n" if self._is_labelled else rest)
            elif rest:
                self._begun[task, fd] = rest
        if not self._is_labelled:
            return b"".join(lines)
        label = b"%*d: " % (self._width, task)
        return b"".join(label + line for line in lines)


def ended_sentence(exit_code: int, number: int, *, core: bool, out_of_memory: bool) -> str:
    """Return how Slurm says that a task ended."""
    if out_of_memory:
        return "Out Of Memory"
    if not number:
        return f"Exited with exit code {exit_code}"
    return (signal.strsignal(number) or f"Unknown signal {number}") + (
        " (core dumped)" if core else ""
    )


def exit_status(ends: Iterable[TaskEnded], tasks: tuple[int, ...]) -> int:
    """Return the exit status of srun: the highest, where a signal counts as 128 and its number.

    `tasks` are how many there are on each node; one whose end nobody told counts as failed.
    """
    told = list(ends)
    statuses = [128 + end.signal if end.signal else end.exit_code for end in told]
    if len(told) < sum(tasks):
        statuses.append(1)
    return max(statuses, default=0)
