"""Opening a replica's directory: ledger, write-ahead log and snapshots are brought together."""

from __future__ import annotations

from itertools import count
from random import Random

import msgspec
import pytest

from spur.consensus.faults import LedgerDamaged, WalLost
from spur.consensus.genesis import Genesis, genesis_chain, genesis_entry
from spur.consensus.hardstate import HardState
from spur.consensus.ledger import Ledger
from spur.consensus.membership import Member, Membership
from spur.consensus.opening import (
    ReplicaOptions,
    create_replica,
    identity_of,
    open_replica,
)
from spur.consensus.replica import Replica
from spur.consensus.snapshots import Manifest, SnapshotStore
from spur.consensus.wal import Wal
from spur.events.envelope import Entry, chain_next
from spur.testing.disk import PowerLoss, SimDisk
from spur.testing.storage import make_entries
from spur.values.errors import InvariantBroken

CLUSTER = b"cluster-of-tests"

GENESIS = Genesis(
    cluster_id=CLUSTER,
    membership=Membership(
        (
            Member(
                id=1,
                disk_id=b"disk-of-a-member",
                voter=True,
                raft_address="a:1",
                rpc_address="a:2",
            ),
        )
    ).encode(),
    segment_entries=8,
)

SEGMENT = 4096
OPTIONS = ReplicaOptions(wal_segment_bytes=SEGMENT)
HISTORY = [genesis_entry(GENESIS), *make_entries(2, 120)]


class _Clocks:
    def wall_ns(self) -> int:
        return 0

    def mono_ns(self) -> int:
        return 0


def _chain(last: int) -> bytes:
    chain = genesis_chain(GENESIS)
    for entry in HISTORY[:last]:
        chain = chain_next(chain, entry)
    return chain


def _open(disk: SimDisk) -> Replica:
    return open_replica(disk, me=1, rng=Random(1), clocks=_Clocks(), options=OPTIONS)


def _lived(last: int, *, recorded: int) -> tuple[SimDisk, Wal, Ledger]:
    """Return a directory with entries up to `last`, of which `recorded` are in the ledger."""
    disk = SimDisk()
    create_replica(disk, GENESIS, me=1, options=OPTIONS)
    wal, _ = Wal.open(disk, identity_of(GENESIS, 1), segment_bytes=SEGMENT)
    for index in range(2, last + 1):
        wal.write_group(None, index, HISTORY[index - 1 : index], index - 1)
    ledger = Ledger.open(disk, GENESIS, covered_from=1)
    ledger.append(HISTORY[:recorded])
    ledger.sync()
    return disk, wal, ledger


def _snapshot(disk: SimDisk, index: int, *, term: int = 1) -> None:
    SnapshotStore.open(disk, cluster_id=CLUSTER).write(_manifest(index, term=term), [("t", b"x")])


def _manifest(index: int, *, term: int = 1) -> Manifest:
    return Manifest(
        cluster_id=CLUSTER,
        incarnation=0,
        era=0,
        index=index,
        term=term,
        chain=_chain(index),
        membership=GENESIS.membership,
        cluster_version=1,
        request_floor=0,
        state_digest=bytes(32),
    )


def _receive(store: SnapshotStore, index: int, *, term: int = 1) -> None:
    source = SnapshotStore.open(SimDisk(), cluster_id=CLUSTER)
    sent = source.write(_manifest(index, term=term), [("t", b"x")])
    assert store.begin_receive(sent.manifest)
    assert store.write_received(1, sent.chunk(1))
    store.finish_receive()


def test_new_directory_opens_with_the_genesis_membership() -> None:
    """Entry 1 is committed from the start."""
    disk = SimDisk()
    create_replica(disk, GENESIS, me=1, options=OPTIONS)
    replica = _open(disk)
    assert (replica.core.last, replica.core.commit) == (1, 1)


def test_log_goes_on_behind_what_the_ledger_holds() -> None:
    """Entries that are only in the write-ahead log are in the core's memory."""
    disk, _, _ = _lived(30, recorded=20)
    replica = _open(disk)
    assert (replica.storage.ledger.last, replica.core.last, replica.core.commit) == (20, 30, 29)


def test_snapshot_written_ahead_of_the_ledgers_sync_loses_no_history() -> None:
    """The snapshot process had read entries from the ledger that were not synced yet.

    After the power failure the snapshot is there and the end of the ledger is not, but the
    write-ahead log has it: history must not begin behind the snapshot.
    """
    disk, _, _ = _lived(30, recorded=20)
    _snapshot(disk, 26)
    replica = _open(disk)
    ledger = replica.storage.ledger
    assert (ledger.first, ledger.last, ledger.chain) == (1, 26, _chain(26))
    assert replica.core.last == 30


