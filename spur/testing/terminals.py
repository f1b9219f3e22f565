"""A person at a terminal, as far as a test needs one.

    with Terminal("bash", environment={"PATH": "/usr/bin:/bin"}) as terminal:
        terminal.type("echo $((6*7))\n")
        terminal.until("42")

What is typed is echoed: look for what only an answer can be.
"""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import termios
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from spur.values.errors import SpurError

__all__ = ["INTERRUPT", "SUSPEND", "Terminal"]

INTERRUPT = "\x03"
"""Ctrl-C, as it is typed."""

SUSPEND = "\x1a"
"""Ctrl-Z."""

PATIENCE_S = 20.0


class Terminal:
    """A command of the shell in a session of its own, whose terminal is ours."""

    def __init__(
        self, command: str, *, environment: Mapping[str, str], cwd: Path | None = None
    ) -> None:
        self._ours, theirs = os.openpty()
        termios.tcsetwinsize(theirs, (24, 80))
        self._process = subprocess.Popen(
            ["setsid", "--ctty", "bash", "-c", command],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=cwd,
            env={"TERM": "dumb", "PS1": "$ ", **environment},
        )
        os.close(theirs)
        self._seen = ""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Hang up."""
        os.close(self._ours)
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def type(self, text: str) -> None:
        """Type on the keyboard."""
        os.write(self._ours, text.encode())

    def resize(self, rows: int, columns: int) -> None:
        """Drag the window's corner."""
        termios.tcsetwinsize(self._ours, (rows, columns))

    def until(self, wanted: str) -> str:
        """Read on until this is seen; return what came since the last call, line ends as one.

        Raises: SpurError when it does not come.
        """
        end_s = time.monotonic() + PATIENCE_S
        while wanted not in self._seen:
            if not self._read(end_s):
                raise SpurError(f"the terminal shows {self._seen!r}, and never {wanted!r}")
        place = self._seen.index(wanted) + len(wanted)
        found, self._seen = self._seen[:place], self._seen[place:]
        return found

    def ended(self) -> int:
        """Read to the end; return the exit status, or minus a signal.

        Raises: SpurError when there is no end.
        """
        end_s = time.monotonic() + PATIENCE_S
        while self._read(end_s):
            pass
        try:
            return self._process.wait(max(0.0, end_s - time.monotonic()))
        except subprocess.TimeoutExpired as error:
            raise SpurError(f"no end comes; the terminal shows {self._seen!r}") from error

    @property
    def rest(self) -> str:
        """What was seen since the last `until`."""
        return self._seen

    def _read(self, end_s: float) -> bool:
        ready, _, _ = select.select([self._ours], [], [], max(0.0, end_s - time.monotonic()))
        if not ready:
            return False
        try:
            data = os.read(self._ours, 65536)
        except OSError:  # nobody has the other end any more
            return False
        self._seen += re.sub("\r+\n", "\n", data.decode("utf-8", "replace"))
        return bool(data)
