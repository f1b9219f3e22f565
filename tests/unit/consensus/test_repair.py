"""Damaged files are repaired from peers, and a peer is believed only where its bytes match."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from spur.consensus.blobs import BlobState, BlobStore, blob_digest
from spur.consensus.exchange import BlobPart, FetchBlob, FetchSegment, SegmentPart
from spur.consensus.ledger import Ledger, LedgerDamaged
from spur.consensus.repair import PATIENCE_TICKS, Repair
from spur.events.envelope import Entry
from spur.testing.disk import SimDisk
from spur.testing.hall import Hall, submission
from spur.testing.storage import GENESIS, make_entries

ENTRIES = make_entries(1, 30)

SMALL = bytes(16) + b"#!/bin/sh\ntrue\n"
LARGE = bytes(16) + bytes(range(256)) * 2_000
"""Longer than one answer holds."""


class Store(NamedTuple):
    """What repair needs of a replica, and the disk under it."""

    disk: SimDisk
    ledger: Ledger
    blobs: BlobStore


def filled(*, blobs: tuple[bytes, ...] = (SMALL, LARGE)) -> Store:
    """Return the stores of a replica that has everything."""
    disk = SimDisk()
    ledger = Ledger.open(disk, GENESIS, covered_from=1)
    ledger.append(ENTRIES)
    ledger.sync()
    while ledger.seal():
        pass
    packs = BlobStore.open(disk)
    packs.put(blobs)
    packs.sync()
    return Store(disk, ledger, packs)


def flip(disk: SimDisk, name: str, offset: int) -> None:
    """Flip one bit of a file."""
    file = disk.open(name)
    byte = file.read_at(offset, 1)[0]
    file.write_at(offset, bytes([byte ^ 1]))
    file.sync()
    file.close()


def with_damaged_segment(number: int) -> Store:
    """Return the stores of a replica one of whose sealed segments lost a bit."""
    store = filled()
    store.ledger.close()
    name = f"ledger/{number:012d}.sealed"
    flip(store.disk, name, store.disk.open(name).size() - 1)
    return store._replace(ledger=Ledger.open(store.disk, GENESIS, covered_from=len(ENTRIES) + 1))


def mend(mine: Store, peers: dict[int, Repair], ask: Callable[[Repair], None]) -> list[int]:
    """Let a replica repair itself from peers; return whom it asked, in order."""
    repair = Repair(1, mine)
    ask(repair)
    asked = []
    for _ in range(10 * PATIENCE_TICKS):
        questions = repair.tick(sorted(peers))
        while questions:
            question = questions.pop()
            assert isinstance(question, FetchSegment | FetchBlob)
            if question.offset == 0:
                asked.append(question.to)
            part = peers[question.to].read(question)
            assert isinstance(part, SegmentPart | BlobPart)
            whole, more = repair.collect(part)
            questions += [more] if more is not None else []
            if whole is not None:
                repair.stored(whole, repair.store(whole))
        if not repair.wanted:
            break
    return asked


def test_damaged_segment_is_replaced_by_a_peers() -> None:
    """One bit of a sealed segment flipped years ago: the audit finds it and a peer mends it."""
    mine = with_damaged_segment(2)
    with pytest.raises(LedgerDamaged):
        mine.ledger.verify()
    asked = mend(mine, {2: Repair(2, filled())}, lambda repair: repair.want_segment(2))
    assert asked == [2]
    assert mine.ledger.verify().entries == len(ENTRIES)
    assert mine.ledger.read(1, len(ENTRIES), 1 << 20) == ENTRIES


def test_peer_with_the_same_damage_is_passed_over() -> None:
    """Two of three replicas have a bad copy: the third one serves both."""
    mine = with_damaged_segment(2)
    peers = {2: Repair(2, with_damaged_segment(2)), 3: Repair(3, filled())}
    assert mend(mine, peers, lambda repair: repair.want_segment(2)) == [2, 3]
    assert mine.ledger.verify().entries == len(ENTRIES)


def test_peers_segment_that_does_not_match_the_chain_is_not_believed() -> None:
    """A peer's history is another one, whole in itself: ours stays damaged rather than false."""
    mine = with_damaged_segment(2)
    other = SimDisk()
    ledger = Ledger.open(other, GENESIS, covered_from=1)
    ledger.append([Entry(e.index, e.term, e.kind, b"other " + e.body) for e in ENTRIES])
    ledger.sync()
    while ledger.seal():
        pass
    stranger = Repair(2, Store(other, ledger, BlobStore.open(other)))
    mend(mine, {2: stranger}, lambda repair: repair.want_segment(2))
    with pytest.raises(LedgerDamaged):
        mine.ledger.read(9, 9, 1)


