"""A simulated controller: the product's own replica and front on a simulated disk and clock.

Only sockets, threads and the operating system's clock are replaced. Disk jobs run at a virtual time
of their own, so messages and ticks come between the start of a write and its sync; a power loss may
strike at any operation of the disk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from spur.consensus.faults import DiskFault, LedgerDamaged, RemovedFromCluster
from spur.consensus.messages import Append
from spur.consensus.opening import ReplicaOptions, open_replica
from spur.consensus.replica import Job, Replica
from spur.controller.front import Front
from spur.controller.services import ReleaseOnly
from spur.controller.snapshotter import Snapshotter
from spur.events.envelope import Actor
from spur.projections.react import Effect
from spur.projections.state import new_state
from spur.testing.disk import PowerLoss, SimDisk
from spur.testing.simulation.network import Network
from spur.testing.simulation.world import World
from spur.wire.calls import Call, Reply

__all__ = ["NOON_NS", "TICK_S", "SimClocks", "SimMember", "Violation", "WatchedFront", "Watcher"]

TICK_S = 0.1
"""Longer than in production, so that a run of many seconds takes few steps; the delays of network
and disk are drawn to match."""

HOUSEKEEPING_TICKS = 10
"""Ticks between two looks at the free space; the ledger is synced as often."""

FIRST_MARK_BYTES = 60 << 10
"""Free bytes below which submits are refused; a segment of the write-ahead log has 16 KiB."""

SECOND_MARK_BYTES = 30 << 10
"""Free bytes below which a member stops to acknowledge."""

NOON_NS = 1_800_000_000 * 1_000_000_000
"""Wall clock at virtual time 0."""


class Violation(AssertionError):
    """Something that must never happen, happened."""


@dataclass
class SimClocks:
    """The clocks of one machine; the wall clock may be set and both may drift."""

    world: World
    offset_ns: int = 0
    drift: float = 0.0

    def mono_ns(self) -> int:
        return int(self.world.now_s * (1 + self.drift) * 1e9)

    def wall_ns(self) -> int:
        return NOON_NS + self.mono_ns() + self.offset_ns


class Watcher:
    """Is told what members do; the checks of a run are one."""

    def leads(self, member: SimMember, term: int) -> None:
        """A member leads a term."""

    def learnt(self, member: SimMember, entries: Any) -> None:
        """A member is about to hear that entries are committed."""

    def committed(self, member: SimMember, entries: Any) -> None:
        """A member learnt that entries are committed, and its state holds them."""

    def restored(self, member: SimMember) -> None:
        """A member took a snapshot for its state."""

    def released(self, member: SimMember, effect: Effect) -> None:
        """A leader performs an effect."""

    def replied(self, member: SimMember, reply: Reply) -> None:
        """A member answers a caller."""

    def left(self, member: SimMember) -> None:
        """A member ended itself because it was removed."""

    def stopped(self, member: SimMember, error: BaseException) -> None:
        """A member ended itself because of a fault."""


class WatchedFront(Front):
    """The front, with its calls shown to the watcher as well."""

    member: SimMember

    def restored(self, snapshot: Any) -> None:
        super().restored(snapshot)
        self.member.watcher.restored(self.member)

    def committed(self, entries: Any) -> None:
        self.member.watcher.learnt(self.member, entries)
        super().committed(entries)
        self.member.watcher.committed(self.member, entries)

    def leading(self, term: int) -> None:
        super().leading(term)
        self.member.watcher.leads(self.member, term)


class SimMember:
    """One controller, which may be off."""

    def __init__(
        self,
        world: World,
        network: Network,
        watcher: Watcher,
        *,
        me: int,
        disk: SimDisk,
        options: ReplicaOptions,
        disk_delay_s: float,
        snapshot_entries: int,
    ) -> None:
        self.world = world
        self.me = me
        self.disk = disk
        self.watcher = watcher
        self.clocks = SimClocks(world)
        self.tick_s = TICK_S
        self.disk_delay_s = disk_delay_s
        self.disk_is_bad = False
        """Its disk is made to refuse something: ending because of that is right."""
        self.files_are_damaged = False
        """Bits of its files were flipped: it may meet what it has to repair."""
        self.is_up = False
        self.is_gone = False
        """It was removed, or its disk was lost: it never starts again."""
        self.is_paused = False
        self.starts = 0
        self.on_sent: Callable[[SimMember, Sequence[Any]], None] = _nothing_sent
        self.on_end: Callable[[SimMember], None] = _nothing_ended
        self.replica: Replica
        self.front: WatchedFront
        self._network = network
        self._options = options
        self._snapshot_entries = snapshot_entries
        self._turn_is_due = False
        self._snapshotting = False
        self._ticks = 0
        self._is_given_up = False
        self._held: list[Callable[[], None]] = []
        """What came in while it stands still."""
        self._jobs: list[Job] = []
        """Jobs that are with the disk."""

    # -- life
    def start(self) -> None:
        """Open the directory and take part."""
        if self.is_up or self.is_gone:
            return
        self.starts += 1
        self.world.tell(self.me, "starts")
        try:
            self._open()
        except PowerLoss:
            self.lose_power()
            return
        except Exception as error:
            self._fail(error)
            return
        self.is_up, self.is_paused = True, False
        self._turn_is_due = self._snapshotting = False
        self._held, self._jobs = [], []
        self.world.after(self.world.rng.random() * self.tick_s, self._tick, self.starts)

    def _open(self) -> None:
        world = self.world
        replica = open_replica(
            self.disk, me=self.me, rng=world.rng, clocks=self.clocks, options=self._options
        )
        # No certificates here: whoever is a member could sign them.
        replica.has_authority = True
        for sentence in replica.storage.notes:
            world.tell(self.me, "notes:", sentence)
            if "torn group" in sentence:
                world.counts["torn groups cut"] += 1
        genesis = replica.storage.genesis
        state = new_state(
            genesis.encoded, cluster_id=genesis.cluster_id, incarnation=genesis.incarnation
        )
        front = WatchedFront(
            state,
            replica,
            noise=world.rng.randbytes,
            address_of=lambda member: str(member or ""),
            services=ReleaseOnly(lambda effect, _: self.watcher.released(self, effect)),
        )
        front.member = self
        self.replica, self.front = replica, front
        replica.attach(front)

    def lose_power(self) -> None:
        """Be off at once; the disk decides what of the unsynced it keeps.

        A job that is with the disk may have begun: then it comes as far as some operation.
        """
        self.world.tell(self.me, "loses its power")
        self.is_up = False
        rng = self.world.rng
        if self._jobs and rng.random() < 0.8:
            self.world.counts["power lost within a job"] += 1
            self.disk.crash_after(rng.choice((1, 2, 2, 3, 8)))
            # The first is what has been with the disk for longest.
            job = self._jobs[0] if rng.random() < 0.5 else rng.choice(self._jobs)
            with suppress(PowerLoss, Exception):
                job.run()
        self._jobs = []
        self.disk.crash(rng)

    def end_process(self) -> None:
        """Be killed; the operating system lives on and its page cache with it."""
        self.world.tell(self.me, "ends")
        self.is_up = False
        self.disk.end_process()

    def lose_disk(self) -> None:
        """Be gone for good."""
        if self.is_up:
            self.end_process()
        self.is_gone = True

    def pause(self, seconds: float) -> None:
        """Stand still (SIGSTOP): messages and calls wait in their sockets, ticks are missed.

        Half of the time the peers give up their connections, and what they say is lost.
        """
        if self.is_up and not self.is_paused:
            self.is_paused = True
            self._is_given_up = self.world.rng.random() < 0.5
            self.world.after(seconds, self._go_on, self.starts)

    def _go_on(self, start: int) -> None:
        """Go on; what waited comes in any order, since the sockets are many."""
        if self.is_up and start == self.starts:
            held, self._held = self._held, []
            self.is_paused = False
            self.world.rng.shuffle(held)
            for call in held:
                self.world.after(self.world.rng.random() * 0.01, call)
            self._wake()

    # -- what a shell does
    def _guarded(self, call: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return call(*arguments)
        except PowerLoss:
            self.lose_power()
            self.on_end(self)
        except Violation:
            raise
        except Exception as error:
            self._fail(error)
            self.on_end(self)
        return None

    def _fail(self, error: Exception) -> None:
        """End because of an error: right when the disk was made to refuse, else a fault."""
        self.world.tell(self.me, "fails:", error)
        self.end_process()
        if isinstance(error, RemovedFromCluster):
            self.is_gone = True
            self.watcher.left(self)
            return
        if not (isinstance(error, DiskFault) and self.disk_is_bad):
            self.watcher.stopped(self, error)
        self.world.counts["ended by a disk fault"] += 1

    def _tick(self, start: int) -> None:
        if not self.is_up or start != self.starts:
            return
        self.world.after(self.tick_s, self._tick, start)
        if not self.is_paused:
            self._guarded(self.replica.tick)
            self._guarded(self._front_tick)
            self._wake()

    @property
    def is_running(self) -> bool:
        """Whether it is up; a call just before may have ended it."""
        return self.is_up

    def _pump(self) -> bool:
        return self.is_up and self.replica.pump()

    def _front_tick(self) -> None:
        if self.is_up and self.replica.is_attached:
            self.front.on_tick()
            self._snapshot_when_due()
            self._ticks += 1
            if self._ticks % HOUSEKEEPING_TICKS == 0:
                self.replica.sync_ledger()
                self._look_at_disk()

    def _look_at_disk(self) -> None:
        free = self.disk.free_bytes()
        self.front.disk_is_low = free < FIRST_MARK_BYTES
        self.replica.acknowledges = free >= SECOND_MARK_BYTES

    def _snapshot_when_due(self) -> None:
        """Do what the snapshot process does, at some later time."""
        replica = self.replica
        if self._snapshotting or replica.recorded - replica.snapshot_index < self._snapshot_entries:
            return
        self._snapshotting = True
        start, delay_s = self.starts, self.world.rng.random() * 2
        replica.snapshot_wanted(lambda: self.world.after(delay_s, self._snapshot, start))

    def _snapshot(self, start: int) -> None:
        if not self.is_up or start != self.starts:
            return
        self._snapshotting = False
        index = self._guarded(self._write_snapshot)
        if index and self.is_running:
            self.world.counts["snapshots written"] += 1
            self._guarded(self.replica.snapshot_written, index)

    def _write_snapshot(self) -> int:
        """Be the snapshot process; 0 when there was nothing new, or its disk or files ended it."""
        try:
            return Snapshotter(self.disk, self.replica.storage.genesis).write()
        except DiskFault:
            if not self.disk_is_bad:
                raise
            return 0
        except LedgerDamaged:
            if not self.files_are_damaged:
                raise
            self.world.counts["snapshot processes ended by damage"] += 1
            return 0

    def receive(self, message: Any) -> None:
        """Take a peer's message."""
        if not self.is_up:
            return
        if self.is_paused:
            if not self._is_given_up:
                self._held.append(partial(self.receive, message))
            return
        self._guarded(self.replica.take, message)
        self._wake()

    def submit(self, call: Call, actor: Actor, respond: Callable[[Reply], None]) -> None:
        """Take a client's call."""

        def tell(reply: Reply) -> None:
            self.watcher.replied(self, reply)
            respond(reply)

        if not self.is_up:
            return
        if self.is_paused:
            self._held.append(partial(self.submit, call, actor, respond))
        elif self.replica.is_attached:
            self._guarded(self.front.submit, call, actor, tell)
            self._wake()

    def _wake(self) -> None:
        if self.is_up and not self._turn_is_due:
            self._turn_is_due = True
            self.world.after(0.0, self._turn, self.starts)

    def _turn(self, start: int) -> None:
        if start != self.starts:
            return
        self._turn_is_due = False
        if not self.is_up or self.is_paused:
            return
        self._guarded(self.front.before_turn)
        if self._guarded(self._pump):
            self._wake()
        if not self.is_running:
            return
        messages = self.replica.take_outbox()
        self._count_served(messages)
        self._network.send(self.me, messages)
        self.on_sent(self, messages)
        for job in self.replica.take_jobs():
            delay_s = self.world.rng.random() * self.disk_delay_s
            self._jobs.append(job)
            self.world.after(delay_s, self._run, self.starts, job)

    def _count_served(self, messages: Sequence[Any]) -> None:
        first = self.replica.core.first
        for message in messages:
            if isinstance(message, Append) and message.entries and message.entries[0].index < first:
                self.world.counts["appends from the ledger"] += 1

    def _run(self, start: int, job: Job) -> None:
        if not self.is_up or start != self.starts:
            return
        if self.is_paused:
            self._held.append(partial(self._run, start, job))
            return
        self._jobs.remove(job)
        result = self._guarded(job.run)
        if self.is_running:
            self._guarded(self.replica.finish, job, result)
            self._wake()


def _nothing_sent(member: SimMember, messages: Sequence[Any]) -> None:
    """Let what was sent go unwatched."""


def _nothing_ended(member: SimMember) -> None:
    """Let an end go unwatched."""
