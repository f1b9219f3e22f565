"""Writing snapshots, apart from the front: a follower of the ledger with its own state.

It reads committed entries from the ledger's files and nothing else, so it needs no word with the
front but "write one now" and "this index is durable". The front's loop never waits for it.

    python -m spur.controller.snapshotter DIRECTORY

reads a line for each snapshot wanted and answers with a line: the index, or 0 when there was
nothing new. It ends when its standard input does. Source: LOG-CONTRACT 5.7.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from itertools import islice

from spur.consensus.disk import Disk, OsDisk
from spur.consensus.genesis import Genesis, load_genesis
from spur.consensus.ledger import Ledger
from spur.consensus.snapshots import LIVE_BLOBS, Manifest, SnapshotStore
from spur.controller.follower import load_state
from spur.projections.apply import follow
from spur.projections.attachments import live_blobs
from spur.projections.counters import REQUEST_FLOOR, counter
from spur.projections.digest import state_digest
from spur.projections.snapshot import dump

__all__ = ["ROWS_PER_CHUNK", "Snapshotter", "main"]

ROWS_PER_CHUNK = 500
"""Rows of a chunk: about a hundred kilobytes, less than what may be unsent to a peer."""

BLOBS_PER_CHUNK = 8_192
"""Digests of a chunk: 256 KiB."""

READ_BYTES = 4 << 20
"""Bytes of the ledger read at once."""

NICENESS = 10


class Snapshotter:
    """Holds a state of its own, moves it along the ledger, and writes it down."""

    def __init__(self, disk: Disk, genesis: Genesis) -> None:
        self._disk = disk
        self._genesis = genesis
        self._store = SnapshotStore.open(disk, cluster_id=genesis.cluster_id)
        self._state = load_state(disk, genesis)

    def write(self) -> int:
        """Follow the ledger to its end and write a snapshot there; return its index, 0 for none.

        Raises: LedgerDamaged, DiskFault; nothing that is there already was changed.
        """
        before = self._store.latest()
        self._follow()
        state = self._state
        if before is not None and before.index >= state.index:
            return 0
        self._store.write(self._manifest(), self._chunks())
        return state.index

    def _follow(self) -> None:
        state = self._state
        ledger = Ledger.view(self._disk, self._genesis)
        try:
            while state.index < ledger.last:
                follow(state, ledger.read(state.index + 1, ledger.last, READ_BYTES))
        finally:
            ledger.close()

    def _manifest(self) -> Manifest:
        state = self._state
        return Manifest(
            cluster_id=self._genesis.cluster_id,
            incarnation=state.cluster[1].incarnation,
            era=self._genesis.era,
            index=state.index,
            term=state.term,
            chain=state.chain,
            membership=state.membership[1].body,
            cluster_version=state.cluster[1].version,
            request_floor=counter(state, REQUEST_FLOOR),
            state_digest=state_digest(state),
        )

    def _chunks(self) -> Iterator[tuple[str, bytes]]:
        yield from dump(self._state, ROWS_PER_CHUNK)
        digests = live_blobs(self._state)
        while chunk := b"".join(islice(digests, BLOBS_PER_CHUNK)):
            yield LIVE_BLOBS, chunk


def main(arguments: Sequence[str]) -> int:
    """Serve the front over standard input and output until it closes them."""
    os.nice(NICENESS)
    disk = OsDisk(arguments[0])
    snapshotter = Snapshotter(disk, load_genesis(disk))
    for _ in sys.stdin:
        sys.stdout.write(f"{snapshotter.write()}\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
