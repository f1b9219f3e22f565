"""What is erased once a snapshot stands: only what no job can need any more."""

from dataclasses import dataclass

from spur.consensus.blobs import BlobState, BlobStore, blob_digest
from spur.consensus.ledger import Ledger
from spur.consensus.repair import Repair
from spur.consensus.snapshots import LIVE_BLOBS, Manifest, SnapshotStore
from spur.consensus.supply import Supply
from spur.testing.disk import SimDisk
from spur.testing.storage import GENESIS

OLD, NEW, PURGED = (bytes(16) + text for text in (b"old", b"new", b"purged"))


@dataclass
class Stores:
    ledger: Ledger
    blobs: BlobStore
    snapshots: SnapshotStore


def make_stores(disk: SimDisk) -> Stores:
    blobs = BlobStore.open(disk)
    blobs.put([OLD, NEW, PURGED])
    return Stores(
        Ledger.open(disk, GENESIS, covered_from=1),
        blobs,
        SnapshotStore.open(disk, cluster_id=GENESIS.cluster_id),
    )


def write(stores: Stores, index: int, *live: bytes) -> None:
    manifest = Manifest(
        cluster_id=GENESIS.cluster_id,
        incarnation=0,
        era=0,
        index=index,
        term=1,
        chain=bytes(32),
        membership=b"",
        cluster_version=1,
        request_floor=0,
        state_digest=bytes(32),
    )
    stores.snapshots.write(manifest, [(LIVE_BLOBS, b"".join(map(blob_digest, live)))])


def tend(stores: Stores, index: int) -> None:
    Supply(stores, Repair(1, stores)).tend_blobs(stores.blobs.held(), index)


def test_blob_of_a_purged_job_is_erased() -> None:
    """The newest snapshot refers to two of three blobs that lay there before it."""
    stores = make_stores(SimDisk())
    write(stores, 20, OLD, NEW)
    tend(stores, 20)
    assert stores.blobs.state(blob_digest(PURGED)) is BlobState.GONE
    assert stores.blobs.get(blob_digest(NEW)) == NEW


def test_long_work_breathes() -> None:
    """Thousands of blobs are looked at beside a loop that must answer meanwhile."""
    stores = make_stores(SimDisk())
    write(stores, 20, *(bytes(16) + b"%d" % number for number in range(2000)))
    breaths: list[None] = []
    supply = Supply(stores, Repair(1, stores), lambda: breaths.append(None))
    assert len(supply.tend_blobs([], 20)[0]) == 2000
    assert len(breaths) == 4


def test_older_snapshot_erases_nothing_that_it_cannot_know() -> None:
    """The newest snapshot is damaged at once, and an older one takes its place."""
    disk = SimDisk()
    stores = make_stores(disk)
    write(stores, 10, OLD)
    write(stores, 20, OLD, NEW)
    disk.flip(f"snapshots/{20:020d}/manifest", 60)
    tend(stores, 20)
    assert stores.blobs.get(blob_digest(NEW)) == NEW
    assert stores.blobs.get(blob_digest(PURGED)) == PURGED
