"""One core with a disk that only keeps what was synced: the smallest honest shell of the core.

It does what a shell must (persist, then send; apply what is committed; serve late members from a
ledger or a snapshot; write received chunks) and nothing else, so that a simulation of it tests the
core and the rules for its use. When a write is done is decided by whoever drives it.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from spur.consensus.core import Core, CoreSettings, HardState, Ready, Rng, Want, WantChunk
from spur.consensus.membership import Membership
from spur.consensus.messages import Message, SnapshotChunk
from spur.events.envelope import Entry, EntryKind

__all__ = ["CoreDisk", "CoreNode", "CoreSnapshot", "Surroundings", "chain_after"]

_SERVED_MAX = 20
"""Entries read from the ledger at once."""


def chain_after(chain: bytes, entry: Entry) -> bytes:
    """Return the digest of a history that goes on with this entry."""
    return hashlib.blake2b(
        chain + entry.index.to_bytes(8) + entry.term.to_bytes(8) + entry.body, digest_size=16
    ).digest()


@dataclass(frozen=True, slots=True)
class CoreSnapshot:
    """The state at an index: all there is to it is the digest of its history."""

    index: int
    term: int
    chain: bytes
    membership: Membership
    chunk_count: int

    def chunk(self, number: int) -> bytes:
        """Return one chunk; every one names its snapshot, so that a mixture is noticed."""
        return b"%d/%d " % (self.index, number) + self.chain


@dataclass(slots=True)
class CoreDisk:
    """What survives a crash."""

    membership: Membership
    """In force at the base."""
    hard: HardState = field(default_factory=HardState)
    base_index: int = 0
    base_term: int = 0
    entries: list[Entry] = field(default_factory=list)
    commit: int = 0
    history_from: int = 1
    ledger: list[Entry] = field(default_factory=list)
    """Committed entries from `history_from` on."""
    recorded: int = 0
    """The last index of the ledger."""
    chain: bytes = b""
    """Digest of the history up to `recorded`."""
    members_recorded: Membership | None = None
    """In force at `recorded`."""
    snapshot: CoreSnapshot | None = None
    received: list[bytes] = field(default_factory=list)
    """Chunks of a snapshot coming in."""

    def record(self, entry: Entry) -> None:
        """Append a committed entry to the ledger."""
        self.ledger.append(entry)
        self.recorded = entry.index
        self.chain = chain_after(self.chain, entry)
        if entry.kind == EntryKind.MEMBERSHIP:
            self.members_recorded = Membership.decode(entry.body)

    def write_group(self, ready: Ready) -> None:
        """Keep what a Ready holds, all of it or, in a crash before this call, none."""
        if ready.hard is not None:
            self.hard = ready.hard
        if ready.entries:
            del self.entries[ready.first - self.base_index - 1 :]
            self.entries.extend(ready.entries)
        self.commit = max(self.commit, ready.commit)

    def recycle(self, index: int) -> None:
        """Forget log entries up to `index`; the ledger has them."""
        if index <= self.base_index:
            return
        gone = self.entries[: index - self.base_index]
        for entry in gone:
            if entry.kind == EntryKind.MEMBERSHIP:
                self.membership = Membership.decode(entry.body)
        self.base_index, self.base_term = gone[-1].index, gone[-1].term
        del self.entries[: len(gone)]

    def install(self, snapshot: CoreSnapshot) -> None:
        """Let a received snapshot become the state; ledger and log go on behind it."""
        self.snapshot = snapshot
        self.membership = self.members_recorded = snapshot.membership
        self.base_index = self.recorded = snapshot.index
        self.base_term = snapshot.term
        self.commit = max(self.commit, snapshot.index)
        self.history_from = snapshot.index + 1
        self.entries, self.ledger, self.received = [], [], []
        self.chain = snapshot.chain


class Surroundings(Protocol):
    """What a node is put into."""

    def send(self, message: Message) -> None:
        """Carry a message, or lose it."""
        ...

    def write(self, node: CoreNode) -> None:
        """Let a write begin; when it is durable, `written` is to be called."""
        ...

    def committed(self, node: CoreNode, entry: Entry) -> None:
        """Look at an entry that the node takes for committed, each once, in order."""
        ...

    def restored(self, node: CoreNode, snapshot: CoreSnapshot) -> None:
        """Look at a snapshot that became the node's state."""
        ...

    def answered(self, node: CoreNode, token: int, index: int | None) -> None:
        """Look at the answer to a read barrier."""
        ...

    def snapshot_of(self, index: int, chain: bytes) -> CoreSnapshot:
        """Return the snapshot that a manifest names; its data stays with the surroundings."""
        ...


