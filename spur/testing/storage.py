"""Builders for tests of the stores: a genesis record, an identity, entries."""

from __future__ import annotations

from spur.consensus.genesis import GENESIS_TERM, Genesis
from spur.consensus.records import WalIdentity
from spur.events.envelope import Entry, EntryKind

__all__ = ["GENESIS", "IDENTITY", "make_entries", "make_entry"]

IDENTITY = WalIdentity(
    cluster_id=b"cluster-of-tests", incarnation=0, node_id=1, disk_id=b"disk-of-a-member"
)

GENESIS = Genesis(cluster_id=IDENTITY.cluster_id, membership=b"one member", segment_entries=8)
"""Ledger segments of eight entries, so that a test meets many of them."""


def make_entry(
    index: int,
    *,
    term: int = GENESIS_TERM,
    body: bytes | None = None,
    blobs: tuple[bytes, ...] = (),
) -> Entry:
    """Return an entry whose body tells its index and term."""
    text = b"entry %d of term %d" % (index, term) if body is None else body
    return Entry(index, term, EntryKind.EVENTS, text, blobs)


def make_entries(first: int, last: int, *, term: int = GENESIS_TERM) -> list[Entry]:
    """Return the entries from first to last."""
    return [make_entry(index, term=term) for index in range(first, last + 1)]
