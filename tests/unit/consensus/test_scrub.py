"""What was written long ago is read again, so that damage is found before the bytes are needed."""

from __future__ import annotations

from typing import NamedTuple

from spur.consensus.blobs import BlobStore, blob_digest
from spur.consensus.ledger import Ledger
from spur.consensus.scrub import STEP_BYTES, Scrub
from spur.testing.disk import SimDisk
from spur.testing.storage import GENESIS, make_entries

ENTRIES = make_entries(1, 30)
"""Four segments."""

BLOBS = [bytes(16) + b"script %d" % number for number in range(3)]


class Store(NamedTuple):
    """The stores of a replica, and the disk under them."""

    disk: SimDisk
    ledger: Ledger
    blobs: BlobStore


def filled() -> Store:
    """Return stores with four segments, all but the last sealed, and three blobs."""
    disk = SimDisk()
    ledger = Ledger.open(disk, GENESIS, covered_from=1)
    ledger.append(ENTRIES)
    ledger.sync()
    while ledger.seal():
        pass
    blobs = BlobStore.open(disk)
    blobs.put(BLOBS)
    blobs.sync()
    return Store(disk, ledger, blobs)


def flip(disk: SimDisk, name: str, offset: int) -> None:
    """Flip one bit of a file."""
    file = disk.open(name)
    byte = file.read_at(offset, 1)[0]
    file.write_at(offset, bytes([byte ^ 1]))
    file.close()


def test_whole_stores_are_read_again_and_again_in_silence() -> None:
    """Nothing is wrong, for years."""
    store = filled()
    told: list[str] = []
    scrub = Scrub(store, told.append)
    assert [scrub.step() for _ in range(20)] == [[]] * 20
    assert (told, scrub.rounds) == ([], 4)


def test_damaged_segment_is_told_once_and_known_to_the_ledger() -> None:
    """A bit of a sealed segment flipped while the controller runs; nobody reads that segment."""
    store = filled()
    name = "ledger/000000000002.sealed"
    flip(store.disk, name, store.disk.open(name).size() - 1)
    told: list[str] = []
    scrub = Scrub(store, told.append)
    scrub.step()
    before = store.ledger.damages
    for _ in range(20):
        scrub.step()
    [damage] = store.ledger.damages
    assert before == ()
    assert (damage.segment, told) == (2, [str(damage)])


def test_damage_to_the_segment_that_still_grows_is_found() -> None:
    """The newest segment is not sealed; its old records are read again as well."""
    store = filled()
    flip(store.disk, "ledger/000000000004.raw", store.ledger.segment_bytes(4).index(b"entry 26"))
    scrub = Scrub(store, lambda sentence: None)
    for _ in range(4):
        scrub.step()
    [damage] = store.ledger.damages
    assert (damage.segment, damage.index) == (4, 26)


def test_damaged_blob_is_told_and_returned() -> None:
    """A bit of a script flipped: its job waits, and the script can still come from a peer."""
    store = filled()
    name = "blobs/000001.pack"
    file = store.disk.open(name)
    flip(store.disk, name, file.read_at(0, file.size()).index(b"script 1"))
    told: list[str] = []
    scrub = Scrub(store, told.append)
    found = [digest for _ in range(20) for digest in scrub.step()]
    digest = blob_digest(BLOBS[1])
    assert found == [digest]
    assert told == [
        f"the attachment {digest.hex()[:16]} is damaged; it is to be repaired from a peer"
    ]
    store.blobs.put([BLOBS[1]])
    assert [scrub.step() for _ in range(20)] == [[]] * 20


def test_step_reads_no_more_than_its_share() -> None:
    """Gigabytes of scripts lie here: each look at them is short."""
    disk = SimDisk()
    store = Store(disk, Ledger.open(disk, GENESIS, covered_from=1), BlobStore.open(disk))
    large = [bytes([65 + number]) * (STEP_BYTES // 2 + 1) for number in range(6)]
    store.blobs.put(large)
    file = disk.open("blobs/000001.pack")
    flip(disk, "blobs/000001.pack", file.read_at(0, file.size()).index(large[4]))
    scrub = Scrub(store, lambda sentence: None)
    assert [len(scrub.step()) for _ in range(6)] == [0, 0, 1, 0, 0, 0]
