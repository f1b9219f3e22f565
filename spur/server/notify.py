"""Telling systemd how a daemon is. Source: sd_notify(3)."""

from __future__ import annotations

import socket
from collections.abc import MutableMapping
from contextlib import suppress

__all__ = ["Notifier"]

_VARIABLE = "NOTIFY_SOCKET"


class Notifier:
    """Tells whoever started this daemon; without systemd there is nobody, and nothing happens."""

    def __init__(self, environment: MutableMapping[str, str]) -> None:
        """Take the address out of the environment: what this daemon starts is not to use it."""
        self._address = environment.pop(_VARIABLE, "")

    def tell(self, *states: str) -> None:
        """Send states such as `READY=1` or `STATUS=takes commands`; nobody waits for them."""
        if not self._address:
            return
        # A name that begins with @ is in the abstract namespace.
        path = self._address.replace("@", "\0", 1) if self._address[0] == "@" else self._address
        with (
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender,
            suppress(OSError),
        ):
            sender.setblocking(False)
            sender.sendto("\n".join(states).encode(), path)
