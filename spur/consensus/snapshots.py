"""Snapshots: a state at an index, in chunks; a cache of what the ledger says.

    snapshots/00000000000000012345/chunk-000001   chunks, each synced
                                   manifest       last, under its name once all of it is durable

A directory without a manifest is what an interruption left; it counts for nothing. Two snapshots
are kept: should the newer one be damaged, the older one and the ledger serve.
Source: LOG-CONTRACT 5.7.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from spur.consensus.disk import Disk
from spur.consensus.faults import NewerFormat, SnapshotDamaged

__all__ = ["KEPT", "LIVE_BLOBS", "ChunkInfo", "Manifest", "Snapshot", "SnapshotStore"]

LIVE_BLOBS = "live-blobs"
"""Name of the chunks that list the digests of the blobs which the state refers to."""

KEPT = 2
"""Snapshots that are kept."""

SNAPSHOT_FORMAT = 1

_DIRECTORY = "snapshots"
_MANIFEST = "manifest"
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
        """Return a chunk, counted from 1. Raises: SnapshotDamaged."""
        info = self.meta.chunks[number - 1]
        name = f"chunk {number}"
        path = _chunk_path(self._directory, number)
        if not self._disk.exists(path):
            raise SnapshotDamaged(self.index, name, "it is missing")
        data = _read(self._disk, path)
        if len(data) != info.size or hashlib.sha256(data).digest() != info.digest:
            raise SnapshotDamaged(self.index, name, "its digest is not the manifest's")
        return data

    def chunks(self) -> Iterator[tuple[str, bytes]]:
        """Yield name and bytes of every chunk of the state. Raises: SnapshotDamaged."""
        for number, info in enumerate(self.meta.chunks, 1):
            if info.name != LIVE_BLOBS:
                yield info.name, self.chunk(number)

    def live_blobs(self) -> set[bytes]:
        """Return the digests of the blobs that the state refers to. Raises: SnapshotDamaged."""
        found: set[bytes] = set()
        for number, info in enumerate(self.meta.chunks, 1):
            if info.name == LIVE_BLOBS:
                data = self.chunk(number)
                found.update(
                    data[at : at + _DIGEST_SIZE] for at in range(0, len(data), _DIGEST_SIZE)
                )
        return found


class SnapshotStore:
    """The snapshots of one replica's directory."""

    def __init__(self, disk: Disk) -> None:
        self.damaged: dict[int, SnapshotDamaged] = {}
        """Snapshots whose manifest cannot be read, by index."""
        self._disk = disk
        self._receiving: Manifest | None = None

    @classmethod
    def open(cls, disk: Disk) -> SnapshotStore:
        """Return the store of a directory; nothing is written before the first snapshot is."""
        return cls(disk)

    def newest_first(self) -> Iterator[Snapshot]:
        """Yield the snapshots whose manifest can be read, the newest first.

        Raises: NewerFormat.
        """
        for name in reversed(self._disk.names(_DIRECTORY)):
            directory = f"{_DIRECTORY}/{name}"
            if self._disk.exists(f"{directory}/{_MANIFEST}"):
                try:
                    meta = self._read_manifest(directory, int(name))
                except SnapshotDamaged as damage:
                    self.damaged[damage.index] = damage
                    continue
                yield Snapshot(meta, self._disk, directory)

    def latest(self) -> Snapshot | None:
        """Return the newest snapshot, or None. Raises: NewerFormat."""
        return next(self.newest_first(), None)

    def _read_manifest(self, directory: str, index: int) -> Manifest:
        data = _read(self._disk, f"{directory}/{_MANIFEST}")
        body = data[len(_MAGIC) + _DIGEST_SIZE :]
        if data[: len(_MAGIC)] != _MAGIC or data[len(_MAGIC) :][:_DIGEST_SIZE] != (
            hashlib.sha256(body).digest()
        ):
            raise SnapshotDamaged(index, _MANIFEST, "its digest does not match")
        return _decode_manifest(body)

    # -- writing
    def write(self, meta: Manifest, chunks: Iterable[tuple[str, bytes]]) -> Snapshot:
        """Write a snapshot; it counts once this returns. Older ones but one are removed.

        Raises: DiskFault; what was there before still counts.
        """
        directory = self._begin(meta.index)
        infos = []
        for number, (name, data) in enumerate(chunks, 1):
            _write(self._disk, _chunk_path(directory, number), data)
            infos.append(ChunkInfo(name, len(data), hashlib.sha256(data).digest()))
        return self._finish(directory, msgspec.structs.replace(meta, chunks=tuple(infos)))

    def _begin(self, index: int) -> str:
        disk, directory = self._disk, f"{_DIRECTORY}/{index:020d}"
        disk.make_dir(_DIRECTORY)
        disk.sync_dir("")
        self._remove(directory)
        disk.make_dir(directory)
        disk.sync_dir(_DIRECTORY)
        return directory

    def _finish(self, directory: str, meta: Manifest) -> Snapshot:
        disk, body = self._disk, _ENCODER.encode(meta)
        disk.sync_dir(directory)
        fresh = f"{directory}/{_MANIFEST}.new"
        _write(disk, fresh, _MAGIC + hashlib.sha256(body).digest() + body)
        disk.rename(fresh, f"{directory}/{_MANIFEST}")
        disk.sync_dir(directory)
        self._prune(keep=directory)
        return Snapshot(meta, disk, directory)

    def _prune(self, *, keep: str) -> None:
        """Remove all but the newest two that are whole, and what interruptions left."""
        whole = 0
        for name in reversed(self._disk.names(_DIRECTORY)):
            directory = f"{_DIRECTORY}/{name}"
            is_whole = self._disk.exists(f"{directory}/{_MANIFEST}")
            whole += is_whole
            if directory != keep and (not is_whole or whole > KEPT):
                self._remove(directory)

    def _remove(self, directory: str) -> None:
        """Remove a snapshot, its manifest first, so that half of one never counts."""
        disk = self._disk
        names = disk.names(directory)
        if not names and not disk.exists(directory):
            return
        if _MANIFEST in names:
            disk.remove(f"{directory}/{_MANIFEST}")
            disk.sync_dir(directory)
            names.remove(_MANIFEST)
        for name in names:
            disk.remove(f"{directory}/{name}")
        disk.remove(directory)
        disk.sync_dir(_DIRECTORY)

    # -- receiving
    def begin_receive(self, manifest: bytes) -> None:
        """Begin to take a peer's snapshot: its manifest, then the chunks in order.

        Raises: SnapshotDamaged when it is no manifest.
        """
        self._receiving = meta = _decode_manifest(manifest)
        self._begin(meta.index)

    def write_received(self, number: int, data: bytes) -> None:
        """Write a chunk of the snapshot being received.

        Raises: SnapshotDamaged when it is not what the manifest says; it is to be sent again.
        """
        meta = self._require_receiving()
        info = meta.chunks[number - 1] if number <= len(meta.chunks) else None
        if info is None or hashlib.sha256(data).digest() != info.digest:
            raise SnapshotDamaged(meta.index, f"chunk {number}", "it was changed on its way")
        path = _chunk_path(f"{_DIRECTORY}/{meta.index:020d}", number)
        if self._disk.exists(path):
            self._disk.remove(path)
        _write(self._disk, path, data)

    def finish_receive(self) -> Snapshot:
        """Let the received snapshot count; all its chunks are there."""
        meta = self._require_receiving()
        self._receiving = None
        return self._finish(f"{_DIRECTORY}/{meta.index:020d}", meta)

    def _require_receiving(self) -> Manifest:
        if self._receiving is None:
            raise SnapshotDamaged(0, _MANIFEST, "a chunk came before the manifest")
        return self._receiving


def _decode_manifest(body: bytes) -> Manifest:
    try:
        meta = _DECODER.decode(body)
    except msgspec.MsgspecError as error:
        raise SnapshotDamaged(0, _MANIFEST, f"it cannot be read: {error}") from error
    if meta.format > SNAPSHOT_FORMAT:
        raise NewerFormat(
            f"the snapshot at {meta.index} has format {meta.format}, written by a newer release;"
            f" this one reads up to {SNAPSHOT_FORMAT}, and changed nothing"
        )
    return meta


def _chunk_path(directory: str, number: int) -> str:
    return f"{directory}/chunk-{number:06d}"


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
