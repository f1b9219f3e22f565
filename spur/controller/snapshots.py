"""The front's side of the snapshot process: started, asked, and started again when it dies."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

__all__ = ["SnapshotProcess"]

RESTART_S = 5.0
"""Pause before a snapshot process that ended is started again."""


class SnapshotProcess:
    """Asks for one snapshot at a time; never blocks the loop."""

    def __init__(
        self, directory: Path, written: Callable[[int], None], log: logging.Logger
    ) -> None:
        self._directory = directory
        self._written = written
        self._log = log
        self._wanted = asyncio.Event()
        self._process: asyncio.subprocess.Process | None = None
        self._task = asyncio.get_running_loop().create_task(self._serve())
        self._task.add_done_callback(self._ended)

    @property
    def pid(self) -> int | None:
        """Process id of the snapshot process; None while it is down."""
        return self._process.pid if self._process is not None else None

    @property
    def is_writing(self) -> bool:
        """Whether a snapshot was asked for and is not there yet."""
        return self._wanted.is_set()

    def want(self) -> None:
        """Ask for a snapshot of what the ledger holds; asking twice makes one."""
        self._wanted.set()

    async def stop(self) -> None:
        """End the process; what it was writing is left behind unfinished and unused."""
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def _serve(self) -> None:
        while True:
            await self._wanted.wait()
            try:
                status = await self._run()
            except OSError as error:
                self._log.warning("the snapshot process can't be started: %s", error)
            else:
                self._log.warning("the snapshot process ended with status %s", status)
            await asyncio.sleep(RESTART_S)

    async def _run(self) -> int | None:
        """Start the process and speak with it until it ends; return its status."""
        process = self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            "spur.controller.snapshotter",
            str(self._directory),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        talk = asyncio.ensure_future(self._talk(process))
        try:
            # It may end while nothing is asked of it.
            ended = asyncio.ensure_future(process.wait())
            await asyncio.wait((talk, ended), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._process = None
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            talk.cancel()
        [outcome] = await asyncio.gather(talk, return_exceptions=True)
        if isinstance(outcome, Exception):
            raise outcome
        return process.returncode

    async def _talk(self, process: asyncio.subprocess.Process) -> None:
        """Ask and listen until the process closes its output."""
        stdin, stdout = process.stdin, process.stdout
        if stdin is None or stdout is None:
            return
        while True:
            await self._wanted.wait()
            try:
                stdin.write(b"snapshot\n")
                await stdin.drain()
            except (ConnectionError, RuntimeError):
                return  # It is gone: uvloop has an error of its own for that.
            line = await stdout.readline()
            if not line:
                return
            self._wanted.clear()
            if index := int(line):
                self._written(index)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._log.error("no snapshots are written any more", exc_info=error)
