"""Snapshots under a failing machine: what counts is whole, and what counted still does."""

from __future__ import annotations

import errno
from itertools import count
from random import Random

import pytest

from spur.consensus.faults import DiskFault, SnapshotDamaged
from spur.consensus.snapshots import Manifest, SnapshotStore
from spur.testing.disk import PowerLoss, SimDisk

CLUSTER = b"cluster-of-tests"


def _chunks(index: int) -> list[tuple[str, bytes]]:
    return [("jobs", b"%d" % index * (300 * number)) for number in range(4)]


def _manifest(index: int) -> Manifest:
    return Manifest(
        cluster_id=CLUSTER,
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


class _Life:
    """A replica's snapshots, written and received, and which of them counted."""

    def __init__(self, disk: SimDisk) -> None:
        self.disk = disk
        self.counted = 0
        self.is_installed = False

    def live(self) -> None:
        """Write three snapshots, receive one, write once more."""
        store = SnapshotStore.open(self.disk, cluster_id=CLUSTER)
        for index in (100, 200, 300):
            store.write(_manifest(index), _chunks(index))
            self.counted = index
        self.receive(store, 1000)
        store.write(_manifest(1100), _chunks(1100))
        self.counted = 1100

    def receive(self, store: SnapshotStore, index: int) -> None:
        """Take a snapshot as a peer sends it."""
        source = SnapshotStore.open(SimDisk(), cluster_id=CLUSTER)
        sent = source.write(_manifest(index), _chunks(index))
        assert store.begin_receive(sent.manifest)
        for number in range(1, sent.chunk_count + 1):
            assert store.write_received(number, sent.chunk(number))
        store.finish_receive()
        self.counted = index
        self.is_installed = True
        store.installed()

    def check(self) -> None:
        """Start again: the newest snapshot is whole, and so is everything that has a name."""
        store = SnapshotStore.open(self.disk, cluster_id=CLUSTER)
        found = list(store.newest_first())
        assert store.damaged == {}
        for snapshot in found:
            assert list(snapshot.chunks()) == _chunks(snapshot.index)
        newest = found[0].index if found else 0
        assert newest >= self.counted
        # As soon as the received one has its name, a start knows that the log must follow.
        if newest == 1000 and not self.is_installed:
            assert store.installing is not None
        if store.installing is not None:
            assert store.installing.index == newest == 1000
        store.installed()
        store.write(_manifest(2000), _chunks(2000))
        assert [each.index for each in store.newest_first()] == [2000, newest][: 1 + bool(newest)]


@pytest.mark.parametrize("seed", range(5))
def test_power_failure_at_every_step_leaves_whole_snapshots(seed: int) -> None:
    """The power fails at the n-th operation of writing, receiving or removing."""
    for n in count(1):
        life = _Life(SimDisk())
        life.disk.crash_after(n)
        try:
            life.live()
        except PowerLoss:
            life.disk.crash(Random(seed * 10_000 + n))
        else:
            break
        life.check()
    assert n > 60


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_failing_operation_at_every_step_leaves_whole_snapshots(code: int) -> None:
    """The n-th operation fails; the process ends, starts again, and then the power fails."""
    for n in count(1):
        life = _Life(SimDisk())
        life.disk.fail_after(n, code)
        try:
            life.live()
        except DiskFault:
            life.disk.end_process()
        else:
            break
        SnapshotStore.open(life.disk, cluster_id=CLUSTER).latest()
        life.disk.crash(Random(n))
        life.check()
    assert n > 60


def test_flipped_bit_anywhere_is_found() -> None:
    """No wrong chunk is ever handed out, and the older snapshot is there instead."""
    disk = SimDisk()
    store = SnapshotStore.open(disk, cluster_id=CLUSTER)
    for index in (100, 200):
        store.write(_manifest(index), _chunks(index))
    images = {
        name: disk.open(f"snapshots/{200:020d}/{name}").read_at(0, 1 << 20)
        for name in ("chunks", "manifest")
    }
    for name, image in images.items():
        for offset in range(0, len(image), 7):
            disk.flip(f"snapshots/{200:020d}/{name}", offset, offset % 8)
            store = SnapshotStore.open(disk, cluster_id=CLUSTER)
            assert _first_whole(store) == 100
            assert list(store.damaged) == [200]
            disk.flip(f"snapshots/{200:020d}/{name}", offset, offset % 8)
    assert _first_whole(SnapshotStore.open(disk, cluster_id=CLUSTER)) == 200


def _first_whole(store: SnapshotStore) -> int:
    for snapshot in store.newest_first():
        try:
            found = list(snapshot.chunks())
        except SnapshotDamaged:
            continue
        assert found == _chunks(snapshot.index)
        return snapshot.index
    return 0
