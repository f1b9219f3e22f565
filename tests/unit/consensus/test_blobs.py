"""Blobs in ordinary life: put, got, erased for good, and found again at a start."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from spur.consensus.blobs import BlobState, BlobStore, blob_digest
from spur.consensus.disk import Disk
from spur.consensus.faults import DiskFault
from spur.testing.disk import Operation, SimDisk
from spur.values.errors import InvariantBroken

PACK = 8192


def _blob(number: int, size: int = 600) -> bytes:
    """Return sixteen bytes that differ, then a script."""
    return number.to_bytes(16, "big") + b"#SBATCH %d\n" % number * (size // 12)


BLOBS = [_blob(number, 100 + 97 * number % 1500) for number in range(40)]
DIGESTS = [blob_digest(blob) for blob in BLOBS]


def _open(disk: Disk) -> BlobStore:
    return BlobStore.open(disk, pack_bytes=PACK, salt=bytes)


def _filled() -> tuple[SimDisk, BlobStore]:
    disk = SimDisk()
    store = _open(disk)
    store.put(BLOBS)
    store.sync()
    return disk, store


def _stored(disk: SimDisk) -> bytes:
    """Return everything that a thief of the disk could read."""
    return b"".join(disk.open(f"blobs/{name}").read_at(0, 1 << 20) for name in disk.names("blobs"))


def test_blobs_come_back_under_their_digest() -> None:
    """Across several packs, before and after a start."""
    disk, store = _filled()
    for _ in range(2):
        assert [store.get(digest) for digest in DIGESTS] == BLOBS
        assert store.held() == DIGESTS
        assert store.state(DIGESTS[3]) is BlobState.HELD
        assert store.verify() == []
        store.close()
        store = _open(disk)
    assert len(disk.names("blobs")) > 2
    assert store.get(bytes(32)) is None
    assert store.state(bytes(32)) is BlobState.MISSING


def test_putting_again_changes_nothing() -> None:
    """A repeated append brings blobs that are here already."""
    disk, store = _filled()
    before = disk.operations
    store.put(BLOBS[5:20])
    assert disk.operations == before


def test_batch_is_one_write() -> None:
    """The blobs of one group of entries cost one write, and one sync when it is asked for."""
    disk = SimDisk()
    store = BlobStore.open(disk)
    store.put(BLOBS[:1])
    kinds: list[str] = []
    disk.hooks.append(lambda operation: kinds.append(operation.kind))
    store.put(BLOBS[1:30])
    assert kinds == ["write"]
    store.sync()
    store.sync()
    assert kinds == ["write", "sync"]


def test_large_blob_fits_though_larger_than_a_pack() -> None:
    """A batch script of 4 MiB in small packs."""
    disk, store = _filled()
    large = _blob(99, 4 << 20)
    store.put([large, _blob(100)])
    assert store.get(blob_digest(large)) == large
    store.close()
    store = _open(disk)
    assert store.get(blob_digest(large)) == large
    assert store.get(blob_digest(_blob(100))) == _blob(100)


def test_erased_blob_is_gone_from_the_disk() -> None:
    """Neither reading nor a copy of the files gives it back, and nobody is asked for it."""
    disk, store = _filled()
    store.erase(DIGESTS[7:9])
    for _ in range(2):
        assert [store.state(digest) for digest in DIGESTS[7:9]] == [BlobState.GONE] * 2
        assert store.get(DIGESTS[7]) is None
        assert store.held() == DIGESTS[:7] + DIGESTS[9:]
        assert b"#SBATCH 7\n" not in _stored(disk)
        assert b"#SBATCH 8\n" not in _stored(disk)
        assert b"#SBATCH 9\n" in _stored(disk)
        store.close()
        store = _open(disk)


def test_erased_blob_is_not_taken_again() -> None:
    """A late append, or a peer's answer, brings a blob that was erased meanwhile."""
    disk, store = _filled()
    never_here = _blob(77)
    store.erase([DIGESTS[7], blob_digest(never_here)])
    store.put([BLOBS[7], never_here])
    assert store.state(DIGESTS[7]) is BlobState.GONE
    assert store.state(blob_digest(never_here)) is BlobState.GONE
    store.close()
    store = _open(disk)
    store.put([BLOBS[7], never_here])
    assert store.get(DIGESTS[7]) is None
    assert b"#SBATCH 7" not in _stored(disk)


def test_marks_are_durable_before_a_blob_is_overwritten() -> None:
    """Otherwise a crash could leave half a blob that counts as damaged and is fetched again."""
    disk, store = _filled()
    kinds: list[str] = []
    disk.hooks.append(lambda operation: kinds.append(operation.kind))
    store.erase(DIGESTS[:1])
    assert kinds[: kinds.index("punch")] == ["write", "sync", "zero", "sync"]


def test_pack_with_nothing_held_shrinks_to_its_marks() -> None:
    """Years of purged jobs do not fill the disk."""
    disk, store = _filled()
    before = disk.used_bytes()
    store.erase(DIGESTS[:30])
    assert disk.used_bytes() < before // 2
    store.close()
    store = _open(disk)
    assert {store.state(digest) for digest in DIGESTS[:30]} == {BlobState.GONE}
    assert [store.get(digest) for digest in DIGESTS[30:]] == BLOBS[30:]