class CoreNode:
    """A replica that is only a core."""

    def __init__(
        self, me: int, disk: CoreDisk, settings: CoreSettings, rng: Rng, around: Surroundings
    ) -> None:
        self.me = me
        self.disk = disk
        self.settings = settings
        self.is_up = False
        self.life = 0
        """Counts the starts, so that what belongs to a former life can be told."""
        self.core: Core
        self.applied = 0
        self.outstanding: Ready | None = None
        self.is_writing = False
        self.chunks: deque[SnapshotChunk] = deque()
        """Received and not yet durable."""
        self._rng = rng
        self._around = around

    def start(self) -> None:
        """Come up with what is durable."""
        disk = self.disk
        self.is_up = True
        self.life += 1
        self.core = Core(
            me=self.me,
            settings=self.settings,
            rng=self._rng,
            hard=disk.hard,
            membership=disk.membership,
            base_index=disk.base_index,
            base_term=disk.base_term,
            entries=disk.entries,
            commit=max(disk.commit, disk.recorded),
        )
        self.applied = disk.recorded
        self.outstanding = None
        self.is_writing = False
        self.chunks.clear()
        disk.received = []

    def crash(self) -> None:
        """Lose everything that is not durable."""
        self.is_up = False
        self.life += 1

    # -- what may happen to it

    def tick(self) -> None:
        """Let one tick pass."""
        self.core.tick()
        self.pump()

    def take(self, message: Message) -> None:
        """Take a message."""
        self.core.step(message)
        self.pump()

    def pump(self) -> None:
        """Take everything out of the core that can be dealt with now."""
        core = self.core
        self._apply()
        for token, index in core.take_reads():
            self._around.answered(self, token, index)
        self.chunks.extend(core.take_chunks())
        for want in core.take_wants():
            self._serve(want)
        self._send(core.take_messages())
        while self.outstanding is None:
            ready = core.ready()
            if ready is None:
                break
            if ready.needs_sync:
                self.outstanding = ready
                self.prepared(ready)
            else:
                self._send(ready.after)
        if not self.is_writing and (self.outstanding is not None or self.chunks):
            self.is_writing = True
            self._around.write(self)

    def prepared(self, ready: Ready) -> None:
        """Look at a Ready that is about to be written."""

    def written(self) -> None:
        """Let one write be durable: the outstanding group, else the oldest received chunk.

        A last chunk installs its snapshot and restarts the log on disk, so groups go first.
        """
        self.is_writing = False
        if self.outstanding is not None:
            self.synced(self.outstanding)
        elif self.chunks:
            self._chunk_synced(self.chunks.popleft())
        self.pump()

    def synced(self, ready: Ready) -> None:
        """Let the outstanding group be durable."""
        self.outstanding = None
        self.disk.write_group(ready)
        self.core.persisted(ready)
        self._send(ready.after)

    def _chunk_synced(self, chunk: SnapshotChunk) -> None:
        disk = self.disk
        if chunk.number == 0:
            disk.received = []
        if len(disk.received) == chunk.number:
            disk.received.append(chunk.data)
        self.core.chunk_written(chunk.sender, chunk.index, chunk.number)
        if self.core.installing == chunk.index and len(disk.received) == chunk.count:
            self._install(chunk)

    def _install(self, chunk: SnapshotChunk) -> None:
        disk = self.disk
        chain = disk.received[0].split(b" ", 1)[1]
        snapshot = self._around.snapshot_of(chunk.index, chain)
        if disk.received != [snapshot.chunk(number) for number in range(chunk.count)]:
            self.core.install_failed(chunk.index)
            return
        disk.install(snapshot)
        self.applied = snapshot.index
        self.core.installed(snapshot.index, snapshot.term, snapshot.membership)
        self._around.restored(self, snapshot)

    # -- what it does with its log

    def _apply(self) -> None:
        core = self.core
        if core.installing:
            return
        while self.applied < core.commit:
            entry = core.entry(self.applied + 1)
            self.applied += 1
            self._around.committed(self, entry)
        self.record()

    def record(self) -> None:
        """Append to the ledger what is applied and durable."""
        core, disk = self.core, self.disk
        while disk.recorded < min(self.applied, core.stable):
            disk.record(core.entry(disk.recorded + 1))

    def take_snapshot(self, chunk_count: int) -> CoreSnapshot | None:
        """Keep a snapshot of the recorded state; None when there is nothing to it."""
        disk = self.disk
        members = disk.members_recorded
        if not disk.ledger or members is None:
            return None
        disk.snapshot = CoreSnapshot(
            disk.recorded, disk.ledger[-1].term, disk.chain, members, chunk_count
        )
        return disk.snapshot

    def trim(self, keep: int) -> None:
        """Forget what the ledger holds, but for the newest `keep` entries."""
        index = self.disk.recorded - keep
        self.core.trim(index)
        self.disk.recycle(min(index, self.core.first - 1))

    def forget_history(self) -> None:
        """Cut the ledger behind the snapshot, as on a replica that joined by it."""
        disk = self.disk
        if disk.snapshot is not None and disk.snapshot.index >= disk.history_from:
            del disk.ledger[: disk.snapshot.index + 1 - disk.history_from]
            disk.history_from = disk.snapshot.index + 1

    def _serve(self, want: Want | WantChunk) -> None:
        disk = self.disk
        if isinstance(want, Want) and want.index >= disk.history_from:
            at = want.index - disk.history_from
            self.core.supply(want.peer, disk.ledger[at : at + _SERVED_MAX])
            return
        snapshot = disk.snapshot
        if snapshot is None:
            return
        number = 0
        if isinstance(want, WantChunk) and want.snapshot_index == snapshot.index:
            number = want.number
        self.core.supply_snapshot(
            want.peer,
            snapshot.index,
            snapshot.term,
            number,
            snapshot.chunk_count,
            snapshot.chunk(number),
        )

    def _send(self, messages: Sequence[Message]) -> None:
        for message in messages:
            self._around.send(message)
