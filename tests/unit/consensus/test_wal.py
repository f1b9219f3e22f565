"""The write-ahead log in ordinary life: what is written comes back, segments come and go."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from spur.consensus.disk import Disk
from spur.consensus.faults import (
    AlreadyCreated,
    DiskFault,
    ForeignDirectory,
    GenesisDamaged,
    WalDamaged,
    WalLost,
)
from spur.consensus.genesis import genesis_entry, load_genesis
from spur.consensus.hardstate import HardState
from spur.consensus.wal import Recovered, Wal, read_identity, require_reach
from spur.testing.disk import Operation, SimDisk
from spur.testing.storage import GENESIS, IDENTITY, make_entries, make_entry
from spur.values.errors import InvariantBroken

SEGMENT = 4096
ROOM = SEGMENT - 512
"""Bytes of groups that fit a segment."""


def _created() -> SimDisk:
    disk = SimDisk()
    Wal.create(disk, IDENTITY, GENESIS, segment_bytes=SEGMENT)
    return disk


def _open(disk: Disk) -> tuple[Wal, Recovered]:
    return Wal.open(disk, IDENTITY, segment_bytes=SEGMENT)


def _segments(disk: Disk) -> list[str]:
    return [name for name in disk.names("wal") if name.endswith(".wal")]


def test_new_log_holds_the_genesis_membership() -> None:
    """A founding member starts with entry 1, committed, in the term before the first election."""
    disk = _created()
    _, recovered = _open(disk)
    assert recovered == Recovered(HardState(1, 0), 1, [genesis_entry(GENESIS)], 1, None)
    assert load_genesis(disk) == GENESIS
    assert read_identity(disk) == IDENTITY


def test_written_groups_come_back() -> None:
    """Votes, entries with their blobs, and the commit index survive a power failure."""
    disk = _created()
    wal, _ = _open(disk)
    blobs = (b"#!/bin/sh", b"", bytes(2000))
    wal.write_group(HardState(3, 2), 2, [make_entry(2, term=3, blobs=blobs)], 1)
    wal.write_group(None, 0, [], 2)
    wal.write_group(HardState(4, 0), 3, [make_entry(3, term=4)], 2)
    wal.close()
    _, recovered = _open(disk)
    assert recovered.hard == HardState(4, 0)
    assert recovered.entries[1:] == [make_entry(2, term=3, blobs=blobs), make_entry(3, term=4)]
    assert (recovered.first, recovered.last, recovered.commit) == (1, 3, 2)
    assert recovered.cut is None


def test_entries_replace_all_from_their_first_on() -> None:
    """A new leader's entries push out the uncommitted tail of the old one, longer as it was."""
    disk = _created()
    wal, _ = _open(disk)
    wal.write_group(None, 2, make_entries(2, 9), 3)
    wal.write_group(HardState(2, 0), 5, make_entries(5, 6, term=2), 3)
    _, recovered = _open(disk)
    assert recovered.entries[1:] == make_entries(2, 4) + make_entries(5, 6, term=2)


def test_commit_is_never_beyond_what_is_written() -> None:
    """A leader may know of commits that its own disk does not hold yet."""
    disk = _created()
    wal, _ = _open(disk)
    wal.write_group(None, 2, make_entries(2, 4), 9)
    _, recovered = _open(disk)
    assert recovered.commit == 4


@pytest.mark.parametrize(("first", "last"), [(4, 5), (1, 5)])
def test_entries_that_do_not_continue_the_log_are_refused(first: int, last: int) -> None:
    """A gap, or a conflict with what is committed, is our fault; nothing of it is written."""
    disk = _created()
    wal, _ = _open(disk)
    with pytest.raises(InvariantBroken, match="nothing was written"):
        wal.write_group(None, first, make_entries(first, last), 1)
    _, recovered = _open(disk)
    assert recovered.last == 1


def test_group_is_one_write_and_one_sync() -> None:
    """A group of 64 entries costs the disk what one of a single entry costs."""
    disk = SimDisk()
    Wal.create(disk, IDENTITY, GENESIS, segment_bytes=1 << 20)
    wal, _ = Wal.open(disk, IDENTITY, segment_bytes=1 << 20)
    seen: list[Operation] = []
    disk.hooks.append(seen.append)
    wal.write_group(HardState(2, 1), 2, make_entries(2, 65), 1)
    assert [operation.kind for operation in seen] == ["write", "sync"]
    assert seen[0].offset % 512 == 0
    assert seen[0].size % 512 == 0


