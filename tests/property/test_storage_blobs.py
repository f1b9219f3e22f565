"""Blobs under a failing machine and with damaged bytes.

What was synced is never lost, what was erased never comes back, and nothing wrong is handed out.
"""

from __future__ import annotations

import errno
from itertools import count
from random import Random

import pytest

from spur.consensus.blobs import BlobState, BlobStore, blob_digest
from spur.consensus.faults import DiskFault
from spur.testing.disk import PowerLoss, SimDisk

PACK = 6000


def _blob(number: int) -> bytes:
    content = b"echo private %d\n" % number
    return number.to_bytes(16, "big") + content * (1 + number * 7 % 60)


BLOBS = [_blob(number) for number in range(60)]
DIGESTS = [blob_digest(blob) for blob in BLOBS]


class _Life:
    """A replica's blobs over several starts, and what was promised of them."""

    def __init__(self, disk: SimDisk) -> None:
        self.disk = disk
        self.put: set[int] = set()
        self.synced: set[int] = set()
        self.erasing: set[int] = set()
        self.erased: set[int] = set()

    def open(self) -> BlobStore:
        return BlobStore.open(self.disk, pack_bytes=PACK, salt=bytes)

    def live(self, rng: Random) -> None:
        """Put, sync, erase and start again, until all blobs were put."""
        store = self.open()
        while len(self.put) < len(BLOBS):
            begin = len(self.put)
            end = min(len(BLOBS), begin + rng.randrange(1, 8))
            self.put.update(range(begin, end))
            store.put(BLOBS[begin:end])
            chance = rng.random()
            if chance < 0.5:
                store.sync()
                self.synced = set(self.put)
            if chance < 0.3:
                self.erasing = set(rng.sample(sorted(self.put), min(6, len(self.put))))
                store.erase(DIGESTS[number] for number in sorted(self.erasing))
                self.erased |= self.erasing
                self.erasing = set()
            if chance > 0.9:
                store.close()
                store = self.open()
        store.close()

    def check(self) -> None:
        """Start again and compare with what was promised; then put everything once more."""
        store = self.open()
        self._check_store(store)
        store.put(BLOBS[number] for number in sorted(self.put))
        store.sync()
        for number in self.put - self.erased - self.erasing:
            assert store.get(DIGESTS[number]) == BLOBS[number]
        assert store.verify() == []
        store.erase(DIGESTS)
        store.close()
        assert b"private" not in _stored(self.disk)

    def _check_store(self, store: BlobStore) -> None:
        assert store.unreadable == []
        for number, (digest, blob) in enumerate(zip(DIGESTS, BLOBS, strict=True)):
            found = store.get(digest)
            if number in self.erased:
                assert store.state(digest) is BlobState.GONE
            elif number in self.erasing:
                assert found is None or found == blob
                assert found is not None or store.state(digest) is not BlobState.HELD
            elif number in self.synced:
                assert found == blob
            else:
                assert found in (None, blob)
        assert store.verify() == []


def _stored(disk: SimDisk) -> bytes:
    return b"".join(disk.open(f"blobs/{name}").read_at(0, 1 << 20) for name in disk.names("blobs"))


@pytest.mark.parametrize("seed", range(4))
def test_power_failure_at_every_step_keeps_every_promise(seed: int) -> None:
    """The power fails at the n-th operation, and again during the next starts."""
    for n in count(1):
        life = _Life(SimDisk())
        life.disk.crash_after(n)
        fate = Random(seed * 10_000 + n)
        try:
            life.live(Random(seed))
        except PowerLoss:
            life.disk.crash(fate)
        else:
            break
        for _ in range(2):
            life.disk.crash_after(fate.randrange(1, 12))
            try:
                life.open().close()
            except PowerLoss:
                life.disk.crash(fate)
        life.disk.end_process()
        life.check()
    assert n > 60


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_failing_operation_at_every_step_keeps_every_promise(code: int) -> None:
    """The n-th operation fails and the process ends; what its next start shows is durable."""
    for n in count(1):
        life = _Life(SimDisk())
        life.disk.fail_after(n, code)
        try:
            life.live(Random(7))
        except DiskFault:
            life.disk.end_process()
        else:
            break
        store = life.open()
        life.synced |= {n for n, digest in enumerate(DIGESTS) if store.get(digest) is not None}
        life.synced -= life.erasing
        store.close()
        life.disk.crash(Random(n))
        life.check()
    assert n > 60


def test_flipped_bit_anywhere_costs_at_most_what_it_hits() -> None:
    """One bit changes: no wrong blob is handed out, and all are whole again once they are put."""
    life = _Life(SimDisk())
    life.live(Random(2))
    images = {
        name: life.disk.open(f"blobs/{name}").read_at(0, 1 << 20)
        for name in life.disk.names("blobs")
    }
    lost = 0
    for name, image in images.items():
        for offset in range(0, len(image), 41):
            disk = _copy(images)
            disk.flip(f"blobs/{name}", offset, offset % 8)
            store = BlobStore.open(disk, pack_bytes=PACK)
            missing = _missing(store, life)
            assert len(missing) <= 1
            lost += len(missing)
            store.put(BLOBS[number] for number in missing)
            assert _missing(store, life) == []
            assert store.verify() == []
            store.close()
    assert lost > 20


def _missing(store: BlobStore, life: _Life) -> list[int]:
    """Return the blobs that should be here and are not; fail on a wrong one."""
    missing = []
    for number in sorted(life.put - life.erased):
        found = store.get(DIGESTS[number])
        if found is None:
            missing.append(number)
        else:
            assert found == BLOBS[number]
    return missing


def _copy(images: dict[str, bytes]) -> SimDisk:
    disk = SimDisk()
    disk.make_dir("blobs")
    for name, image in images.items():
        file = disk.open(f"blobs/{name}", create=True)
        file.write_at(0, image)
        file.sync()
    disk.sync_dir("")
    disk.sync_dir("blobs")
    return disk
