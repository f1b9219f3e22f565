"""What one log entry holds: the entry, its envelope, and who asked.

The leader encodes an envelope once; those bytes are written, sent, hashed and decoded by every
replica, the leader included (LOG-CONTRACT 1.2). Nothing here encodes a body a second time.
"""

from __future__ import annotations

import hashlib
from enum import IntEnum

import msgspec

__all__ = [
    "CHAIN_SIZE",
    "Actor",
    "AttachmentRef",
    "Entry",
    "EntryKind",
    "Envelope",
    "RequestMark",
    "StoredEvent",
    "chain_genesis",
    "chain_next",
]

CHAIN_SIZE = 32
"""Bytes of a chain value (SHA-256)."""

_CHAIN_TAG = b"spur-ledger"


class EntryKind(IntEnum):
    """What the body of an entry is."""

    NOOP = 0
    MEMBERSHIP = 1
    EVENTS = 2


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One record of the log, as Raft replicates it."""

    index: int
    term: int
    kind: int
    """An `EntryKind`."""
    body: bytes
    """Empty for a no-op, a membership, or an envelope; encoded once, by the leader."""
    blobs: tuple[bytes, ...] = ()
    """The attachments' bytes in the envelope's order; b"" is one marked gone (only below the
    commit index). Never in the ledger nor in the chain."""


class Actor(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Who asked, and which host says so (LOG-CONTRACT 2.4, 6.1)."""

    uid: int
    gid: int
    host_id: int
    """Id of the vouching host; 0 is the cluster itself."""
    host_role: str
    """controller | admin | login | compute | cluster."""
    via: str
    """The surface: socket, tls, clock, scheduler."""


class AttachmentRef(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Name, size and digest of a blob that rides beside the entry."""

    name: str
    size: int
    """Bytes of the content, without the 16 random bytes before it."""
    digest: bytes
    """SHA-256 of the whole blob, random bytes included."""


class RequestMark(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What deduplication needs to know of the request (LOG-CONTRACT 3.5)."""

    principal: str
    id: bytes
    """Empty for what the cluster asks of itself; such entries are not remembered."""
    since: int
    hash: bytes
    """SHA-256 of the request as it was received."""
    answer: bytes
    """The encoded answer, at most 256 bytes; empty but in the last part."""
    part: int = 1
    parts: int = 1


class StoredEvent(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An event as it is stored: [type, version, flags, payload]."""

    type: str
    version: int
    flags: int
    """Bit 0: ignorable."""
    payload: msgspec.Raw


class Envelope(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The body of an `EVENTS` entry."""

    version: int
    time_ns: int
    """UTC, stamped by the leader's clock judge; rises strictly along the log."""
    command: str
    request: RequestMark
    actor: Actor
    events: tuple[StoredEvent, ...]
    attachments: tuple[AttachmentRef, ...] = ()


def chain_genesis(genesis: bytes) -> bytes:
    """Return h(0) of a ledger that begins with this genesis record."""
    return hashlib.sha256(genesis).digest()


def chain_next(previous: bytes, entry: Entry) -> bytes:
    """Return h(i) from h(i-1) and entry i. Source: LOG-CONTRACT 1.7."""
    body = entry.body
    head = (
        _CHAIN_TAG
        + previous
        + entry.index.to_bytes(8, "big")
        + entry.term.to_bytes(8, "big")
        + entry.kind.to_bytes(1, "big")
        + len(body).to_bytes(4, "big")
    )
    return hashlib.sha256(head + body).digest()
