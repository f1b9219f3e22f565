"""Ledger segments as files: one that grows, and one that is sealed. Both read alike."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from hashlib import sha256
from typing import Protocol

from spur.consensus.disk import Disk, File
from spur.consensus.faults import DiskFault, LedgerDamaged
from spur.consensus.genesis import Genesis
from spur.consensus.segments import (
    SEAL_SIZE,
    START_SIZE,
    Frame,
    RecordWalk,
    Seal,
    SegmentStart,
    chain_in_record,
    decode_entries,
    decode_frames,
    decode_seal,
    encode_records,
    encode_start,
    frame_of,
    inflate,
    skip_records,
    table_size,
)
from spur.events.envelope import Entry

__all__ = [
    "DIRECTORY",
    "FrameCache",
    "RawSegment",
    "SealedSegment",
    "Segment",
    "raw_name",
    "read_part",
    "read_whole",
    "sealed_name",
    "write_new",
]

DIRECTORY = "ledger"


def raw_name(number: int) -> str:
    """Return the file name of a segment that grows."""
    return f"{DIRECTORY}/{number:012d}.raw"


def sealed_name(number: int) -> str:
    """Return the file name of a sealed segment."""
    return f"{DIRECTORY}/{number:012d}.sealed"


def read_whole(disk: Disk, name: str) -> bytes:
    """Return all bytes of a file."""
    file = disk.open(name)
    try:
        return file.read_at(0, file.size())
    finally:
        file.close()


def read_part(disk: Disk, name: str, offset: int, size: int) -> bytes:
    """Return some bytes of a file."""
    file = disk.open(name)
    try:
        return file.read_at(offset, size)
    finally:
        file.close()


def write_new(disk: Disk, name: str, data: bytes) -> None:
    """Put a file of these bytes in the place of `name`; it is durable when this returns."""
    draft = f"{name}.new"
    if disk.exists(draft):
        disk.remove(draft)
    file = disk.open(draft, create=True)
    try:
        file.write_at(0, data)
        file.sync()
    finally:
        file.close()
    disk.rename(draft, name)
    disk.sync_dir(DIRECTORY)


class Segment(Protocol):
    """What both kinds of segment answer."""

    @property
    def start(self) -> SegmentStart: ...

    @property
    def last(self) -> int:
        """Index of its last entry; before `start.first` while it has none."""
        ...

    @property
    def chain(self) -> bytes:
        """The chain behind its last entry."""
        ...

    @property
    def last_term(self) -> int: ...

    def read(self, first: int, last: int, bytes_max: int) -> tuple[list[Entry], int]:
        """Return entries from first, both inside, and the bytes of their bodies; one at least."""
        ...

    def chain_at(self, index: int) -> bytes:
        """Return the chain behind an entry inside."""
        ...

    def whole(self) -> bytes:
        """Return the segment's bytes, not compressed."""
        ...


class RawSegment:
    """A segment that grows, or is full and not sealed yet."""

    def __init__(self, file: File, start: SegmentStart, walk: RecordWalk) -> None:
        self.start = start
        self._file = file
        self._offsets = walk.offsets
        self._size = walk.offset
        self.chain = walk.chain
        self.last_term = walk.term
        self.is_synced = True

    @classmethod
    def create(cls, disk: Disk, genesis: Genesis, start: SegmentStart) -> RawSegment:
        """Make an empty one, durable with its name; it replaces what has that name."""
        name = raw_name(start.number)
        write_new(disk, name, encode_start(genesis, start))
        return cls(disk.open(name), start, RecordWalk(start))

    @property
    def last(self) -> int:
        return self.start.first + len(self._offsets) - 1

    def append(self, entries: Sequence[Entry]) -> None:
        """Write entries behind the last; they belong into this segment."""
        offsets = array("Q")
        data, chain = encode_records(entries, self.chain, self._size, offsets)
        self.is_synced = False
        self._file.write_at(self._size, data)
        self._offsets.extend(offsets)
        self._size += len(data)
        self.chain, self.last_term = chain, entries[-1].term

    def sync(self) -> None:
        """Make everything in it durable."""
        if not self.is_synced:
            self._file.sync()
            self.is_synced = True

    def read(self, first: int, last: int, bytes_max: int) -> tuple[list[Entry], int]:
        offsets, position = self._offsets, first - self.start.first
        begin = offsets[position]
        stop = bisect_left(offsets, begin + max(bytes_max, 1), position + 1)
        stop = min(stop, last - self.start.first + 1)
        end = offsets[stop] if stop < len(offsets) else self._size
        data = self._file.read_at(begin, end - begin)
        entries, taken = decode_entries(
            self.start.number, data, begin, 0, first, self.start.first + stop - 1, bytes_max
        )
        if not entries:
            raise LedgerDamaged(self.start.number, begin, first, "it ends before this entry")
        return entries, taken

    def chain_at(self, index: int) -> bytes:
        position = index - self.start.first
        begin = self._offsets[position]
        after = position + 1
        end = self._offsets[after] if after < len(self._offsets) else self._size
        data = self._file.read_at(begin, end - begin)
        return chain_in_record(self.start.number, data, begin, index)

    def whole(self) -> bytes:
        return self._file.read_at(0, self._size)

    def close(self) -> None:
        """Close the file; nothing is written."""
        self._file.close()


