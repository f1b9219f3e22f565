"""The bytes of the ledger: segments of records, and the sealed form that is kept for ever.

    segment   start (96 bytes), then records; these bytes are the same on every replica
    record    CRC-32C, chain value h, index, term, kind, length, body
    sealed    seal (256 bytes), table of frames, frames: the segment's bytes in pieces of about
              128 KiB, cut between records and compressed, so any entry is read by inflating one

A record's CRC covers all behind it. From index on, a record is what the chain hashes, so h(i) is
the SHA-256 of the tag, h(i-1) and the record's own bytes. Source: LOG-CONTRACT 1.7, 5.6.
"""

from __future__ import annotations

import struct
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from operator import attrgetter

from crc32c import crc32c

from spur.consensus.faults import ForeignDirectory, LedgerDamaged, NewerFormat
from spur.consensus.genesis import Genesis
from spur.events.envelope import Entry

__all__ = [
    "SEAL_SIZE",
    "START_SIZE",
    "Frame",
    "RecordWalk",
    "Seal",
    "SegmentStart",
    "chain_in_record",
    "decode_entries",
    "decode_frames",
    "decode_seal",
    "decode_start",
    "encode_records",
    "encode_sealed",
    "encode_start",
    "frame_of",
    "inflate",
    "segment_of",
    "skip_records",
    "table_size",
]

BREATH_RECORDS = 256
"""Records walked between two breaths, about half a millisecond."""

FRAME_BYTES = 128 * 1024
"""Bytes of a segment after which a frame ends, at the next record."""

COMPRESSION = 3
"""Level of zlib: on bodies with few repetitions 2.4 times as fast as the default, 1 % larger."""

FORMAT = 1

_CHAIN_TAG = b"spur-ledger"
"""What `chain_next` hashes first; the loops here do its work in place, and a test compares."""

_START_MAGIC = b"SPURLED\x01"
_START = struct.Struct(">8sI16sIQQQ32s")
START_SIZE = 96

_RECORD = struct.Struct(">I32sQQBI")
_CHAINED = struct.Struct(">QQBI")
_HEAD = _RECORD.size
_CHAINED_AT = 4 + 32

_SEAL_MAGIC = b"SPURSEAL"
_SEAL = struct.Struct(">8sI16sIQQQQQ32s32sQ32sI")
SEAL_SIZE = 256
_FRAME = struct.Struct(">QQQII")


@dataclass(frozen=True)
class SegmentStart:
    """What a segment says before its first record."""

    number: int
    first: int
    """Index of its first entry: behind the segment before, or behind a snapshot."""
    term: int
    """Term of the entry before."""
    chain: bytes
    """h of the entry before."""


@dataclass(frozen=True)
class Seal:
    """What a sealed segment says of itself."""

    start: SegmentStart
    last: int
    last_term: int
    chain: bytes
    """h of the last entry."""
    size: int
    """Bytes of the segment, not compressed."""
    digest: bytes
    """SHA-256 of them."""
    frames: int


@dataclass(frozen=True)
class Frame:
    """A compressed piece of a segment."""

    first: int
    """Index of the first record in it."""
    offset: int
    """Where the piece begins in the segment; the first one holds the start as well."""
    stored_at: int
    stored_size: int
    check: int
    """CRC-32C of the stored bytes."""


def segment_of(genesis: Genesis, index: int) -> int:
    """Return the number of the segment that holds this index: by index alone."""
    return (index - 1) // genesis.segment_entries + 1


# -- starts
def encode_start(genesis: Genesis, start: SegmentStart) -> bytes:
    """Return the first bytes of a segment."""
    fixed = _START.pack(
        _START_MAGIC,
        FORMAT,
        genesis.cluster_id,
        genesis.era,
        start.number,
        start.first,
        start.term,
        start.chain,
    )
    return (fixed + int(crc32c(fixed)).to_bytes(4, "big")).ljust(START_SIZE, b"\0")


def decode_start(genesis: Genesis, number: int, data: bytes) -> SegmentStart:
    """Read the start of segment `number`.

    Raises: LedgerDamaged, ForeignDirectory, NewerFormat.
    """
    first = (number - 1) * genesis.segment_entries + 1
    fixed = data[: _START.size]
    if data[_START.size : _START.size + 4] != int(crc32c(fixed)).to_bytes(4, "big"):
        raise LedgerDamaged(number, 0, first, "its start does not match its CRC")
    magic, form, cluster, era, found, begin, term, chain = _START.unpack(fixed)
    _require_ours(genesis, number, form, cluster, era)
    if magic != _START_MAGIC or found != number or segment_of(genesis, begin) != number:
        raise LedgerDamaged(number, 0, first, f"its start is that of segment {found}")
    return SegmentStart(number, begin, term, chain)


