"""The processes that follow a front's log: started, spoken with, and started again when they die.

A child is one row of `CHILDREN`. It is started as `python -m MODULE DIRECTORY --channel FD
--niceness N` and ends with the front: its channel closes, and the kernel kills it when the front
dies.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from spur.controller.services import HistoryDone
from spur.controller.streams import ChildStream, FollowedFront, ReadEntries
from spur.wire.calls import Refused
from spur.wire.cluster import ProcessInfo
from spur.wire.declare import Request, encode_request
from spur.wire.followers import Role

__all__ = ["CHILDREN", "Child", "ChildRow", "Children"]

FIRST_PAUSE_S = 0.1
"""Before a child that ended is started again; doubled while it does not last."""

LONGEST_PAUSE_S = 10.0

LASTING_S = 10.0
"""A child that lived so long is started again after the first pause."""

FAREWELL_S = 2.0
"""How long a child may live on without its channel."""

LAG_BYTES_MAX = 1 << 30
"""A child that is further behind gives way no longer. Source: LOG-CONTRACT 5.9."""

HISTORY_WAIT_S = 10.0
"""The longest that a query waits for the projector to answer. It waits 2 s itself for the index."""

CONNECT_WAIT_S = 2.0
"""How long a query waits for a projector that is not there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ChildRow:
    """What is run beside a front."""

    name: str
    module: str
    niceness: int = 0
    """How much it gives way to everything else, as nice(1) counts; at none when it lags far."""
    answers_history: bool = False


CHILDREN: tuple[ChildRow, ...] = (
    ChildRow(name="scheduler", module="spur.controller.scheduler"),
    ChildRow(
        name="projector", module="spur.controller.projector", niceness=5, answers_history=True
    ),
)
"""What follows every front."""


class Child:
    """One child process and its stream, through all of its lives."""

    def __init__(
        self,
        row: ChildRow,
        directory: Path,
        front: FollowedFront,
        read: ReadEntries,
        log: logging.Logger,
    ) -> None:
        self.row = row
        self.starts = 0
        self.stream: ChildStream | None = None
        """While the process is there."""
        self._directory = directory
        self._front = front
        self._read = read
        self._log = log
        self._role = Role(leads=False, term=0)
        self._niceness = row.niceness
        self._process: asyncio.subprocess.Process | None = None
        self._is_there = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._live())
        self._task.add_done_callback(self._given_up)

    @property
    def pid(self) -> int:
        """Process id; 0 while it is down."""
        return self._process.pid if self._process is not None else 0

    def role(self, role: Role) -> None:
        """Tell it whether this controller leads, in this life and the next."""
        self._role = role
        if self.stream is not None:
            self.stream.role(role)

    def committed(self) -> None:
        """Send on what is committed; when it lags far, let it begin anew and give way no longer."""
        stream = self.stream
        if stream is None:
            return
        stream.committed()
        if self._niceness and stream.lag_bytes > LAG_BYTES_MAX:
            # An ordinary user can't raise the priority of a process that lives.
            self._niceness = 0
            self._log.warning(
                "the %s lags by %d MiB: it is started again at normal priority",
                self.row.name,
                stream.lag_bytes >> 20,
            )
            stream.close()
        elif stream.reached >= self._front.commit:
            self._niceness = self.row.niceness

    async def ask_history(self, request: bytes, at_least: int, done: HistoryDone) -> None:
        """Ask a query; `done` is called once, after `HISTORY_WAIT_S` at the latest."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CONNECT_WAIT_S):
                await self._is_there.wait()
        stream = self.stream
        if stream is None:
            done(Refused("history-behind", f"the {self.row.name} is not there"), "")
            return
        answered = asyncio.Event()

        def answer(outcome: object, warning: str) -> None:
            answered.set()
            done(outcome, warning)  # type: ignore[arg-type]  # handed on as it comes

        number = stream.ask_history(request, at_least, answer)
        try:
            async with asyncio.timeout(HISTORY_WAIT_S):
                await answered.wait()
        except TimeoutError:
            stream.forget(number)
            text = f"the {self.row.name} did not answer within {HISTORY_WAIT_S:g} s"
            done(Refused("history-behind", text), "")

    async def stop(self) -> None:
        """End the process for good."""
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def _live(self) -> None:
        loop = asyncio.get_running_loop()
        pause_s = FIRST_PAUSE_S
        while True:
            began_s = loop.time()
            try:
                status = await self._run()
            except OSError as error:
                self._log.warning("the %s can't be started: %s", self.row.name, error)
            else:
                self._log.warning("the %s ended with status %s", self.row.name, status)
            if loop.time() - began_s >= LASTING_S:
                pause_s = FIRST_PAUSE_S
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    async def _run(self) -> int | None:
        """Start the process and let it follow until it ends; return its status."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-P",
                    "-m",
                    self.row.module,
                    str(self._directory),
                    "--channel",
                    str(theirs.fileno()),
                    "--niceness",
                    str(self._niceness),
                    stdin=asyncio.subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(),),
                )
        except BaseException:
            ours.close()
            raise
        self.starts += 1
        self._process = process
        stream = ChildStream(self.row.name, self._front, self._read, self._log.info)
        try:
            await stream.open(ours)
            self.stream = stream
            stream.role(self._role)
            self._is_there.set()
            return await _end_of(process, stream)
        finally:
            self.stream = self._process = None
            self._is_there.clear()
            stream.close()
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    def _given_up(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._log.error("the %s is not started any more", self.row.name, exc_info=error)


async def _end_of(process: asyncio.subprocess.Process, stream: ChildStream) -> int | None:
    """Return the status of a process that ended, or soon ends since its channel is gone."""
    ended = asyncio.ensure_future(process.wait())
    channel = asyncio.ensure_future(stream.ended.wait())
    try:
        await asyncio.wait((ended, channel), return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait((ended,), timeout=FAREWELL_S)
    finally:
        ended.cancel()
        channel.cancel()
    return process.returncode


class Children:
    """All children of a front."""

    def __init__(
        self,
        directory: Path,
        front: FollowedFront,
        read: ReadEntries,
        log: logging.Logger,
        rows: Sequence[ChildRow] = CHILDREN,
    ) -> None:
        self._children = [Child(row, directory, front, read, log) for row in rows]
        self._historian = next((c for c in self._children if c.row.answers_history), None)
        self._questions: set[asyncio.Task[None]] = set()

    def committed(self) -> None:
        """Send on what is committed."""
        for child in self._children:
            child.committed()

    def role(self, role: Role) -> None:
        """Tell all whether this controller leads."""
        for child in self._children:
            child.role(role)

    def ask_history(self, request: Request, at_least: int, done: HistoryDone) -> None:
        """Let the read model answer a query."""
        if self._historian is None:
            done(Refused("history-behind", "no projector follows this controller"), "")
            return
        loop = asyncio.get_running_loop()
        question = self._historian.ask_history(encode_request(request), at_least, done)
        task = loop.create_task(question)
        self._questions.add(task)
        task.add_done_callback(self._questions.discard)

    def processes(self) -> tuple[ProcessInfo, ...]:
        """Return what each child is at this moment."""
        return tuple(
            ProcessInfo(
                name=child.row.name,
                pid=child.pid,
                reached=child.stream.reached if child.stream is not None else 0,
                starts=child.starts,
            )
            for child in self._children
        )

    async def stop(self) -> None:
        """End all of them."""
        await asyncio.gather(*(child.stop() for child in self._children))
