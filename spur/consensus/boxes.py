"""What goes into the core and comes out of it, besides messages. Pure values, and the outbox."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

import msgspec

from spur.consensus.hardstate import HardState
from spur.consensus.messages import Message, ReplicaId, SnapshotChunk
from spur.events.envelope import Entry

__all__ = [
    "CoreSettings",
    "Outbox",
    "Ready",
    "Rng",
    "Role",
    "Want",
    "WantChunk",
]


class Rng(Protocol):
    """Where the core's randomness comes from; injected, so that runs can be repeated."""

    def randrange(self, stop: int, /) -> int:
        """Return a number from 0 up to but without `stop`."""
        ...


class Role(IntEnum):
    """What a replica is in its term. A learner is a follower that never campaigns."""

    FOLLOWER = 0
    PRE_CANDIDATE = 1
    CANDIDATE = 2
    LEADER = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class CoreSettings:
    """Timers in ticks, windows and limits of one replica."""

    election_ticks: int = 10
    """A follower campaigns after this many silent ticks, and up to as many more at random."""
    heartbeat_ticks: int = 1
    resend_ticks: int = 5
    """What was not answered for this long is asked again."""
    append_bytes_max: int = 192 * 1024
    """Entries of one append; an entry over it travels alone."""
    inflight_bytes_max: int = 512 * 1024
    """Unanswered appends to one follower; the one that crosses it still goes."""
    inflight_count_max: int = 64
    uncommitted_bytes_max: int = 64 << 20
    """Over this, proposals are refused as busy."""
    entry_bytes_max: int = 16 << 20
    """Body and blobs of one proposal."""


class Ready(msgspec.Struct, frozen=True):
    """What must become durable, and what may be sent once it is."""

    hard: HardState | None
    first: int
    """The entries replace everything in the log from this index on."""
    entries: tuple[Entry, ...]
    commit: int
    after: tuple[Message, ...]

    @property
    def needs_sync(self) -> bool:
        """Something has to become durable before `after` may be sent."""
        return self.hard is not None or bool(self.entries)


class Want(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Entries from `index` on, older than memory, are needed to serve a peer.

    Answer with `supply`, or, where the ledger does not reach back so far, with chunk 0 of a
    snapshot.
    """

    peer: ReplicaId
    index: int


class WantChunk(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A chunk of a snapshot is needed to serve a peer.

    Answer with `supply_snapshot`: this chunk, or chunk 0 of a newer snapshot.
    """

    peer: ReplicaId
    snapshot_index: int
    number: int


class Outbox:
    """Everything that waits to be taken by the shell."""

    __slots__ = ("after", "chunks", "now", "reads", "wants")

    def __init__(self) -> None:
        self.now: list[Message] = []
        """May leave at once: these promise nothing that a crash could take back."""
        self.after: list[Message] = []
        """May leave once everything before them is durable."""
        self.reads: list[tuple[int, int | None]] = []
        self.wants: list[Want | WantChunk] = []
        self.chunks: list[SnapshotChunk] = []
