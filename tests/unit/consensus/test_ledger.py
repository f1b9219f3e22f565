"""The ledger in ordinary life: appended, sealed, read back, and the same on every replica."""

from __future__ import annotations

import errno
from random import Random

import pytest

from spur.consensus.disk import Disk
from spur.consensus.faults import DiskFault, ForeignDirectory, LedgerDamaged
from spur.consensus.genesis import Genesis, genesis_chain
from spur.consensus.ledger import Ledger
from spur.events.envelope import Entry, chain_next
from spur.testing.disk import Operation, SimDisk
from spur.testing.storage import GENESIS, make_entries, make_entry
from spur.values.errors import InvariantBroken

EVERYTHING = 1 << 60
"""More bytes than any test reads."""


def _open(disk: Disk, covered_from: int = 1, genesis: Genesis = GENESIS) -> Ledger:
    return Ledger.open(disk, genesis, covered_from=covered_from)


def _filled(last: int, *, sealed: bool = True) -> tuple[SimDisk, Ledger]:
    disk = SimDisk()
    ledger = _open(disk)
    ledger.append(make_entries(1, last))
    ledger.sync()
    while sealed and ledger.seal():
        pass
    return disk, ledger


def _chain(entries: list[Entry]) -> bytes:
    chain = genesis_chain(GENESIS)
    for entry in entries:
        chain = chain_next(chain, entry)
    return chain


def test_empty_ledger_begins_with_the_genesis() -> None:
    """Before the first entry the chain is the digest of the genesis record."""
    ledger = _open(SimDisk())
    assert (ledger.first, ledger.last, ledger.last_term) == (1, 0, 0)
    assert ledger.chain == ledger.chain_at(0) == genesis_chain(GENESIS)
    assert ledger.read(1, 100, EVERYTHING) == []
    assert ledger.verify().entries == 0


@pytest.mark.parametrize("sealed", [False, True])
def test_appended_entries_are_read_back(sealed: bool) -> None:
    """Across many segments every range comes back, before and after sealing and reopening."""
    disk, ledger = _filled(60, sealed=sealed)
    ledger.close()
    ledger = _open(disk, covered_from=61)
    assert (ledger.first, ledger.last, ledger.last_term) == (1, 60, 1)
    for first in range(1, 61):
        for last in (first, first + 3, first + 20, 60):
            wanted = make_entries(first, min(last, 60))
            assert ledger.read(first, last, EVERYTHING) == wanted
    assert ledger.read(61, 100, EVERYTHING) == []


@pytest.mark.parametrize("sealed", [False, True])
def test_chain_is_that_of_the_contract(sealed: bool) -> None:
    """Each h is what `chain_next` makes of the one before and the entry."""
    disk, _ = _filled(30, sealed=sealed)
    ledger = _open(disk, covered_from=31)
    for index in range(31):
        assert ledger.chain_at(index) == _chain(make_entries(1, index))
    assert ledger.chain == _chain(make_entries(1, 30))


def test_blobs_are_stripped() -> None:
    """Scripts and environments never reach the ledger."""
    disk = SimDisk()
    ledger = _open(disk)
    ledger.append([make_entry(1, blobs=(b"#!/bin/sh secret",))])
    ledger.sync()
    assert ledger.read(1, 1, EVERYTHING) == [make_entry(1)]
    for name in disk.names("ledger"):
        assert b"secret" not in disk.open(f"ledger/{name}").read_at(0, 10_000)


def test_reading_stops_at_the_bytes_asked_for() -> None:
    """A batch for a late member is bounded, but one entry always comes."""
    disk = SimDisk()
    ledger = _open(disk)
    ledger.append([make_entry(index, body=b"x" * 100) for index in range(1, 21)])
    while ledger.seal():
        pass
    assert [entry.index for entry in ledger.read(3, 20, 250)] == [3, 4, 5]
    assert [entry.index for entry in ledger.read(3, 20, 1)] == [3]
    assert [entry.index for entry in ledger.read(18, 20, 250)] == [18, 19, 20]
    assert [entry.index for entry in ledger.read(7, 20, 450)] == [7, 8, 9, 10, 11]


