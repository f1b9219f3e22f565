"""Attachments of a job as one short value, and how many bytes of blobs each user has alive.

Three references as structs take half a kilobyte a job; packed they take a hundred bytes. Each is
one byte for the name, four for the size of the content, and the 32 of the digest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from spur.events.envelope import AttachmentRef

__all__ = [
    "ATTACHMENT_NAMES",
    "BlobBytes",
    "pack_attachments",
    "unpack_attachments",
]

ATTACHMENT_NAMES = ("script", "environment", "text")
"""What a job may carry; the place of a name is its code."""

_RECORD_SIZE = 1 + 4 + 32


def pack_attachments(references: Iterable[AttachmentRef]) -> bytes:
    """Return the references as one value, in their order.

    Raises: ValueError for a name that no job carries.
    """
    return b"".join(
        bytes((ATTACHMENT_NAMES.index(reference.name),))
        + reference.size.to_bytes(4, "big")
        + reference.digest
        for reference in references
    )


def unpack_attachments(packed: bytes) -> tuple[AttachmentRef, ...]:
    """Return what was packed."""
    return tuple(
        AttachmentRef(ATTACHMENT_NAMES[record[0]], int.from_bytes(record[1:5], "big"), record[5:])
        for record in _records(packed)
    )


def _records(packed: bytes) -> Iterator[bytes]:
    for start in range(0, len(packed), _RECORD_SIZE):
        yield packed[start : start + _RECORD_SIZE]


class BlobBytes:
    """Bytes of attachments that the rows of a table keep alive, by user and in all; an index.

    The rows have a `uid` and packed `attachments`.
    """

    def __init__(self) -> None:
        self._by_user: dict[int, int] = {}
        self.total = 0

    def change(self, key: Any, old: Any, new: Any) -> None:
        """Follow one row."""
        if old is not None and new is not None and old.attachments is new.attachments:
            return
        for row, sign in ((old, -1), (new, 1)):
            if row is None or not row.attachments:
                continue
            size = sign * sum(int.from_bytes(r[1:5], "big") for r in _records(row.attachments))
            self.total += size
            user = self._by_user.get(row.uid, 0) + size
            if user:
                self._by_user[row.uid] = user
            else:
                self._by_user.pop(row.uid, None)

    def fill(self, rows: Mapping[Any, msgspec.Struct]) -> None:
        """Follow every row of a table at once; the index must be empty."""
        for key, row in rows.items():
            self.change(key, None, row)

    def fresh(self) -> BlobBytes:
        """Return an empty index."""
        return BlobBytes()

    def contents(self) -> object:
        """Return all that the index holds."""
        return self._by_user, self.total

    def of_user(self, uid: int) -> int:
        """Return the bytes that one user's rows keep alive."""
        return self._by_user.get(uid, 0)
