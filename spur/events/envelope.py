"""What one log entry holds: the entry, its envelope, and who asked.

The leader encodes an envelope once; those bytes are written, sent, hashed and decoded by every
replica, the leader included (LOG-CONTRACT 1.2). Nothing here encodes a body a second time.
"""

from __future__ import annotations

import hashlib
import struct
from enum import IntEnum

import msgspec

from spur.events.declare import Stored

__all__ = [
    "CHAIN_SIZE",
    "ENVELOPE_VERSION",
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

ENVELOPE_VERSION = 1
"""The shape of `Envelope` that this release writes."""

_CHAIN_TAG = b"spur-ledger"
_CHAIN_HEAD = struct.Struct(">QQBI").pack


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


class Actor(Stored, frozen=True, array_like=True, gc=False):
    """Who asked, and which host says so (LOG-CONTRACT 2.4, 6.1)."""

    uid: int
    gid: int
    host_id: int
    """Id of the vouching host; 0 is the cluster itself."""
    host_role: str
    """controller | admin | login | compute | cluster."""
    via: str
    """The surface: socket, tls, clock, scheduler."""


class AttachmentRef(Stored, frozen=True, array_like=True, gc=False):
    """Name, size and digest of a blob that rides beside the entry."""

    name: str
    size: int
    """Bytes of the content, without the 16 random bytes before it."""
    digest: bytes
    """SHA-256 of the whole blob, random bytes included."""


class RequestMark(Stored, frozen=True, array_like=True, gc=False):
    """What deduplication needs to know of the request (LOG-CONTRACT 3.5)."""

    principal: str
    id: bytes
    """Empty for what the cluster asks of itself; such entries are not remembered."""
    since: int
    hash: bytes
    """SHA-256 of the request as it was received."""
    answer: bytes
    """The encoded answer, at most 256 bytes; empty but in the last part."""
    part: int
    """1 for the first entry of the request; a divisible command has more."""
    parts: int
    """How many entries the request took, in the last of them; 0 while more follow."""


class StoredEvent(Stored, frozen=True, array_like=True, gc=False):
    """An event as it is stored: [type, version, flags, payload]."""

    type: str
    version: int
    flags: int
    """Bit 0: ignorable."""
    payload: msgspec.Raw


class Envelope(Stored, frozen=True, array_like=True, gc=False):
    """The body of an `EVENTS` entry."""

    version: int
    time_ns: int
    """UTC, stamped by the leader's clock judge; rises strictly along the log."""
    command: str
    request: RequestMark
    actor: Actor
    events: tuple[StoredEvent, ...]
    attachments: tuple[AttachmentRef, ...]


def chain_genesis(genesis: bytes) -> bytes:
    """Return h(0) of a ledger that begins with this genesis record."""
    return hashlib.sha256(genesis).digest()


def chain_next(previous: bytes, entry: Entry) -> bytes:
    """Return h(i) from h(i-1) and entry i. Source: LOG-CONTRACT 1.7."""
    body = entry.body
    head = _CHAIN_HEAD(entry.index, entry.term, entry.kind, len(body))
    return hashlib.sha256(_CHAIN_TAG + previous + head + body).digest()
