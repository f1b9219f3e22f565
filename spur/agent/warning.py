"""The signal that a job wants some time before its limit is reached; the limit may move."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from spur.agent.ending import early_signal
from spur.agent.tending import Tending

__all__ = ["EarlyWarning"]


class EarlyWarning:
    """Sends that signal once, when the newest limit says so."""

    def __init__(
        self,
        tending: Tending,
        options: Mapping[str, bytes],
        *,
        to_script: bool,
        send: Callable[[int], None],
    ) -> None:
        """Prepare for what was submitted with these options; `to_script` says whom we tend."""
        self._tending = tending
        self._options = options
        self._to_script = to_script
        self._send = send
        self._number = 0
        self._is_sent = False
        tending.on_steer = self.expect

    def expect(self, limit_ns: int) -> None:
        """Take that the limit is reached at this time; 0 is never."""
        early = early_signal(self._options, limit_ns, time.time_ns())
        self._tending.alarm(None, self._warn)
        if early is not None and early.to_script == self._to_script and not self._is_sent:
            self._number = early.number
            self._tending.alarm(early.after_s, self._warn)

    def _warn(self) -> None:
        self._is_sent = True
        self._send(self._number)
