"""The simulated disk is as nasty as a real one, and under a seed always in the same way."""

from __future__ import annotations

import errno
from collections.abc import Callable
from random import Random

import pytest

from spur.consensus.faults import DiskFault
from spur.testing.disk import SECTOR, Operation, PowerLoss, SimDisk


def _fates(make: Callable[[SimDisk], None], name: str, seeds: int = 200) -> set[bytes | None]:
    """Return what may be in a file after the power failed behind `make`."""
    found: set[bytes | None] = set()
    for seed in range(seeds):
        disk = SimDisk()
        make(disk)
        disk.crash(Random(seed))
        found.add(disk.open(name).read_at(0, 1 << 20) if disk.exists(name) else None)
    return found


def _file(disk: SimDisk, data: bytes) -> None:
    file = disk.open("a", create=True)
    file.write_at(0, data)
    file.sync()
    disk.sync_dir("")


def test_synced_bytes_and_names_stay() -> None:
    """What was synced, file and directory, is there after every crash."""
    assert _fates(lambda disk: _file(disk, b"kept"), "a") == {b"kept"}


def test_name_without_a_synced_directory_may_be_lost() -> None:
    """A file was synced, its directory was not."""

    def make(disk: SimDisk) -> None:
        file = disk.open("a", create=True)
        file.write_at(0, b"kept")
        file.sync()

    assert _fates(make, "a") == {None, b"kept"}


def test_unsynced_write_is_lost_kept_or_torn_at_sectors() -> None:
    """Three sectors are written over three others: each ends up old or new, never in between."""
    old, new = b"o" * SECTOR, b"n" * SECTOR

    def make(disk: SimDisk) -> None:
        _file(disk, old * 3)
        disk.open("a").write_at(0, new * 3)

    fates = _fates(make, "a")
    assert fates == {a + b + c for a in (old, new) for b in (old, new) for c in (old, new)}


def test_two_unsynced_writes_may_arrive_in_either_order() -> None:
    """The later one is there and the earlier one is not: disks do that."""

    def make(disk: SimDisk) -> None:
        _file(disk, b"\0" * 2 * SECTOR)
        file = disk.open("a")
        file.write_at(0, b"1" * SECTOR)
        file.write_at(SECTOR, b"2" * SECTOR)

    assert b"\0" * SECTOR + b"2" * SECTOR in _fates(make, "a")


def test_rename_is_whole_or_not_at_all() -> None:
    """The new name stands for the old file or for the new one, never for a mixture."""

    def make(disk: SimDisk) -> None:
        _file(disk, b"old")
        file = disk.open("b", create=True)
        file.write_at(0, b"new")
        file.sync()
        disk.rename("b", "a")

    assert _fates(make, "a") == {b"old", b"new"}


def test_failed_sync_shows_bytes_that_the_disk_does_not_hold() -> None:
    """As on Linux: a second sync succeeds and writes nothing of what the first one lost."""
    disk = SimDisk()
    _file(disk, b"old")
    file = disk.open("a")
    file.write_at(0, b"new")
    disk.fail_after(1, errno.EIO, "sync")
    with pytest.raises(DiskFault):
        file.sync()
    file.sync()
    assert file.read_at(0, 3) == b"new"
    disk.crash(Random(1))
    assert disk.open("a").read_at(0, 3) == b"old"


def test_process_that_ends_leaves_the_page_cache() -> None:
    """Only the power takes unsynced bytes along; files and lock of the process are void."""
    disk = SimDisk()
    _file(disk, b"old")
    lock = disk.lock()
    file = disk.open("a")
    file.write_at(0, b"new")
    disk.end_process()
    with pytest.raises(PowerLoss):
        file.write_at(0, b"late")
    assert disk.open("a").read_at(0, 3) == b"new"
    second = disk.lock()
    lock.release()
    with pytest.raises(Exception, match="in use"):
        disk.lock()
    second.release()


def test_closed_file_is_refused() -> None:
    """Using a file behind its end is a fault."""
    disk = SimDisk()
    _file(disk, b"old")
    file = disk.open("a")
    file.close()
    with pytest.raises(DiskFault, match="Bad file descriptor"):
        file.read_at(0, 1)


def test_power_fails_at_the_operation_asked_for() -> None:
    """The n-th change does not happen, nor anything after it, until the machine is up again."""
    disk = SimDisk()
    disk.crash_after(4)
    with pytest.raises(PowerLoss):
        _file(disk, b"data")
    with pytest.raises(PowerLoss):
        disk.sync_dir("")
    assert disk.operations == 4
    disk.crash(Random(0))
    disk.sync_dir("")


def test_kinds_of_operations_fail_one_at_a_time() -> None:
    """The second write fails, with the error asked for; what comes later works."""
    disk = SimDisk()
    file = disk.open("a", create=True)
    disk.fail_after(2, errno.ENOSPC, "write", "sync")
    file.write_at(0, b"1")
    with pytest.raises(DiskFault) as caught:
        file.write_at(1, b"2")
    assert caught.value.is_full
    file.write_at(1, b"2")
    assert file.read_at(0, 9) == b"12"


def test_full_disk_takes_what_fits() -> None:
    """As a real one does: the file ends in the middle of what was to be written."""
    disk = SimDisk(capacity_bytes=10)
    file = disk.open("a", create=True)
    with pytest.raises(DiskFault, match="No space left"):
        file.write_at(0, b"x" * 16)
    assert file.size() == 10
    assert disk.free_bytes() == 0
    file.write_at(0, b"y" * 10)


def test_hooks_see_every_operation_before_it_happens() -> None:
    """A simulator lets time pass there, or stops the machine."""
    disk = SimDisk()
    seen: list[Operation] = []
    disk.hooks.append(seen.append)
    _file(disk, b"data")
    disk.open("a").read_at(1, 2)
    assert [(each.kind, each.name, each.offset, each.size) for each in seen] == [
        ("create", "a", 0, 0),
        ("write", "a", 0, 4),
        ("sync", "a", 0, 0),
        ("sync_dir", "", 0, 0),
        ("open", "a", 0, 0),
        ("read", "a", 1, 2),
    ]
    assert [each.number for each in seen] == [1, 2, 3, 4, 5, 5]


def test_same_seed_is_the_same_crash() -> None:
    """A simulation that failed can be run again."""

    def fate(seed: int) -> list[bytes]:
        disk = SimDisk()
        rng = Random(5)
        for name in "abcdef":
            file = disk.open(name, create=True)
            for _ in range(5):
                file.write_at(rng.randrange(3000), bytes([rng.randrange(256)]) * 700)
            if rng.random() < 0.5:
                disk.sync_dir("")
        disk.crash(Random(seed))
        return [disk.open(name).read_at(0, 9999) for name in disk.names("")]

    assert fate(1) == fate(1)
    assert fate(1) != fate(2)
