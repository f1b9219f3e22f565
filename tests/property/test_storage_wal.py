"""The write-ahead log under a failing machine: every step is the one at which it stops.

The way SQLite is tested: let the n-th operation fail, or the power fail there, for n = 1, 2, 3 ...
until a run passes untouched, and look each time at what is left.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from random import Random

import pytest

from spur.consensus.faults import DiskFault, StorageDamaged
from spur.consensus.genesis import genesis_entry, load_genesis
from spur.consensus.hardstate import HardState
from spur.consensus.records import SECTOR
from spur.consensus.wal import Recovered, Wal
from spur.events.envelope import Entry
from spur.testing.disk import PowerLoss, SimDisk
from spur.testing.storage import GENESIS, IDENTITY, make_entry

SEGMENT = 12 * 1024


@dataclass
class _State:
    """What a reader may find."""

    log: dict[int, Entry]
    hard: HardState
    commit: int

    def is_what(self, found: Recovered) -> bool:
        """Tell whether a start found exactly this, except for what was recycled."""
        held = [self.log[index] for index in range(found.first, max(self.log) + 1)]
        return (
            found.entries == held
            and found.hard == self.hard
            and found.commit == self.commit
            and found.first <= self.commit
        )


@dataclass
class _Promises:
    """What was acknowledged, and what was being written when the machine stopped."""

    acknowledged: _State | None = None
    attempted: list[_State] = field(default_factory=list)


def _work(disk: SimDisk, promises: _Promises, rng: Random) -> None:
    """Live through three starts with votes, conflicts, recycling and groups of all sizes."""
    birth = _State({1: genesis_entry(GENESIS)}, HardState(1, 0), 1)
    promises.attempted = [birth]
    Wal.create(disk, IDENTITY, GENESIS, segment_bytes=SEGMENT)
    promises.acknowledged = birth
    for _ in range(3):
        wal, _before = Wal.open(disk, IDENTITY, segment_bytes=SEGMENT)
        for _ in range(12):
            state = promises.acknowledged
            new, first, entries = _next_group(state, rng)
            promises.attempted = [new]
            wal.write_group(new.hard, first, entries, new.commit)
            promises.acknowledged, promises.attempted = new, []
            if rng.random() < 0.15:
                wal.recycle(new.commit - 2)
        wal.close()


def _next_group(state: _State, rng: Random) -> tuple[_State, int, list[Entry]]:
    hard, last = state.hard, max(state.log)
    if rng.random() < 0.2:
        hard = HardState(hard.term + 1, rng.randrange(4))
    first = last + 1
    if rng.random() < 0.3 and last > state.commit:
        first = rng.randrange(state.commit + 1, last + 1)
    entries = [
        make_entry(
            first + number,
            term=hard.term,
            body=bytes((rng.randrange(256),)) * rng.choice((0, 20, 300, 700, 3000)),
            blobs=(bytes(rng.choice((0, 16, 1100))),),
        )
        for number in range(rng.randrange(4))
    ]
    log = dict(state.log)
    if entries:
        log = {index: entry for index, entry in log.items() if index < first}
        log.update((entry.index, entry) for entry in entries)
    commit = min(max(log), state.commit + rng.randrange(3))
    return _State(log, hard, commit), first, entries


def _check(disk: SimDisk, promises: _Promises) -> Recovered:
    """Start again; what is found must be what was acknowledged, or what was being written."""
    if promises.acknowledged is None and not disk.exists("genesis"):
        Wal.create(disk, IDENTITY, GENESIS, segment_bytes=SEGMENT)
    assert load_genesis(disk) == GENESIS
    wal, found = Wal.open(disk, IDENTITY, segment_bytes=SEGMENT)
    wal.close()
    allowed = [*promises.attempted, promises.acknowledged]
    assert any(state is not None and state.is_what(found) for state in allowed), found
    return found


@pytest.mark.parametrize("seed", range(6))
def test_power_failure_at_every_step_loses_nothing_acknowledged(seed: int) -> None:
    """The power fails at the n-th write, sync or rename, then again and again during the starts."""
    for n in count(1):
        disk, promises, fate = SimDisk(), _Promises(), Random(seed * 10_000 + n)
        disk.crash_after(n)
        try:
            _work(disk, promises, Random(seed))
        except PowerLoss:
            disk.crash(fate)
        else:
            break
        _start_until_it_works(disk, promises, fate)
    assert n > 120


def _start_until_it_works(disk: SimDisk, promises: _Promises, fate: Random) -> None:
    """Start, with the power failing at some step, until a start passes."""
    while True:
        disk.crash_after(fate.randrange(1, 40))
        try:
            _check(disk, promises)
        except PowerLoss:
            disk.crash(fate)
        else:
            return


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("seed", range(2))
def test_failing_operation_at_every_step_loses_nothing_acknowledged(seed: int, code: int) -> None:
    """The n-th operation fails and the process ends; after its next start the power fails too."""
    codes = set()
    for n in count(1):
        disk, promises = SimDisk(), _Promises()
        disk.fail_after(n, code)
        try:
            _work(disk, promises, Random(seed))
        except DiskFault as fault:
            codes.add(fault.errno)
        else:
            break
        disk.end_process()
        _settle(disk, promises)
        disk.crash(Random(n))
        _check(disk, promises)
    assert n > 120
    assert codes == {code}


def _settle(disk: SimDisk, promises: _Promises) -> None:
    """Start once; from now on what was found there is a promise."""
    found = _check(disk, promises)
    for state in promises.attempted:
        if state.is_what(found):
            promises.acknowledged = state
    promises.attempted = []


def _written_log(seed: int) -> tuple[SimDisk, _Promises]:
    disk, promises = SimDisk(), _Promises()
    _work(disk, promises, Random(seed))
    return disk, promises


def test_flipped_bit_anywhere_is_never_believed() -> None:
    """One bit of one segment changes by itself: the start is refused, or nothing was lost.

    Nothing is lost where the bit lay in zeros behind the end of a group, or in a segment that is
    not needed any more.
    """
    disk, promises = _written_log(1)
    refused = _flip_each(disk, promises, lambda offset: (offset % 8,), step=61)
    assert len(refused) > 50
    assert all("remove this controller and add it again" in sentence for sentence in refused)


def test_flipped_bit_in_a_head_is_always_refused() -> None:
    """The header of each segment that counts, and the first group's head, are wholly covered."""
    disk, promises = _written_log(2)
    assert len(_flip_each(disk, promises, lambda _: (0, 7), step=1, end=118)) > 100


