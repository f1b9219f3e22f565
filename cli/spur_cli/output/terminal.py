"""Text on its way to a terminal: what would steer the terminal is shown instead.

Comments, reasons and paths are other people's, and may hold anything.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

__all__ = ["shielded", "visible"]

_SHOWN = {
    code: f"\\x{code:02x}"
    for code in (*range(0x20), *range(0x7F, 0xA0))
    if code not in (ord("\n"), ord("\t"))
}
"""Control characters but those that end lines and columns."""


def visible(text: str) -> str:
    """Return the text with an escape where a control character stands."""
    return text.translate(_SHOWN)


class _Shield:
    """A stream that writes only what can be seen; all else is the stream's below."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the text."""
        self._stream.write(visible(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:  # of whatever type the stream's is
        return getattr(self._stream, name)


@contextmanager
def shielded() -> Iterator[None]:
    """Keep control characters from standard output and standard error where these are terminals."""
    former = sys.stdout, sys.stderr
    for name, stream in zip(("stdout", "stderr"), former, strict=True):
        if stream is not None and stream.isatty():
            setattr(sys, name, _Shield(stream))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = former
