"""Repairing damaged files from peers: ledger segments and blobs.

Bytes of a peer are only ever believed after they match the chain (segments) or their own digest
(blobs), so any member may serve them. One thing is asked of one peer at a time, in parts; a peer
that does not answer, or does not hold it whole, is passed over for the next.

Source: LOG-CONTRACT 5.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol

import msgspec

from spur.consensus.blobs import BlobState, BlobStore, blob_digest
from spur.consensus.exchange import BlobPart, Exchange, FetchBlob, FetchSegment, SegmentPart
from spur.consensus.ledger import Ledger, LedgerDamaged
from spur.events.envelope import Entry, EntryKind, Envelope

__all__ = ["Repair", "Repaired", "digests_of"]

PART_BYTES = 128 * 1024
"""Bytes of one answer; fits a frame."""

PATIENCE_TICKS = 20
"""Ticks without an answer before the next peer is asked."""

ASKED_MAX = 16
"""Things asked for at a time; the others wait for their turn."""

_ENVELOPE = msgspec.msgpack.Decoder(Envelope)


def digests_of(entry: Entry) -> list[bytes]:
    """Return the digests of an entry's blobs, in order."""
    if entry.kind != EntryKind.EVENTS:
        return []
    return [ref.digest for ref in _ENVELOPE.decode(entry.body).attachments]


class _Stores(Protocol):
    @property
    def ledger(self) -> Ledger: ...

    @property
    def blobs(self) -> BlobStore: ...


@dataclass(frozen=True)
class Repaired:
    """Something that arrived whole: a segment's number or a blob's digest, and its bytes."""

    what: int | bytes
    data: bytes
    peer: int
    """Who gave it."""


@dataclass
class _Wanted:
    what: int | bytes
    got: bytearray
    peer: int = 0
    tries: int = 0
    patience: int = 0
    refusals: set[int] = field(default_factory=set)
    """Peers that do not hold it."""


class Repair:
    """What one replica lacks, and what it can give."""

    def __init__(self, me: int, stores: _Stores) -> None:
        self._me = me
        self._stores = stores
        self._wanted: dict[int | bytes, _Wanted] = {}
        self._held_nowhere: set[bytes] = set()
        """Blobs that no peer holds: erased everywhere, as far as is known."""

    @property
    def wanted(self) -> list[int | bytes]:
        """What is damaged or missing here: segment numbers and blob digests."""
        return list(self._wanted)

    def want_segment(self, number: int) -> None:
        """Ask the peers for a ledger segment."""
        self._wanted.setdefault(number, _Wanted(number, bytearray()))

    def want_blob(self, digest: bytes) -> None:
        """Ask the peers for a blob."""
        self._held_nowhere.discard(digest)
        self._wanted.setdefault(digest, _Wanted(digest, bytearray()))

    def with_blobs(self, entry: Entry) -> Entry | None:
        """Return a committed entry with its blobs, b"" for one that is gone.

        None when a blob is missing here that a peer may hold; it is then asked of the peers.
        """
        blobs = []
        is_whole = True
        for digest in digests_of(entry):
            blob = self._stores.blobs.get(digest)
            if blob is None and not self._is_gone(digest):
                self.want_blob(digest)
                is_whole = False
            blobs.append(blob or b"")
        if not is_whole:
            return None
        return msgspec.structs.replace(entry, blobs=tuple(blobs)) if blobs else entry

    def _is_gone(self, digest: bytes) -> bool:
        """Whether a blob is erased: here, or on every peer, if this one never had it."""
        return digest in self._held_nowhere or self._stores.blobs.state(digest) is BlobState.GONE

    # -- asking
    def tick(self, peers: Sequence[int]) -> list[Exchange]:
        """Let one tick pass; return what to ask now."""
        out: list[Exchange] = []
        for wanted in list(islice(self._wanted.values(), ASKED_MAX)):
            wanted.patience -= 1
            if wanted.patience > 0 or not peers:
                continue
            if wanted.tries and wanted.tries % len(peers) == 0:
                self._round_ended(wanted, peers)
                if wanted.what not in self._wanted:
                    continue
            wanted.peer = peers[wanted.tries % len(peers)]
            wanted.tries += 1
            wanted.got.clear()
            out.append(self._ask(wanted))
        return out

    def _round_ended(self, wanted: _Wanted, peers: Sequence[int]) -> None:
        """Every peer was asked once more: a blob that none of them holds is asked for no longer.

        Another blob goes to the end of the row. A segment is asked for again by who looks for
        damage: perhaps the next one, which it has to meet, is here by then.
        """
        what = wanted.what
        del self._wanted[what]
        if isinstance(what, int):
            return
        if wanted.refusals.issuperset(peers):
            self._held_nowhere.add(what)
        else:
            self._wanted[what] = wanted

    def _ask(self, wanted: _Wanted) -> Exchange:
        wanted.patience = PATIENCE_TICKS
        offset = len(wanted.got)
        if isinstance(wanted.what, int):
            return FetchSegment(sender=self._me, to=wanted.peer, number=wanted.what, offset=offset)
        return FetchBlob(sender=self._me, to=wanted.peer, digest=wanted.what, offset=offset)

    def collect(self, part: SegmentPart | BlobPart) -> tuple[Repaired | None, Exchange | None]:
        """Take a part; return what is whole now, and the next question."""
        what = part.number if isinstance(part, SegmentPart) else part.digest
        wanted = self._wanted.get(what)
        if wanted is None or part.sender != wanted.peer or part.offset != len(wanted.got):
            return None, None
        if not part.total:
            wanted.refusals.add(part.sender)
            wanted.patience = 0
            return None, None
        wanted.got += part.data
        if len(wanted.got) < part.total:
            return None, self._ask(wanted)
        wanted.patience = PATIENCE_TICKS
        return Repaired(what, bytes(wanted.got), part.sender), None

    # -- blocking: the ledger lane
    def read(self, question: FetchSegment | FetchBlob) -> Exchange:
        """Read what a peer asks for; a part with total 0 says that it is not whole here."""
        whole: bytes | None
        if isinstance(question, FetchSegment):
            try:
                whole = self._stores.ledger.segment_bytes(question.number)
            except LedgerDamaged:
                whole = None
        else:
            whole = self._stores.blobs.get(question.digest)
        data = (whole or b"")[question.offset : question.offset + PART_BYTES]
        total = len(whole or b"")
        if isinstance(question, FetchSegment):
            return SegmentPart(
                sender=self._me,
                to=question.sender,
                number=question.number,
                offset=question.offset,
                total=total,
                data=data,
            )
        return BlobPart(
            sender=self._me,
            to=question.sender,
            digest=question.digest,
            offset=question.offset,
            total=total,
            data=data,
        )

    def store(self, whole: Repaired) -> bool:
        """Put a repaired segment or blob in its place; False when it does not match."""
        if isinstance(whole.what, int):
            try:
                self._stores.ledger.replace_segment(whole.what, whole.data)
            except LedgerDamaged:
                return False
        elif blob_digest(whole.data) != whole.what:
            return False
        else:
            self._stores.blobs.put([whole.data])
            self._stores.blobs.sync()
        return True

    def stored(self, whole: Repaired, matched: bool) -> None:
        """Learn how storing went: done, or the next peer is asked."""
        if matched:
            self._wanted.pop(whole.what, None)
        elif (wanted := self._wanted.get(whole.what)) is not None:
            wanted.patience = 0
