"""The bytes of blob packs, and finding the records in one.

    pack     start twice (two sectors), then records, each at a multiple of 64
    record   head (64 bytes): mark, size, digest, how far the pack was synced, CRC-32C of the blob,
             CRC-32C of the head; then the blob

A head lies within one sector, so it is written whole or not at all. Its CRC starts from random
bytes in the pack's start: nothing that a user puts into a script can be taken for a head, even when
heads have to be looked for behind a damaged one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from crc32c import crc32c

from spur.consensus.disk import File
from spur.consensus.faults import NewerFormat

__all__ = [
    "GOING",
    "GONE",
    "HEAD_SIZE",
    "HELD",
    "START_SIZE",
    "Head",
    "aligned",
    "encode_head",
    "encode_start",
    "heads",
    "seed_of",
]

HELD = b"HELD"
GOING = b"GOIN"
"""To be erased: whether the blob was overwritten yet is open."""
GONE = b"GONE"

HEAD_SIZE = 64
START_SIZE = 1024

_MAGIC = b"SPURBLB\x01"
_FORMAT = 1
_START = struct.Struct(">8sIQ16s")
_COPY_AT = 512
_HEAD = struct.Struct(">4sI32sQI")
_MARKS = frozenset((HELD, GOING, GONE))

_WINDOW = 256 * 1024
"""Bytes read at once when looking for heads."""


@dataclass(frozen=True, slots=True)
class Head:
    """What a record says of its blob."""

    mark: bytes
    size: int
    digest: bytes
    synced_to: int
    """How far the pack was durable when this was written."""
    check: int
    """CRC-32C of the blob."""


def aligned(offset: int) -> int:
    """Return where the next record may begin."""
    return (offset + HEAD_SIZE - 1) // HEAD_SIZE * HEAD_SIZE


def encode_start(number: int, salt: bytes) -> bytes:
    """Return the first bytes of a pack; `salt` is 16 random bytes."""
    fixed = _START.pack(_MAGIC, _FORMAT, number, salt)
    return (fixed + int(crc32c(fixed)).to_bytes(4, "big")).ljust(_COPY_AT, b"\0") * 2


def seed_of(number: int, data: bytes) -> int | None:
    """Return what the CRC of each head starts from; None when both starts are damaged.

    Raises: NewerFormat.
    """
    for at in (0, _COPY_AT):
        fixed = data[at : at + _START.size]
        check = data[at + _START.size : at + _START.size + 4]
        if len(fixed) == _START.size and check == int(crc32c(fixed)).to_bytes(4, "big"):
            magic, form, found, _ = _START.unpack(fixed)
            if magic == _MAGIC and form > _FORMAT:
                raise NewerFormat(
                    f"blob pack {number} has format {form}, written by a newer release; this one "
                    f"reads up to {_FORMAT}, and changed nothing"
                )
            if magic == _MAGIC and found == number:
                return int(crc32c(fixed))
    return None


def encode_head(seed: int, head: Head) -> bytes:
    """Return the bytes before a blob."""
    fixed = _HEAD.pack(head.mark, head.size, head.digest, head.synced_to, head.check)
    return (fixed + int(crc32c(fixed, seed)).to_bytes(4, "big")).ljust(HEAD_SIZE, b"\0")


def heads(file: File, seed: int, begin: int = START_SIZE) -> Iterator[tuple[int, Head]]:
    """Yield where each head lies from `begin` on, and the head; what is none is passed over."""
    size, offset = file.size(), begin
    window, base = b"", 0
    while offset + HEAD_SIZE <= size:
        if offset < base or offset + HEAD_SIZE > base + len(window):
            window, base = file.read_at(offset, _WINDOW), offset
        head = _decode_head(seed, window, offset - base)
        if head is None:
            offset += HEAD_SIZE
        else:
            yield offset, head
            offset = aligned(offset + HEAD_SIZE + head.size)


def _decode_head(seed: int, window: bytes, at: int) -> Head | None:
    if window[at : at + 4] not in _MARKS:
        return None
    fixed = window[at : at + _HEAD.size]
    check = window[at + _HEAD.size : at + _HEAD.size + 4]
    if check != int(crc32c(fixed, seed)).to_bytes(4, "big"):
        return None
    return Head(*_HEAD.unpack(fixed))
