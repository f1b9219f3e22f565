"""One replica: the Raft core with its disk, without clock, socket or thread.

The shell (the asyncio driver, or the simulator) feeds messages, ticks and proposals, and calls
`pump` once per turn. Blocking work comes out as jobs of three lanes, at most one in flight in each:

    wal lane      what an answer waits for: one group, one sync
    ledger lane   what may wait: ledger and blobs behind the commit, snapshots, serving late members
    chores lane   what may take long: looking for blobs to erase or to fetch

A shell runs `job.run()` where it may block and `job.finish(result)` back on its loop. An error from
a job is never handled here: the process ends, since a failed sync leaves the page cache in doubt.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from spur.consensus.boxes import Ready, Want, WantChunk
from spur.consensus.clock import ClockJudge
from spur.consensus.committed import CommittedReads
from spur.consensus.core import Core
from spur.consensus.exchange import (
    BlobPart,
    ClockAsk,
    ClockTell,
    Exchange,
    FetchBlob,
    FetchSegment,
    SegmentPart,
)
from spur.consensus.faults import (
    PromiseLost,
    RemovedFromCluster,
    SnapshotDamaged,
    StorageDamaged,
)
from spur.consensus.ledger import LedgerDamaged
from spur.consensus.membership import Member, Membership
from spur.consensus.messages import Append, Message, SnapshotChunk
from spur.consensus.parts import Clocks, Job, Lane, ReplicaSettings, Storage
from spur.consensus.port import Machine, Refusal
from spur.consensus.repair import Repair, Repaired, digests_of
from spur.consensus.roster import Known, Roster
from spur.consensus.scrub import Scrub
from spur.consensus.snapshots import Snapshot
from spur.consensus.supply import Chunk, Supply
from spur.consensus.wal import WalIdentity
from spur.events.envelope import Entry, EntryKind
from spur.wire.cluster import ReplicaInfo
from spur.wire.controllers import ControllerList

__all__ = ["Clocks", "Job", "Replica", "ReplicaSettings", "Storage"]


CLOCK_PROBE_TICKS = 30
"""Ticks between two questions for the peers' clocks, about a second."""

PROMOTION_TICKS = 10
"""Ticks between two looks for a learner that is level."""

LANES = ("wal", "ledger", "chores")

STALL_SAMPLES = 60

DAMAGE_TICKS = 100
"""Ticks between two looks for segments that have to be fetched from peers."""

SCRUB_TICKS = 1_000
"""Ticks between two steps of reading everything again, once all was read since the start."""

SYNC_MEMORY_TICKS = 20_000
"""How long the worst sync is remembered, about ten minutes."""

SYNC_TICKS_MAX = 100
"""A sync that took longer counts as this long: a disk that hung once must not end elections."""

REPLAY_BYTES = 4 << 20
"""Bytes of the ledger given to the machine at once when it starts."""


