"""The bytes of the write-ahead log: segment headers, groups, and how a torn one is told.

    segment   header (sector 0), then groups, then zeros up to its size
    group     what one sync covers; starts at a sector
              fixed part: magic, number, flags, term, vote, commit, first, count, length, CRC
              table: length and CRC of each record, then the table's own CRC
              records: the entries in MessagePack
    sector    512 bytes: one mark, then 511 bytes of the group

The mark is never zero and holds the low bits of the group's number. So a sector that was never
written is told from one that holds zeros, and a sector of another group from one of this. Each CRC
starts from the CRC of what frames it (header, then fixed part, then record): bytes of another
segment or another group can't pass, even if they lie in the right place.

A group is *torn* when each of its bad records shows an untouched sector and nothing was ever
written behind it. Group n+1 is written only after the sync of n returned; a torn group is therefore
one whose sync never returned, and nothing in it was acknowledged. Anything else is damage.
Source: LOG-CONTRACT 5.2, 5.3.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from crc32c import crc32c

from spur.consensus.faults import NewerFormat, WalDamaged, WalLost
from spur.events.envelope import Entry

__all__ = [
    "COPY",
    "RESTART",
    "SECTOR",
    "WAL_FORMAT",
    "Group",
    "SegmentHeader",
    "Torn",
    "WalIdentity",
    "decode_header",
    "encode_group",
    "encode_header",
    "encode_records",
    "group_size",
    "read_group",
]

SECTOR = 512
"""Bytes that a disk writes whole or not at all."""

WAL_FORMAT = 1

COPY = 1
"""Flag of a group that a start wrote: the tail of what was there before."""

RESTART = 2
"""Flag of a group that drops all entries before it: a snapshot became the state."""

_ROOM = SECTOR - 1
_NO_SECTOR = bytes(SECTOR)
_ZEROS = bytes(256 * 1024)
"""Compared piece by piece: these stay in the processor's cache, a whole segment does not."""

_HEADER_MAGIC = b"SPURWAL\x01"
_HEADER = struct.Struct(">8sI16sQQ16sQQQQQQQQQ")
_GROUP_MAGIC = b"GRUP"
_FIXED = struct.Struct(">4sQBQQQQII")
_FIXED_SIZE = _FIXED.size + 4

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Entry)


@dataclass(frozen=True, kw_only=True)
class WalIdentity:
    """Whose write-ahead log this is."""

    cluster_id: bytes
    """16 bytes."""
    incarnation: int
    node_id: int
    disk_id: bytes
    """16 random bytes, made with the directory."""


@dataclass(frozen=True, kw_only=True)
class SegmentHeader:
    """The first sector of a segment."""

    identity: WalIdentity
    number: int
    size: int
    """Bytes of the file."""
    previous: int
    """Number of the segment that this one continues; 0 for none."""
    previous_end: int
    """Where the groups of that segment end; what lies behind was cut."""
    next_group: int
    """Number of the first group here."""
    next_index: int
    """Index behind the last entry of the segments before."""
    term: int
    vote: int
    commit: int


@dataclass(frozen=True)
class Group:
    """A group that was read whole."""

    number: int
    flags: int
    term: int
    vote: int
    commit: int
    first: int
    """Index of the first entry: these replace everything from there on. In a RESTART, the index
    behind the snapshot."""
    entries: list[Entry]
    end: int
    """Where the next group begins."""


@dataclass(frozen=True)
class Torn:
    """A group whose sync never returned."""

    number: int
    offset: int


def encode_header(header: SegmentHeader) -> tuple[bytes, int]:
    """Return the first sector and the CRC that its groups start from."""
    whose = header.identity
    fixed = _HEADER.pack(
        _HEADER_MAGIC,
        WAL_FORMAT,
        whose.cluster_id,
        whose.incarnation,
        whose.node_id,
        whose.disk_id,
        header.number,
        header.size,
        header.previous,
        header.previous_end,
        header.next_group,
        header.next_index,
        header.term,
        header.vote,
        header.commit,
    )
    check = int(crc32c(fixed))
    return (fixed + check.to_bytes(4, "big")).ljust(SECTOR, b"\0"), check


