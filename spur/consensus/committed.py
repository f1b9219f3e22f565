"""Reads of what is committed, for processes that follow the log and for whoever needs a blob.

What is in memory is read at once, the rest in the ledger's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from spur.consensus.blobs import BlobState, BlobStore
from spur.consensus.core import Core
from spur.consensus.faults import LedgerDamaged
from spur.consensus.ledger import Ledger
from spur.consensus.repair import Repair, digests_of
from spur.events.envelope import Entry

__all__ = ["CommittedReads"]

ENTRY_OVERHEAD = 32
"""Bytes that an entry without a body counts for."""


class _Stores(Protocol):
    @property
    def ledger(self) -> Ledger: ...

    @property
    def blobs(self) -> BlobStore: ...


class _Replica(Protocol):
    """What is read from, and how far it is."""

    @property
    def core(self) -> Core: ...

    @property
    def repair(self) -> Repair: ...

    @property
    def storage(self) -> _Stores: ...

    @property
    def delivered(self) -> int: ...

    @property
    def recorded(self) -> int: ...


class CommittedReads:
    """Reads for others than the replica's peers."""

    def __init__(
        self,
        replica: _Replica,
        later: Callable[[str, Callable[[], Any], Callable[[Any], None]], None],
    ) -> None:
        """`later(lane, run, finish)` runs what may block in a lane of the disk."""
        self._replica = replica
        self._later = later

    def entries(self, first: int, bytes_max: int, done: Callable[[Sequence[Entry]], None]) -> None:
        """Read what is committed from `first` on, up to `bytes_max`: one entry at least.

        From memory at once, from the ledger later; blobs may be left out. None when it is not here.
        """
        core, last = self._replica.core, self._replica.delivered
        if core.first <= first:
            found: list[Entry] = []
            size = 0
            while first <= last and (size < bytes_max or not found):
                entry = core.entries(first, first)[0]
                found.append(entry)
                size += len(entry.body) + ENTRY_OVERHEAD
                first += 1
            done(found)
            return

        def read() -> Sequence[Entry]:
            try:
                return self._replica.storage.ledger.read(first, last, bytes_max)
            except LedgerDamaged:
                return ()

        self._later("ledger", read, done)

    def blobs(
        self, digests: Sequence[bytes], done: Callable[[Sequence[bytes | None]], None]
    ) -> None:
        """Read blobs of entries that are committed; None for one that is gone, or missing here.

        What is missing is asked of the peers: ask again after a while.
        """
        blobs = self._replica.storage.blobs

        def read() -> list[bytes | None]:
            return [blobs.get(digest) for digest in digests]

        def want(found: list[bytes | None]) -> None:
            if None in found:
                # What is committed and not in the packs yet is still in memory.
                fresh = self._unrecorded_blobs()
                for place, digest in enumerate(digests):
                    if found[place] is None:
                        found[place] = fresh.get(digest)
                    if found[place] is None and blobs.state(digest) is BlobState.MISSING:
                        self._replica.repair.want_blob(digest)
            done(found)

        self._later("ledger", read, want)

    def _unrecorded_blobs(self) -> dict[bytes, bytes]:
        replica = self._replica
        return {
            digest: blob
            for entry in replica.core.entries(replica.recorded + 1, replica.delivered)
            if entry.blobs
            for digest, blob in zip(digests_of(entry), entry.blobs, strict=True)
            if blob
        }