class Replica:
    """A member of the cluster's log. Implements `Log` for its machine."""

    def __init__(
        self,
        *,
        identity: WalIdentity,
        core: Core,
        storage: Storage,
        settings: ReplicaSettings,
        clocks: Clocks,
    ) -> None:
        self.identity = identity
        self.core = core
        self.clocks = clocks
        self.judge = ClockJudge(core.me, core.members.voters())
        self.roster = Roster(core)
        self.free_mib = -1
        """Set by the shell: free space on the disk."""
        self.has_authority = False
        """Set by the shell: the key that signs certificates is here."""
        self._base_members = Membership.decode(storage.genesis.membership)
        """In force where the machine stands, while it is given the ledger."""
        self.is_attached = False
        self.acknowledges = True
        """Cleared by the shell at the second disk mark: no entry is taken, and no lead kept."""
        self.storage = storage
        self.settings = settings
        self.repair = Repair(core.me, storage)
        self.supply = Supply(storage, self.repair, storage.ledger.breathe)
        self.reads = CommittedReads(self, self._later)
        self._scrub = Scrub(storage, storage.notes.append)
        self._fetched = 0
        """Attachments that came from peers and were not told of yet."""
        self._machine: Machine
        self._lanes = {lane: Lane() for lane in LANES}
        self._delivered = storage.ledger.last
        self._recorded = storage.ledger.last
        self._unrecorded: deque[Entry] = deque()
        self._recording = False
        self._synced = storage.ledger.last
        self._syncing = False
        self._recycled = 0
        self._snapshot_index = 0
        self._worst_sync_tick = 0
        self._blobs_before: list[bytes] = []
        self._erased_to = 0
        """Up to here neither blobs nor snapshots hold what was erased; the WAL has its own mark."""
        self._installing = False
        self._led_term = 0
        self._handed_over_in = 0
        """The term in which it was tried to hand the lead over because of the disk."""
        self._position = 0
        self._serving: set[int] = set()
        self._lost_peers: set[int] = set()
        self._looking = False
        self._outbox: list[Message | Exchange] = []
        self._ticks = 0
        self.stalls_ns: deque[int] = deque(maxlen=STALL_SAMPLES)
        """Set by the shell: the longest stall of its loop in each of the last sixty seconds."""
        self._leader_heard_ns = clocks.mono_ns()

    # -- Log, for the machine
    @property
    def last(self) -> int:
        return self.core.last

    @property
    def term(self) -> int:
        return self.core.term

    @property
    def leader(self) -> int:
        return self.core.leader

    @property
    def delivered(self) -> int:
        """Index of the last committed entry that the machine has."""
        return self._delivered

    @property
    def recorded(self) -> int:
        """Index of the last entry that can be read from the ledger."""
        return self._recorded

    @property
    def snapshot_index(self) -> int:
        """Index of the newest durable snapshot known; 0 for none."""
        return self._snapshot_index

    def entries(self, first: int, last: int) -> Sequence[Entry]:
        return self.core.entries(first, last)

    def propose(self, kind: int, body: bytes, blobs: tuple[bytes, ...]) -> Entry | Refusal:
        return self.core.propose(kind, body, blobs)

    def barrier(self, token: int) -> bool:
        return self.core.barrier(token)

    def stamp(self, previous_ns: int) -> int | None:
        """Return the time of the next entry, or None while a majority's clocks are unknown.

        Raises: ClockStep, see `ClockJudge.stamp`.
        """
        wall_ns, mono_ns = self.clocks.wall_ns(), self.clocks.mono_ns()
        if not self.judge.can_stamp(wall_ns, mono_ns):
            return None
        return self.judge.stamp(previous_ns, wall_ns, mono_ns)

    def silence_ns(self) -> int:
        """Return how long no leader was heard; 0 while one is."""
        return 0 if self.core.leader else self.clocks.mono_ns() - self._leader_heard_ns

    def describe(self) -> ReplicaInfo:
        """Return what this replica knows of itself."""
        core = self.core
        return ReplicaInfo(
            node_id=core.me,
            leads=bool(self._led_term),
            leader=core.leader,
            term=core.term,
            last=core.last,
            commit=core.commit,
            recorded=self._recorded,
            history_from=self._whole_from(),
            snapshot_index=self._snapshot_index,
            erased_to=self._erased(),
            stall_ns_max=max(self.stalls_ns, default=0),
        )

    def _whole_from(self) -> int:
        """Return the first index from which on the ledger is whole, as far as is known."""
        ledger, entries = self.storage.ledger, self.storage.genesis.segment_entries
        spoilt = max((damage.segment for damage in ledger.damages), default=0)
        return max(ledger.first, spoilt * entries + 1)

    def _erased(self) -> int:
        return min(self._erased_to, max(0, self.storage.wal.held_from - 1))

    # -- members
    def controllers(self) -> ControllerList:
        """Return what this replica knows of all members."""
        mine = self._known_of_itself()
        genesis = self.storage.genesis.encoded
        return self.roster.list(self.neighbours(), mine, self.clocks.mono_ns(), genesis)

    def _known_of_itself(self) -> Known:
        return Known(
            self.core.stable,
            self._whole_from(),
            self._erased(),
            self.free_mib,
            self.has_authority,
        )

    def neighbours(self) -> tuple[Member, ...]:
        """Return whom this replica speaks with, itself included.

        A new member's log does not tell of its own addition at first: then those who were members
        at that time.
        """
        core = self.core
        seeds = self.storage.seeds
        if seeds is None or core.knows_of_itself:
            return core.in_touch
        return seeds.members

    def _peers(self) -> tuple[int, ...]:
        return tuple(member.id for member in self.neighbours() if member.id != self.core.me)

    def level_learner(self) -> int:
        """Return the id of a learner that may be promoted now, or 0."""
        if self._ticks % PROMOTION_TICKS or not self.core.may_change_members:
            return 0
        return self.roster.level_learner(self.clocks.mono_ns())

    def hand_over(self, successor: int = 0, *, free_mib_min: int = -1) -> bool:
        """Begin to hand the lead to a voter, or to the best for it; False when there is none.

        With `free_mib_min`, to one that has told of so much free space.
        """
        if self.core.transferring_to:
            return True
        successor = successor or self.roster.successor(self.clocks.mono_ns(), free_mib_min)
        return successor != 0 and self.core.transfer(successor)

    @property
    def is_handing_over(self) -> bool:
        """The lead is on its way to another one; given up after an election timeout."""
        return self.core.transferring_to != 0

    def accept_clock(self) -> None:
        """A person vouches for this machine's clock: its next step is taken."""
        self.judge.accept()

    # -- starting
    def attach(self, machine: Machine) -> None:
        """Give the machine the snapshot and everything committed behind it; blocks.

        Where the ledger is damaged the replica stays outside the cluster, neither voting nor
        acknowledging, until the peers' bytes have repaired it.
        """
        self._machine = machine
        for snapshot in self.storage.snapshots.newest_first():
            try:
                machine.restored(machine.load(snapshot))
            except SnapshotDamaged:
                continue
            self._position = self._snapshot_index = snapshot.index
            self._base_members = Membership.decode(snapshot.membership)
            break
        self.storage.notes.extend(
            f"{damage}; an older one or the ledger takes its place"
            for damage in self.storage.snapshots.damaged.values()
        )
        self._replay()

    def _replay(self) -> None:
        ledger, core = self.storage.ledger, self.core
        try:
            while self._position < ledger.last:
                batch = ledger.read(self._position + 1, ledger.last, REPLAY_BYTES)
                self._machine.committed(batch)
                self._position = batch[-1].index
                for entry in batch:
                    if entry.kind == EntryKind.MEMBERSHIP:
                        self._base_members = Membership.decode(entry.body)
        except LedgerDamaged as damage:
            if not self._peers():
                raise StorageDamaged(
                    f"{damage}, but there is none, and no snapshot behind it is whole: the state"
                    " can't be known; put a backup of this directory in its place; nothing was"
                    " changed"
                ) from damage
            self.repair.want_segment(damage.segment)
            self.storage.notes.append(
                f"{damage}; until then this controller stays outside of the cluster"
            )
            return
        core.begin_with(self._base_members)
        self.is_attached = True
        self._tend_blobs((), 0)

    # -- inputs
    def take(self, message: Message | Exchange) -> None:
        """Take a peer's message."""
        if isinstance(message, Exchange):
            self._exchange(message)
        elif self.is_attached and (self.acknowledges or not isinstance(message, Append)):
            self.core.step(message)

    def _exchange(self, message: Exchange) -> None:
        if isinstance(message, ClockAsk):
            self._outbox.append(
                ClockTell(
                    sender=self.core.me,
                    to=message.sender,
                    sent_mono_ns=message.sent_mono_ns,
                    wall_ns=self.clocks.wall_ns(),
                    **self._known_of_itself()._asdict(),
                )
            )
        elif isinstance(message, ClockTell):
            self.judge.heard(
                message.sender,
                wall_ns=message.wall_ns,
                sent_mono_ns=message.sent_mono_ns,
                received_mono_ns=self.clocks.mono_ns(),
            )
            self.roster.heard(message, self.clocks.mono_ns())
        elif isinstance(message, FetchSegment | FetchBlob):
            self._later("ledger", lambda: self.repair.read(message), self._answer)
        elif isinstance(message, SegmentPart | BlobPart):
            self._collect(message)

    def tick(self) -> None:
        """Let one tick of time pass."""
        peers = self._peers()
        self.judge.set_voters(self.core.members.voters())
        if self._ticks % CLOCK_PROBE_TICKS == 0:
            self._ask_clocks(peers)
        self._tell_lost_peers()
        if self._ticks % DAMAGE_TICKS == 0 and not self._looking:
            self._look_for_damage()
        self._ticks += 1
        self._outbox.extend(self.repair.tick(peers))
        if self.is_attached:
            fit = self.acknowledges and self.judge.is_fit_to_lead(
                self.clocks.wall_ns(), self.clocks.mono_ns()
            )
            self.core.may_campaign = fit
            if not fit and self.core.is_leader:
                self._leave_the_lead()
            self.core.tick()
            if self.core.leader:
                self._leader_heard_ns = self.clocks.mono_ns()

    def _leave_the_lead(self) -> None:
        """Let another one lead. With a full disk that can wait for a successor; a wrong clock not.

        Source: LOG-CONTRACT 4.1, 5.9.
        """
        core = self.core
        if core.transferring_to:
            return
        is_disk = not self.acknowledges and core.term != self._handed_over_in
        if is_disk and self.hand_over(free_mib_min=self.free_mib + 1):
            self._handed_over_in = core.term
        else:
            core.step_down()

    def _ask_clocks(self, peers: Sequence[int]) -> None:
        mono_ns = self.clocks.mono_ns()
        self._outbox.extend(
            ClockAsk(sender=self.core.me, to=peer, sent_mono_ns=mono_ns) for peer in peers
        )

    def _collect(self, part: SegmentPart | BlobPart) -> None:
        whole, question = self.repair.collect(part)
        if question is not None:
            self._outbox.append(question)
        if whole is not None:
            self._later(
                "ledger",
                lambda: self.repair.store(whole),
                lambda matched: self._repaired(whole, matched),
            )

    def _look_for_damage(self) -> None:
        """Read on in what was written long ago, and ask the peers for what is damaged.

        What the ledger lacks is asked for one segment at a time, the newest first.
        """
        ledger, scrub = self.storage.ledger, self._scrub
        is_due = scrub.rounds < 2 or self._ticks % SCRUB_TICKS == 0
        self._looking = True

        def look() -> tuple[list[int], list[bytes]]:
            blobs = scrub.step() if is_due else []
            # What is damaged may need what is missing, to be checked against.
            damaged = [damage.segment for damage in ledger.damages]
            return [*damaged, *ledger.missing[-1:]], blobs

        def ask(found: tuple[list[int], list[bytes]]) -> None:
            self._looking = False
            # A lone controller goes on with what it has; its next copy may be a backup.
            if self._peers():
                for number in found[0]:
                    self.repair.want_segment(number)
                for digest in found[1]:
                    self.repair.want_blob(digest)

        self._later("ledger", look, ask)

    def _repaired(self, whole: Repaired, matched: bool) -> None:
        self.repair.stored(whole, matched)
        if matched:
            self._note_repair(whole)
        if matched and not self.is_attached and isinstance(whole.what, int):
            self._replay()

    def _note_repair(self, whole: Repaired) -> None:
        if isinstance(whole.what, int):
            sentence = f"ledger segment {whole.what} was repaired from controller {whole.peer}"
            self.storage.notes.append(sentence)
            return
        self._fetched += 1
        if not self.repair.wanted:
            self.storage.notes.append(f"{self._fetched} attachments were fetched from peers")
            self._fetched = 0

    def snapshot_wanted(self, begin: Callable[[], None]) -> None:
        """Let a snapshot begin, once it is noted which blobs lie here before it.

        What of them it does not refer to may be erased after it. Blobs of entries that are not in
        the ledger yet may lie here as well, from before a power loss: it does not know of them.
        """

        def noted(held: list[bytes]) -> None:
            coming = {
                digest
                for entry in self.core.entries(self._recorded + 1, self.core.last)
                for digest in digests_of(entry)
            }
            self._blobs_before = [digest for digest in held if digest not in coming]
            begin()

        self._later("ledger", self.storage.blobs.held, noted)

    def snapshot_written(self, index: int) -> None:
        """Learn that a snapshot at this index is durable.

        The WAL behind it may be recycled, and blobs that were here before it began and that it
        does not refer to belong to jobs that are purged: they are erased.
        """
        self._snapshot_index = max(self._snapshot_index, index)
        self._plan_recycling()
        held, self._blobs_before = self._blobs_before, []
        self._tend_blobs(held, index)

    def _tend_blobs(self, held: Sequence[bytes], index: int) -> None:
        """Erase what no snapshot needs of `held`, and fetch what the newest one lacks here."""

        def want(tended: tuple[Sequence[bytes], int]) -> None:
            lacking, erased_to = tended
            if index:  # else nothing was to be erased, so nothing is known
                self._erased_to = max(self._erased_to, erased_to)
            for digest in lacking:
                self.repair.want_blob(digest)

        self._later("chores", lambda: self.supply.tend_blobs(held, index), want)

    def close(self) -> None:
        """Close the files; everything acknowledged is durable."""
        storage = self.storage
        storage.wal.close()
        storage.ledger.close()
        storage.blobs.close()

    # -- the turn
    def pump(self) -> bool:
        """Do what is to be done without blocking; True when more is left for the next turn.

        Raises: PromiseLost when the leader shows that this disk lost what it had promised to keep.
        """
        if not self.is_attached:
            return False
        if self.core.lost:
            raise PromiseLost(self.core.last)
        if self.core.was_removed:
            raise RemovedFromCluster(self.core.me)
        self._tell_role()
        more = self._deliver()
        for token, index in self.core.take_reads():
            self._machine.barrier_passed(token, index)
        for chunk in self.core.take_chunks():
            self._write_chunk(chunk)
        for want in self.core.take_wants():
            self._serve(want)
        self._record()
        self._persist()
        self._outbox.extend(self.core.take_messages())
        return more

    def take_outbox(self) -> list[Message | Exchange]:
        """Return what is to be sent, in order."""
        out, self._outbox = self._outbox, []
        return out

    def take_jobs(self) -> list[Job]:
        """Return the jobs to start now, at most one of each lane."""
        started = []
        for lane in self._lanes.values():
            if lane.queue and not lane.busy:
                lane.busy = True
                started.append(lane.queue.popleft())
        return started

    def finish(self, job: Job, result: Any) -> None:
        """Take the result of a job; the lane is free again."""
        self._lanes[job.lane].busy = False
        job.finish(result)

    def _answer(self, part: Exchange) -> None:
        self._outbox.append(part)

    def _later(self, lane: str, run: Callable[[], Any], finish: Callable[[Any], None]) -> None:
        self._lanes[lane].queue.append(Job(lane, run, finish))

    # -- roles and commits
    def _tell_role(self) -> None:
        core = self.core
        leading = core.is_leader
        if self._led_term and (not leading or core.term != self._led_term):
            self._led_term = 0
            self.judge.end_term()
            self._machine.following(core.leader)
        if leading and not self._led_term:
            # Everything committed is delivered first, so that the machine stands on solid ground
            # before it speculates on the tail.
            if self._delivered < core.commit:
                return
            self._led_term = core.term
            self._lost_peers.clear()
            self.judge.begin_term(self.clocks.mono_ns())
            self._ask_clocks(self._peers())
            self._machine.leading(core.term)

    def _tell_lost_peers(self) -> None:
        """Say once which peers lost what they had acknowledged: a person must replace them."""
        for peer in self.core.lost_peers:
            if peer not in self._lost_peers:
                self._lost_peers.add(peer)
                self.storage.notes.append(
                    f"controller {peer} lost entries that it had acknowledged; it counts for "
                    "nothing until it is removed and added again"
                )

    def _deliver(self) -> bool:
        core = self.core
        if self._installing:
            return False
        end = min(core.commit, self._delivered + self.settings.commit_slice)
        if end <= self._delivered:
            return False
        batch = core.entries(self._delivered + 1, end)
        self._delivered = end
        self._unrecorded.extend(batch)
        self._machine.committed(batch)
        return core.commit > end or (core.is_leader and not self._led_term)

    # -- durability
    def _persist(self) -> None:
        lane = self._lanes["wal"]
        if lane.busy or lane.queue:
            return
        ready = self.core.ready()
        if ready is not None:
            if not ready.needs_sync:
                self._persisted(ready)
                return
            wal, commit, began = self.storage.wal, ready.commit, self._ticks

            def written(_: None) -> None:
                self._note_sync(self._ticks - began)
                self._persisted(ready)

            self._later(
                "wal",
                lambda: wal.write_group(ready.hard, ready.first, ready.entries, commit),
                written,
            )

    def _note_sync(self, ticks: int) -> None:
        """Remember the worst sync of the last minutes: elections must leave time for two."""
        core = self.core
        if ticks >= core.sync_ticks or self._ticks - self._worst_sync_tick > SYNC_MEMORY_TICKS:
            core.sync_ticks = min(ticks, SYNC_TICKS_MAX)
            self._worst_sync_tick = self._ticks

    def _persisted(self, ready: Ready) -> None:
        self.core.persisted(ready)
        self._outbox.extend(ready.after)

    def _record(self) -> None:
        """Append what is committed and durable here to ledger and packs, in the ledger lane."""
        waiting, stable = self._unrecorded, self.core.stable
        if self._installing or self._recording or not waiting or waiting[0].index > stable:
            return
        batch = []
        while waiting and waiting[0].index <= stable:
            batch.append(waiting.popleft())
        self._recording = True
        self._later("ledger", lambda: self._append(batch), lambda _: self._appended(batch))

    def _append(self, batch: list[Entry]) -> None:
        blobs = [blob for entry in batch for blob in entry.blobs if blob]
        if blobs:
            self.storage.blobs.put(blobs)
        self.storage.ledger.append(batch)

    def _appended(self, batch: list[Entry]) -> None:
        self._recording = False
        self._recorded = batch[-1].index
        self._trim()
        if self._recorded - self._synced >= self.settings.sync_ledger_every:
            self.sync_ledger()

    def sync_ledger(self) -> None:
        """Make ledger and packs durable up to what is recorded, then let the WAL go."""
        if self._syncing or self._recorded == self._synced:
            return
        self._syncing = True
        target = self._recorded

        def run() -> None:
            self.storage.blobs.sync()
            self.storage.ledger.sync()

        self._later("ledger", run, lambda _: self._ledger_synced(target))

    def _ledger_synced(self, target: int) -> None:
        self._syncing = False
        self._synced = target
        self._plan_recycling()
        self._seal()

    def _seal(self) -> None:
        """Seal full segments, one a job, so that late members wait for none of it long."""

        def sealed(more: bool) -> None:
            if more:
                self._seal()

        self._later("ledger", self.storage.ledger.seal, sealed)

    def _plan_recycling(self) -> None:
        below = min(self._synced, self._snapshot_index)
        if below > self._recycled:
            self._recycled = below
            self._later("ledger", lambda: self.storage.wal.recycle(below), _nothing)

    def _trim(self) -> None:
        """Forget old entries in memory, in slices: they are in the ledger."""
        core, settings = self.core, self.settings
        keep_from = max(
            core.last - settings.memory_entries + 1, core.index_by_bytes(settings.memory_bytes) + 1
        )
        if keep_from - core.first >= settings.memory_entries // 4:
            core.trim(min(keep_from - 1, self._recorded))

    # -- late members
    def _serve(self, want: Want | WantChunk) -> None:
        if want.peer in self._serving:
            return
        if isinstance(want, WantChunk):
            self._serve_chunk(want.peer, want.snapshot_index, want.number)
        elif self._lags(want.index):
            self._serve_chunk(want.peer, self._snapshot_index, 0)
        else:
            self._serving.add(want.peer)
            first, last, limit = want.index, self._recorded, self.settings.serve_bytes
            self._later(
                "ledger",
                lambda: self.supply.entries(first, last, limit),
                lambda entries: self._served(want.peer, entries),
            )

    def _lags(self, index: int) -> bool:
        if self._snapshot_index <= index:
            # None, or one that brings the member no further than it is.
            return False
        history_from = self.storage.ledger.first
        return index < history_from or self._recorded - index > self.settings.snapshot_lag

    def _served(self, peer: int, entries: list[Entry]) -> None:
        self._serving.discard(peer)
        if entries:
            self.core.supply(peer, entries)

    def _serve_chunk(self, peer: int, index: int, number: int) -> None:
        self._serving.add(peer)

        def finish(chunk: Chunk | None) -> None:
            self._serving.discard(peer)
            if chunk is None:
                # The only one was damaged; another is written as if there had never been any.
                self._snapshot_index = 0
            else:
                self.core.supply_snapshot(peer, *chunk)

        self._later("ledger", lambda: self.supply.chunk(index, number), finish)

    # -- being late
    def _write_chunk(self, chunk: SnapshotChunk) -> None:
        store = self.storage.snapshots

        def run() -> bool:
            if chunk.number == 0:
                return store.begin_receive(chunk.data)
            return store.write_received(chunk.number, chunk.data)

        def finish(is_good: bool) -> None:
            if not is_good:
                return
            self.core.chunk_written(chunk.sender, chunk.index, chunk.number)
            if self.core.installing == chunk.index and not self._installing:
                self._install(chunk.index)

        self._later("ledger", run, finish)

    def _install(self, index: int) -> None:
        """Every chunk is here and checked: let the snapshot become the state."""
        self._installing = True

        def run() -> tuple[Snapshot, Any]:
            snapshot = self.storage.snapshots.finish_receive()
            loaded = self._machine.load(snapshot)
            self.storage.ledger.restart(snapshot.index, snapshot.term, snapshot.chain)
            return snapshot, loaded

        # The WAL's lane is free of the core's Ready when the restart has been written, and takes
        # no other before the core has moved as well.
        self._later(
            "ledger",
            run,
            lambda result: self._later(
                "wal",
                lambda: self._restart_wal(index),
                lambda _: self._installed(*result),
            ),
        )

    def _restart_wal(self, index: int) -> None:
        self.storage.wal.restart(None, index)
        self.storage.snapshots.installed()

    def _installed(self, snapshot: Snapshot, loaded: Any) -> None:
        self._installing = False
        self._unrecorded.clear()
        self._delivered = self._recorded = self._synced = snapshot.index
        self._snapshot_index = snapshot.index
        self._machine.restored(loaded)
        self.core.installed(snapshot.index, snapshot.term, Membership.decode(snapshot.membership))
        self._tend_blobs((), 0)


def _nothing(_: Any) -> None:
    """Take the result of a job that has none."""
