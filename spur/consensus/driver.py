"""Runs a replica on asyncio: ticks, turns, a thread for each of its lanes, and its peers' messages.

One turn of the loop handles everything that arrived since the last: proposals and messages only
wake the driver, and the turn pumps the replica once, hands its messages to the transport in one
batch per peer and starts its disk jobs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

from spur.consensus.exchange import Exchange
from spur.consensus.messages import Message
from spur.consensus.replica import LANES, Job, Replica

__all__ = ["Driver", "Transport"]

TICK_S = 0.03
"""One tick: a heartbeat. An election times out after 10 to 20 of them, 300 to 600 ms."""


class Transport(Protocol):
    """Carries messages to peers; may drop any of them."""

    def send(self, to: int, messages: Sequence[Message | Exchange]) -> None: ...


class Driver:
    """Owns a replica on a running loop. Public calls come from the loop's thread."""

    def __init__(
        self,
        replica: Replica,
        transport: Transport,
        *,
        before_turn: Callable[[], None],
        on_tick: Callable[[], None],
        on_fatal: Callable[[BaseException], None],
        tick_s: float = TICK_S,
    ) -> None:
        self.replica = replica
        self._transport = transport
        self._before_turn = before_turn
        self._on_tick = on_tick
        self._on_fatal = on_fatal
        self._tick_s = tick_s
        self._loop = asyncio.get_running_loop()
        self._lanes = {
            name: ThreadPoolExecutor(1, thread_name_prefix=f"spur-{name}") for name in LANES
        }
        self._turn_is_due = False
        self._stopped = False
        self._ticker: asyncio.TimerHandle | None = None
        self._next_tick_s = 0.0
        self._stall_s, self._stall_ticks = 0.0, 0

    def start(self) -> None:
        """Begin to tick."""
        self._next_tick_s = self._loop.time()
        self._tick()

    async def stop(self) -> None:
        """Stop ticking and wait for the jobs under way; nothing more is sent."""
        self._stopped = True
        if self._ticker is not None:
            self._ticker.cancel()
        for lane in self._lanes.values():
            await self._loop.run_in_executor(None, lane.shutdown)

    def wake(self) -> None:
        """Ask for a turn; several calls before it make one."""
        if not self._turn_is_due and not self._stopped:
            self._turn_is_due = True
            self._loop.call_soon(self._turn)

    def receive(self, message: Message | Exchange) -> None:
        """Take a peer's message."""
        self._guard(self.replica.take, message)
        self.wake()

    def _tick(self) -> None:
        if self._stopped:
            return
        now_s = self._loop.time()
        self._note_stall(now_s - self._next_tick_s)
        # Missed ticks are dropped, not made up for: after a pause of this process a burst of them
        # would look like silence of the leader.
        self._next_tick_s = max(self._next_tick_s + self._tick_s, now_s + self._tick_s / 2)
        self._ticker = self._loop.call_at(self._next_tick_s, self._tick)
        self._guard(self.replica.tick)
        self._guard(self._on_tick)
        self.wake()

    def _note_stall(self, late_s: float) -> None:
        """A tick that comes late shows how long the loop was busy with something else."""
        self._stall_s = max(self._stall_s, late_s)
        self._stall_ticks += 1
        if self._stall_ticks * self._tick_s >= 1.0:
            self.replica.stalls_ns.append(int(self._stall_s * 1e9))
            self._stall_s, self._stall_ticks = 0.0, 0

    def _turn(self) -> None:
        self._turn_is_due = False
        if self._stopped:
            return
        self._guard(self._before_turn)
        if self._guard(self.replica.pump):
            self.wake()
        by_peer: dict[int, list[Message | Exchange]] = {}
        for message in self.replica.take_outbox():
            by_peer.setdefault(message.to, []).append(message)
        for peer, messages in by_peer.items():
            self._transport.send(peer, messages)
        for job in self.replica.take_jobs():
            self._lanes[job.lane].submit(job.run).add_done_callback(
                lambda future, job=job: self._ran(job, future)  # type: ignore[misc]  # a lambda with a default
            )

    def _ran(self, job: Job, future: Future[Any]) -> None:
        """Called in the lane's thread."""
        if not self._stopped:
            self._loop.call_soon_threadsafe(self._finish, job, future)

    def _finish(self, job: Job, future: Future[Any]) -> None:
        if self._stopped:
            return
        error = future.exception()
        if error is not None:
            self._fail(error)
            return
        self._guard(self.replica.finish, job, future.result())
        # What only waited for this job goes out now, not a turn later.
        self._turn()

    def _guard(self, call: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return call(*arguments)
        except Exception as error:
            self._fail(error)
            return None

    def _fail(self, error: BaseException) -> None:
        self._stopped = True
        if self._ticker is not None:
            self._ticker.cancel()
        self._on_fatal(error)
