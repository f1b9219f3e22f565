"""Snapshots: a state at an index, in chunks; a cache of what the ledger says.

    snapshots/00000000000000012345/chunks     the chunks, one behind the other
                                   manifest   what they are: written last
    snapshots/00000000000000012345.writing    a draft; likewise .receiving, and .removing
    snapshots/installing                      a received snapshot is taking the log's place

A draft gets its name once all of it is durable, so what has a name is whole. Two snapshots are
kept: should the newer one be damaged, the older one and the ledger serve. One process may write
snapshots while another receives one and reads.

Source: LOG-CONTRACT 5.7.
"""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec

from spur.consensus.disk import Disk
from spur.consensus.faults import DiskFault, ForeignDirectory, NewerFormat, SnapshotDamaged

__all__ = ["KEPT", "LIVE_BLOBS", "ChunkInfo", "Manifest", "Snapshot", "SnapshotStore"]

LIVE_BLOBS = "live-blobs"
"""Name of the chunks that list the digests of the blobs which the state refers to."""

KEPT = 2
"""Snapshots that are kept."""

SNAPSHOT_FORMAT = 1

SYNC_BYTES = 4 << 20
"""Bytes written between two syncs, so that the log's own sync never waits for much."""

_DIRECTORY = "snapshots"
_INSTALLING = f"{_DIRECTORY}/installing"
_MANIFEST = "manifest"
_CHUNKS = "chunks"
_WRITING = ".writing"
_RECEIVING = ".receiving"
_REMOVING = ".removing"
_MAGIC = b"SPURSNP\x01"
_DIGEST_SIZE = 32