@pytest.mark.parametrize("blob", [SMALL, LARGE], ids=["one part", "many parts"])
def test_missing_blob_is_fetched(blob: bytes) -> None:
    """A replica came by a snapshot and lacks a script: it gets it from a peer."""
    mine, digest = filled(blobs=()), blob_digest(blob)
    assert mine.blobs.state(digest) is BlobState.MISSING
    mend(mine, {2: Repair(2, filled())}, lambda repair: repair.want_blob(digest))
    assert mine.blobs.get(digest) == blob


def test_blob_that_no_peer_holds_is_asked_for_once_of_each() -> None:
    """It was erased everywhere before this replica came: nobody is asked for ever."""
    mine, digest = filled(blobs=()), blob_digest(SMALL)
    peers = {number: Repair(number, filled(blobs=())) for number in (2, 3)}
    assert mend(mine, peers, lambda repair: repair.want_blob(digest)) == [2, 3]
    assert mine.blobs.state(digest) is BlobState.MISSING


def test_peers_wrong_blob_is_not_believed() -> None:
    """A peer answers with other bytes under the digest: they are thrown away."""
    mine, digest = filled(blobs=()), blob_digest(SMALL)
    repair = Repair(1, mine)
    repair.want_blob(digest)
    (question,) = repair.tick([2])
    assert isinstance(question, FetchBlob)
    wrong = bytes(16) + b"rm -rf everything"
    part = BlobPart(sender=2, to=1, digest=digest, offset=0, total=len(wrong), data=wrong)
    whole, _ = repair.collect(part)
    assert whole is not None
    assert not repair.store(whole)
    repair.stored(whole, False)
    assert repair.wanted == [digest]
    assert mine.blobs.state(digest) is BlobState.MISSING


def test_answer_of_somebody_who_was_not_asked_is_ignored() -> None:
    """A part comes late, from the peer before or for a place that was had already."""
    mine, digest = filled(blobs=()), blob_digest(SMALL)
    repair = Repair(1, mine)
    repair.want_blob(digest)
    repair.tick([2])
    for sender, offset in ((3, 0), (2, 5)):
        part = BlobPart(sender=sender, to=1, digest=digest, offset=offset, total=31, data=SMALL)
        assert repair.collect(part) == (None, None)


def test_entry_is_served_with_its_blobs() -> None:
    """A late member needs an old entry: it goes with its scripts, or once nobody has them."""
    hall = Hall()
    hall.submit()
    entry = hall.cluster.entries[-1]
    mine = filled(blobs=())
    repair = Repair(1, mine)
    assert repair.with_blobs(entry) is None
    assert len(repair.wanted) == 3
    blobs = [bytes(16) + attachment.content for attachment in submission().attachments]
    mine.blobs.put(blobs)
    whole = repair.with_blobs(entry)
    assert whole is not None
    assert whole.blobs == tuple(blobs)
    mine.blobs.erase([blob_digest(blobs[0])])
    whole = repair.with_blobs(entry)
    assert whole is not None
    assert whole.blobs == (b"", *blobs[1:])
