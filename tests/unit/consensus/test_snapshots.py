"""Snapshots in ordinary life: written, read, received from a peer, and kept two at a time."""

from __future__ import annotations

import msgspec
import pytest

from spur.consensus.disk import Disk
from spur.consensus.faults import ForeignDirectory, NewerFormat, SnapshotDamaged
from spur.consensus.snapshots import LIVE_BLOBS, SYNC_BYTES, Manifest, SnapshotStore
from spur.testing.disk import SimDisk

CLUSTER = b"cluster-of-tests"

CHUNKS = [("header", b"where it stands"), ("jobs", b"job" * 500), ("jobs", b""), ("nodes", b"n")]


def _manifest(index: int, **other: object) -> Manifest:
    meta = Manifest(
        cluster_id=CLUSTER,
        incarnation=0,
        era=0,
        index=index,
        term=3,
        chain=bytes(32),
        membership=b"members",
        cluster_version=1,
        request_floor=4,
        state_digest=bytes(32),
    )
    return msgspec.structs.replace(meta, **other)


def _open(disk: Disk) -> SnapshotStore:
    return SnapshotStore.open(disk, cluster_id=CLUSTER)


def _with(*indexes: int) -> SimDisk:
    disk = SimDisk()
    for index in indexes:
        _open(disk).write(_manifest(index), CHUNKS)
    return disk


def _indexes(disk: Disk) -> list[int]:
    return [snapshot.index for snapshot in _open(disk).newest_first()]


def test_written_snapshot_comes_back() -> None:
    """Manifest and chunks are what was written, in their order."""
    disk = _with(100)
    snapshot = _open(disk).latest()
    assert snapshot is not None
    assert (snapshot.index, snapshot.term, snapshot.chain) == (100, 3, bytes(32))
    assert snapshot.membership == b"members"
    assert list(snapshot.chunks()) == CHUNKS
    assert [snapshot.chunk(number) for number in range(1, 5)] == [data for _, data in CHUNKS]
    snapshot.verify()


def test_directory_without_snapshots_has_none() -> None:
    """A new member; nothing is written by asking."""
    disk = SimDisk()
    assert _open(disk).latest() is None
    assert _open(disk).installing is None
    assert disk.operations == 0


def test_live_blobs_are_no_part_of_the_state() -> None:
    """The digests of live blobs travel with the snapshot and are told apart from its tables."""
    digests = [bytes([number]) * 32 for number in range(5)]
    store = _open(SimDisk())
    snapshot = store.write(
        _manifest(9),
        [*CHUNKS, (LIVE_BLOBS, b"".join(digests[:3])), (LIVE_BLOBS, b"".join(digests[3:]))],
    )
    assert list(snapshot.chunks()) == CHUNKS
    assert list(snapshot.live_blobs()) == digests


def test_two_snapshots_are_kept() -> None:
    """The newest two; written once more, an index takes the place of itself."""
    disk = _with(100, 200, 300)
    assert _indexes(disk) == [300, 200]
    _open(disk).write(_manifest(300, term=4), CHUNKS[:1])
    assert _indexes(disk) == [300, 200]
    snapshot = _open(disk).latest()
    assert snapshot is not None
    assert (snapshot.term, snapshot.chunk_count) == (4, 1)


def test_large_snapshot_is_synced_in_between() -> None:
    """The log's own sync never waits behind a hundred megabytes of snapshot."""
    disk = SimDisk()
    unsynced = [0]
    most = [0]

    def watch(operation: object) -> None:
        kind, size = getattr(operation, "kind", ""), getattr(operation, "size", 0)
        unsynced[0] = 0 if kind == "sync" else unsynced[0] + (size if kind == "write" else 0)
        most[0] = max(most[0], unsynced[0])

    disk.hooks.append(watch)
    _open(disk).write(_manifest(1), [("jobs", bytes(1 << 20))] * 10)
    assert most[0] == SYNC_BYTES


def test_damaged_manifest_falls_back_to_the_older_one() -> None:
    """One bit of the newest manifest: it is passed over, and said."""
    disk = _with(100, 200)
    disk.flip("snapshots/00000000000000000200/manifest", 60)
    store = _open(disk)
    latest = store.latest()
    assert latest is not None
    assert latest.index == 100
    assert str(store.damaged[200]) == (
        "the snapshot at 200 is damaged in its manifest: its digest does not match"
    )


