"""Reports each thing once: what keeps happening is said again only when it changes."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Once"]

_SOURCES_MAX = 64
"""Sources remembered; with more, all are forgotten, and some things are said twice."""


class Once:
    """Passes on a source's sentence unless it was the last one of that source."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._last: dict[str, str] = {}

    def report(self, source: str, sentence: str) -> None:
        """Say a sentence about a source, if it is news."""
        if self._last.get(source) != sentence:
            if len(self._last) >= _SOURCES_MAX:
                self._last.clear()
            self._last[source] = sentence
            self._report(sentence)

    def forget(self, source: str) -> None:
        """All is well with this source: its next trouble is news."""
        self._last.pop(source, None)
