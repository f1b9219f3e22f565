"""srun's own terminal while a task has one: what is typed goes to the task as it is.

Source: srun(1) --pty; transcripts of Slurm 22.05.
"""

from __future__ import annotations

import os
import sys
import termios
import tty
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from spur.slurm.wording import SlurmError, error_line

__all__ = ["RawTerminal", "terminal_of"]

_OFLAG = 1
"""Of the attributes of a terminal: what becomes of output."""


class RawTerminal:
    """The terminal that is our standard input."""

    def __init__(self) -> None:
        self._before: list[Any] | None = None

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns."""
        return termios.tcgetwinsize(0)

    def enter(self) -> None:
        """Pass on every key; what we say ourselves still begins at the left."""
        with suppress(termios.error):
            self._before = termios.tcgetattr(0)
            tty.setraw(0, termios.TCSANOW)
            modes = termios.tcgetattr(0)
            modes[_OFLAG] |= termios.OPOST
            termios.tcsetattr(0, termios.TCSANOW, modes)

    def leave(self) -> None:
        """Let it be as it was."""
        if self._before is not None:
            with suppress(termios.error):
                termios.tcsetattr(0, termios.TCSANOW, self._before)
            self._before = None


def terminal_of(values: Mapping[str, Any]) -> RawTerminal | None:
    """Return the terminal for --pty; None when it is not asked for, or there is none.

    Raises: SlurmError for options that do not go with it.
    """
    if "pty" not in values:
        return None
    for name, field in (("error", "stderr"), ("input", "stdin"), ("output", "stdout")):
        if field in values:
            raise SlurmError(error_line("srun", f"--{name} incompatible with --pty option"))
    if os.isatty(0):
        return RawTerminal()
    if not os.isatty(1):
        sys.stderr.write("srun: error: ioctl(TIOCGWINSZ): Inappropriate ioctl for device\n")
    sys.stderr.write("srun: error: Not using a pseudo-terminal, disregarding --pty option\n")
    return None
