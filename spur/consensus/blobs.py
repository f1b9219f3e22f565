"""Blobs: attachments beside the ledger, in append-only packs that can forget.

    blobs/000001.pack   magic, then records
    record              head: mark, size, digest, CRC-32C of the head; then the blob

A record is never moved. Erasing one overwrites its blob with zeros and its mark with "gone",
punches the space out, and is durable when it returns. Blobs are believed only when their digest
matches, so a damaged one counts as missing and is fetched from a peer. Source: LOG-CONTRACT 2.2.
"""

from __future__ import annotations

import hashlib
import struct
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from crc32c import crc32c

from spur.consensus.disk import Disk, File

__all__ = ["PACK_BYTES", "BlobState", "BlobStore", "blob_digest"]

PACK_BYTES = 64 << 20
"""A pack that is this long is followed by another."""

_DIRECTORY = "blobs"
_MAGIC = b"SPURBLB\x01"
_HEAD = struct.Struct(">4sI32s")
_HEAD_SIZE = _HEAD.size + 4
_HELD = b"HELD"
_GONE = b"GONE"


class BlobState(Enum):
    """What a replica knows of a blob."""

    HELD = "held"
    GONE = "gone"
    """Erased for good: nobody is asked for it."""
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class _Place:
    pack: int
    offset: int
    """Of the head."""
    size: int
    is_gone: bool


def blob_digest(blob: bytes) -> bytes:
    """Return the digest of a blob, its 16 random bytes included."""
    return hashlib.sha256(blob).digest()


class BlobStore:
    """The packs of one replica's directory. Several threads may use it."""

    def __init__(self, disk: Disk, pack_bytes: int) -> None:
        self._disk = disk
        self._pack_bytes = pack_bytes
        self._places: dict[bytes, _Place] = {}
        """In the order in which the blobs were put."""
        self._files: dict[int, File] = {}
        self._end = 0
        self._unsynced = False
        self._guard = threading.RLock()

    @classmethod
    def open(cls, disk: Disk, *, pack_bytes: int = PACK_BYTES) -> BlobStore:
        """Read the heads of all packs; a torn tail is cut, its blobs count as missing."""
        store = cls(disk, pack_bytes)
        for name in disk.names(_DIRECTORY):
            if name.endswith(".pack"):
                store._scan(int(name.removesuffix(".pack")))
        return store

    def _scan(self, pack: int) -> None:
        file = self._files[pack] = self._disk.open(_name(pack))
        size, offset = file.size(), len(_MAGIC)
        while offset + _HEAD_SIZE <= size:
            head = _read_head(file, offset)
            if head is None or offset + _HEAD_SIZE + head[1] > size:
                break
            mark, length, digest = head
            place = _Place(pack, offset, length, mark == _GONE)
            if place.is_gone or digest not in self._places:
                self._places[digest] = place
            offset += _HEAD_SIZE + length
        self._end = min(max(offset, len(_MAGIC)), size)

    def close(self) -> None:
        """Close the files; nothing is written."""
        with self._guard:
            for file in self._files.values():
                file.close()
            self._files.clear()

    # -- reading
    def state(self, digest: bytes) -> BlobState:
        """Return whether the blob is here; a damaged one is found out by `get`."""
        with self._guard:
            place = self._places.get(digest)
        if place is None:
            return BlobState.MISSING
        return BlobState.GONE if place.is_gone else BlobState.HELD

    def get(self, digest: bytes) -> bytes | None:
        """Return a blob, or None when it is gone, missing or damaged.

        A damaged one counts as missing from then on.
        """
        with self._guard:
            place = self._places.get(digest)
            if place is None or place.is_gone:
                return None
            blob = self._files[place.pack].read_at(place.offset + _HEAD_SIZE, place.size)
            if blob_digest(blob) != digest:
                del self._places[digest]
                return None
            return blob

    def held(self) -> list[bytes]:
        """Return the digests of the blobs that are here, in the order they were put."""
        with self._guard:
            return [digest for digest, place in self._places.items() if not place.is_gone]

    def verify(self) -> list[bytes]:
        """Read everything and return the digests of damaged blobs."""
        return [digest for digest in self.held() if self.get(digest) is None]

    # -- writing
    def put(self, blobs: Iterable[bytes]) -> None:
        """Append blobs that are not here yet, nor gone; durable after `sync`."""
        with self._guard:
            records: list[bytes] = []
            for blob in blobs:
                digest = blob_digest(blob)
                if digest not in self._places:
                    pack = self._pack_for(sum(map(len, records)))
                    offset = self._end + sum(map(len, records))
                    self._places[digest] = _Place(pack, offset, len(blob), False)
                    records += (_head(_HELD, len(blob), digest), blob)
                    if offset + _HEAD_SIZE + len(blob) >= self._pack_bytes:
                        self._flush(pack, records)
                        records = []
            if records:
                self._flush(max(self._files), records)

    def _pack_for(self, waiting: int) -> int:
        """Return the pack to append to, a new one when the last is full."""
        if self._files and self._end + waiting < self._pack_bytes:
            return max(self._files)
        if self._unsynced:
            self.sync()
        pack = max(self._files, default=0) + 1
        self._disk.make_dir(_DIRECTORY)
        self._disk.sync_dir("")
        file = self._disk.open(_name(pack), create=True)
        file.write_at(0, _MAGIC)
        self._files[pack] = file
        self._end, self._unsynced = len(_MAGIC), True
        self._disk.sync_dir(_DIRECTORY)
        return pack

    def _flush(self, pack: int, records: Sequence[bytes]) -> None:
        data = b"".join(records)
        self._files[pack].write_at(self._end, data)
        self._end += len(data)
        self._unsynced = True

    def sync(self) -> None:
        """Make everything that was put durable."""
        with self._guard:
            if self._unsynced:
                self._files[max(self._files)].sync()
                self._unsynced = False

    def erase(self, digests: Iterable[bytes]) -> None:
        """Erase blobs for good, durably; one that is not here is left alone."""
        with self._guard:
            touched = set()
            for digest in digests:
                place = self._places.get(digest)
                if place is None or place.is_gone:
                    continue
                file = self._files[place.pack]
                file.zero(place.offset + _HEAD_SIZE, place.size)
                file.write_at(place.offset, _head(_GONE, place.size, digest))
                file.punch(place.offset + _HEAD_SIZE, place.size)
                self._places[digest] = _Place(place.pack, place.offset, place.size, True)
                touched.add(place.pack)
            for pack in sorted(touched):
                self._files[pack].sync()


def _name(pack: int) -> str:
    return f"{_DIRECTORY}/{pack:06d}.pack"


def _head(mark: bytes, size: int, digest: bytes) -> bytes:
    head = _HEAD.pack(mark, size, digest)
    return head + int(crc32c(head)).to_bytes(4, "big")


def _read_head(file: File, offset: int) -> tuple[bytes, int, bytes] | None:
    """Return mark, size and digest; None for what is no head."""
    data = file.read_at(offset, _HEAD_SIZE)
    head = data[: _HEAD.size]
    if int.from_bytes(data[_HEAD.size :], "big") != crc32c(head):
        return None
    mark, size, digest = _HEAD.unpack(head)
    return (mark, size, digest) if mark in (_HELD, _GONE) else None
