"""srun's own terminal while a task has one: what is typed goes to the task as it is.

Source: srun(1) --pty; transcripts of Slurm 22.05.
"""

from __future__ import annotations

import io
import os
import sys
import termios
import tty
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from spur.slurm.wording import SlurmError, error_line

__all__ = ["RawTerminal", "terminal_of"]


class RawTerminal:
    """The terminal that is our standard output, and maybe our input."""

    def __init__(self) -> None:
        self._before: list[Any] | None = None

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns."""
        return termios.tcgetwinsize(1)

    def enter(self) -> None:
        """Pass on every key, and lines as they come; ours begin at the left all the same."""
        with suppress(termios.error):
            self._before = termios.tcgetattr(0)
            tty.setraw(0, termios.TCSANOW)
            _end_lines("\r\n")

    def leave(self) -> None:
        """Let it be as it was."""
        if self._before is not None:
            with suppress(termios.error):
                termios.tcsetattr(0, termios.TCSANOW, self._before)
            self._before = None
            _end_lines("\n")


def _end_lines(ending: str) -> None:
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr.reconfigure(newline=ending)


def terminal_of(values: Mapping[str, Any]) -> RawTerminal | None:
    """Return the terminal for --pty; None when it is not asked for, or there is none.

    Raises: SlurmError for options that do not go with it.
    """
    if "pty" not in values:
        return None
    if any(field in values for field in ("stdin", "stdout", "stderr")):
        sentence = "--error/--input/--output are incompatible with --pty"
        raise SlurmError(error_line("srun", sentence))
    if os.isatty(1):
        return RawTerminal()
    sys.stderr.write("srun: error: ioctl(TIOCGWINSZ): Inappropriate ioctl for device\n")
    sys.stderr.write("srun: error: Not using a pseudo-terminal, disregarding --pty option\n")
    return None
