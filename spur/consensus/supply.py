"""What late members are given, and what of the packs has to be erased or fetched: blocking reads.

Serving runs in the ledger lane, tending the blobs in that of the chores. Damage that is met is no
error here: a segment is noted by the ledger and fetched from peers, a damaged snapshot is passed
over from then on.

Source: LOG-CONTRACT 2.2, 5.4, 5.5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from spur.consensus.blobs import BlobState, BlobStore
from spur.consensus.faults import LedgerDamaged, SnapshotDamaged
from spur.consensus.ledger import Ledger
from spur.consensus.repair import Repair
from spur.consensus.snapshots import Snapshot, SnapshotStore
from spur.events.envelope import Entry

__all__ = ["Chunk", "Supply"]

BREATH_BLOBS = 512
"""Digests looked at between two breaths, about half a millisecond."""

Chunk = tuple[int, int, int, int, bytes]
"""Index and term of the snapshot, number of the chunk, their count, the bytes."""


class _Stores(Protocol):
    @property
    def ledger(self) -> Ledger: ...

    @property
    def blobs(self) -> BlobStore: ...

    @property
    def snapshots(self) -> SnapshotStore: ...


class Supply:
    """Reads what peers lack."""

    def __init__(
        self, stores: _Stores, repair: Repair, breathe: Callable[[], None] | None = None
    ) -> None:
        self._stores = stores
        self._breathe = breathe or _go_on
        self._repair = repair

    def entries(self, first: int, last: int, bytes_max: int) -> list[Entry]:
        """Return committed entries with their blobs, as many as are whole here."""
        try:
            found = self._stores.ledger.read(first, last, bytes_max)
        except LedgerDamaged:
            return []
        # All are looked at, so that everything that is missing is asked for at once.
        complete = [self._repair.with_blobs(entry) for entry in found]
        whole = []
        for entry in complete:
            if entry is None:
                break
            whole.append(entry)
        return whole

    def chunk(self, index: int, number: int) -> Chunk | None:
        """Return a chunk of the snapshot at `index`; None without any snapshot.

        Where that one is gone, or damaged, it is the manifest of the newest one: chunk 0.
        """
        snapshots = list(self._stores.snapshots.newest_first())
        for snapshot in snapshots:
            if snapshot.index == index and 0 < number <= snapshot.chunk_count:
                try:
                    return _chunk(snapshot, number, snapshot.chunk(number))
                except SnapshotDamaged:
                    snapshots.remove(snapshot)
                    break
        return _chunk(snapshots[0], 0, snapshots[0].manifest) if snapshots else None

    def tend_blobs(self, held: Sequence[bytes], index: int) -> tuple[list[bytes], int]:
        """Erase those of `held` that the newest snapshot does not refer to.

        They lay here before the snapshot at `index`: an older one, that takes its place because it
        is damaged, does not know of all of them, and none is erased.

        Returns the digests that it refers to and that are missing here; and up to which index no
        snapshot and no blob holds what was erased, 0 when that is not known.
        """
        # It may take the place of one at the same index that was found damaged.
        self._stores.snapshots.damaged.pop(index, None)
        snapshot = self._stores.snapshots.latest()
        if snapshot is None:
            return [], 0
        blobs, unreferenced, lacking = self._stores.blobs, dict.fromkeys(held), []
        try:
            for count, digest in enumerate(snapshot.live_blobs()):
                unreferenced.pop(digest, None)
                if blobs.state(digest) is BlobState.MISSING:
                    lacking.append(digest)
                if count % BREATH_BLOBS == 0:
                    self._breathe()
        except SnapshotDamaged:
            return [], 0
        if snapshot.index < index:
            return lacking, 0
        blobs.erase(unreferenced)
        return lacking, self._stores.snapshots.oldest_index()


def _go_on() -> None:
    """Do not pause: nobody else needs the interpreter."""


def _chunk(snapshot: Snapshot, number: int, data: bytes) -> Chunk:
    return snapshot.index, snapshot.term, number, snapshot.chunk_count + 1, data
