"""A controller's own certificate: the authority that lies beside it gives the next one."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from spur.client.tls import TlsFiles, validity_of
from spur.controller.authority import Authority
from spur.controller.birth import AUTHORITY_DIRECTORY
from spur.server.credentials import authority_digest, write_credentials
from spur.server.renewal import keep_renewed
from spur.values.errors import OperatorFault
from spur.wire.hello import HostName

__all__ = ["OwnCertificate"]

LOG = logging.getLogger("spurctld")


class OwnCertificate:
    """Keeps one controller's certificate good while it runs."""

    def __init__(
        self,
        directory: Path,
        name: HostName,
        files: TlsFiles,
        *,
        life_s: int,
        said: Callable[[bytes, int], None],
    ) -> None:
        """Prepare. `said` hears of the authority's digest, and when the certificate ends."""
        self._directory = directory
        self._name = name
        self._files = files
        self._life = timedelta(seconds=life_s)
        self._said = said
        self._show: Sequence[Callable[[], None]] = ()
        self._task: asyncio.Task[None] | None = None

    def note(self) -> None:
        """Say what the certificate on disk is."""
        digest = authority_digest(self._files.authority.read_bytes())
        _, last_s = validity_of(self._files.host.read_text("ascii"))
        self._said(digest, int(last_s) * 1_000_000_000)

    def begin(
        self, *, show: Sequence[Callable[[], None]], failed: Callable[[BaseException], None]
    ) -> None:
        """Renew it in time from now on; each of `show` then shows the one on disk."""
        self._show = show
        self._task = asyncio.get_running_loop().create_task(
            keep_renewed(self._files, self._renew, LOG)
        )

        def ended(task: asyncio.Task[None]) -> None:
            if not task.cancelled() and (error := task.exception()) is not None:
                failed(error)

        self._task.add_done_callback(ended)

    def end(self) -> None:
        """Renew it no more."""
        if self._task is not None:
            self._task.cancel()

    # -- inside

    async def _renew(self) -> None:
        """Write the next one and show it.

        Raises: OperatorFault when there is no authority, or the disk takes nothing.
        """
        await asyncio.to_thread(self._write)
        for show in self._show:
            show()
        self.note()

    def _write(self) -> None:
        authority = Authority.open(self._directory / AUTHORITY_DIRECTORY)
        now = datetime.fromtimestamp(time.time(), UTC)
        issued = authority.issue(self._name, now, self._life)
        try:
            write_credentials(self._files.host.parent, authority.certificate, issued)
        except OSError as error:
            raise OperatorFault(f"{self._files.host} can't be written: {error}") from error
