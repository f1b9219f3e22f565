"""`--iterate`: a command that shows the same anew, until somebody ends it."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable

from spur.slurm.wording import SlurmError, error_line

__all__ = ["repeat", "seconds_between"]


_SECONDS_MAX = 4_294_967_295
"""No clock waits for as long as some can write."""


def seconds_between(text: str, program: str) -> int:
    """Read the value of --iterate: the number that it begins with. Raises: SlurmError."""
    match = re.match(r"\s*\+?([0-9]+)", text)
    seconds = int(match[1]) if match else 0
    if seconds < 1:
        raise SlurmError(error_line(program, f"--iterate={text}"), "")
    return min(seconds, _SECONDS_MAX)


def repeat(seconds: int, show: Callable[[], int]) -> int:
    """Show, with an empty line behind it, and again after so many seconds; failures are no end."""
    while True:
        try:
            show()
        except SlurmError as error:
            sys.stderr.write("".join(f"{line}\n" for line in error.lines))
        sys.stdout.write("\n")
        sys.stdout.flush()
        time.sleep(seconds)
