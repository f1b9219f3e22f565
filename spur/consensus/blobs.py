"""Blobs: attachments beside the ledger, in append-only packs that can forget.

    blobs/000001.pack   records of blobs; see `packs`

A record is never moved while its blob is held. Erasing first marks the head, durably; only then is
the blob overwritten with zeros and its space given back. A start finishes what an interruption left
half done. The marks stay, so that nobody asks for an erased blob again; a pack that holds nothing
else shrinks to them.

Only the last pack can hold what was not synced. A start drops what is torn there, and writes the
rest once more: if a sync had failed before, the page cache may show what the disk does not hold. A
blob is believed only when its digest matches; a damaged one counts as missing and is fetched from a
peer.

Source: LOG-CONTRACT 2.1, 2.2, 2.4, 5.4.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum

from crc32c import crc32c

from spur.consensus.disk import Disk, File, numbers_of
from spur.consensus.faults import DiskFault
from spur.consensus.packs import (
    GOING,
    GONE,
    HEAD_SIZE,
    HELD,
    START_SIZE,
    Head,
    aligned,
    encode_head,
    encode_start,
    heads,
    seed_of,
)
from spur.values.errors import InvariantBroken

__all__ = ["PACK_BYTES", "BlobState", "BlobStore", "blob_digest"]

PACK_BYTES = 64 << 20
"""A pack that is this long is followed by another."""

SALT_SIZE = 16

_DIRECTORY = "blobs"


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
    check: int


@dataclass
class _Pack:
    file: File
    seed: int
    end: int
    """Where the next record begins."""
    is_synced: bool = True
    held: int = 0
    heads: int = 0
    waiting: list[bytes] = field(default_factory=list)
    """Records before `end` that are not written yet; empty outside `put` and `erase`."""


def blob_digest(blob: bytes) -> bytes:
    """Return the digest of a blob, its 16 random bytes included."""
    return hashlib.sha256(blob).digest()


class BlobStore:
    """The packs of one replica's directory. Several threads may use it."""

    def __init__(self, disk: Disk, pack_bytes: int, salt: Callable[[int], bytes]) -> None:
        self.damaged: set[bytes] = set()
        """Digests of blobs that were found damaged; they are missing until put again."""
        self.unreadable: list[str] = []
        """Packs of which not even the start can be read; their blobs are missing."""
        self._disk = disk
        self._pack_bytes = pack_bytes
        self._salt = salt
        self._places: dict[bytes, _Place] = {}
        """In the order in which the blobs were put."""
        self._old_places: dict[bytes, list[_Place]] = {}
        """Damaged records of blobs that were put again; erased with them."""
        self._gone: set[bytes] = set()
        self._packs: dict[int, _Pack] = {}
        self._last = 0
        self._synced_to = 0
        """How far the last pack is durable."""
        self._broken: BaseException | None = None
        self._guard = threading.RLock()

    # -- opening
    @classmethod
    def open(
        cls,
        disk: Disk,
        *,
        pack_bytes: int = PACK_BYTES,
        salt: Callable[[int], bytes] = os.urandom,
    ) -> BlobStore:
        """Read the heads of all packs; what is there is durable when this returns.

        Raises: NewerFormat.
        """
        store = cls(disk, pack_bytes, salt)
        with store._guarded():
            # Always synced: a name that can be seen may be one whose sync failed before.
            disk.make_dir(_DIRECTORY)
            disk.sync_dir("")
            for name in disk.names(_DIRECTORY):
                if name.endswith(".pack.new"):
                    disk.remove(f"{_DIRECTORY}/{name}")
            disk.sync_dir(_DIRECTORY)
            half_erased = store._load()
            store._settle_tail()
            store._overwrite(half_erased)
            for number in sorted(store._packs):
                store._shrink(number)
        return store

    @classmethod
    def view(cls, disk: Disk) -> BlobStore:
        """Open for reading alone, beside a replica that may be running; changes nothing."""
        store = cls(disk, PACK_BYTES, bytes)
        store._load()
        return store

    def _load(self) -> list[tuple[bytes, _Place]]:
        """Read all heads; return what is half erased."""
        half_erased = []
        for number in numbers_of(self._disk.names(_DIRECTORY), "", ".pack"):
            name = _name(number)
            file = self._disk.open(name)
            seed = seed_of(number, file.read_at(0, START_SIZE))
            self._last = max(self._last, number)
            if seed is None:
                self.unreadable.append(name)
                file.close()
                continue
            pack = self._packs[number] = _Pack(file, seed, aligned(max(file.size(), START_SIZE)))
            self._synced_to = START_SIZE
            for offset, head in heads(file, seed):
                pack.heads += 1
                pack.end = max(pack.end, aligned(offset + HEAD_SIZE + head.size))
                self._synced_to = max(self._synced_to, head.synced_to)
                place = _Place(number, offset, head.size, head.check)
                if head.mark == HELD:
                    self._keep(head.digest, place)
                else:
                    self._gone.add(head.digest)
                if head.mark == GOING:
                    half_erased.append((head.digest, place))
        for digest in self._gone & self._places.keys():
            self._packs[self._places.pop(digest).pack].held -= 1
        return half_erased

    def _keep(self, digest: bytes, place: _Place) -> None:
        """Note where a blob is; the latest record of it is the good one."""
        old = self._places.pop(digest, None)
        if old is not None:
            self._packs[old.pack].held -= 1
            self._old_places.setdefault(digest, []).append(old)
        self._places[digest] = place
        self._packs[place.pack].held += 1

    def _settle_tail(self) -> None:
        """Write the part of the last pack that may never have been synced anew, without torn blobs.

        What is dropped becomes zeros: it was never synced, and is put again under another head.
        """
        pack = self._packs.get(self._last)
        if pack is None:
            return
        begin = self._synced_to
        tail = pack.file.read_at(begin, pack.end - begin)
        fresh = bytearray(pack.end - begin)
        for offset, head in heads(pack.file, pack.seed, begin):
            at = offset - begin
            stop = at + HEAD_SIZE + head.size
            blob = tail[at + HEAD_SIZE : stop]
            if head.mark != HELD or (len(blob) == head.size and crc32c(blob) == head.check):
                fresh[at:stop] = tail[at:stop].ljust(stop - at, b"\0")
                continue
            if self._places.get(head.digest) == _Place(self._last, offset, head.size, head.check):
                del self._places[head.digest]
                pack.held -= 1
        if fresh:
            pack.file.write_at(begin, fresh)
        pack.file.sync()
        self._synced_to = pack.end

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        with self._guard:
            if self._broken is not None:
                raise InvariantBroken(
                    f"the blob store failed before ({self._broken}); nothing was written"
                ) from self._broken
            try:
                yield
            except BaseException as error:
                self._broken = error
                raise

    def close(self) -> None:
        """Close the files; nothing is written."""
        with self._guard:
            for pack in self._packs.values():
                pack.file.close()
            self._packs.clear()

    # -- reading
    def state(self, digest: bytes) -> BlobState:
        """Return whether the blob is here; a damaged one is found out by `get`."""
        with self._guard:
            if digest in self._places:
                return BlobState.HELD
            return BlobState.GONE if digest in self._gone else BlobState.MISSING

    def get(self, digest: bytes) -> bytes | None:
        """Return a blob, or None when it is gone, missing or damaged.

        A damaged one counts as missing from then on.
        """
        with self._guard:
            place = self._places.get(digest)
            if place is None:
                return None
            pack = self._packs[place.pack]
            try:
                blob = pack.file.read_at(place.offset + HEAD_SIZE, place.size)
            except DiskFault:
                blob = b""
            if blob_digest(blob) == digest:
                return blob
            del self._places[digest]
            pack.held -= 1
            self._old_places.setdefault(digest, []).append(place)
            self.damaged.add(digest)
            return None

    def held(self) -> list[bytes]:
        """Return the digests of the blobs that are here, in the order they were put."""
        with self._guard:
            return list(self._places)

    def verify(self) -> list[bytes]:
        """Read everything and return the digests of all damaged blobs."""
        for digest in self.held():
            self.get(digest)
        return sorted(self.damaged)

    # -- writing
    def put(self, blobs: Iterable[bytes]) -> None:
        """Append blobs that are not here yet, nor gone; durable after `sync`.

        An error leaves the store unusable, as it does in `sync` and `erase`: the process is to end.
        """
        with self._guarded():
            for blob in blobs:
                digest = blob_digest(blob)
                if digest not in self._places and digest not in self._gone:
                    place = self._queue(HELD, digest, blob)
                    self._keep(digest, place)
                    self.damaged.discard(digest)
            self._flush()

    def sync(self) -> None:
        """Make everything that was put durable."""
        with self._guarded():
            self._sync([self._last])

    def erase(self, digests: Iterable[bytes]) -> None:
        """Erase blobs for good, durably; one that is not here is never taken any more."""
        with self._guarded():
            erased: list[tuple[bytes, _Place]] = []
            for digest in digests:
                places = self._old_places.pop(digest, [])
                place = self._places.pop(digest, None)
                if place is not None:
                    self._packs[place.pack].held -= 1
                    places.append(place)
                elif not places and digest not in self._gone:
                    self._queue(GONE, digest, b"")
                self._gone.add(digest)
                self.damaged.discard(digest)
                erased += [(digest, each) for each in places]
            self._flush()
            self._sync([self._last])
            self._overwrite(erased)
            for number in {place.pack for _, place in erased}:
                self._shrink(number)

    def _queue(self, mark: bytes, digest: bytes, blob: bytes) -> _Place:
        pack = self._packs.get(self._last)
        if pack is None or pack.end >= self._pack_bytes:
            pack = self._begin_pack()
        head = Head(mark, len(blob), digest, self._synced_to, int(crc32c(blob)))
        place = _Place(self._last, pack.end, head.size, head.check)
        pack.waiting += (encode_head(pack.seed, head), blob, b"\0" * (-len(blob) % HEAD_SIZE))
        pack.end = aligned(pack.end + HEAD_SIZE + len(blob))
        pack.heads += 1
        return place

    def _flush(self) -> None:
        """Write what waits, in one write."""
        pack = self._packs.get(self._last)
        if pack is not None and pack.waiting:
            data = b"".join(pack.waiting)
            pack.waiting.clear()
            pack.is_synced = False
            pack.file.write_at(pack.end - len(data), data)

    def _begin_pack(self) -> _Pack:
        """Follow a full pack with another; only the last one may hold what is not durable."""
        self._flush()
        self._sync([self._last])
        self._last += 1
        start = encode_start(self._last, self._salt(SALT_SIZE))
        pack = self._packs[self._last] = self._write_pack(self._last, start)
        self._synced_to = START_SIZE
        return pack

    def _write_pack(self, number: int, data: bytes) -> _Pack:
        """Put a pack of these bytes under its name, durably."""
        name = _name(number)
        draft = self._disk.open(f"{name}.new", create=True)
        draft.write_at(0, data)
        draft.sync()
        draft.close()
        self._disk.rename(f"{name}.new", name)
        self._disk.sync_dir(_DIRECTORY)
        seed = seed_of(number, data)
        if seed is None:
            raise InvariantBroken(f"pack {number} was written with a start that can't be read")
        return _Pack(self._disk.open(name), seed, len(data))

    def _sync(self, numbers: Iterable[int]) -> None:
        for number in sorted(numbers):
            pack = self._packs.get(number)
            if pack is not None and not pack.is_synced:
                pack.file.sync()
                pack.is_synced = True
                if number == self._last:
                    self._synced_to = pack.end

    def _mark(self, mark: bytes, digest: bytes, place: _Place) -> None:
        pack = self._packs[place.pack]
        synced_to = self._synced_to if place.pack == self._last else 0
        head = Head(mark, place.size, digest, synced_to, place.check)
        pack.file.write_at(place.offset, encode_head(pack.seed, head))
        pack.is_synced = False

    def _overwrite(self, erased: Sequence[tuple[bytes, _Place]]) -> None:
        """Mark heads, durably, and only then put zeros in the place of their blobs."""
        touched = {place.pack for _, place in erased}
        for digest, place in erased:
            self._mark(GOING, digest, place)
        self._sync(touched)
        for _, place in erased:
            pack = self._packs[place.pack]
            pack.file.zero(place.offset + HEAD_SIZE, place.size)
            pack.is_synced = False
        self._sync(touched)
        for digest, place in erased:
            self._packs[place.pack].file.punch(place.offset + HEAD_SIZE, place.size)
            self._mark(GONE, digest, place)

    def _shrink(self, number: int) -> None:
        """Replace a full pack that holds nothing by one of its marks alone."""
        pack = self._packs[number]
        if pack.held or number == self._last or pack.end <= START_SIZE + pack.heads * HEAD_SIZE:
            return
        start = encode_start(number, self._salt(SALT_SIZE))
        seed = seed_of(number, start) or 0
        marks = [
            encode_head(seed, Head(GONE, 0, head.digest, 0, 0))
            for _, head in heads(pack.file, pack.seed)
            if head.mark in (GOING, GONE)
        ]
        pack.file.close()
        fresh = self._packs[number] = self._write_pack(number, start + b"".join(marks))
        fresh.heads = len(marks)


def _name(number: int) -> str:
    return f"{_DIRECTORY}/{number:06d}.pack"