class FrameCache:
    """The last frame that was inflated: reading in order inflates each one once."""

    def __init__(self) -> None:
        self._key = (0, 0)
        self._piece = b""

    def get(self, number: int, position: int) -> bytes | None:
        """Return the piece if it is the last one."""
        return self._piece if self._key == (number, position) else None

    def put(self, number: int, position: int, piece: bytes) -> None:
        """Keep this piece instead of the one before."""
        self._key, self._piece = (number, position), piece

    def drop(self) -> None:
        """Forget it: a file was replaced."""
        self._key, self._piece = (0, 0), b""


class SealedSegment:
    """A segment that is kept for ever."""

    def __init__(self, disk: Disk, seal: Seal, cache: FrameCache) -> None:
        self.seal = seal
        self.start = seal.start
        self.last = seal.last
        self.last_term = seal.last_term
        self.chain = seal.chain
        self._disk = disk
        self._cache = cache
        self._frames: list[Frame] | None = None

    @classmethod
    def open(cls, disk: Disk, genesis: Genesis, number: int, cache: FrameCache) -> SealedSegment:
        """Read the seal.

        Raises: LedgerDamaged, ForeignDirectory, NewerFormat.
        """
        try:
            data = read_part(disk, sealed_name(number), 0, SEAL_SIZE)
        except DiskFault as fault:
            first = (number - 1) * genesis.segment_entries + 1
            raise LedgerDamaged(number, 0, first, str(fault)) from fault
        return cls(disk, decode_seal(genesis, number, data), cache)

    def read(self, first: int, last: int, bytes_max: int) -> tuple[list[Entry], int]:
        frames = self._table()
        position = frame_of(frames, first)
        frame, piece = frames[position], self._piece(position)
        at = self._find(frame, piece, first)
        return decode_entries(
            self.start.number,
            piece,
            frame.offset,
            at,
            first,
            last,
            bytes_max,
            is_checked=True,
        )

    def chain_at(self, index: int) -> bytes:
        frames = self._table()
        position = frame_of(frames, index)
        frame, piece = frames[position], self._piece(position)
        at = self._find(frame, piece, index)
        return chain_in_record(self.start.number, piece[at:], frame.offset + at, index)

    def whole(self) -> bytes:
        frames = self._table()
        file = self._disk.open(sealed_name(self.start.number))
        try:
            data = b"".join(
                inflate(self.start.number, each, file.read_at(each.stored_at, each.stored_size))
                for each in frames
            )
        finally:
            file.close()
        if len(data) != self.seal.size or sha256(data).digest() != self.seal.digest:
            raise LedgerDamaged(
                self.start.number, 0, self.start.first, "its bytes do not match its digest"
            )
        return data

    def _table(self) -> list[Frame]:
        if self._frames is None:
            name = sealed_name(self.start.number)
            data = read_part(self._disk, name, SEAL_SIZE, table_size(self.seal.frames))
            self._frames = decode_frames(self.seal, data)
        return self._frames

    def _piece(self, position: int) -> bytes:
        number, frame = self.start.number, self._table()[position]
        piece = self._cache.get(number, position)
        if piece is None:
            name = sealed_name(number)
            stored = read_part(self._disk, name, frame.stored_at, frame.stored_size)
            piece = inflate(number, frame, stored)
            self._cache.put(number, position, piece)
        return piece

    def _find(self, frame: Frame, piece: bytes, index: int) -> int:
        """Return where entry `index` begins in the piece of its frame."""
        at = START_SIZE if frame.offset == 0 else 0
        return skip_records(self.start.number, piece, frame.offset, at, frame.first, index)