def _require_ours(genesis: Genesis, number: int, form: int, cluster: bytes, era: int) -> None:
    if form > FORMAT:
        raise NewerFormat(
            f"ledger segment {number} has format {form}, written by a newer release; this one "
            f"reads up to {FORMAT}, and changed nothing"
        )
    if (cluster, era) != (genesis.cluster_id, genesis.era):
        raise ForeignDirectory(
            f"ledger segment {number} belongs to cluster {cluster.hex()} (era {era}), and this is "
            f"{genesis.cluster_id.hex()} (era {genesis.era}); nothing was changed"
        )


# -- records
def encode_records(
    entries: Sequence[Entry], chain: bytes, offset: int, offsets: array[int]
) -> tuple[bytes, bytes]:
    """Return the records of entries and the chain behind them.

    Where each record begins, from `offset` on, is added to `offsets`.
    """
    parts: list[bytes] = []
    add, pack, tag, head = parts.append, _CHAINED.pack, _CHAIN_TAG, _HEAD
    for entry in entries:
        body = entry.body
        chained = pack(entry.index, entry.term, entry.kind, len(body)) + body
        chain = sha256(tag + chain + chained).digest()
        record = chain + chained
        add(crc32c(record).to_bytes(4, "big"))
        add(record)
        offsets.append(offset)
        offset += head + len(body)
    return b"".join(parts), chain


def decode_entries(
    number: int,
    data: bytes,
    offset: int,
    at: int,
    first: int,
    last: int,
    bytes_max: int,
    *,
    is_checked: bool = False,
) -> tuple[list[Entry], int]:
    """Read entries first to last, or until their bodies reach bytes_max, from a piece of a segment.

    `at` is where entry `first` begins in `data`, `offset` where `data` begins in the segment. Fewer
    come back when `data` ends, or before damage. Returns the bytes of the bodies as well. With
    `is_checked` a CRC of all of `data` was right, and those of its records are not looked at.

    Raises: LedgerDamaged when entry `first` does not match its CRC; the chain is not checked.
    """
    entries: list[Entry] = []
    add, unpack, view, end = entries.append, _RECORD.unpack_from, memoryview(data), len(data)
    taken = 0
    index = first
    while at < end and index <= last:
        body_at = at + _HEAD
        if body_at > end:
            if entries:
                break
            raise LedgerDamaged(number, offset + at, index, "it ends within a record")
        check, _, found, term, kind, length = unpack(data, at)
        stop = body_at + length
        if found != index or stop > end or not (is_checked or crc32c(view[at + 4 : stop]) == check):
            if entries:
                break
            raise LedgerDamaged(number, offset + at, index, "a record does not match its CRC")
        add(Entry(index, term, kind, data[body_at:stop]))
        taken += length
        if taken >= bytes_max:
            break
        at = stop
        index += 1
    return entries, taken


def skip_records(number: int, data: bytes, offset: int, at: int, first: int, index: int) -> int:
    """Return where entry `index` begins in a piece in which entry `first` begins at `at`.

    Raises: LedgerDamaged.
    """
    unpack, end = _RECORD.unpack_from, len(data)
    for passed in range(first, index):
        if end - at < _HEAD:
            raise LedgerDamaged(number, offset + at, passed, "it ends within a record")
        at += _HEAD + unpack(data, at)[5]
    return at


def chain_in_record(number: int, data: bytes, offset: int, index: int) -> bytes:
    """Return h(index) from the record that `data` begins with; `offset` is for the message.

    Raises: LedgerDamaged.
    """
    decode_entries(number, data, offset, 0, index, index, 0)
    return data[4:_CHAINED_AT]


class RecordWalk:
    """Walks the records of a segment, checking each CRC and the chain."""

    def __init__(self, start: SegmentStart) -> None:
        self.number = start.number
        self.index = start.first
        """Of the next record."""
        self.term = start.term
        self.chain = start.chain
        self.offset = START_SIZE
        """Where the next record begins in the segment."""
        self.offsets: array[int] = array("Q")
        """Where each record begins."""

    def walk(self, data: bytes, begin: int, breathe: Callable[[], None] | None = None) -> None:
        """Go to the end of `data`, which begins at `begin` of the segment.

        `breathe` is called now and then: a walk is all computing, and others need the interpreter.

        Raises: LedgerDamaged; the walk stands before the record that is meant.
        """
        view, unpack, end, tag = memoryview(data), _RECORD.unpack_from, len(data), _CHAIN_TAG
        at, chain, index = self.offset - begin, self.chain, self.index
        add = self.offsets.append
        while at < end:
            what = "it ends within a record"
            if end - at >= _HEAD:
                check, link, found, term, _, length = unpack(data, at)
                stop = at + _HEAD + length
                if stop <= end:
                    what = "a record does not match its CRC"
                if stop <= end and found == index and crc32c(view[at + 4 : stop]) == check:
                    expected = sha256(tag + chain)
                    expected.update(view[at + _CHAINED_AT : stop])
                    if expected.digest() == link:
                        add(at + begin)
                        chain = self.chain = link
                        at = stop
                        self.offset, self.term = at + begin, term
                        self.index = index = index + 1
                        if breathe is not None and index % BREATH_RECORDS == 0:
                            breathe()
                        continue
                    what = "a record does not follow from the chain"
            raise LedgerDamaged(self.number, at + begin, index, what)

    def end_of(self, data: bytes, last: int) -> int:
        """Return where entry `last` ends, going by the lengths alone."""
        end = len(data)
        at, index = self.offset, self.index
        while index <= last and end - at >= _HEAD:
            at += _HEAD + _RECORD.unpack_from(data, at)[5]
            index += 1
        return at

    def step_over(self, data: bytes, begin: int) -> bool:
        """Pass one damaged record if the next one is whole; its h is taken as it is."""
        at = self.offset - begin
        if len(data) - at < _HEAD:
            return False
        behind = at + _HEAD + _RECORD.unpack_from(data, at)[5]
        following = self.index + 1
        try:
            if not decode_entries(self.number, data, begin, behind, following, following, 0)[0]:
                return False
        except LedgerDamaged:
            return False
        _, link, found, term, _, length = _RECORD.unpack_from(data, behind)
        self.offsets.extend((self.offset, behind + begin))
        self.chain, self.term, self.index = link, term, found + 1
        self.offset = behind + begin + _HEAD + length
        return True