def decode_header(name: str, sector: bytes) -> tuple[SegmentHeader, int]:
    """Read the first sector of the segment file `name`.

    Raises: WalLost when it was never written, WalDamaged, NewerFormat.
    """
    if len(sector) < SECTOR or sector == _NO_SECTOR:
        raise WalLost(f"{name} has no header")
    fixed = sector[: _HEADER.size]
    check = int(crc32c(fixed))
    if int.from_bytes(sector[_HEADER.size : _HEADER.size + 4], "big") != check:
        raise WalDamaged(name, 0, "its header does not match its CRC")
    fields = _HEADER.unpack(fixed)
    if fields[0] != _HEADER_MAGIC:
        raise WalDamaged(name, 0, "it is no segment of a write-ahead log")
    if fields[1] > WAL_FORMAT:
        raise NewerFormat(
            f"{name} has format {fields[1]}, written by a newer release; this one reads up to "
            f"{WAL_FORMAT}, and changed nothing"
        )
    identity = WalIdentity(
        cluster_id=fields[2], incarnation=fields[3], node_id=fields[4], disk_id=fields[5]
    )
    header = SegmentHeader(
        identity=identity,
        number=fields[6],
        size=fields[7],
        previous=fields[8],
        previous_end=fields[9],
        next_group=fields[10],
        next_index=fields[11],
        term=fields[12],
        vote=fields[13],
        commit=fields[14],
    )
    return header, check


def encode_records(entries: Sequence[Entry]) -> list[bytes]:
    """Return the records of these entries."""
    encode = _ENCODER.encode
    return [encode(entry) for entry in entries]


def group_size(records: Sequence[bytes]) -> int:
    """Return the bytes that a group of these records takes in a segment."""
    length = _FIXED_SIZE + 8 * len(records) + 4 + sum(map(len, records))
    return (length + _ROOM - 1) // _ROOM * SECTOR