def _flip_each(
    disk: SimDisk,
    promises: _Promises,
    bits: Callable[[int], tuple[int, ...]],
    *,
    step: int,
    end: int | None = None,
) -> list[str]:
    """Flip bits one at a time in a copy of the directory; return how starts were refused."""
    images = {name: _image(disk, name) for name in disk.names("wal")}
    genesis = disk.open("genesis").read_at(0, 1 << 20)
    refused = []
    for name, image in images.items():
        if not name.endswith(".wal"):
            continue
        for offset in range(0, min(len(image), end or len(image)), step):
            for bit in bits(offset):
                copy = _copy(images, genesis)
                copy.flip(f"wal/{name}", offset, bit)
                try:
                    _check(copy, promises)
                except StorageDamaged as damage:
                    refused.append(str(damage))
    return refused


def _image(disk: SimDisk, name: str) -> bytes:
    file = disk.open(f"wal/{name}")
    return file.read_at(0, file.size())


def _copy(images: dict[str, bytes], genesis: bytes) -> SimDisk:
    disk = SimDisk()
    disk.make_dir("wal")
    for name, data in [("genesis", genesis), *((f"wal/{n}", i) for n, i in images.items())]:
        file = disk.open(name, create=True)
        file.write_at(0, data)
        file.sync()
    disk.sync_dir("wal")
    disk.sync_dir("")
    return disk


def test_sectors_that_never_arrived_are_torn_only_in_the_last_group() -> None:
    """A group of several sectors is written and the power fails: any part of it may be missing."""
    images, genesis, begin, end = _three_groups()
    (name,) = (each for each in images if each.endswith("2.wal"))
    for missing in range(begin[2], end[2], SECTOR):
        copy = _without(images, genesis, name, missing)
        _, found = Wal.open(copy, IDENTITY, segment_bytes=8192)
        assert found.last == 3
        assert found.cut is not None
        assert f"(number 5 at byte {begin[2]})" in found.cut
    for missing in range(begin[1], end[1], SECTOR):
        copy = _without(images, genesis, name, missing)
        with pytest.raises(StorageDamaged, match=f"{name} is damaged at byte"):
            Wal.open(copy, IDENTITY, segment_bytes=8192)


def _three_groups() -> tuple[dict[str, bytes], bytes, list[int], list[int]]:
    """Write three groups of several sectors behind the start's own; return where they lie."""
    disk = SimDisk()
    Wal.create(disk, IDENTITY, GENESIS, segment_bytes=8192)
    wal, _ = Wal.open(disk, IDENTITY, segment_bytes=8192)
    begin: list[int] = []
    end: list[int] = []

    def note(operation: object) -> None:
        kind, offset, size = (getattr(operation, each) for each in ("kind", "offset", "size"))
        if kind == "write":
            begin.append(offset)
            end.append(offset + size)

    disk.hooks.append(note)
    for index in (2, 3, 4):
        wal.write_group(None, index, [make_entry(index, body=b"\0" * 1500)], 1)
    images = {name: _image(disk, name) for name in disk.names("wal")}
    return images, disk.open("genesis").read_at(0, 1 << 20), begin, end


def _without(images: dict[str, bytes], genesis: bytes, name: str, sector: int) -> SimDisk:
    image = bytearray(images[name])
    image[sector : sector + SECTOR] = bytes(SECTOR)
    return _copy({**images, name: bytes(image)}, genesis)