# -- sealed segments
def encode_sealed(genesis: Genesis, walk: RecordWalk, start: SegmentStart, data: bytes) -> bytes:
    """Return the sealed form of a segment whose bytes were walked to their end."""
    starts = _frame_starts(walk.offsets)
    bounds = [0, *(walk.offsets[position] for position in starts[1:]), len(data)]
    view = memoryview(data)
    pieces = [zlib.compress(view[begin:end], COMPRESSION) for begin, end in pairwise(bounds)]
    stored_at = SEAL_SIZE + table_size(len(pieces))
    rows = []
    for position, offset, piece in zip(starts, bounds, pieces, strict=False):
        rows.append(
            _FRAME.pack(start.first + position, offset, stored_at, len(piece), crc32c(piece))
        )
        stored_at += len(piece)
    table = b"".join(rows)
    fixed = _SEAL.pack(
        _SEAL_MAGIC,
        FORMAT,
        genesis.cluster_id,
        genesis.era,
        start.number,
        start.first,
        start.term,
        walk.index - 1,
        walk.term,
        start.chain,
        walk.chain,
        len(data),
        sha256(data).digest(),
        len(pieces),
    )
    seal = (fixed + int(crc32c(fixed)).to_bytes(4, "big")).ljust(SEAL_SIZE, b"\0")
    return b"".join((seal, table, int(crc32c(table)).to_bytes(4, "big"), *pieces))


def _frame_starts(offsets: array[int]) -> list[int]:
    """Return the positions of the records that begin a frame."""
    starts = [0]
    for position, offset in enumerate(offsets):
        if offset - offsets[starts[-1]] >= FRAME_BYTES:
            starts.append(position)
    return starts


def decode_seal(genesis: Genesis, number: int, data: bytes) -> Seal:
    """Read the first 256 bytes of a sealed segment.

    Raises: LedgerDamaged, ForeignDirectory, NewerFormat.
    """
    first = (number - 1) * genesis.segment_entries + 1
    fixed = data[: _SEAL.size]
    if data[_SEAL.size : _SEAL.size + 4] != int(crc32c(fixed)).to_bytes(4, "big"):
        raise LedgerDamaged(number, 0, first, "its seal does not match its CRC")
    (magic, form, cluster, era, found, begin, term, last, last_term, before, chain, size, digest,
     frames) = _SEAL.unpack(fixed)  # fmt: skip
    _require_ours(genesis, number, form, cluster, era)
    if magic != _SEAL_MAGIC or found != number or last != number * genesis.segment_entries:
        raise LedgerDamaged(number, 0, first, f"its seal is that of segment {found}")
    start = SegmentStart(number, begin, term, before)
    return Seal(start, last, last_term, chain, size, digest, frames)


def table_size(frames: int) -> int:
    """Return the bytes of a table of frames."""
    return _FRAME.size * frames + 4


def decode_frames(seal: Seal, data: bytes) -> list[Frame]:
    """Read the table behind a seal.

    Raises: LedgerDamaged.
    """
    table = data[:-4]
    if len(data) != table_size(seal.frames) or data[-4:] != int(crc32c(table)).to_bytes(4, "big"):
        number, first = seal.start.number, seal.start.first
        raise LedgerDamaged(number, 0, first, "its table of frames does not match its CRC")
    return [Frame(*row) for row in _FRAME.iter_unpack(table)]


def frame_of(frames: Sequence[Frame], index: int) -> int:
    """Return the position of the frame that holds this index."""
    return bisect_right(frames, index, key=attrgetter("first")) - 1


def inflate(number: int, frame: Frame, stored: bytes) -> bytes:
    """Return the piece of the segment that a frame holds.

    Raises: LedgerDamaged.
    """
    if len(stored) == frame.stored_size and crc32c(stored) == frame.check:
        return zlib.decompress(stored)
    raise LedgerDamaged(number, frame.offset, frame.first, "a frame does not match its CRC")