def test_view_changes_nothing() -> None:
    """`spur log verify` beside a running replica."""
    disk, store = _filled()
    store.erase(DIGESTS[:1])
    before = disk.operations
    view = BlobStore.view(disk)
    assert view.state(DIGESTS[0]) is BlobState.GONE
    assert view.verify() == []
    assert view.held() == DIGESTS[1:]
    view.close()
    assert BlobStore.view(SimDisk()).held() == []
    assert disk.operations == before


def test_damaged_blob_counts_as_missing_until_it_is_put_again() -> None:
    """One bit changes: the blob is not handed out; a peer's copy takes its place."""
    disk, store = _filled()
    offset = _stored_at(disk, b"#SBATCH 3\n")
    disk.flip("blobs/000001.pack", offset)
    assert store.state(DIGESTS[3]) is BlobState.HELD
    assert store.get(DIGESTS[3]) is None
    assert store.state(DIGESTS[3]) is BlobState.MISSING
    assert store.verify() == [DIGESTS[3]]
    store.put([BLOBS[3]])
    store.sync()
    for _ in range(2):
        assert store.get(DIGESTS[3]) == BLOBS[3]
        assert store.verify() == []
        store.close()
        store = _open(disk)
    store.erase([DIGESTS[3]])
    assert b"#SBATCH 3\n" not in _stored(disk)


def _stored_at(disk: SimDisk, what: bytes) -> int:
    return disk.open("blobs/000001.pack").read_at(0, 1 << 20).index(what)


def test_damaged_head_hides_one_blob_alone() -> None:
    """What lies behind a head that can't be read is found all the same."""
    disk, store = _filled()
    offset = _stored_at(disk, b"#SBATCH 3\n") - 16 - 64
    disk.flip("blobs/000001.pack", offset + 20)
    store.close()
    store = _open(disk)
    assert store.state(DIGESTS[3]) is BlobState.MISSING
    assert store.held() == DIGESTS[:3] + DIGESTS[4:]
    assert store.verify() == []


def test_script_that_looks_like_a_record_is_no_record() -> None:
    """A user who knows the format puts a whole pack into a script, and the head before it breaks.

    Without the pack's random bytes the mark inside would erase somebody else's script.
    """
    other = SimDisk()
    forger = BlobStore.open(other, salt=lambda size: b"\x01" * size)
    forger.erase([DIGESTS[0]])
    pack = other.open("blobs/000001.pack").read_at(0, 1 << 20)
    forged = bytes(16) + b"\0" * 48 + pack[1024:]
    disk = SimDisk()
    store = BlobStore.open(disk, salt=lambda size: b"\x02" * size)
    store.put([BLOBS[0], forged, BLOBS[1]])
    store.sync()
    store.put([BLOBS[2]])
    store.close()
    at = _stored_at(disk, forged)
    assert disk.open("blobs/000001.pack").read_at(at + 64, 4) == b"GONE"
    disk.flip("blobs/000001.pack", at - 64)
    store = BlobStore.open(disk)
    assert store.get(DIGESTS[0]) == BLOBS[0]
    assert store.held() == [DIGESTS[0], DIGESTS[1], DIGESTS[2]]


def test_damaged_start_of_a_pack_has_a_second_copy() -> None:
    """A pack is only unreadable when both of its first sectors are damaged."""
    disk, store = _filled()
    disk.flip("blobs/000002.pack", 20)
    store.close()
    store = _open(disk)
    assert store.unreadable == []
    assert store.verify() == []
    disk.flip("blobs/000002.pack", 512 + 20)
    store.close()
    store = _open(disk)
    assert store.unreadable == ["blobs/000002.pack"]
    missing = [blob for blob in BLOBS if store.state(blob_digest(blob)) is BlobState.MISSING]
    assert 0 < len(missing) < len(BLOBS)
    store.put(missing)
    assert [store.get(digest) for digest in DIGESTS] == BLOBS


@pytest.mark.parametrize("kind", ["write", "sync"])
def test_failing_disk_poisons_the_store(kind: str) -> None:
    """After a failed write or sync nothing more is written by this process."""
    disk, store = _filled()
    disk.fail_after(1, errno.EIO, kind)
    with pytest.raises(DiskFault):
        _put_and_sync(store)
    later: list[Callable[[], None]] = [
        lambda: store.put([_blob(201)]),
        store.sync,
        lambda: store.erase(DIGESTS[:1]),
    ]
    for work in later:
        with pytest.raises(InvariantBroken, match="failed before"):
            work()


def _put_and_sync(store: BlobStore) -> None:
    store.put([_blob(200)])
    store.sync()


def test_blob_that_cannot_be_read_counts_as_missing() -> None:
    """The disk returns an error for a part of a pack."""
    disk, store = _filled()

    def refuse(operation: Operation) -> None:
        if operation.kind == "read":
            raise DiskFault("read", operation.name, errno.EIO)

    disk.hooks.append(refuse)
    assert store.get(DIGESTS[3]) is None
    disk.hooks.clear()
    assert store.state(DIGESTS[3]) is BlobState.MISSING
    assert store.damaged == {DIGESTS[3]}
    store.put([BLOBS[3]])
    assert store.get(DIGESTS[3]) == BLOBS[3]


def test_stray_files_are_left_alone() -> None:
    """Somebody left notes and copies in the directory."""
    disk, store = _filled()
    strays = {"notes.txt", "000001.pack.bak", "copy.pack"}
    for name in strays:
        disk.open(f"blobs/{name}", create=True).close()
    store.close()
    store = _open(disk)
    assert store.held() == DIGESTS
    assert strays < set(disk.names("blobs"))
