"""A simulated controller: the product's own replica and front on a simulated disk and clock.

Only sockets, threads and the operating system's clock are replaced. Disk jobs run at a virtual time
of their own, so messages and ticks come between the start of a write and its sync; a power loss may
strike at any operation of the disk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from spur.consensus.opening import ReplicaOptions, open_replica
from spur.consensus.replica import Job, Replica
from spur.controller.front import Front
from spur.controller.snapshotter import Snapshotter
from spur.events.envelope import Actor
from spur.projections.react import Effect
from spur.projections.state import new_state
from spur.testing.disk import PowerLoss, SimDisk
from spur.testing.simulation.network import Network
from spur.testing.simulation.world import World
from spur.wire.calls import Call, Reply

__all__ = ["TICK_S", "SimClocks", "SimMember", "Violation", "WatchedFront", "Watcher"]

TICK_S = 0.1
"""Longer than in production, so that a run of many seconds takes few steps; the delays of network
and disk are drawn to match."""

SNAPSHOT_ENTRIES = 30
"""Entries after which a simulated controller writes another snapshot."""

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
    """Is told what members do; checks of a run subclass it."""

    def leads(self, member: SimMember, term: int) -> None:
        """A member leads a term."""

    def learnt(self, member: SimMember, entries: Any) -> None:
        """A member is about to hear that entries are committed."""

    def committed(self, member: SimMember, entries: Any) -> None:
        """A member learnt that entries are committed, and its state holds them."""

    def released(self, member: SimMember, effect: Effect) -> None:
        """A leader performs an effect."""

    def stopped(self, member: SimMember, error: BaseException) -> None:
        """A member ended itself because of a fault."""


class WatchedFront(Front):
    """The front, with its calls shown to the watcher as well."""

    member: SimMember

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
    ) -> None:
        self.world = world
        self.me = me
        self.disk = disk
        self.watcher = watcher
        self.clocks = SimClocks(world)
        self.disk_delay_s = disk_delay_s
        self.is_up = False
        self.is_paused = False
        self.starts = 0
        self.on_sent: Callable[[SimMember, Sequence[Any]], None] = _nothing_sent
        self.on_power_loss: Callable[[SimMember], None] = _nothing_lost
        self.replica: Replica
        self.front: WatchedFront
        self._network = network
        self._options = options
        self._turn_is_due = False
        self._snapshotting = False

    # -- life
    def start(self) -> None:
        """Open the directory and take part."""
        if self.is_up:
            return
        self.starts += 1
        try:
            self._open()
        except PowerLoss:
            self.lose_power()
            return
        except Exception as error:
            self.watcher.stopped(self, error)
            return
        self.is_up, self.is_paused = True, False
        self._turn_is_due = self._snapshotting = False
        self.world.after(self.world.rng.random() * TICK_S, self._tick, self.starts)

    def _open(self) -> None:
        world = self.world
        replica = open_replica(
            self.disk, me=self.me, rng=world.rng, clocks=self.clocks, options=self._options
        )
        genesis = replica.storage.genesis
        state = new_state(
            genesis.encoded, cluster_id=genesis.cluster_id, incarnation=genesis.incarnation
        )
        front = WatchedFront(
            state,
            replica,
            noise=world.rng.randbytes,
            address_of=lambda member: str(member or ""),
            release=lambda effect: self.watcher.released(self, effect),
        )
        front.member = self
        self.replica, self.front = replica, front
        replica.attach(front)

    def lose_power(self) -> None:
        """Be off at once; the disk decides what of the unsynced it keeps."""
        self.is_up = False
        self.disk.crash(self.world.rng)

    def end_process(self) -> None:
        """Be killed; the operating system lives on and its page cache with it."""
        self.is_up = False
        self.disk.end_process()

    def pause(self, seconds: float) -> None:
        """Stand still (SIGSTOP): messages wait, ticks are missed."""
        if self.is_up and not self.is_paused:
            self.is_paused = True
            self.world.after(seconds, self._go_on, self.starts)

    def _go_on(self, start: int) -> None:
        if self.is_up and start == self.starts:
            self.is_paused = False
            self._wake()

    # -- what a shell does
    def _guarded(self, call: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return call(*arguments)
        except PowerLoss:
            self.lose_power()
            self.on_power_loss(self)
        except Violation:
            raise
        except Exception as error:
            self.end_process()
            self.watcher.stopped(self, error)
        return None

    def _tick(self, start: int) -> None:
        if not self.is_up or start != self.starts:
            return
        self.world.after(TICK_S, self._tick, start)
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

    def _snapshot_when_due(self) -> None:
        """Do what the snapshot process does, at some later time."""
        replica = self.replica
        if self._snapshotting or replica.recorded - replica.snapshot_index < SNAPSHOT_ENTRIES:
            return
        self._snapshotting = True
        replica.snapshot_wanted()
        self.world.after(self.world.rng.random() * 2, self._snapshot, self.starts)

    def _snapshot(self, start: int) -> None:
        if not self.is_up or start != self.starts:
            return
        self._snapshotting = False

        def write() -> None:
            genesis = self.replica.storage.genesis
            index = Snapshotter(self.disk, genesis).write()
            if index:
                self.replica.snapshot_written(index)

        self._guarded(write)

    def receive(self, message: Any) -> None:
        """Take a peer's message."""
        if not self.is_up:
            return
        if self.is_paused:
            self.world.after(0.05, self.receive, message)
            return
        self._guarded(self.replica.take, message)
        self._wake()

    def submit(self, call: Call, actor: Actor, respond: Callable[[Reply], None]) -> None:
        """Take a client's call."""
        if self.is_up and not self.is_paused and self.replica.is_attached:
            self._guarded(self.front.submit, call, actor, respond)
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
        self._network.send(self.me, messages)
        self.on_sent(self, messages)
        for job in self.replica.take_jobs():
            delay_s = self.world.rng.random() * self.disk_delay_s
            self.world.after(delay_s, self._run, self.starts, job)

    def _run(self, start: int, job: Job) -> None:
        if not self.is_up or start != self.starts:
            return
        if self.is_paused:
            self.world.after(0.05, self._run, start, job)
            return
        result = self._guarded(job.run)
        if self.is_running:
            self._guarded(self.replica.finish, job, result)
            self._wake()


def _nothing_sent(member: SimMember, messages: Sequence[Any]) -> None:
    """Let what was sent go unwatched."""


def _nothing_lost(member: SimMember) -> None:
    """Let a power loss go unwatched."""
