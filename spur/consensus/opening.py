"""Making a replica's directory, and opening it again.

    genesis      what the cluster is; the same bytes everywhere
    wal/         Raft's own log: short, recycled; term and vote live in it
    ledger/      what is committed, for ever
    blobs/       attachments
    snapshots/   states at an index; caches

Opening reads the directory, cuts a torn tail, and puts the Raft core on top of what is committed
here. Whatever is wrong is one sentence and one exception of `spur.consensus.faults`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from spur.consensus.blobs import BlobStore
from spur.consensus.boxes import CoreSettings, Rng
from spur.consensus.core import Core
from spur.consensus.disk import Disk
from spur.consensus.faults import ForeignDirectory, LedgerDamaged
from spur.consensus.genesis import Genesis, load_genesis
from spur.consensus.ledger import Ledger, begin_behind
from spur.consensus.membership import GENESIS_MEMBERS_MAX, Membership
from spur.consensus.replica import Clocks, Replica, ReplicaSettings, Storage
from spur.consensus.snapshots import Snapshot, SnapshotStore
from spur.consensus.wal import Recovered, Wal, WalIdentity, read_identity, require_reach
from spur.events.envelope import Entry
from spur.values.errors import InvariantBroken

__all__ = ["ReplicaOptions", "create_learner", "create_replica", "identity_of", "open_replica"]

SEEDS_FILE = "seeds"
"""In the directory of a member that was added later: the membership at that time."""


@dataclass(frozen=True, kw_only=True)
class ReplicaOptions:
    """Settings of a replica; none of them may change what is decided."""

    core: CoreSettings = field(default_factory=CoreSettings)
    replica: ReplicaSettings = field(default_factory=ReplicaSettings)
    wal_segment_bytes: int = 16 << 20
    breathe: Callable[[], None] | None = None
    """Called now and then during long work beside the loop."""


def identity_of(genesis: Genesis, me: int) -> WalIdentity:
    """Return whose directory a founding member's is.

    Raises: ForeignDirectory when the cluster was not founded with such a member.
    """
    member = Membership.decode(genesis.membership).member(me)
    if member is None:
        raise ForeignDirectory(
            f"the cluster {genesis.cluster_id.hex()} was not founded with a member {me}; the"
            " directory is another controller's, or node_id is wrong; nothing was changed"
        )
    return WalIdentity(
        cluster_id=genesis.cluster_id,
        incarnation=genesis.incarnation,
        node_id=me,
        disk_id=member.disk_id,
    )


def _identity_at(disk: Disk, genesis: Genesis, me: int) -> WalIdentity:
    """Return whose directory it is: a founding member's, or that of the one added under this id.

    Raises: ForeignDirectory when it is another's; WalLost when nothing tells.
    """
    if me <= GENESIS_MEMBERS_MAX:
        return identity_of(genesis, me)
    found = read_identity(disk)
    if found.node_id != me:
        raise ForeignDirectory(
            f"the write-ahead log here is node {found.node_id}'s, and this is node {me}; the"
            " directory is another controller's, or node_id is wrong; nothing was changed"
        )
    return WalIdentity(
        cluster_id=genesis.cluster_id,
        incarnation=genesis.incarnation,
        node_id=me,
        disk_id=found.disk_id,
    )


def create_learner(
    disk: Disk,
    genesis: Genesis,
    *,
    me: int,
    disk_id: bytes,
    members: Membership,
    options: ReplicaOptions,
) -> None:
    """Make the directory of a member that was added to a cluster that lives already.

    `members` are those of its addition. An interrupted creation is simply done again.

    Raises: AlreadyCreated, DiskFault.
    """
    identity = WalIdentity(
        cluster_id=genesis.cluster_id,
        incarnation=genesis.incarnation,
        node_id=me,
        disk_id=disk_id,
    )
    file = disk.open(SEEDS_FILE, create=True)
    try:
        file.write_at(0, members.encode())
        file.sync()
    finally:
        file.close()
    Wal.create(disk, identity, genesis, segment_bytes=options.wal_segment_bytes)


def _read_seeds(disk: Disk) -> Membership | None:
    if not disk.exists(SEEDS_FILE):
        return None
    file = disk.open(SEEDS_FILE)
    try:
        return Membership.decode(file.read_at(0, file.size()))
    finally:
        file.close()


def create_replica(disk: Disk, genesis: Genesis, *, me: int, options: ReplicaOptions) -> None:
    """Make the directory of a founding member; an interrupted creation is simply done again.

    Raises: AlreadyCreated, DiskFault.
    """
    Wal.create(disk, identity_of(genesis, me), genesis, segment_bytes=options.wal_segment_bytes)


def open_replica(
    disk: Disk, *, me: int, rng: Rng, clocks: Clocks, options: ReplicaOptions
) -> Replica:
    """Open a directory and return its replica, a follower that has not started to tick.

    Raises: what `Wal.open`, `Ledger.open` and `load_genesis` raise; nothing was acknowledged.
    """
    genesis = load_genesis(disk)
    identity = _identity_at(disk, genesis, me)
    seeds = _read_seeds(disk)
    wal, found = Wal.open(disk, identity, segment_bytes=options.wal_segment_bytes)
    notes = [found.cut] if found.cut else []
    snapshots = SnapshotStore.open(disk, cluster_id=genesis.cluster_id)
    ledger = _open_ledger(disk, genesis, found, snapshots, notes)
    found = _join(wal, found, ledger, snapshots)
    blobs = BlobStore.open(disk)
    # The ledger may have kept an entry whose blobs were not synced yet; the WAL still has them.
    # Later entries may yet be replaced: theirs go into the packs when they go into the ledger.
    kept = (entry for entry in found.entries if entry.index <= ledger.last)
    blobs.put(blob for entry in kept for blob in entry.blobs if blob)
    entries = _entries_behind(ledger, found)
    core = Core(
        me=me,
        settings=options.core,
        rng=rng,
        hard=found.hard,
        # As far as is known before the ledger is read: the replica learns it when it attaches.
        membership=_membership_at_first(genesis, snapshots),
        base_index=ledger.last,
        base_term=ledger.last_term,
        entries=entries,
        commit=max(ledger.last, min(found.commit, ledger.last + len(entries))),
    )
    ledger.breathe = options.breathe
    storage = Storage(
        genesis=genesis,
        wal=wal,
        ledger=ledger,
        blobs=blobs,
        snapshots=snapshots,
        seeds=seeds,
        notes=notes,
    )
    return Replica(
        identity=identity, core=core, storage=storage, settings=options.replica, clocks=clocks
    )


def _membership_at_first(genesis: Genesis, snapshots: SnapshotStore) -> Membership:
    snapshot = snapshots.latest()
    return Membership.decode(genesis.membership if snapshot is None else snapshot.membership)


def _open_ledger(
    disk: Disk, genesis: Genesis, found: Recovered, snapshots: SnapshotStore, notes: list[str]
) -> Ledger:
    """Open the ledger; where its end is lost, go on behind the newest snapshot.

    What lies before is then fetched from peers.
    """
    snapshot = snapshots.latest()
    try:
        ledger = Ledger.open(disk, genesis, covered_from=found.first)
    except LedgerDamaged as damage:
        if snapshot is None or snapshot.index + 1 < found.first:
            raise
        notes.append(f"{damage}; the ledger goes on behind the snapshot at {snapshot.index}")
        begin_behind(disk, genesis, snapshot.index, snapshot.term, snapshot.chain)
        ledger = Ledger.open(disk, genesis, covered_from=snapshot.index + 1)
    if ledger.cut:
        notes.append(ledger.cut)
    if ledger.missing:
        notes.append(
            f"{len(ledger.missing)} segments of the ledger are not whole here, the newest with"
            f" number {ledger.missing[-1]}; they are to be fetched from peers"
        )
    return ledger


def _join(wal: Wal, found: Recovered, ledger: Ledger, snapshots: SnapshotStore) -> Recovered:
    """Let ledger and write-ahead log meet; return what the latter holds then.

    Raises: WalLost when they do not, and no interrupted installation of a snapshot explains it.
    """
    installing = snapshots.installing
    if installing is not None and not _goes_on_behind(installing, ledger, found):
        # A received snapshot had become the state, and the power failed before both followed.
        if installing.index > ledger.last:
            ledger.restart(installing.index, installing.term, installing.chain)
        wal.restart(None, ledger.last)
        found = Recovered(found.hard, ledger.last + 1, [], ledger.last, found.cut)
    snapshots.installed()
    snapshot = snapshots.latest()
    if snapshot is not None and snapshot.index > ledger.last:
        # It was written from what the ledger showed before its sync: the log still has that.
        require_reach(found, snapshot.index)
        ledger.append(
            found.entries[ledger.last + 1 - found.first :][: snapshot.index - ledger.last]
        )
    require_reach(found, ledger.last)
    return found


def _goes_on_behind(snapshot: Snapshot, ledger: Ledger, found: Recovered) -> bool:
    """Tell whether both ledger and write-ahead log were restarted behind a snapshot."""
    if ledger.last < snapshot.index or not found.first - 1 <= snapshot.index <= found.last:
        return False
    position = snapshot.index - found.first
    return position < 0 or found.entries[position].term == snapshot.term


def _entries_behind(ledger: Ledger, found: Recovered) -> list[Entry]:
    """Return the entries of the WAL that follow what the ledger holds.

    Raises: InvariantBroken when the two tell different histories.
    """
    if not found.first <= ledger.last:
        return found.entries
    if found.entries[ledger.last - found.first].term != ledger.last_term:
        raise InvariantBroken(
            f"entry {ledger.last} is committed with term {ledger.last_term}, and the write-ahead "
            f"log holds it with term {found.entries[ledger.last - found.first].term}"
        )
    return found.entries[ledger.last + 1 - found.first :]
