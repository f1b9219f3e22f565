"""What a replica is made of: its stores, clocks, limits, and the lanes of its blocking work."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from spur.consensus.blobs import BlobStore
from spur.consensus.genesis import Genesis
from spur.consensus.ledger import Ledger
from spur.consensus.membership import Membership
from spur.consensus.snapshots import SnapshotStore
from spur.consensus.wal import Wal

__all__ = ["Clocks", "Job", "Lane", "ReplicaSettings", "Storage"]


@dataclass(frozen=True, kw_only=True)
class ReplicaSettings:
    """Limits of a replica; none of them may change what is decided."""

    commit_slice: int = 1000
    """Entries given to the machine in one turn; the loop breathes between slices."""
    memory_entries: int = 20_000
    """Committed entries kept in memory for followers that are a little late."""
    memory_bytes: int = 16 << 20
    """Bytes of bodies and blobs of such entries."""
    serve_bytes: int = 192 * 1024
    """Bytes read from the ledger at once for a late member."""
    sync_ledger_every: int = 4096
    """Entries after which the ledger is synced, so that the WAL may be recycled."""
    snapshot_lag: int = 200_000
    """A member that lacks more entries than this gets a snapshot, when there is one."""


@dataclass
class Storage:
    """The four stores of one replica's directory, and what the cluster is."""

    genesis: Genesis
    wal: Wal
    ledger: Ledger
    blobs: BlobStore
    snapshots: SnapshotStore
    seeds: Membership | None = None
    """Of a member that was added later: the membership at that time."""
    notes: list[str] = field(default_factory=list)
    """Sentences on what was found damaged and what was mended; the shell takes and says them."""


@dataclass(frozen=True)
class Job:
    """Blocking work: `run` may block, `finish` takes its result on the loop."""

    lane: str
    run: Callable[[], Any]
    finish: Callable[[Any], None]


class Clocks(Protocol):
    """The two clocks of this machine."""

    def wall_ns(self) -> int:
        """Return the wall clock, UTC."""
        ...

    def mono_ns(self) -> int:
        """Return a clock that is never set and counts while the machine sleeps."""
        ...


@dataclass
class Lane:
    """A queue of jobs of which one at a time is under way."""

    busy: bool = False
    queue: deque[Job] = field(default_factory=deque)
