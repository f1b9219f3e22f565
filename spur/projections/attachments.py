"""Attachments of a job as one short value, and how many bytes of blobs each user has alive.

Three references as structs take half a kilobyte a job; packed they take a hundred bytes. Each is
one byte for the name, four for the size of the content, and the 32 of the digest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from struct import Struct
from typing import TYPE_CHECKING, Any

import msgspec

from spur.events.envelope import AttachmentRef
from spur.values.ids import JobId

if TYPE_CHECKING:
    from spur.projections.state import State

__all__ = [
    "AMENDED_NAMES",
    "ATTACHMENT_NAMES",
    "SUBMITTED_NAMES",
    "BlobBytes",
    "amend_attachments",
    "attachments_of",
    "launch_attachments",
    "live_blobs",
    "mail_of",
    "notice_of",
    "pack_attachments",
    "size_of",
    "unpack_attachments",
]

SUBMITTED_NAMES = ("script", "environment", "text", "mail")
"""What is handed in with a job; mail says about what somebody is written to, and whom."""

AMENDED_NAMES = ("comment", "stdout", "notice", "options", "mail")
"""What may be handed in later: a "notice" is said to what runs of it, the others take the place of
that part of "text"."""

_FOR_PEOPLE = ("comment", "notice", "mail")

ATTACHMENT_NAMES = (*SUBMITTED_NAMES[:3], *AMENDED_NAMES, "crontab")
"""What a job may carry; the place of a name is its code."""

_CODES = {name: code for code, name in enumerate(ATTACHMENT_NAMES)}
_RECORD = Struct(">BI32s")
_PACK = _RECORD.pack


def pack_attachments(references: Iterable[AttachmentRef]) -> bytes:
    """Return the references as one value, in their order.

    Raises: KeyError for a name that no job carries.
    """
    packed = b""
    for reference in references:
        packed += _PACK(_CODES[reference.name], reference.size, reference.digest)
    return packed


def unpack_attachments(packed: bytes) -> tuple[AttachmentRef, ...]:
    """Return what was packed."""
    return tuple(
        AttachmentRef(ATTACHMENT_NAMES[code], size, digest)
        for code, size, digest in _RECORD.iter_unpack(packed)
    )


def amend_attachments(packed: bytes, references: Iterable[AttachmentRef]) -> bytes:
    """Return the references with these in the place of those of the same names."""
    come = tuple(references)
    names = {reference.name for reference in come}
    left = (each for each in unpack_attachments(packed) if each.name not in names)
    return pack_attachments((*left, *come))


def attachments_of(state: State, job_id: JobId) -> bytes:
    """Return all that a job carries: what its array does too, and then its own."""
    job = state.jobs[job_id]
    return (
        state.arrays[job.array_id].attachments + job.attachments
        if job.array_id
        else job.attachments
    )


def launch_attachments(state: State, job_id: JobId) -> bytes:
    """Return what a job carries that its agents are told: all but what is for people alone."""
    packed = attachments_of(state, job_id)
    apart = {_CODES[name] for name in _FOR_PEOPLE}
    if all(record[0] not in apart for record in _RECORD.iter_unpack(packed)):
        return packed
    found = unpack_attachments(packed)
    return pack_attachments(each for each in found if each.name not in _FOR_PEOPLE)


def mail_of(state: State, job_id: JobId) -> bytes:
    """Return the reference of about what a job's mails are, packed; empty for no mail.

    What a task was given later counts instead of what its array has.
    """
    code = _CODES["mail"]
    packed = attachments_of(state, job_id)
    if all(record[0] != code for record in _RECORD.iter_unpack(packed)):
        return b""
    found = [each for each in unpack_attachments(packed) if each.name == "mail"]
    return pack_attachments(found[-1:])


def notice_of(state: State, job_id: JobId) -> bytes:
    """Return the reference of what was said to a job last, packed; empty for nothing."""
    found = unpack_attachments(state.jobs[job_id].attachments)
    return pack_attachments(each for each in found if each.name == "notice")


def size_of(packed: bytes) -> int:
    """Return the bytes of all contents together."""
    size = 0
    for record in _RECORD.iter_unpack(packed):
        size += record[1]
    return size


def live_blobs(state: State) -> Iterator[bytes]:
    """Yield the digest of every blob that some row refers to."""
    for table in (state.jobs, state.arrays, state.crontabs):
        for row in table.rows.values():
            for record in _RECORD.iter_unpack(row.attachments):
                yield record[2]


class BlobBytes:
    """Bytes of attachments that the rows of a table keep alive, by user and in all; an index.

    The rows have a `uid` and packed `attachments`.
    """

    def __init__(self) -> None:
        self._by_user: dict[int, int] = {}
        self.total = 0

    def change(self, key: Any, old: Any, new: Any) -> None:
        """Follow one row."""
        gone = b"" if old is None else old.attachments
        come = b"" if new is None else new.attachments
        if gone is come:
            return
        if gone:
            self._add(old.uid, -size_of(gone))
        if come:
            self._add(new.uid, size_of(come))

    def _add(self, uid: int, size: int) -> None:
        self.total += size
        user = self._by_user.get(uid, 0) + size
        if user:
            self._by_user[uid] = user
        else:
            self._by_user.pop(uid, None)

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