def test_segments_are_the_same_bytes_whatever_the_batches() -> None:
    """Two replicas that got the same entries in other batches hold the same segments."""
    rng = Random(5)
    entries = [
        make_entry(index, term=1 + index // 7, body=bytes(rng.randrange(300)))
        for index in range(1, 50)
    ]
    images = []
    for seed in range(4):
        disk, rng = SimDisk(), Random(seed)
        ledger = _open(disk)
        rest = entries
        while rest:
            size = rng.randrange(1, 20)
            ledger.append(rest[:size])
            rest = rest[size:]
            if rng.random() < 0.5:
                ledger.seal()
            if rng.random() < 0.3:
                ledger.sync()
                ledger = _open(disk, covered_from=ledger.last + 1)
        while ledger.seal():
            pass
        images.append([ledger.segment_bytes(number) for number in range(1, 8)])
    assert images[0] == images[1] == images[2] == images[3]


def test_sealed_segments_are_compressed_and_read_at_random() -> None:
    """A segment of several frames: reading one entry inflates one frame."""
    genesis = Genesis(cluster_id=GENESIS.cluster_id, membership=b"m", segment_entries=2000)
    disk = SimDisk()
    ledger = _open(disk, genesis=genesis)
    entries = [make_entry(index, body=b"all alike " * 50) for index in range(1, 2002)]
    ledger.append(entries)
    assert ledger.seal()
    size = disk.open("ledger/000000000001.sealed").size()
    assert size < len(ledger.segment_bytes(1)) // 4
    read: list[int] = []
    disk.hooks.append(
        lambda operation: read.append(operation.size) if operation.kind == "read" else None
    )
    assert ledger.read(1500, 1500, EVERYTHING) == [entries[1499]]
    assert sum(read) < size // 2
    for index in (1, 2, 777, 2000):
        assert ledger.read(index, index, EVERYTHING) == [entries[index - 1]]


def test_last_segment_is_not_sealed() -> None:
    """The end of the ledger is always known from a segment that is checked at each start."""
    disk, ledger = _filled(16)
    assert disk.names("ledger") == ["000000000001.sealed", "000000000002.raw"]
    ledger.append(make_entries(17, 17))
    assert ledger.seal()
    assert not ledger.seal()


def test_appending_does_not_sync() -> None:
    """The write-ahead log covers it; a full segment is synced when the next one begins."""
    disk, ledger = _filled(3, sealed=False)
    syncs: list[str] = []
    disk.hooks.append(
        lambda operation: syncs.append(operation.name) if operation.kind == "sync" else None
    )
    ledger.append(make_entries(4, 8))
    assert syncs == []
    ledger.append(make_entries(9, 9))
    assert syncs[0] == "ledger/000000000001.raw"
    ledger.sync()
    ledger.sync()
    assert syncs.count("ledger/000000000002.raw") == 1


@pytest.mark.parametrize("entries", [make_entries(5, 6), make_entries(3, 4)])
def test_entries_out_of_row_are_refused(entries: list[Entry]) -> None:
    """A gap or a repetition is our fault, and nothing is recorded from then on."""
    _, ledger = _filled(3)
    with pytest.raises(InvariantBroken, match="do not follow 3"):
        ledger.append(entries)
    with pytest.raises(InvariantBroken, match="failed before"):
        ledger.append(make_entries(4, 4))


@pytest.mark.parametrize("kind", ["write", "sync"])
def test_failing_disk_poisons_the_ledger(kind: str) -> None:
    """After a failed write or sync nothing more is written by this process."""
    disk, ledger = _filled(3)
    ledger.append(make_entries(4, 4))
    disk.fail_after(1, errno.EIO, kind)
    with pytest.raises(DiskFault):
        _append_and_sync(ledger)
    with pytest.raises(InvariantBroken, match=r"failed before .*Input/output error"):
        ledger.sync()


def _append_and_sync(ledger: Ledger) -> None:
    ledger.append(make_entries(5, 5))
    ledger.sync()


def test_restart_behind_a_snapshot_begins_history_there() -> None:
    """A late member goes on at 100 after a snapshot at 99, in the middle of a segment."""
    disk, ledger = _filled(20)
    chain = _chain(make_entries(1, 99))
    ledger.restart(99, 4, chain)
    assert (ledger.first, ledger.last, ledger.last_term) == (100, 99, 4)
    assert ledger.chain == chain
    ledger.append(make_entries(100, 130, term=5))
    ledger.sync()
    while ledger.seal():
        pass
    ledger.close()
    ledger = _open(disk, covered_from=131)
    assert (ledger.first, ledger.last) == (100, 130)
    assert ledger.read(100, 130, EVERYTHING) == make_entries(100, 130, term=5)
    assert ledger.chain_at(99) == chain
    # Two sealed segments stayed; between them and the snapshot history is to be filled in.
    assert ledger.missing == tuple(range(3, 14))
    assert ledger.read(1, 16, EVERYTHING) == make_entries(1, 16)
    with pytest.raises(LedgerDamaged, match=r"segment 6 .*it is not here"):
        ledger.read(42, 50, EVERYTHING)
    assert ledger.verify().missing == ((17, 99),)


def test_history_is_filled_in_from_a_peer() -> None:
    """The newest missing segment first, each checked against its neighbour."""
    _, peer = _filled(150)
    disk, ledger = _filled(20)
    ledger.restart(99, 1, _chain(make_entries(1, 99)))
    ledger.append(make_entries(100, 150))
    for number in reversed(ledger.missing):
        ledger.replace_segment(number, peer.segment_bytes(number))
    assert (ledger.first, ledger.missing) == (1, ())
    ledger.sync()
    ledger.close()
    ledger = _open(disk, covered_from=151)
    assert ledger.read(1, 150, EVERYTHING) == make_entries(1, 150)
    assert ledger.verify().missing == ()


def test_view_changes_nothing_and_shows_what_is_there() -> None:
    """`spur log show` on the directory of a running replica."""
    disk, ledger = _filled(20)
    ledger.append(make_entries(21, 22))
    before = disk.operations
    view = Ledger.view(disk, GENESIS)
    assert (view.first, view.last, view.cut) == (1, 22, None)
    assert view.read(1, 22, EVERYTHING) == make_entries(1, 22)
    view.close()
    file = disk.open("ledger/000000000003.raw")
    file.write_at(file.size(), b"half a reco")
    before = disk.operations
    view = Ledger.view(disk, GENESIS)
    assert view.last == 22
    assert view.cut is not None
    assert "ends within entry 23" in view.cut
    assert disk.operations == before


def test_view_of_an_empty_directory_is_empty() -> None:
    """A replica that was only just created has no ledger yet."""
    disk = SimDisk()
    assert Ledger.view(disk, GENESIS).last == 0
    assert disk.operations == 0


def test_segments_of_another_cluster_are_refused() -> None:
    """A segment copied from elsewhere is told apart by its cluster, raw or sealed."""
    foreign = Genesis(cluster_id=b"another cluster!", membership=b"m", segment_entries=8)
    for sealed in (False, True):
        disk, _ = _filled(20, sealed=sealed)
        with pytest.raises(ForeignDirectory, match="belongs to cluster"):
            Ledger.view(disk, foreign)


def test_ledger_that_ends_before_the_log_begins_is_refused() -> None:
    """The newest part of the ledger was removed by hand, and the log does not hold it any more."""
    disk, _ = _filled(20)
    disk.remove("ledger/000000000003.raw")
    with pytest.raises(LedgerDamaged, match=r"entry 17.* write-ahead log begins at 21"):
        _open(disk, covered_from=21)
    assert _open(disk, covered_from=17).last == 16


def test_stray_files_are_left_alone() -> None:
    """Somebody left notes and copies in the directory."""
    disk, ledger = _filled(20)
    strays = {"notes.txt", "000000000001.sealed.bak", "copy.raw", "old.sealed"}
    for name in strays:
        disk.open(f"ledger/{name}", create=True).close()
    ledger.close()
    ledger = _open(disk, covered_from=21)
    ledger.restart(50, 1, bytes(32))
    assert strays < set(disk.names("ledger"))


@pytest.mark.parametrize("number", [1, 2])
def test_sectors_that_cannot_be_read_are_damage(number: int) -> None:
    """The disk returns an error for a sealed segment: a peer's bytes repair that as well."""
    disk, _ = _filled(40)
    whole = Ledger.view(_filled(40)[0], GENESIS).segment_bytes(number)
    name = f"ledger/{number:012d}.sealed"
    bad = [True]

    def refuse(operation: Operation) -> None:
        if bad[0] and operation.kind == "read" and operation.name == name:
            raise DiskFault("read", name, errno.EIO)

    ledger = _open(disk, covered_from=41)
    disk.hooks.append(refuse)
    with pytest.raises(LedgerDamaged, match=f"segment {number} .*Input/output error"):
        ledger.read(number * 8, number * 8, EVERYTHING)
    assert ledger.first == number * 8 + 1
    reopened = _open(disk, covered_from=41)
    assert [damage.segment for damage in reopened.damages] == [number]
    bad[0] = False
    reopened.replace_segment(number, whole)
    assert reopened.verify().first == 1