class ChunkInfo(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One chunk, as the manifest knows it."""

    name: str
    """What it holds: the name of a table."""
    size: int
    digest: bytes
    """SHA-256."""


class Manifest(msgspec.Struct, frozen=True, array_like=True, gc=False, kw_only=True):
    """What a snapshot is of."""

    format: int = SNAPSHOT_FORMAT
    cluster_id: bytes
    incarnation: int
    era: int
    index: int
    term: int
    chain: bytes
    """Chain value of the entry at `index`."""
    membership: bytes
    """Body of the membership in force there."""
    cluster_version: int
    request_floor: int
    """Newest index whose request id is forgotten."""
    state_digest: bytes
    chunks: tuple[ChunkInfo, ...] = ()
    """In order; filled in by the store."""


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Manifest)


@dataclass(frozen=True)
class Snapshot:
    """A snapshot that is there; chunks are checked as they are read."""

    meta: Manifest
    _disk: Disk
    _directory: str
    _note: Callable[[SnapshotDamaged], None]

    @property
    def index(self) -> int:
        """Index of the last entry it holds."""
        return self.meta.index

    @property
    def term(self) -> int:
        """Term of that entry."""
        return self.meta.term

    @property
    def chain(self) -> bytes:
        """Chain value of that entry."""
        return self.meta.chain

    @property
    def membership(self) -> bytes:
        """Body of the membership in force there."""
        return self.meta.membership

    @property
    def chunk_count(self) -> int:
        """Chunks, without the manifest."""
        return len(self.meta.chunks)

    @property
    def manifest(self) -> bytes:
        """The manifest's bytes, as they are sent: chunk 0."""
        return _ENCODER.encode(self.meta)

    def chunk(self, number: int) -> bytes:
        """Return a chunk, counted from 1.

        Raises: SnapshotDamaged; the store passes over this snapshot from then on.
        """
        info = self.meta.chunks[number - 1]
        try:
            file = self._disk.open(f"{self._directory}/{_CHUNKS}")
            try:
                data = file.read_at(self._offset(number), info.size)
            finally:
                file.close()
        except DiskFault as fault:
            # The other process may have written a newer one, and removed this.
            raise self._damaged(f"chunk {number}", str(fault)) from fault
        if hashlib.sha256(data).digest() != info.digest:
            raise self._damaged(f"chunk {number}", "its digest is not the manifest's")
        return data

    def _offset(self, number: int) -> int:
        return sum(info.size for info in self.meta.chunks[: number - 1])

    def _damaged(self, part: str, what: str) -> SnapshotDamaged:
        damage = SnapshotDamaged(self.index, part, what)
        self._note(damage)
        return damage

    def chunks(self) -> Iterator[tuple[str, bytes]]:
        """Yield name and bytes of every chunk of the state. Raises: SnapshotDamaged."""
        for number, info in enumerate(self.meta.chunks, 1):
            if info.name != LIVE_BLOBS:
                yield info.name, self.chunk(number)

    def live_blobs(self) -> Iterator[bytes]:
        """Yield the digests of the blobs that the state refers to. Raises: SnapshotDamaged."""
        for number, info in enumerate(self.meta.chunks, 1):
            if info.name == LIVE_BLOBS:
                data = self.chunk(number)
                for at in range(0, len(data), _DIGEST_SIZE):
                    yield data[at : at + _DIGEST_SIZE]

    def verify(self) -> None:
        """Read all of it. Raises: SnapshotDamaged."""
        for number in range(1, self.chunk_count + 1):
            self.chunk(number)


class SnapshotStore:
    """The snapshots of one replica's directory."""

    def __init__(self, disk: Disk, cluster_id: bytes) -> None:
        self.damaged: dict[int, SnapshotDamaged] = {}
        """Snapshots that were found damaged, by index; they are passed over."""
        self._disk = disk
        self._cluster_id = cluster_id
        self._receiving: _Draft | None = None

    @classmethod
    def open(cls, disk: Disk, *, cluster_id: bytes) -> SnapshotStore:
        """Return the store of a directory; nothing is written before the first snapshot is."""
        return cls(disk, cluster_id)

    # -- reading
    def newest_first(self) -> Iterator[Snapshot]:
        """Yield the snapshots that are not known to be damaged, the newest first.

        Raises: NewerFormat, ForeignDirectory.
        """
        for index in self._indexes():
            if index not in self.damaged:
                try:
                    meta = self._read_manifest(index)
                except SnapshotDamaged as damage:
                    self._note(damage)
                else:
                    yield Snapshot(meta, self._disk, _named(index), self._note)

    def latest(self) -> Snapshot | None:
        """Return the first of `newest_first`, or None. Raises as that does."""
        return next(self.newest_first(), None)

    def oldest_index(self) -> int:
        """Return the index of the oldest snapshot that is kept; 0 without any."""
        return min(self._indexes(), default=0)

    def _indexes(self) -> list[int]:
        """Return the indexes of all snapshots, the newest first."""
        return [int(name) for name in reversed(self._disk.names(_DIRECTORY)) if name.isdigit()]

    def _note(self, damage: SnapshotDamaged) -> None:
        self.damaged[damage.index] = damage

    def _read_manifest(self, index: int) -> Manifest:
        name = f"{_named(index)}/{_MANIFEST}"
        if not self._disk.exists(name):
            raise SnapshotDamaged(index, _MANIFEST, "it is missing")
        data = _read(self._disk, name)
        body = data[len(_MAGIC) + _DIGEST_SIZE :]
        digest = data[len(_MAGIC) : len(_MAGIC) + _DIGEST_SIZE]
        if data[: len(_MAGIC)] != _MAGIC or digest != hashlib.sha256(body).digest():
            raise SnapshotDamaged(index, _MANIFEST, "its digest does not match")
        meta = _decode_manifest(index, body)
        if meta.cluster_id != self._cluster_id:
            raise ForeignDirectory(
                f"{name} belongs to cluster {meta.cluster_id.hex()}, and this is "
                f"{self._cluster_id.hex()}; nothing was changed"
            )
        if meta.index != index:
            raise SnapshotDamaged(index, _MANIFEST, f"it is of the snapshot at {meta.index}")
        return meta

    # -- writing
    def write(self, meta: Manifest, chunks: Iterable[tuple[str, bytes]]) -> Snapshot:
        """Write a snapshot; it counts once this returns. Older ones but one are removed.

        Raises: DiskFault; what was there before still counts.
        """
        draft = _Draft(self._disk, meta, _WRITING)
        infos = []
        unsynced = 0
        for name, data in chunks:
            infos.append(ChunkInfo(name, len(data), hashlib.sha256(data).digest()))
            draft.append(data)
            unsynced += len(data)
            if unsynced >= SYNC_BYTES:
                draft.sync()
                unsynced = 0
        draft.meta = msgspec.structs.replace(meta, chunks=tuple(infos))
        return self._finish(draft)

    def _finish(self, draft: _Draft) -> Snapshot:
        meta = draft.meta
        body = _ENCODER.encode(meta)
        draft.finish(_MAGIC + hashlib.sha256(body).digest() + body)
        self._remove(_named(meta.index))
        self._disk.rename(draft.directory, _named(meta.index))
        self._disk.sync_dir(_DIRECTORY)
        self.damaged.pop(meta.index, None)
        self._prune()
        return Snapshot(meta, self._disk, _named(meta.index), self._note)

    def _prune(self) -> None:
        """Remove damaged snapshots, and all but the newest two others."""
        whole = 0
        for index in self._indexes():
            whole += index not in self.damaged
            if index in self.damaged or whole > KEPT:
                self._remove(_named(index))

    def _remove(self, directory: str) -> None:
        """Remove a snapshot; it loses its name first, so that half of one never counts."""
        _remove_drafts(self._disk, _REMOVING)
        if self._disk.exists(directory):
            with _unless_gone():
                self._disk.rename(directory, f"{directory}{_REMOVING}")
            self._disk.sync_dir(_DIRECTORY)
            _remove_drafts(self._disk, _REMOVING)

    # -- receiving
    def begin_receive(self, manifest: bytes) -> bool:
        """Begin to take a peer's snapshot: its manifest, then the chunks in order.

        False when these bytes are no manifest of this cluster; nothing was begun.

        Raises: NewerFormat.
        """
        if self._receiving is not None:
            self._receiving.close()
            self._receiving = None
        try:
            meta = _decode_manifest(0, manifest)
        except SnapshotDamaged:
            return False
        if meta.cluster_id != self._cluster_id:
            return False
        self._receiving = _Draft(self._disk, meta, _RECEIVING)
        return True

    def write_received(self, number: int, data: bytes) -> bool:
        """Write a chunk of the snapshot being received; it is durable when this returns True.

        False when it is not the next one that the manifest names, or was changed on its way: it is
        to be sent again. One that is here already is as good.
        """
        draft = self._receiving
        if draft is None or not 0 < number <= len(draft.meta.chunks):
            return False
        info = draft.meta.chunks[number - 1]
        if len(data) != info.size or hashlib.sha256(data).digest() != info.digest:
            return False
        if number > draft.count + 1:
            return False
        if number == draft.count + 1:
            draft.append(data)
            draft.sync()
        return True

    def finish_receive(self) -> Snapshot:
        """Let the received snapshot count; all its chunks are there.

        Until `installed`, a start finds in `installing` that the log still has to follow.

        Raises: SnapshotDamaged when a chunk is lacking; nothing was changed.
        """
        draft, self._receiving = self._receiving, None
        if draft is None or draft.count < len(draft.meta.chunks):
            index = 0 if draft is None else draft.meta.index
            raise SnapshotDamaged(index, _CHUNKS, "not all of them were received")
        if self._disk.exists(_INSTALLING):
            self._disk.remove(_INSTALLING)
        _write(self._disk, _INSTALLING, b"%d" % draft.meta.index)
        self._disk.sync_dir(_DIRECTORY)
        return self._finish(draft)

    @property
    def installing(self) -> Snapshot | None:
        """The received snapshot that was taking the log's place when the process ended."""
        if not self._disk.exists(_INSTALLING):
            return None
        text = _read(self._disk, _INSTALLING)
        return next((each for each in self.newest_first() if text == b"%d" % each.index), None)

    def installed(self) -> None:
        """Take note, durably, that ledger and write-ahead log go on behind the snapshot."""
        if self._disk.exists(_INSTALLING):
            self._disk.remove(_INSTALLING)
            self._disk.sync_dir(_DIRECTORY)


class _Draft:
    """A snapshot without its name, in place of interrupted drafts of the same kind."""

    def __init__(self, disk: Disk, meta: Manifest, kind: str) -> None:
        self.meta = meta
        self.directory = f"{_named(meta.index)}{kind}"
        self.count = 0
        """Chunks that are here."""
        self._disk = disk
        self._end = 0
        disk.make_dir(_DIRECTORY)
        disk.sync_dir("")
        _remove_drafts(disk, kind)
        disk.make_dir(self.directory)
        self._file = disk.open(f"{self.directory}/{_CHUNKS}", create=True)

    def append(self, data: bytes) -> None:
        """Write the next chunk."""
        self._file.write_at(self._end, data)
        self._end += len(data)
        self.count += 1

    def sync(self) -> None:
        """Make the chunks durable."""
        self._file.sync()

    def finish(self, manifest: bytes) -> None:
        """Write the manifest; everything but the name is durable when this returns."""
        self.sync()
        self.close()
        _write(self._disk, f"{self.directory}/{_MANIFEST}", manifest)
        self._disk.sync_dir(self.directory)

    def close(self) -> None:
        """Close the file of chunks."""
        self._file.close()


def _remove_drafts(disk: Disk, kind: str) -> None:
    """Remove the directories of a kind that counts for nothing."""
    for name in disk.names(_DIRECTORY):
        if name.endswith(kind):
            for inner in disk.names(f"{_DIRECTORY}/{name}"):
                with _unless_gone():
                    disk.remove(f"{_DIRECTORY}/{name}/{inner}")
            with _unless_gone():
                disk.remove(f"{_DIRECTORY}/{name}")


@contextmanager
def _unless_gone() -> Iterator[None]:
    """Pass over what the other process removed at the same time."""
    try:
        yield
    except DiskFault as fault:
        if fault.errno != errno.ENOENT:
            raise


def _named(index: int) -> str:
    return f"{_DIRECTORY}/{index:020d}"


def _decode_manifest(index: int, body: bytes) -> Manifest:
    try:
        match msgspec.msgpack.decode(body):
            case [int() as form, *_] if form > SNAPSHOT_FORMAT:
                raise NewerFormat(
                    f"the snapshot at {index} has format {form}, written by a newer release; this "
                    f"one reads up to {SNAPSHOT_FORMAT}, and changed nothing"
                )
        return _DECODER.decode(body)
    except msgspec.MsgspecError as error:
        raise SnapshotDamaged(index, _MANIFEST, f"it can't be read: {error}") from error


def _read(disk: Disk, name: str) -> bytes:
    file = disk.open(name)
    try:
        return file.read_at(0, file.size())
    finally:
        file.close()


def _write(disk: Disk, name: str, data: bytes) -> None:
    file = disk.open(name, create=True)
    try:
        file.write_at(0, data)
        file.sync()
    finally:
        file.close()