def encode_group(
    seed: int,
    number: int,
    flags: int,
    term: int,
    vote: int,
    commit: int,
    first: int,
    records: Sequence[bytes],
) -> bytes:
    """Return the sectors of a group; `seed` is the CRC of the segment's header."""
    sizes = list(map(len, records))
    length = 8 * len(records) + 4 + sum(sizes)
    fixed = _FIXED.pack(
        _GROUP_MAGIC, number, flags, term, vote, commit, first, len(records), length
    )
    check = crc32c(fixed, seed)
    pairs = [0] * (2 * len(records))
    pairs[::2] = sizes
    pairs[1::2] = [crc32c(record, check) for record in records]
    table = struct.pack(f">{len(pairs)}I", *pairs)
    content = b"".join(
        (fixed, check.to_bytes(4, "big"), table, crc32c(table, check).to_bytes(4, "big"), *records)
    )
    content = content.ljust((len(content) + _ROOM - 1) // _ROOM * _ROOM, b"\0")
    mark = _mark(number)
    return mark + mark.join([content[i : i + _ROOM] for i in range(0, len(content), _ROOM)])


def read_group(
    name: str, image: bytes, offset: int, end: int, seed: int, number: int
) -> Group | Torn | None:
    """Read the group at `offset` of a segment whose groups end at `end` or before.

    None: nothing was ever written from here on.

    Raises: WalDamaged.
    """
    first_sector = image[offset : offset + SECTOR]
    fixed = first_sector[1 : 1 + _FIXED.size]
    check = int(crc32c(fixed, seed))
    if int.from_bytes(first_sector[1 + _FIXED.size : 1 + _FIXED_SIZE], "big") != check:
        return _without_fixed_part(name, image, offset, end, number)
    magic, found, flags, term, vote, commit, first, count, length = _FIXED.unpack(fixed)
    group_end = offset + (_FIXED_SIZE + length + _ROOM - 1) // _ROOM * SECTOR
    if magic != _GROUP_MAGIC or found != number or group_end > end or length < 8 * count + 4:
        raise WalDamaged(name, offset, f"group {number} was expected here and is not what it says")
    content = bytearray(image[offset:group_end])
    untouched = _untouched(name, image, offset, group_end, number)
    del content[::SECTOR]
    bad = _bad_extents(content, check, count, length)
    for begin, stop in bad:
        sectors = range(begin // _ROOM, (stop - 1) // _ROOM + 1)
        if untouched.isdisjoint(sectors):
            where = offset + begin // _ROOM * SECTOR + 1 + begin % _ROOM
            raise WalDamaged(name, where, f"a record of group {number} does not match its CRC")
    if untouched:
        if not _is_zero(image, group_end, end):
            raise WalDamaged(name, offset, f"group {number} has a hole and others follow it")
        return Torn(number, offset)
    entries = _entries(name, offset, content, count)
    return Group(number, flags, term, vote, commit, first, entries, group_end)


def _mark(number: int) -> bytes:
    return bytes((0x80 | (number & 0x7F),))


def _is_zero(image: bytes, begin: int, end: int) -> bool:
    """Tell whether nothing was ever written there."""
    whole = begin + (end - begin) // len(_ZEROS) * len(_ZEROS)
    pieces = range(begin, whole, len(_ZEROS))
    return image[whole:end] == bytes(end - whole) and all(
        image[at : at + len(_ZEROS)] == _ZEROS for at in pieces
    )


def _without_fixed_part(name: str, image: bytes, offset: int, end: int, number: int) -> Torn | None:
    """Judge a place where no group begins: the clean end, a torn group, or damage."""
    if _is_zero(image, offset, end):
        return None
    if image[offset : offset + SECTOR] != _NO_SECTOR:
        raise WalDamaged(name, offset, f"the head of group {number} does not match its CRC")
    # Its first sector never reached the disk. Whatever did must be of this very group.
    _untouched(name, image, offset, end, number)
    return Torn(number, offset)


def _untouched(name: str, image: bytes, begin: int, end: int, number: int) -> set[int]:
    """Return which sectors of a group were never written, counted from its first.

    Raises: WalDamaged when a sector is neither untouched nor this group's.
    """
    marks = image[begin:end:SECTOR]
    mark = _mark(number)[0]
    if marks.count(mark) == len(marks):
        return set()
    untouched = set()
    for position, found in enumerate(marks):
        if found != mark:
            offset = begin + position * SECTOR
            if image[offset : offset + SECTOR] != _NO_SECTOR:
                raise WalDamaged(name, offset, f"a sector here is not of group {number}")
            untouched.add(position)
    return untouched


def _bad_extents(content: bytearray, check: int, count: int, length: int) -> list[tuple[int, int]]:
    """Return begin and end of the table or the records that do not match their CRC."""
    view = memoryview(content)
    begin = _FIXED_SIZE
    table_end = begin + 8 * count
    table = view[begin:table_end]
    if crc32c(table, check) != int.from_bytes(view[table_end : table_end + 4], "big"):
        return [(begin, table_end + 4)]
    pairs = struct.unpack(f">{2 * count}I", table)
    offset = table_end + 4
    bad = []
    for size, expected in zip(pairs[::2], pairs[1::2], strict=True):
        if crc32c(view[offset : offset + size], check) != expected:
            bad.append((offset, offset + size))
        offset += size
    if offset != _FIXED_SIZE + length:
        bad.append((begin, table_end + 4))
    return bad


def _entries(name: str, offset: int, content: bytearray, count: int) -> list[Entry]:
    view = memoryview(content)
    sizes = struct.unpack_from(f">{2 * count}I", content, _FIXED_SIZE)[::2]
    begin = _FIXED_SIZE + 8 * count + 4
    entries = []
    for size in sizes:
        try:
            entries.append(_DECODER.decode(view[begin : begin + size]))
        except msgspec.MsgspecError as error:
            raise WalDamaged(name, offset, f"a record is no entry ({error})") from error
        begin += size
    return entries
