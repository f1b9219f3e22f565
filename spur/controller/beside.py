"""What runs beside the front in its process: dispatcher, children, and reads of the disk.

Implements `Services`. It knows the loop; what it gathers decides nothing.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from spur.commands.decide import Attendance
from spur.consensus.replica import Replica
from spur.controller.attachments import NOISE_SIZE
from spur.controller.children import Children
from spur.controller.dispatcher import Dispatcher
from spur.controller.front import Front
from spur.controller.mailer import Mailer
from spur.controller.services import HistoryDone, OrdersDone
from spur.controller.snapshots import SnapshotProcess
from spur.controller.statistics import Counter
from spur.events.declare import Event
from spur.events.envelope import Actor, Entry
from spur.projections.mails import SendMail
from spur.projections.react import Effect
from spur.values.ids import HostId, JobId, NodeName
from spur.wire.agents import AttendOrders
from spur.wire.calls import Call, Reply
from spur.wire.cluster import ProcessInfo
from spur.wire.declare import Request
from spur.wire.followers import Cycled, Role
from spur.wire.jobs import StartView
from spur.wire.statistics import Statistics

__all__ = ["Beside"]


class Beside:
    """The services of a front that runs as spurctld."""

    def __init__(
        self,
        replica: Replica,
        wake: Callable[[], None],
        fail: Callable[[BaseException], None],
    ) -> None:
        """Prepare; `wake` asks for a turn of the driver after something was handed in.

        `fail` ends the controller because of a fault of ours.
        """
        self.dispatcher = Dispatcher(
            state=lambda: self._front.state,
            read_blobs=self.read_blobs,
            mark_lost=lambda node, silence_ns: self._front.mark_lost(node, silence_ns),
        )
        self.mailer = Mailer(lambda: self._front.state, self.read_blobs)
        self._leads = False
        self.certified: tuple[bytes, int] = (b"", 0)
        """The digest of the authority's certificate, and when this controller's own ends."""
        self._counter = Counter()
        self._replica = replica
        self._wake = wake
        self._fail = fail
        self._front: Front
        self._children: Children | None = None
        self._snapshots: SnapshotProcess | None = None
        self._tick_ns = 0
        self._starts: dict[JobId, StartView] = {}

    def attach(self, front: Front) -> None:
        """Learn which front this serves."""
        self._front = front

    def start(self, directory: Path, snapshots: SnapshotProcess, log: logging.Logger) -> None:
        """Start the processes that follow; their calls come in from now on."""
        self._snapshots = snapshots
        self._children = Children(directory, self, self._read_entries, log)

    async def stop(self) -> None:
        """End the processes."""
        await self.mailer.stop()
        if self._children is not None:
            await self._children.stop()

    def on_tick(self) -> None:
        """Let the dispatcher know how much time passed."""
        now_ns = self._replica.clocks.mono_ns()
        passed_ns = now_ns - self._tick_ns if self._tick_ns else 0
        self.dispatcher.on_tick(passed_ns)
        self.mailer.on_tick(passed_ns / 1e9, leads=self._leads)
        self._tick_ns = now_ns

    # -- Services
    def leading(self, term: int) -> None:
        """Take agents, and let the scheduler plan."""
        self._counter.reset()
        self.dispatcher.leading(term)
        self._leads = True
        self._tell_role(Role(leads=True, term=term))

    def following(self) -> None:
        """Take no agent; let the scheduler only follow."""
        self._starts = {}
        self.dispatcher.following()
        self.mailer.following()
        self._leads = False
        self._tell_role(Role(leads=False, term=self._replica.term))

    def _tell_role(self, role: Role) -> None:
        if self._children is not None:
            self._children.role(role)

    def committed(self, index: int) -> None:
        """Let orders go that waited for it, and stream it."""
        self.dispatcher.committed(index)
        if self._children is not None:
            self._children.committed()

    def release(self, effect: Effect, index: int) -> None:
        """Queue the effect for its agent, or for who sends mails."""
        if isinstance(effect, SendMail):
            self.mailer.put(effect)
        else:
            self.dispatcher.release(effect, index)

    def attend(self, request: AttendOrders, host_id: HostId, done: OrdersDone) -> None:
        """Let the dispatcher answer an agent."""
        self.dispatcher.attend(request, host_id, done)

    def heard(self, host_id: HostId) -> None:
        """Note that an agent is there."""
        self.dispatcher.heard(host_id)

    def attendances(self) -> Mapping[NodeName, Attendance]:
        """Return what agents said of their nodes."""
        return self.dispatcher.health

    def starts(self) -> Mapping[JobId, StartView]:
        """Return what the scheduler foresees."""
        return self._starts

    def processes(self) -> tuple[ProcessInfo, ...]:
        """Return the front, what writes snapshots, and the children."""
        found = [ProcessInfo("front", os.getpid(), self._front.commit, 1)]
        if self._snapshots is not None and self._snapshots.pid is not None:
            reached = self._replica.snapshot_index
            found.append(ProcessInfo("snapshotter", self._snapshots.pid, reached, 1))
        if self._children is not None:
            found.extend(self._children.processes())
        return tuple(found)

    def timed(
        self, request: Request, uid: int, respond: Callable[[Reply], None]
    ) -> Callable[[Reply], None]:
        """Let a request be counted when it is answered."""
        return self._counter.timed(request, uid, respond)

    def decided(self, events: Sequence[Event]) -> None:
        """Count them."""
        self._counter.decided(events)

    def statistics(self, *, anew: bool) -> Statistics:
        """Return what was counted; `anew` sets it to zero first."""
        if anew:
            self._counter.reset()
        return self._counter.told(self._front.state, self.dispatcher.agent_count)

    def certificate(self) -> tuple[bytes, int]:
        """Return what is known of the controller's certificate."""
        return self.certified

    def compute(self, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        """Run it in a thread of its own; a fault in it ends the controller, as one here would."""

        def finish(future: asyncio.Future[Any]) -> None:
            if future.cancelled():
                return
            error = future.exception()
            if error is not None:
                self._fail(error)
                return
            done(future.result())
            self._wake()

        loop = asyncio.get_running_loop()
        loop.run_in_executor(None, work).add_done_callback(finish)

    def read_blobs(
        self, digests: Sequence[bytes], done: Callable[[Sequence[bytes | None]], None]
    ) -> None:
        """Read attachments in the ledger's thread."""

        def read(blobs: Sequence[bytes | None]) -> None:
            done([None if blob is None else blob[NOISE_SIZE:] for blob in blobs])

        self._replica.reads.blobs(digests, read)
        self._wake()

    def ask_history(self, request: Request, at_least: int, done: HistoryDone) -> None:
        """Let the projector answer."""
        if self._children is not None:
            self._children.ask_history(request, at_least, done)

    # -- FollowedFront
    def cycled(self, cycle: Cycled) -> None:
        """Count a cycle of the scheduler."""
        self._counter.cycled(cycle)

    @property
    def commit(self) -> int:
        """How far the front is."""
        return self._front.commit

    @property
    def incarnation(self) -> int:
        """The incarnation of the cluster that the front knows."""
        return self._front.state.cluster[1].incarnation

    def foresaw(self, starts: tuple[StartView, ...]) -> None:
        """Keep what the scheduler foresees, in place of what it did before."""
        self._starts = {start.job_id: start for start in starts}

    def submit(self, call: Call, actor: Actor, respond: Callable[[Reply], None]) -> None:
        """Take a child's request."""
        self._front.submit(call, actor, respond)
        self._wake()

    def _read_entries(
        self, first: int, bytes_max: int, done: Callable[[Sequence[Entry]], None]
    ) -> None:
        self._replica.reads.entries(first, bytes_max, done)
        self._wake()