def test_damaged_chunk_falls_back_to_the_older_one() -> None:
    """One bit of a chunk is found when it is read; from then on the older one is the latest."""
    disk = _with(100, 200)
    disk.flip("snapshots/00000000000000000200/chunks", 700)
    store = _open(disk)
    newest = store.latest()
    assert newest is not None
    assert newest.index == 200
    with pytest.raises(SnapshotDamaged, match="at 200 is damaged in its chunk 2: its digest"):
        newest.verify()
    latest = store.latest()
    assert latest is not None
    assert latest.index == 100
    assert list(store.damaged) == [200]
    store.write(_manifest(300), CHUNKS)
    assert _indexes(disk) == [300, 100]


def test_missing_files_are_damage() -> None:
    """Somebody removed the chunks of one and the manifest of the other."""
    disk = _with(100, 200)
    disk.remove("snapshots/00000000000000000200/manifest")
    disk.remove("snapshots/00000000000000000100/chunks")
    store = _open(disk)
    snapshot = store.latest()
    assert snapshot is not None
    with pytest.raises(SnapshotDamaged, match=r"at 100 .*No such file"):
        snapshot.chunk(1)
    assert store.latest() is None
    assert str(store.damaged[200]).endswith("its manifest: it is missing")


def test_renamed_snapshot_is_not_taken_for_another() -> None:
    """Somebody renamed a directory: the manifest knows its index."""
    disk = _with(100)
    disk.rename("snapshots/00000000000000000100", "snapshots/00000000000000000900")
    store = _open(disk)
    assert store.latest() is None
    assert "it is of the snapshot at 100" in str(store.damaged[900])


def test_snapshot_of_another_cluster_is_refused() -> None:
    """A directory copied from another cluster would replace the whole state."""
    disk = _with(100)
    with pytest.raises(ForeignDirectory, match="belongs to cluster"):
        SnapshotStore.open(disk, cluster_id=b"another cluster!").latest()


def test_snapshot_of_a_newer_release_is_refused() -> None:
    """An older program must not pass over what it does not know."""
    disk = SimDisk()
    _open(disk).write(_manifest(100, format=2), CHUNKS)
    with pytest.raises(NewerFormat, match="at 100 has format 2"):
        _open(disk).latest()


def test_snapshot_is_received_from_a_peer() -> None:
    """Manifest, then the chunks in order; a repeated or changed one does no harm."""
    source = _open(_with(500)).latest()
    assert source is not None
    disk = _with(100)
    store = _open(disk)
    assert store.begin_receive(source.manifest)
    assert store.write_received(1, source.chunk(1))
    assert not store.write_received(2, source.chunk(2)[:-1])
    assert not store.write_received(3, source.chunk(3))
    assert store.write_received(2, source.chunk(2))
    assert store.write_received(1, source.chunk(1))
    assert not store.write_received(9, b"")
    assert store.write_received(3, source.chunk(3))
    with pytest.raises(SnapshotDamaged, match=r"at 500 .*not all of them were received"):
        store.finish_receive()
    assert _indexes(disk) == [100]


def test_received_snapshot_counts_when_it_is_whole() -> None:
    """Until the log follows, a start finds that it still has to."""
    source = _open(_with(500)).latest()
    assert source is not None
    disk = _with(100)
    store = _open(disk)
    assert store.begin_receive(source.manifest)
    for number in range(1, source.chunk_count + 1):
        assert store.write_received(number, source.chunk(number))
    snapshot = store.finish_receive()
    assert list(snapshot.chunks()) == CHUNKS
    installing = _open(disk).installing
    assert installing is not None
    assert installing.index == 500
    _open(disk).installed()
    assert _open(disk).installing is None
    assert _indexes(disk) == [500, 100]


def test_what_is_no_manifest_is_not_received() -> None:
    """A broken or foreign peer's bytes end nothing but the transfer."""
    foreign = SnapshotStore.open(SimDisk(), cluster_id=b"another cluster!")
    other = foreign.write(_manifest(5, cluster_id=b"another cluster!"), CHUNKS)
    disk = SimDisk()
    store = _open(disk)
    for offered in (b"", b"garbage", msgspec.msgpack.encode([1, 2]), other.manifest):
        assert not store.begin_receive(offered)
    assert not store.write_received(1, b"")
    assert disk.operations == 0


def test_writing_and_receiving_do_not_disturb_each_other() -> None:
    """The snapshot process writes while the front receives, on one directory."""
    source = _open(_with(500)).latest()
    assert source is not None
    disk = SimDisk()
    front, writer = _open(disk), _open(disk)
    assert front.begin_receive(source.manifest)
    assert front.write_received(1, source.chunk(1))
    writer.write(_manifest(300), CHUNKS)
    writer.write(_manifest(310), CHUNKS)
    for number in range(2, source.chunk_count + 1):
        assert front.write_received(number, source.chunk(number))
    front.finish_receive()
    assert _indexes(disk) == [500, 310]