def test_full_segment_is_followed_by_the_next() -> None:
    """Many groups roll through many segments, and each opens with term, vote and commit."""
    disk = _created()
    wal, _ = _open(disk)
    for index in range(2, 60):
        wal.write_group(HardState(index, 1), index, [make_entry(index, term=index)], index - 1)
    assert len(_segments(disk)) > 5
    _, recovered = _open(disk)
    assert [entry.index for entry in recovered.entries] == list(range(1, 60))
    assert recovered.hard == HardState(59, 1)
    assert recovered.commit == 58


@pytest.mark.parametrize("size", [ROOM - 200, ROOM, 3 * SEGMENT, 40 * SEGMENT])
def test_group_larger_than_a_segment_gets_a_segment_of_its_size(size: int) -> None:
    """A batch script of 4 MiB is written whole, and the log goes on behind it."""
    disk = _created()
    wal, _ = _open(disk)
    large = make_entry(2, blobs=(bytes(range(256)) * (size // 256),))
    wal.write_group(None, 2, [large], 1)
    wal.write_group(None, 3, [make_entry(3)], 1)
    wal.close()
    wal, recovered = _open(disk)
    assert recovered.entries[1:] == [large, make_entry(3)]
    wal.write_group(None, 4, [make_entry(4)], 3)
    _, recovered = _open(disk)
    assert recovered.last == 4


def test_recycled_segments_are_zeroed_and_used_again() -> None:
    """Behind a durable ledger segments go; what they held can't be read from the disk any more."""
    disk = _created()
    wal, _ = _open(disk)
    secret = b"export TOKEN=abc"
    for index in range(2, 40):
        wal.write_group(None, index, [make_entry(index, blobs=(secret,))], index)
        wal.recycle(index)
    assert len(_segments(disk)) <= 2
    spares = [name for name in disk.names("wal") if name.startswith("spare-")]
    assert 1 <= len(spares) <= 2
    for name in spares:
        assert disk.open(f"wal/{name}").read_at(0, SEGMENT) == bytes(SEGMENT)
    _, recovered = _open(disk)
    assert recovered.last == 39
    assert recovered.first <= 39


def test_recycling_keeps_what_is_not_below_the_index() -> None:
    """Only segments wholly below the index go, and never the one in use."""
    disk = _created()
    wal, _ = _open(disk)
    for index in range(2, 60):
        wal.write_group(None, index, [make_entry(index)], index)
    for below in range(1, 40):
        wal.recycle(below)
        wal.close()
        wal, recovered = _open(disk)
        assert recovered.first <= below
    assert recovered.first > 30
    assert recovered.entries[-1].index == 59
    assert recovered.entries == make_entries(recovered.first, 59)
    wal, _ = _open(disk)
    wal.recycle(1000)
    assert len(_segments(disk)) == 1


def test_writing_after_recycling_takes_no_time_for_zeros() -> None:
    """A spare is ready when a segment is full, so a commit never waits for 16 MiB of zeros."""
    disk = _created()
    wal, _ = _open(disk)
    wal.recycle(0)
    seen: list[str] = []
    disk.hooks.append(lambda operation: seen.append(operation.kind))
    size = wal.size_bytes
    index = 2
    while wal.size_bytes == size:
        wal.write_group(None, index, [make_entry(index)], 1)
        index += 1
    assert "zero" not in seen
    assert "rename" in seen


def test_restart_behind_a_snapshot_drops_all_entries() -> None:
    """A late member that got a snapshot goes on behind it, with its term and vote."""
    disk = _created()
    wal, _ = _open(disk)
    wal.write_group(HardState(5, 2), 2, make_entries(2, 20), 4)
    wal.restart(None, 100)
    wal.write_group(None, 101, make_entries(101, 102), 100)
    _, recovered = _open(disk)
    assert recovered.entries == make_entries(101, 102)
    assert (recovered.hard, recovered.commit) == (HardState(5, 2), 100)
    wal, recovered = _open(disk)
    assert recovered.first == 101
    with pytest.raises(InvariantBroken, match="can't replace what is committed"):
        wal.restart(None, 50)


def test_restart_without_entries_is_remembered() -> None:
    """A crash right after the snapshot was installed finds the log empty behind it."""
    disk = _created()
    wal, _ = _open(disk)
    wal.write_group(None, 2, make_entries(2, 20), 4)
    wal.restart(HardState(7, 3), 100)
    for _ in range(3):
        wal, recovered = _open(disk)
        assert recovered == Recovered(HardState(7, 3), 101, [], 100, None)
    assert len(_segments(disk)) == 1


def test_idle_restarts_do_not_grow_the_log() -> None:
    """A service that is restarted every night does not fill the disk with segments."""
    disk = _created()
    wal, _ = _open(disk)
    wal.write_group(None, 2, make_entries(2, 5), 4)
    wal.write_group(None, 6, make_entries(6, 8), 4)
    for _ in range(10):
        wal, recovered = _open(disk)
        wal.recycle(0)
        wal.close()
    assert recovered.entries[1:] == make_entries(2, 8)
    assert len(_segments(disk)) <= 3


def test_every_start_copies_the_last_group_into_a_new_segment() -> None:
    """The sync of the last group failed and the process ended.

    The page cache shows a group that the disk does not hold. After the next start it must be
    there, even if the power fails.
    """
    disk = _created()
    wal, _ = _open(disk)
    wal.write_group(None, 2, make_entries(2, 4), 1)
    disk.fail_after(1, errno.EIO, "sync")
    with pytest.raises(DiskFault, match="refused to sync"):
        wal.write_group(HardState(2, 2), 5, make_entries(5, 6), 1)
    disk.end_process()
    _, recovered = _open(disk)
    assert recovered.last == 6
    lost = _power_failure(disk)
    _, again = _open(lost)
    assert again.entries == recovered.entries
    assert again.hard == HardState(2, 2)


def _power_failure(disk: SimDisk) -> SimDisk:
    """Lose all that is not on the platter."""

    class DropAll:
        def random(self) -> float:
            return 0.0

        def randrange(self, stop: int) -> int:
            return 0

    disk.crash(DropAll())  # type: ignore[arg-type]  # the two methods that a crash asks
    return disk


@pytest.mark.parametrize("kind", ["write", "sync"])
def test_failed_write_poisons_the_log(kind: str) -> None:
    """After a failing disk nothing more is written by this process, and each call says why."""
    disk = _created()
    wal, _ = _open(disk)
    disk.fail_after(1, errno.EIO, kind)
    with pytest.raises(DiskFault, match="Input/output error"):
        wal.write_group(None, 2, make_entries(2, 2), 1)
    later: list[Callable[[], None]] = [
        lambda: wal.write_group(None, 2, make_entries(2, 2), 1),
        lambda: wal.restart(None, 50),
        lambda: wal.recycle(1),
    ]
    for work in later:
        with pytest.raises(InvariantBroken, match=r"failed before .*Input/output error"):
            work()
    assert read_identity(disk) == IDENTITY


def test_full_disk_refuses_the_group_and_keeps_what_was_written() -> None:
    """No room for the next segment: the write fails in the system's words, the log stays whole."""
    disk = _created()
    wal, _ = _open(disk)
    disk.capacity_bytes = disk.used_bytes() + 100
    written = [1]

    def fill() -> None:
        while True:
            wal.write_group(None, written[-1] + 1, [make_entry(written[-1] + 1)], 1)
            written.append(written[-1] + 1)

    with pytest.raises(DiskFault, match="No space left on device") as caught:
        fill()
    assert caught.value.is_full
    disk.end_process()
    disk.capacity_bytes = None
    _, recovered = _open(disk)
    assert recovered.last == written[-1]


@pytest.mark.parametrize(
    ("other", "word"),
    [
        ({"cluster_id": b"another-cluster!"}, "cluster"),
        ({"disk_id": b"some other disk!"}, "disk"),
        ({"incarnation": 1}, "incarnation"),
        ({"node_id": 2}, "node"),
    ],
)
def test_foreign_directory_is_refused(other: dict[str, Any], word: str) -> None:
    """A directory copied from another member or cluster is left as it is."""
    disk = _created()
    before = disk.operations
    identity = replace(IDENTITY, **other)
    with pytest.raises(ForeignDirectory, match=f"belongs to {word} .* nothing was changed"):
        Wal.open(disk, identity, segment_bytes=SEGMENT)
    assert disk.operations == before


def test_missing_log_is_told_as_lost() -> None:
    """Somebody removed the wal directory's files: the vote is gone, and with it this replica."""
    disk = _created()
    for name in disk.names("wal"):
        disk.remove(f"wal/{name}")
    with pytest.raises(WalLost, match="remove this controller and add it again"):
        _open(disk)
    with pytest.raises(WalLost):
        read_identity(disk)


def test_missing_segment_in_the_middle_is_told_as_lost() -> None:
    """Somebody removed one file of several: the sentence names it."""
    disk = _created()
    wal, _ = _open(disk)
    for index in range(2, 60):
        wal.write_group(None, index, [make_entry(index)], 1)
    names = _segments(disk)
    disk.remove(f"wal/{names[2]}")
    with pytest.raises(WalLost, match=f"{names[2]} is missing while"):
        _open(disk)


def test_log_that_does_not_meet_the_ledger_is_told_as_lost() -> None:
    """The newest or the oldest segments were removed: the ledger knows better."""
    recovered = Recovered(HardState(1, 0), 10, make_entries(10, 20), 15, None)
    require_reach(recovered, 9)
    require_reach(recovered, 20)
    with pytest.raises(WalLost, match="ends at 20 though entry 21 is in the ledger"):
        require_reach(recovered, 21)
    with pytest.raises(WalLost, match="begins at 10 though the ledger ends at 8"):
        require_reach(recovered, 8)


def test_creating_twice_is_refused() -> None:
    """A log is never made anew over an old one, with or without its genesis file."""
    disk = _created()
    with pytest.raises(AlreadyCreated, match="nothing was changed"):
        Wal.create(disk, IDENTITY, GENESIS, segment_bytes=SEGMENT)
    wal, _ = _open(disk)
    wal.write_group(None, 2, [make_entry(2)], 1)
    disk.remove("genesis")
    with pytest.raises(GenesisDamaged, match="genesis file is missing though a log is here"):
        load_genesis(disk)
    with pytest.raises(AlreadyCreated, match="without its genesis file"):
        Wal.create(disk, IDENTITY, GENESIS, segment_bytes=SEGMENT)


def test_interrupted_creation_is_done_again() -> None:
    """The machine stopped between the first segment and the genesis file."""
    disk = _created()
    disk.remove("genesis")
    Wal.create(disk, IDENTITY, GENESIS, segment_bytes=SEGMENT)
    _, recovered = _open(disk)
    assert recovered.last == 1


def test_shortened_segment_is_damage() -> None:
    """A file copied by a tool that leaves out zeros at its end does not pass."""
    disk = _created()
    file = disk.open(f"wal/{_segments(disk)[0]}")
    file.truncate(2048)
    with pytest.raises(WalDamaged, match="has 2048 bytes and its header says 4096"):
        _open(disk)


def test_odd_segment_size_is_refused() -> None:
    """A segment is whole sectors, two at least."""
    with pytest.raises(ValueError, match="no whole number of sectors"):
        Wal.create(SimDisk(), IDENTITY, GENESIS, segment_bytes=1000)


def test_start_on_a_full_disk_uses_a_spare() -> None:
    """Not a byte is free: the new segment takes the place of one that was recycled."""
    disk = _created()
    wal, _ = _open(disk)
    for index in range(2, 20):
        wal.write_group(None, index, [make_entry(index)], index)
    wal.recycle(18)
    wal.close()
    disk.capacity_bytes = disk.used_bytes()
    wal, recovered = _open(disk)
    assert recovered.last == 19
    wal.write_group(None, 20, [make_entry(20)], 19)
    _, recovered = _open_with_room(disk)
    assert recovered.last == 20


def _open_with_room(disk: SimDisk) -> tuple[Wal, Recovered]:
    disk.capacity_bytes = None
    return _open(disk)


def test_stray_files_are_left_alone() -> None:
    """Somebody left notes and copies in the directory."""
    disk = _created()
    for name in ("notes.txt", "000000000001.wal.bak", "copy.wal", "spare-x"):
        disk.open(f"wal/{name}", create=True).close()
    wal, recovered = _open(disk)
    wal.recycle(5)
    assert recovered.last == 1
    assert {"notes.txt", "000000000001.wal.bak", "copy.wal", "spare-x"} < set(disk.names("wal"))
