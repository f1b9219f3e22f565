"""The ledger under a failing machine and with damaged bytes.

Nothing that was synced is ever lost, and nothing wrong is ever read.
"""

from __future__ import annotations

import errno
from itertools import count
from random import Random

import pytest

from spur.consensus.faults import DiskFault, LedgerDamaged, StorageDamaged
from spur.consensus.genesis import genesis_chain
from spur.consensus.ledger import Ledger, begin_behind
from spur.events.envelope import Entry, chain_next
from spur.testing.disk import PowerLoss, SimDisk
from spur.testing.storage import GENESIS, make_entry

EVERYTHING = 1 << 60
COUNT = 90


def _entries() -> list[Entry]:
    rng = Random(11)
    return [
        make_entry(index, term=1 + index // 20, body=bytes((index,)) * rng.choice((0, 9, 300, 900)))
        for index in range(1, COUNT + 1)
    ]


ENTRIES = _entries()


def _chains() -> list[bytes]:
    chains = [genesis_chain(GENESIS)]
    for entry in ENTRIES:
        chains.append(chain_next(chains[-1], entry))
    return chains


CHAINS = _chains()


class _Life:
    """A replica's ledger over several starts, and what was synced of it."""

    def __init__(self, disk: SimDisk) -> None:
        self.disk = disk
        self.synced = 0
        self.first = 1

    def live(self, rng: Random) -> None:
        """Append in batches of any size, sync, seal and start again, until everything is there."""
        ledger = self.open()
        while ledger.last < COUNT:
            size = rng.randrange(1, 14)
            ledger.append(ENTRIES[ledger.last : ledger.last + size])
            chance = rng.random()
            if chance < 0.3:
                ledger.sync()
                self.synced = ledger.last
            elif chance < 0.5:
                ledger.seal()
            elif chance < 0.55:
                ledger.close()
                ledger = self.open()
            elif chance < 0.6 and ledger.last < COUNT - 30:
                self.install(ledger, ledger.last + rng.randrange(1, 20))
        ledger.close()

    def install(self, ledger: Ledger, index: int) -> None:
        """Let a snapshot at this index take the place of what lies before."""
        # While this runs, either end may be found; the snapshot itself is durable already.
        self.first = index + 1
        ledger.restart(index, ENTRIES[index - 1].term, CHAINS[index])
        self.synced = index

    def open(self) -> Ledger:
        """Open as a replica does: the log holds everything that was not synced here."""
        ledger = Ledger.open(self.disk, GENESIS, covered_from=self.synced + 1)
        if ledger.last < self.first - 1:
            # An installation was interrupted: it is done again.
            index = self.first - 1
            ledger.restart(index, ENTRIES[index - 1].term, CHAINS[index])
            self.synced = index
        return ledger

    def check(self) -> None:
        """Start again; all that was synced is there, and the rest can be recorded once more."""
        ledger = self.open()
        assert ledger.last >= self.synced
        assert ledger.first <= self.first
        assert ledger.damages == ()
        ledger.append(ENTRIES[ledger.last :])
        assert ledger.read(self.first, COUNT, EVERYTHING) == ENTRIES[self.first - 1 :]
        assert ledger.chain == CHAINS[COUNT]
        assert ledger.verify().last == COUNT
        ledger.close()


@pytest.mark.parametrize("seed", range(4))
def test_power_failure_at_every_step_keeps_what_was_synced(seed: int) -> None:
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
            life.disk.crash_after(fate.randrange(1, 10))
            try:
                life.open().close()
            except PowerLoss:
                life.disk.crash(fate)
        life.disk.end_process()
        life.check()
    assert n > 60


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_failing_operation_at_every_step_keeps_what_was_synced(code: int) -> None:
    """The n-th operation fails, the process ends and starts again, then the power fails."""
    for n in count(1):
        life = _Life(SimDisk())
        life.disk.fail_after(n, code)
        try:
            life.live(Random(3))
        except DiskFault:
            life.disk.end_process()
        else:
            break
        ledger = life.open()
        ledger.sync()
        life.synced = ledger.last
        ledger.close()
        life.disk.crash(Random(n))
        life.check()
    assert n > 60


def _built(*, seal: bool) -> SimDisk:
    disk = SimDisk()
    ledger = Ledger.open(disk, GENESIS, covered_from=1)
    ledger.append(ENTRIES)
    ledger.sync()
    while seal and ledger.seal():
        pass
    ledger.close()
    return disk


def _copy(disk: SimDisk) -> SimDisk:
    copy = SimDisk()
    copy.make_dir("ledger")
    for name in disk.names("ledger"):
        old, new = disk.open(f"ledger/{name}"), copy.open(f"ledger/{name}", create=True)
        new.write_at(0, old.read_at(0, old.size()))
        new.sync()
    copy.sync_dir("ledger")
    copy.sync_dir("")
    return copy


@pytest.mark.parametrize("seal", [False, True])
def test_flipped_bit_anywhere_is_found_and_repaired(seal: bool) -> None:
    """One bit changes by itself: no wrong entry is read, verifying names it, a peer repairs it."""
    disk = _built(seal=seal)
    peer = Ledger.open(_built(seal=not seal), GENESIS, covered_from=COUNT + 1)
    told = set()
    for name in disk.names("ledger"):
        size = disk.open(f"ledger/{name}").size()
        for offset in range(0, size, 67):
            copy = _copy(disk)
            copy.flip(f"ledger/{name}", offset, offset % 8)
            told.add(_find_and_repair(copy, peer, int(name[:12])))
    assert "repaired" in told
    assert told <= {"repaired", "harmless", "refused"}


def _find_and_repair(disk: SimDisk, peer: Ledger, number: int) -> str:
    try:
        ledger = Ledger.open(disk, GENESIS, covered_from=COUNT + 1)
    except LedgerDamaged as damage:
        # The end can't be known: the newest snapshot and the peers give everything back.
        if not damage.segment == number == GENESIS_LAST:
            raise
        begin_behind(disk, GENESIS, COUNT, ENTRIES[-1].term, CHAINS[COUNT])
        ledger = Ledger.open(disk, GENESIS, covered_from=COUNT + 1)
        ledger.replace_segment(number, peer.segment_bytes(number))
        assert ledger.verify().first == 1
        return "refused"
    _read_nothing_wrong(ledger)
    told = _verify(ledger)
    if told is None:
        return "harmless"
    assert told.segment == number
    assert told.index <= number * GENESIS.segment_entries
    assert ledger.first > 1
    ledger.replace_segment(number, peer.segment_bytes(number))
    assert ledger.verify().first == ledger.first == 1
    assert ledger.read(1, COUNT, EVERYTHING) == ENTRIES
    ledger.close()
    again = Ledger.open(disk, GENESIS, covered_from=COUNT + 1)
    assert again.verify().entries == COUNT
    return "repaired"


def _verify(ledger: Ledger) -> LedgerDamaged | None:
    try:
        ledger.verify()
    except LedgerDamaged as damage:
        return damage
    return None


GENESIS_LAST = (COUNT - 1) // GENESIS.segment_entries + 1
"""Number of the last segment."""


def _read_nothing_wrong(ledger: Ledger) -> None:
    index = 1
    while index <= ledger.last:
        try:
            found = ledger.read(index, index + 5, EVERYTHING)
        except LedgerDamaged:
            index += 1
            continue
        assert found == ENTRIES[index - 1 : index - 1 + len(found)]
        assert found
        index += len(found)


def test_damage_covered_by_the_log_is_cut_off() -> None:
    """A bit flips in what was synced, and the write-ahead log still holds those entries."""
    disk = _built(seal=False)
    disk.flip("ledger/000000000007.raw", 500)
    ledger = Ledger.open(disk, GENESIS, covered_from=40)
    assert ledger.cut is not None
    assert ledger.cut.startswith("ledger/000000000007.raw was cut at entry ")
    assert 48 <= ledger.last < 56
    ledger.append(ENTRIES[ledger.last :])
    assert ledger.verify().entries == COUNT
    assert disk.names("ledger")[-1] == "000000000012.raw"


def test_bytes_that_do_not_fit_are_not_believed() -> None:
    """A peer offers another segment, one with a changed entry, a part, or nothing to check by."""
    disk = _built(seal=True)
    ledger = Ledger.open(disk, GENESIS, covered_from=COUNT + 1)
    whole = ledger.segment_bytes(5)
    changed = SimDisk()
    other = Ledger.open(changed, GENESIS, covered_from=1)
    other.append([*ENTRIES[:35], make_entry(36, term=2, body=b"forged"), *ENTRIES[36:]])
    disk.flip("ledger/000000000005.sealed", 700)
    ledger = Ledger.open(disk, GENESIS, covered_from=COUNT + 1)
    for offered, why in (
        (ledger.segment_bytes(4), "start is that of segment 4"),
        (whole[:-1], "ends within a record"),
        (whole[:96], "not all of it"),
        (whole + b"more", "ends within a record"),
        (other.segment_bytes(5), "do not meet the chain"),
        (b"", "start does not match"),
    ):
        with pytest.raises(LedgerDamaged, match=f"segment 5 .*{why}"):
            ledger.replace_segment(5, offered)
    ledger.replace_segment(5, whole)
    assert ledger.verify().first == 1


def test_bytes_without_a_neighbour_are_not_believed() -> None:
    """History is filled in from the newest missing segment on, or there is nothing to check by."""
    peer = Ledger.open(_built(seal=True), GENESIS, covered_from=COUNT + 1)
    disk = SimDisk()
    ledger = Ledger.open(disk, GENESIS, covered_from=1)
    ledger.restart(80, ENTRIES[79].term, CHAINS[80])
    with pytest.raises(LedgerDamaged, match="have no neighbour to be checked against"):
        ledger.replace_segment(5, peer.segment_bytes(5))
    with pytest.raises(LedgerDamaged, match="not all of it"):
        ledger.replace_segment(12, peer.segment_bytes(12))
    ledger.replace_segment(10, peer.segment_bytes(10))
    assert ledger.first == 73


def test_history_that_is_not_here_is_not_offered() -> None:
    """A replica with a partial segment does not pass it off as whole."""
    ledger = Ledger.open(SimDisk(), GENESIS, covered_from=1)
    ledger.restart(83, ENTRIES[82].term, CHAINS[83])
    ledger.append(ENTRIES[83:])
    with pytest.raises(LedgerDamaged, match="it is not here"):
        ledger.segment_bytes(11)
    with pytest.raises(LedgerDamaged, match="it is not here"):
        ledger.segment_bytes(3)
    assert ledger.missing == tuple(range(1, 12))


def test_foreign_or_mixed_segments_are_found_at_opening() -> None:
    """Somebody put a whole, sound segment of another history in the place of ours."""
    disk, other = _built(seal=True), SimDisk()
    ledger = Ledger.open(other, GENESIS, covered_from=1)
    ledger.append([make_entry(index, body=b"other") for index in range(1, COUNT)])
    while ledger.seal():
        pass
    file = other.open("ledger/000000000003.sealed")
    data = file.read_at(0, file.size())
    disk.remove("ledger/000000000003.sealed")
    disk.open("ledger/000000000003.sealed", create=True).write_at(0, data)
    ledger = Ledger.open(disk, GENESIS, covered_from=COUNT + 1)
    assert 3 in [damage.segment for damage in ledger.damages]
    with pytest.raises(StorageDamaged, match="does not follow it"):
        ledger.verify()