def test_lost_end_of_the_log_is_told() -> None:
    """The newest segment of the write-ahead log was removed: ledger or snapshot know better."""
    disk, wal, ledger = _lived(30, recorded=20)
    ledger.append(HISTORY[20:30])
    ledger.sync()
    wal.close()
    names = [name for name in disk.names("wal") if name.endswith(".wal")]
    disk.remove(f"wal/{names[-1]}")
    with pytest.raises(WalLost, match="though entry 30 is in the ledger"):
        _open(disk)


def test_log_that_ends_before_a_snapshot_is_told() -> None:
    """A snapshot that this replica wrote itself holds nothing that its log never had."""
    disk, _, _ = _lived(30, recorded=20)
    _snapshot(disk, 50)
    with pytest.raises(WalLost, match="ends at 30 though entry 50"):
        _open(disk)


def test_ledger_and_log_that_differ_are_told() -> None:
    """Two histories in one directory: nobody knows which one was acknowledged."""
    disk, _, ledger = _lived(30, recorded=20)
    ledger.append(make_entries(21, 25, term=9))
    ledger.sync()
    with pytest.raises(InvariantBroken, match="entry 25 is committed with term 9"):
        _open(disk)


def test_lost_end_of_the_ledger_is_bridged_by_the_snapshot() -> None:
    """The log is recycled behind the snapshot; the last ledger segment is damaged."""
    disk, wal, ledger = _lived(60, recorded=55)
    _snapshot(disk, 50)
    wal.recycle(50)
    for _ in range(5):
        ledger.seal()
    ledger.close()
    disk.flip("ledger/000000000007.raw", 20)
    replica = _open(disk)
    assert replica.storage.ledger.first == 51
    assert replica.core.last == 60
    assert "goes on behind the snapshot at 50" in replica.storage.notes[0]
    with pytest.raises(LedgerDamaged):
        _open_without_snapshot(disk)


def _open_without_snapshot(disk: SimDisk) -> None:
    disk.flip("ledger/000000000007.raw", 20)
    disk.rename("snapshots", "elsewhere")
    _open(disk)


@pytest.mark.parametrize("behind", [5, 90])
def test_interrupted_installation_is_finished(behind: int) -> None:
    """The power fails at any step while a received snapshot takes the log's place.

    The follower's own log may be shorter than the snapshot, or longer with entries of a leader
    that was deposed.
    """
    for n in count(1):
        disk, wal, ledger = _lived(6, recorded=4)
        stale = make_entries(7, behind, term=2)
        if stale:
            wal.write_group(HardState(2, 1), 7, stale, 4)
        store = SnapshotStore.open(disk, cluster_id=CLUSTER)
        disk.crash_after(n)
        try:
            _receive(store, 80, term=3)
            ledger.restart(80, 3, _chain(80))
            wal.restart(None, 80)
            store.installed()
        except PowerLoss:
            disk.crash(Random(n))
        else:
            break
        replica = _open(disk)
        if replica.storage.ledger.last == 80:
            assert (replica.core.last, replica.core.commit) == (80, 80)
        else:
            assert replica.storage.ledger.last == 4
            assert replica.core.last == max(6, behind)
        _goes_on(disk, replica)
    assert n > 15


def _goes_on(disk: SimDisk, replica: Replica) -> None:
    """Write one more entry, and start once more."""
    core, storage = replica.core, replica.storage
    following = Entry(core.last + 1, 5, 2, b"later")
    storage.wal.write_group(HardState(5, 1), following.index, [following], core.commit)
    replica.close()
    again = _open(disk)
    assert again.core.last == following.index
    assert again.core.commit == core.commit
    assert msgspec.structs.astuple(again.core.entry(following.index))[1] == 5


def test_attachments_of_an_uncommitted_tail_stay_out_of_the_packs() -> None:
    """A leader is killed with an entry that nobody else has, and that will be replaced."""
    disk = SimDisk()
    create_replica(disk, GENESIS, me=1, options=OPTIONS)
    wal, _ = Wal.open(disk, identity_of(GENESIS, 1), segment_bytes=SEGMENT)
    blob = bytes(16) + b"never committed"
    entry = msgspec.structs.replace(make_entries(2, 2)[0], blobs=(blob,))
    wal.write_group(HardState(2, 1), 2, [entry], 1)
    wal.close()
    disk.end_process()
    replica = open_replica(disk, me=1, rng=Random(1), clocks=_Clocks(), options=OPTIONS)
    assert replica.core.last == 2
    assert replica.storage.blobs.held() == []
