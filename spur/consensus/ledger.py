"""The ledger: every committed entry, for ever, the same bytes on every replica.

A segment holds the entries of a fixed range of indexes (`Genesis.segment_entries`), so where it is
cut depends on nothing else. It grows as `.raw`; once full it may be sealed: compressed in frames,
with a digest of the bytes that it had before. Appending does not sync: the write-ahead log covers
what is not durable here, and is recycled only behind `sync`. Only the last raw segment can hold
what was not synced.

    ledger/000000000007.raw      growing, or full and not sealed yet
    ledger/000000000006.sealed   kept for ever

Opening checks the raw segments and the seals; `verify` checks everything. What is damaged does not
keep a replica from starting as long as the end of the ledger is known: reading it raises, and a
peer's bytes repair it, checked against the chain of its neighbours.

Source: LOG-CONTRACT 1.7, 5.4 to 5.6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from spur.consensus.disk import Disk, numbers_of
from spur.consensus.faults import DiskFault, LedgerDamaged
from spur.consensus.genesis import Genesis, genesis_chain
from spur.consensus.ledger_load import Loaded, load
from spur.consensus.segment_files import (
    DIRECTORY,
    RawSegment,
    SealedSegment,
    Segment,
    raw_name,
    sealed_name,
    write_new,
)
from spur.consensus.segments import (
    START_SIZE,
    RecordWalk,
    SegmentStart,
    decode_start,
    encode_sealed,
    segment_of,
)
from spur.events.envelope import Entry
from spur.values.errors import InvariantBroken

__all__ = ["Ledger", "LedgerDamaged", "LedgerReport", "begin_behind"]


@dataclass(frozen=True)
class LedgerReport:
    """What `verify` read and found whole."""

    first: int
    """Index from which on everything is there."""
    last: int
    chain: bytes
    """h of the last entry."""
    segments: int
    entries: int
    missing: tuple[tuple[int, int], ...]
    """Ranges of indexes that are not here, oldest first; all lie before `first`."""


class Ledger:
    """An open ledger. One thread appends and reads."""

    def __init__(self, disk: Disk, genesis: Genesis, loaded: Loaded) -> None:
        self._disk = disk
        self._genesis = genesis
        self._loaded = loaded
        self._raw, self._sealed, self._damages = loaded.raw, loaded.sealed, loaded.damages
        self._broken: BaseException | None = None
        self.first = 1
        """Index from which on everything can be read: "history from"."""
        self.last = 0
        self.last_term = 0
        self.chain = genesis_chain(genesis)
        """h of the last entry."""
        self.breathe: Callable[[], None] | None = None
        """Called now and then during long work; a shell pauses there."""
        self.cut = loaded.cut
        """A sentence on a torn end that was cut off when opening; None after a clean one."""
        self._settle()

    # -- opening
    @classmethod
    def open(cls, disk: Disk, genesis: Genesis, *, covered_from: int) -> Ledger:
        """Open for appending; a directory without a ledger gets an empty one.

        `covered_from` is the first index that the write-ahead log holds: from there on anything
        bad is cut off, since the log brings it back. What is there is durable when this returns.

        Raises: LedgerDamaged when the end of the ledger can't be known or does not meet the log;
        ForeignDirectory, NewerFormat. Other damage is in `damages`, and told when it is read.
        """
        # Always synced: a name that can be seen may be one whose sync failed before.
        disk.make_dir(DIRECTORY)
        disk.sync_dir("")
        disk.sync_dir(DIRECTORY)
        ledger = cls(disk, genesis, load(disk, genesis, covered_from))
        if ledger.last + 1 < covered_from:
            number = segment_of(genesis, ledger.last + 1)
            what = f"the ledger ends before it, and the write-ahead log begins at {covered_from}"
            raise LedgerDamaged(number, 0, ledger.last + 1, what)
        return ledger

    @classmethod
    def view(cls, disk: Disk, genesis: Genesis) -> Ledger:
        """Open for reading alone, beside a replica that may be running; changes nothing.

        It shows what was there at this moment. A torn end is left out, and told in `cut`.

        Raises: as `open`.
        """
        return cls(disk, genesis, load(disk, genesis, None))

    def _settle(self) -> None:
        """Work out where the ledger ends and from where on it is whole."""
        numbers = self._numbers()
        if numbers:
            head = self._segment(numbers[-1])
            if head is None:
                raise self._damages[numbers[-1]]
            self.last, self.last_term, self.chain = head.last, head.last_term, head.chain
        self.first = self.last + 1
        for number in reversed(numbers):
            segment, damage = self._segment(number), self._damages.get(number)
            if segment is None or segment.last + 1 != self.first:
                break
            if damage is not None:
                if number in self._raw:
                    self.first = damage.index + 1
                break
            self.first = segment.start.first

    def _numbers(self) -> list[int]:
        return sorted({*self._raw, *self._sealed, *self._damages})

    def _segment(self, number: int) -> Segment | None:
        return self._raw.get(number) or self._sealed.get(number)

    @property
    def damages(self) -> tuple[LedgerDamaged, ...]:
        """What is known to be damaged, oldest first."""
        return tuple(self._damages[number] for number in sorted(self._damages))

    @property
    def missing(self) -> tuple[int, ...]:
        """Numbers of segments that are not here, or not from their first entry on, oldest first.

        To be filled in from peers, the newest first, so that each has a neighbour to check against.
        """
        found = []
        for number in range(1, segment_of(self._genesis, max(self.last, 1)) + 1):
            segment = self._segment(number)
            lacks = segment is None or segment.start.first != self._first_of(number)
            if lacks and number not in self._damages and self.last:
                found.append(number)
        return tuple(found)

    def _first_of(self, number: int) -> int:
        return (number - 1) * self._genesis.segment_entries + 1

    # -- writing
    @contextmanager
    def _guarded(self) -> Iterator[None]:
        if self._broken is not None:
            raise InvariantBroken(
                f"the ledger failed before ({self._broken}); nothing was written"
            ) from self._broken
        try:
            yield
        except BaseException as error:
            self._broken = error
            raise

    def append(self, entries: Sequence[Entry]) -> None:
        """Add committed entries, without their blobs; durable only after `sync`.

        Any error but damage of what is read leaves the ledger unusable: the process is to end.
        """
        with self._guarded():
            begin = 0
            while begin < len(entries):
                first = entries[begin].index
                number = segment_of(self._genesis, first)
                stop = min(len(entries), begin + number * self._genesis.segment_entries - first + 1)
                run = entries[begin:stop]
                if first != self.last + 1 or run[-1].index - first + 1 != len(run):
                    raise InvariantBroken(
                        f"entries {first} to {run[-1].index} do not follow {self.last}; nothing "
                        "of them was recorded"
                    )
                self._append_run(number, run)
                begin = stop

    def _append_run(self, number: int, run: Sequence[Entry]) -> None:
        segment = self._raw.get(number)
        if segment is None:
            before = self._raw.get(number - 1)
            if before is not None:
                before.sync()
            start = SegmentStart(number, run[0].index, self.last_term, self.chain)
            segment = self._raw[number] = RawSegment.create(self._disk, self._genesis, start)
        segment.append(run)
        self.last, self.last_term, self.chain = segment.last, segment.last_term, segment.chain

    def sync(self) -> None:
        """Make everything durable that was appended."""
        with self._guarded():
            for segment in self._raw.values():
                segment.sync()

    def restart(self, index: int, term: int, chain: bytes) -> None:
        """Go on behind a snapshot at `index`; a segment that is not full is given up. Durable."""
        with self._guarded():
            self.close()
            begin_behind(self._disk, self._genesis, index, term, chain)
            self._loaded = load(self._disk, self._genesis, index + 1)
            self._raw, self._sealed = self._loaded.raw, self._loaded.sealed
            self._damages = self._loaded.damages
            self._settle()

    def seal(self) -> bool:
        """Seal the oldest full segment; True when one was sealed, so another may wait.

        The last segment stays as it is: its start is where the end of those before is known from.
        """
        with self._guarded():
            waiting = [each for each in sorted(self._raw)[:-1] if each not in self._damages]
            if not waiting:
                return False
            number = waiting[0]
            segment = self._raw[number]
            data = segment.whole()
            walk = RecordWalk(segment.start)
            try:
                walk.walk(data, 0, self.breathe)
            except LedgerDamaged as damage:
                self._note(damage)
                return True
            self._put_sealed(number, encode_sealed(self._genesis, walk, segment.start, data))
            return True

    def _put_sealed(self, number: int, data: bytes) -> None:
        write_new(self._disk, sealed_name(number), data)
        self._loaded.cache.drop()
        self._sealed[number] = SealedSegment.open(
            self._disk, self._genesis, number, self._loaded.cache
        )
        raw = self._raw.pop(number, None)
        if raw is not None:
            raw.close()
            self._disk.remove(raw_name(number))
            self._disk.sync_dir(DIRECTORY)

    def close(self) -> None:
        """Close the files; nothing is written."""
        for segment in self._raw.values():
            segment.close()

    # -- reading
    def read(self, first: int, last_max: int, bytes_max: int) -> list[Entry]:
        """Return entries from `first` on, without blobs, up to `last_max` or the ledger's end.

        Stops once the bodies reach `bytes_max`, or before damage; one entry at least unless there
        is none.

        Raises: LedgerDamaged when entry `first` can't be read.
        """
        found: list[Entry] = []
        last_max = min(last_max, self.last)
        while first <= last_max and bytes_max > 0:
            try:
                segment = self._holding(first)
                with self._noting_damage(segment):
                    entries, taken = segment.read(first, min(last_max, segment.last), bytes_max)
            except LedgerDamaged:
                if found:
                    break
                raise
            found += entries
            first += len(entries)
            bytes_max -= max(taken, 1)
        return found

    def chain_at(self, index: int) -> bytes:
        """Return h(index).

        Raises: LedgerDamaged when this entry can't be read, also because history begins later.
        """
        if index == self.last:
            return self.chain
        following = self._segment(segment_of(self._genesis, index + 1))
        if following is not None and following.start.first == index + 1:
            return following.start.chain
        segment = self._holding(index)
        with self._noting_damage(segment):
            return segment.chain_at(index)

    def segment_bytes(self, number: int) -> bytes:
        """Return a segment's bytes, not compressed, as a peer needs them to repair its own.

        Raises: LedgerDamaged when they are not here whole, from the segment's first entry on.
        """
        segment = self._holding(self._first_of(number))
        with self._noting_damage(segment):
            return segment.whole()

    def _holding(self, index: int) -> Segment:
        number = segment_of(self._genesis, index)
        segment, damage = self._segment(number), self._damages.get(number)
        if segment is None or not segment.start.first <= index <= segment.last:
            raise damage or LedgerDamaged(number, 0, index, "it is not here")
        if damage is not None and number in self._sealed:
            raise damage
        return segment

    @contextmanager
    def _noting_damage(self, segment: Segment) -> Iterator[None]:
        """Remember what is found damaged; a disk that can't read a segment has damaged it."""
        try:
            yield
        except LedgerDamaged as damage:
            self._note(damage)
            raise
        except DiskFault as fault:
            start = segment.start
            unreadable = LedgerDamaged(start.number, 0, start.first, str(fault))
            self._note(unreadable)
            raise unreadable from fault

    def _note(self, damage: LedgerDamaged) -> None:
        self._damages.setdefault(damage.segment, damage)
        self._settle()

    # -- checking and repairing
    def verify(self) -> LedgerReport:
        """Read everything: each CRC, the chain, each digest, the links between segments.

        Raises: LedgerDamaged at the first damage; after its repair the next is found.
        """
        entries = 0
        missing: list[tuple[int, int]] = []
        reached = 0
        for number in self._numbers():
            segment = self._segment(number)
            if segment is None:
                raise self._damages[number]
            with self._noting_damage(segment):
                self._verify_segment(number, segment)
            if segment.start.first > reached + 1:
                missing.append((reached + 1, segment.start.first - 1))
            reached = segment.last
            entries += segment.last - segment.start.first + 1
        if self._damages:
            raise self.damages[0]
        return LedgerReport(
            self.first, self.last, self.chain, len(self._numbers()), entries, tuple(missing)
        )

    @property
    def numbers(self) -> tuple[int, ...]:
        """Numbers of the segments that are here, damaged or not, oldest first."""
        return tuple(self._numbers())

    def check(self, number: int) -> None:
        """Read all of a segment; damage is in `damages` afterwards."""
        segment = self._segment(number)
        if segment is not None and number not in self._damages:
            with suppress(LedgerDamaged), self._noting_damage(segment):
                self._verify_segment(number, segment)

    def _verify_segment(self, number: int, segment: Segment) -> None:
        data = segment.whole()
        start = decode_start(self._genesis, number, data[:START_SIZE])
        walk = RecordWalk(start)
        walk.walk(data, 0, self.breathe)
        if start != segment.start or (walk.index - 1, walk.chain) != (segment.last, segment.chain):
            raise LedgerDamaged(number, 0, start.first, "its records are not what its ends say")

    def replace_segment(self, number: int, data: bytes) -> None:
        """Put a peer's bytes in the place of a damaged, missing or partial segment. Durable.

        They are believed if every record follows from the chain and they meet the neighbours that
        are here. The last segment is replaced up to the last entry that was here.

        Raises: LedgerDamaged when the bytes do not fit; nothing was changed.
        """
        walk, start = self._judge(number, data)
        with self._guarded():
            if number == max(self._raw, default=0):
                self._raw[number].close()
                write_new(self._disk, raw_name(number), data[: walk.offset])
                self._raw[number] = RawSegment(self._disk.open(raw_name(number)), start, walk)
            else:
                self._put_sealed(number, encode_sealed(self._genesis, walk, start, data))
            self._damages.pop(number, None)
            self._settle()

    def _judge(self, number: int, data: bytes) -> tuple[RecordWalk, SegmentStart]:
        """Check a peer's bytes of a segment against the neighbours that are here."""
        start = decode_start(self._genesis, number, data[:START_SIZE])
        walk = RecordWalk(start)
        first, last = self._first_of(number), number * self._genesis.segment_entries
        if number == segment_of(self._genesis, max(self.last, 1)):
            last = self.last
            data = data[: walk.end_of(data, last)]
        walk.walk(data, 0)
        if first > self.last or (start.first, walk.index - 1) != (first, last):
            raise LedgerDamaged(number, 0, first, "the bytes offered for it are not all of it")
        before, after = self._segment(number - 1), self._segment(number + 1)
        known: list[tuple[bytes, bytes]] = []
        if number == 1:
            known.append((start.chain, genesis_chain(self._genesis)))
        if before is not None and number - 1 not in self._damages:
            known.append((start.chain, before.chain))
        if after is not None and after.start.first == last + 1:
            known.append((walk.chain, after.start.chain))
        if last == self.last:
            known.append((walk.chain, self.chain))
        if not known or any(offered != here for offered, here in known):
            why = "do not meet the chain" if known else "have no neighbour to be checked against"
            raise LedgerDamaged(number, 0, first, f"the bytes offered for it {why}")
        return walk, start


def begin_behind(disk: Disk, genesis: Genesis, index: int, term: int, chain: bytes) -> None:
    """Let the ledger of a directory go on behind a snapshot at `index`. Durable.

    Full segments before stay. Also the way out where a ledger can't be opened, because its end
    can't be known: what lies before is filled in from peers.
    """
    number = segment_of(genesis, index + 1)
    start = SegmentStart(number, index + 1, term, chain)
    RawSegment.create(disk, genesis, start).close()
    names = disk.names(DIRECTORY)
    for each in numbers_of(names, "", ".raw"):
        if each > number:
            disk.remove(raw_name(each))
    for each in numbers_of(names, "", ".sealed"):
        if each >= number:
            disk.remove(sealed_name(each))
    disk.sync_dir(DIRECTORY)
