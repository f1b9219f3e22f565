"""Where the controllers are, as an agent knows it: told by its settings at first, then by them.

Controllers come and go while an agent runs. What one of them says is kept in the agent's directory,
so that an agent finds the cluster at its next start though all that its settings name are gone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

from spur.client.address import parse_address
from spur.client.client import Client
from spur.server.files import write_whole
from spur.wire.controllers import ControllersFound

__all__ = ["CONTROLLERS_FILE", "Whereabouts"]

LOG = logging.getLogger("spurd")

CONTROLLERS_FILE = "controllers"
"""In the agent's directory: an address on each line."""


class Whereabouts:
    """The controllers' addresses, the newest that were heard of first."""

    def __init__(self, directory: Path, settings: Sequence[str]) -> None:
        """Read what was kept. What can't be used of it is as good as none."""
        self._file = directory / CONTROLLERS_FILE
        self._settings = tuple(settings)
        self._heard = _read(self._file)

    @property
    def addresses(self) -> tuple[str, ...]:
        """Whom to ask: those of the settings are never forgotten, they come last."""
        return tuple(dict.fromkeys((*self._heard, *self._settings)))

    async def take(self, found: ControllersFound, client: Client) -> None:
        """Take what a controller says, keep it, and let the client know.

        One that knows of no leader may be left behind: others know better.
        """
        if not found.is_led or found.addresses == self._heard:
            return
        self._heard = found.addresses
        client.know(self.addresses)
        LOG.info("controllers are at %s", ", ".join(found.addresses))
        data = "".join(f"{address}\n" for address in found.addresses).encode()
        try:
            await asyncio.to_thread(write_whole, self._file, data)
        except OSError as error:
            LOG.warning("%s can't be written: %s", self._file, error.strerror)


def _read(file: Path) -> tuple[str, ...]:
    try:
        lines = file.read_text("ascii").splitlines()
        for line in lines:
            parse_address(line)
    except FileNotFoundError:
        return ()
    except (OSError, ValueError) as error:
        LOG.warning("%s can't be used: %s; the settings are", file, error)
        return ()
    return tuple(lines)
