"""The genesis record: what the cluster is called and how its files are written.

The same bytes lie on every member and h(0) of the chain is their SHA-256, so a replica of another
cluster, or of other formats, can't be mistaken for one of ours. Source: LOG-CONTRACT 1.7.
"""

from __future__ import annotations

import msgspec
from crc32c import crc32c

from spur.consensus.disk import Disk
from spur.consensus.faults import GenesisDamaged, NewerFormat, NotCreated
from spur.events.envelope import Entry, EntryKind, chain_genesis

__all__ = [
    "GENESIS_FILE",
    "GENESIS_FORMAT",
    "GENESIS_TERM",
    "SEGMENT_ENTRIES",
    "Genesis",
    "genesis_chain",
    "genesis_entry",
    "load_genesis",
    "store_genesis",
]

GENESIS_FILE = "genesis"
GENESIS_FORMAT = 1
GENESIS_TERM = 1
"""Term of entry 1; the first election is for the next one."""

SEGMENT_ENTRIES = 16384
"""Entries of a ledger segment, unless a cluster is made with another number."""

_MAGIC = b"SPURGEN\x01"
_SIZE_MAX = 1 << 20


class Genesis(msgspec.Struct, frozen=True, array_like=True, gc=False, kw_only=True):
    """The birth certificate of a cluster. Nothing of it ever changes."""

    format: int = GENESIS_FORMAT
    cluster_id: bytes
    """16 random bytes."""
    era: int = 0
    """0: readable by the release that wrote it and the next."""
    incarnation: int = 0
    """0 at birth; a restore begins the next one by an event, not by another genesis."""
    membership: bytes
    """The body of entry 1."""
    ledger_format: int = 1
    snapshot_format: int = 1
    chain_digest: str = "sha256"
    blob_digest: str = "sha256"
    record_check: str = "crc32c"
    segment_entries: int = SEGMENT_ENTRIES
    """Entries of a ledger segment: segment n ends with index n times this."""

    @property
    def encoded(self) -> bytes:
        """The record as it is hashed, sent and stored."""
        return _ENCODER.encode(self)

    @classmethod
    def decode(cls, record: bytes) -> Genesis:
        """Return what `encoded` was made of.

        Raises: GenesisDamaged, NewerFormat.
        """
        return _decode(record)


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Genesis)


def genesis_chain(genesis: Genesis) -> bytes:
    """Return h(0)."""
    return chain_genesis(genesis.encoded)


def genesis_entry(genesis: Genesis) -> Entry:
    """Return entry 1, the first membership, committed on every member from the start."""
    return Entry(1, GENESIS_TERM, EntryKind.MEMBERSHIP, genesis.membership)


def store_genesis(disk: Disk, genesis: Genesis) -> None:
    """Write the genesis file, durable under its name when this returns."""
    record = genesis.encoded
    file = disk.open(f"{GENESIS_FILE}.new", create=True)
    try:
        file.write_at(0, _MAGIC + _check(record) + len(record).to_bytes(4, "big") + record)
        file.sync()
    finally:
        file.close()
    disk.rename(f"{GENESIS_FILE}.new", GENESIS_FILE)
    disk.sync_dir("")


def load_genesis(disk: Disk) -> Genesis:
    """Read the genesis file.

    Raises: NotCreated, GenesisDamaged, NewerFormat.
    """
    if not disk.exists(GENESIS_FILE):
        if disk.names("wal") or disk.names("ledger"):
            raise GenesisDamaged(
                "the genesis file is missing though a log is here: if creating it was interrupted, "
                "create it again; otherwise copy the file from another member; nothing was changed"
            )
        raise NotCreated("the directory holds no log (it has no genesis file); nothing was read")
    file = disk.open(GENESIS_FILE)
    try:
        data = file.read_at(0, _SIZE_MAX)
    finally:
        file.close()
    record = data[16:]
    if (
        data[:8] != _MAGIC
        or int.from_bytes(data[12:16], "big") != len(record)
        or data[8:12] != _check(record)
    ):
        raise GenesisDamaged(
            "the genesis file is damaged; every member of the cluster holds the same bytes, so "
            "copy it from another one"
        )
    return _decode(record)


def _decode(record: bytes) -> Genesis:
    form = msgspec.msgpack.decode(record)[0]
    if form > GENESIS_FORMAT:
        raise NewerFormat(
            f"the genesis file has format {form}, written by a newer release; this one reads up "
            f"to {GENESIS_FORMAT}, and changed nothing"
        )
    return _DECODER.decode(record)


def _check(record: bytes) -> bytes:
    return int(crc32c(record)).to_bytes(4, "big")
