"""Commands of this host whose allocations end with them, however they end.

srun keeps a connection to its host's agent. The kernel closes it when srun is killed, and the agent
cancels the allocation in its user's name; after a restart of the agent srun connects anew.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from spur.client.stream import Stream
from spur.events.envelope import Actor
from spur.values.errors import PeerFault
from spur.values.ids import JobId
from spur.wire.hello import HostName
from spur.wire.streams import STREAM_VERSION, Stay, decode_opening

__all__ = ["Stays"]

LOG = logging.getLogger("spurd")

Cancel = Callable[[JobId, Actor], Awaitable[None]]


class Stays:
    """The connections of such commands."""

    def __init__(self, cancel: Cancel) -> None:
        self._cancel = cancel
        self._is_closed = False
        self._tasks: set[asyncio.Task[None]] = set()

    def opening(self, stream: Stream, who: Actor | HostName, messages: list[bytes]) -> bool:
        """Take a stream that begins as one of ours does; return whether it is taken."""
        try:
            first = decode_opening(messages[0])
        except PeerFault:
            return False
        if not isinstance(first, Stay) or not isinstance(who, Actor):
            return False
        if first.version != STREAM_VERSION:
            stream.close()
            return True
        command = _Command(JobId(first.job_id), who, self._ended)
        stream.owner = command
        command.received(stream, messages[1:])
        return True

    async def close(self) -> None:
        """Cancel nothing any more: the commands that live connect anew."""
        self._is_closed = True
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _ended(self, job_id: JobId, who: Actor) -> None:
        if self._is_closed:
            return
        LOG.info("the command of job %d has ended without a word; it is cancelled", job_id)
        task = asyncio.get_running_loop().create_task(self._cancelled(job_id, who))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _cancelled(self, job_id: JobId, who: Actor) -> None:
        await self._cancel(job_id, who)


class _Command:
    """Owner of one command's stream."""

    def __init__(self, job_id: JobId, who: Actor, ended: Callable[[JobId, Actor], None]) -> None:
        self._job_id = job_id
        self._who = who
        self._ended = ended

    def opened(self, stream: Stream) -> None:
        """Hear nothing new: it was taken over."""

    def received(self, stream: Stream, messages: list[bytes]) -> None:
        """Take that the command leaves by itself."""
        for data in messages:
            try:
                message = decode_opening(data)
            except PeerFault as fault:
                self.faulted(stream, str(fault))
                return
            if isinstance(message, Stay):
                self._job_id = JobId(message.job_id)

    def faulted(self, stream: Stream, sentence: str) -> None:
        """Let go of what is no such command; nothing is cancelled because of a word."""
        self._job_id = JobId(0)
        stream.close()

    def drained(self, stream: Stream) -> None:
        """Hear nothing new: nothing is sent."""

    def closed(self, stream: Stream) -> None:
        """End the allocation of a command that did not leave by itself."""
        if self._job_id:
            self._ended(self._job_id, self._who)
