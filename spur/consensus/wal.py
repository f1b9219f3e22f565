"""The write-ahead log: what a replica has promised, until the ledger has it.

A group is written and synced before anything that rests on it is said. Segments are files of zeros,
so a sync writes data and no metadata. A new segment gets its header (with the present term, vote
and commit) and its first group before it gets its name: a segment that can be seen is whole up to
there, and the older ones may go.

Every start reads what is there, cuts a torn tail, and moves the last group into a new segment: if
its sync had failed, the page cache may show what the disk does not hold. Groups before it are
vouched for by the one that follows.

    wal/000000000007.wal    a segment; headers link each to the one before
    wal/spare-3             zeros to come, or a recycled segment still to be zeroed

Source: LOG-CONTRACT 5.1 to 5.5.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from spur.consensus.disk import Disk, File, numbers_of
from spur.consensus.faults import AlreadyCreated, StorageDamaged, WalLost
from spur.consensus.genesis import GENESIS_FILE, Genesis, genesis_entry, store_genesis
from spur.consensus.hardstate import HardState
from spur.consensus.records import (
    COPY,
    RESTART,
    SECTOR,
    SegmentHeader,
    WalIdentity,
    encode_group,
    encode_header,
    encode_records,
    group_size,
)
from spur.consensus.wal_reader import DIRECTORY, WalReader, WalSegment, read_identity
from spur.events.envelope import Entry
from spur.values.errors import InvariantBroken

__all__ = [
    "SEGMENT_BYTES",
    "Recovered",
    "Wal",
    "WalIdentity",
    "read_identity",
    "require_reach",
]

SEGMENT_BYTES = 16 << 20

SPARES_MAX = 2
"""Zeroed segments kept for later."""

ZERO_BYTES = 1 << 20
"""Bytes zeroed between two syncs, so that a group's own sync never waits for much."""


@dataclass(frozen=True)
class Recovered:
    """What a start found."""

    hard: HardState
    first: int
    """Index of the first entry held, or of the next one if none is."""
    entries: list[Entry]
    commit: int
    cut: str | None
    """A sentence on what was cut off; None after a clean end."""

    @property
    def last(self) -> int:
        """Index of the last entry held."""
        return self.first + len(self.entries) - 1


class Wal:
    """An open write-ahead log. One thread writes; another may recycle meanwhile."""

    def __init__(self, disk: Disk, identity: WalIdentity, segment_bytes: int) -> None:
        if segment_bytes % SECTOR or segment_bytes < 2 * SECTOR:
            raise ValueError(f"a segment of {segment_bytes} bytes is no whole number of sectors")
        self.identity = identity
        self._disk = disk
        self._segment_bytes = segment_bytes
        self._segments: list[WalSegment] = []
        self._dirty: list[str] = []
        """Spares that are still to be zeroed."""
        self._spares: list[str] = []
        self._spare_number = 0
        self._guards_lists = threading.Lock()
        self.held_from = 0
        """No entry below this index is on the disk any more; 0 until the log was recycled."""
        self._broken: BaseException | None = None
        self._file: File | None = None
        self._offset = 0
        self._size = 0
        self._seed = 0
        self._group = 1
        self._hard = HardState(0, 0)
        self._commit = 0
        self._next = 1

    # -- making and opening
    @classmethod
    def create(
        cls,
        disk: Disk,
        identity: WalIdentity,
        genesis: Genesis,
        *,
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        """Make the log of a founding member: entry 1, the genesis membership, is committed.

        The genesis file comes last, so an interrupted creation is simply done again.

        Raises: AlreadyCreated.
        """
        _clear_unborn(disk)
        disk.make_dir(DIRECTORY)
        disk.sync_dir("")
        wal = cls(disk, identity, segment_bytes)
        first = genesis_entry(genesis)
        wal._hard, wal._commit = HardState(first.term, 0), first.index
        with wal._guarded():
            wal._begin_segment(COPY, first.index, (first,))
            wal.close()
            store_genesis(disk, genesis)

    @classmethod
    def open(
        cls, disk: Disk, identity: WalIdentity, *, segment_bytes: int = SEGMENT_BYTES
    ) -> tuple[Wal, Recovered]:
        """Read the log, cut a torn tail, and move the last group into a new segment.

        When this returns, everything in `Recovered` is durable.

        Raises: WalDamaged, WalLost, ForeignDirectory, NewerFormat.
        """
        found = WalReader(disk, identity)
        found.read()
        # The names of directory and genesis file: they may be seen though their sync failed.
        disk.sync_dir("")
        wal = cls(disk, identity, segment_bytes)
        wal._hard, wal._commit = found.hard, found.commit
        wal._next, wal._group = found.first + len(found.entries), found.next_group
        wal._spare_number = found.spare_number
        tail = found.entries[found.tail - found.first :]
        kept = found.needed()
        wal._segments = kept
        wal._offset = found.proven_end(kept[-1]) if kept else 0
        number = found.segments[-1].number + 1
        leftovers = [each.name for each in found.segments[len(kept) :]]
        flags = COPY if kept else COPY | RESTART
        wal._dirty = found.spares
        with wal._guarded():
            wal._begin_segment(flags, found.tail, tail, number=number)
            for name in leftovers + found.superseded:
                wal._dirty.append(wal._set_aside(name))
        recovered = Recovered(found.hard, found.first, found.entries, found.commit, found.cut)
        return wal, recovered

    # -- writing
    def write_group(
        self, hard: HardState | None, first: int, entries: Sequence[Entry], commit: int
    ) -> None:
        """Make durable: the hard state if given, `entries` in place of all from `first` on.

        Without entries `first` means nothing. One write and one sync, or two when a segment is
        full. After an error every later call raises: the process is to end.
        """
        with self._guarded():
            if entries and (first > self._next or first <= self._commit):
                raise InvariantBroken(
                    f"entries from {first} don't continue a log that ends at {self._next - 1} and "
                    f"is committed up to {self._commit}; nothing was written"
                )
            if hard is not None:
                self._hard = HardState(hard.term, hard.vote)
            last = entries[-1].index if entries else self._next - 1
            self._commit = max(self._commit, min(commit, last))
            self._write(0, first if entries else self._next, entries)

    def restart(self, hard: HardState | None, index: int) -> None:
        """Drop all entries: a durable snapshot at `index` became the state, and is committed."""
        with self._guarded():
            if index < self._commit:
                raise InvariantBroken(
                    f"a snapshot at {index} can't replace what is committed up to {self._commit}; "
                    "nothing was written"
                )
            if hard is not None:
                self._hard = HardState(hard.term, hard.vote)
            self._commit = max(self._commit, index)
            self._write(RESTART, index + 1, ())

    def recycle(self, below: int) -> None:
        """Let go the segments that hold only entries below this index, oldest first.

        They are overwritten with zeros, then kept as spares or removed. At least one spare is ready
        afterwards, so that writing never waits for zeros. May run beside `write_group`.
        """
        with self._guarded():
            while True:
                with self._guards_lists:
                    oldest = self._segments[0]
                    if len(self._segments) == 1 or oldest.top >= below:
                        break
                    del self._segments[0]
                self._dirty.append(self._set_aside(oldest.name))
            while (name := self._take_dirty()) is not None:
                self._clean(name)
            with self._guards_lists:
                bottoms = [segment.bottom for segment in self._segments if segment.bottom]
            self.held_from = min(bottoms, default=below)
            if not self._spares:
                name = self._new_spare_name()
                file = self._disk.open(name, create=True)
                self._zero(file, self._segment_bytes)
                with self._guards_lists:
                    self._spares.append(name)

    def close(self) -> None:
        """Close the file; nothing is written."""
        if self._file is not None:
            self._file.close()
            self._file = None

    @property
    def size_bytes(self) -> int:
        """Bytes of all segments, without the spares."""
        with self._guards_lists:
            return sum(each.size for each in self._segments)

    # -- inside
    @contextmanager
    def _guarded(self) -> Iterator[None]:
        if self._broken is not None:
            raise InvariantBroken(
                f"the write-ahead log failed before ({self._broken}); nothing was written"
            ) from self._broken
        try:
            yield
        except BaseException as error:
            self._broken = error
            raise

    def _write(self, flags: int, first: int, entries: Sequence[Entry]) -> None:
        records = encode_records(entries)
        size = group_size(records)
        if self._file is None or self._offset + size > self._size:
            self._begin_segment(flags, first, entries)
            return
        hard = self._hard
        data = encode_group(
            self._seed, self._group, flags, hard.term, hard.vote, self._commit, first, records
        )
        self._file.write_at(self._offset, data)
        self._file.sync()
        self._offset += size
        self._wrote(flags, first, entries)

    def _wrote(self, flags: int, first: int, entries: Sequence[Entry]) -> None:
        self._group += 1
        if entries or flags & RESTART:
            self._next = first + len(entries)
        self._segments[-1].note(entries)

    def _begin_segment(
        self, flags: int, first: int, entries: Sequence[Entry], *, number: int = 0
    ) -> None:
        """Write a segment's header and first group, sync them, and only then name it."""
        records = encode_records(entries)
        size = max(self._segment_bytes, SECTOR + group_size(records))
        previous = self._segments[-1].number if self._segments else 0
        segment = WalSegment(number or previous + 1, size, 0)
        hard = self._hard
        header, seed = encode_header(
            SegmentHeader(
                identity=self.identity,
                number=segment.number,
                size=size,
                previous=previous,
                previous_end=self._offset if previous else 0,
                next_group=self._group,
                next_index=self._next,
                term=hard.term,
                vote=hard.vote,
                commit=self._commit,
            )
        )
        group = encode_group(
            seed, self._group, flags, hard.term, hard.vote, self._commit, first, records
        )
        spare, file = self._take_spare(size)
        file.write_at(0, header + group)
        file.sync()
        file.close()
        self._disk.rename(spare, segment.name)
        self._disk.sync_dir(DIRECTORY)
        self.close()
        self._file = self._disk.open(segment.name)
        self._offset, self._size, self._seed = SECTOR + len(group), size, seed
        with self._guards_lists:
            self._segments.append(segment)
        self._wrote(flags, first, entries)

    def _take_spare(self, size: int) -> tuple[str, File]:
        if size == self._segment_bytes:
            with self._guards_lists:
                name = self._spares.pop() if self._spares else None
            if name is not None:
                return name, self._disk.open(name)
            name = self._take_dirty()
            if name is not None:
                # A start on a full disk finds room in what a former one had set aside.
                file = self._disk.open(name)
                if file.size() == size:
                    file.zero(0, size)
                    return name, file
                file.close()
                self._dirty.append(name)
        name = self._new_spare_name()
        file = self._disk.open(name, create=True)
        file.zero(0, size)
        return name, file

    def _take_dirty(self) -> str | None:
        with self._guards_lists:
            return self._dirty.pop() if self._dirty else None

    def _new_spare_name(self) -> str:
        with self._guards_lists:
            self._spare_number += 1
            return f"{DIRECTORY}/spare-{self._spare_number}"

    def _set_aside(self, name: str) -> str:
        spare = self._new_spare_name()
        self._disk.rename(name, spare)
        # One at a time, so that a crash never leaves a hole in the row of segments.
        self._disk.sync_dir(DIRECTORY)
        return spare

    def _clean(self, name: str) -> None:
        file = self._disk.open(name)
        size = file.size()
        self._zero(file, size)
        with self._guards_lists:
            keep = size == self._segment_bytes and len(self._spares) < SPARES_MAX
            if keep:
                self._spares.append(name)
        if not keep:
            self._disk.remove(name)
            self._disk.sync_dir(DIRECTORY)

    def _zero(self, file: File, size: int) -> None:
        for offset in range(0, size, ZERO_BYTES):
            file.zero(offset, min(ZERO_BYTES, size - offset))
            file.sync()
        file.close()


def require_reach(recovered: Recovered, durable_last: int) -> None:
    """Check that the log meets what is durable elsewhere: ledger, or an installed snapshot.

    A log that ends before it has lost its newest segments; one that begins behind it, its oldest.

    Raises: WalLost.
    """
    if recovered.last < durable_last:
        raise WalLost(
            f"the write-ahead log ends at {recovered.last} though entry {durable_last} is in the "
            "ledger: its newest part is missing"
        )
    if recovered.first > durable_last + 1:
        raise WalLost(
            f"the write-ahead log begins at {recovered.first} though the ledger ends at "
            f"{durable_last}: the entries between are missing"
        )


def _clear_unborn(disk: Disk) -> None:
    """Remove what an interrupted creation left; refuse anything that may be somebody's log."""
    if disk.exists(GENESIS_FILE):
        raise AlreadyCreated("the directory holds a log already; nothing was changed")
    names = disk.names(DIRECTORY)
    if disk.names("ledger") or numbers_of(names, "", ".wal"):
        found = WalReader(disk, None)
        try:
            found.read()
        except StorageDamaged:
            found.groups = 0
        if found.groups != 1 or disk.names("ledger"):
            raise AlreadyCreated(
                "the directory holds a log without its genesis file (copy that from another "
                "member); nothing was changed"
            )
    for name in names:
        disk.remove(f"{DIRECTORY}/{name}")
    if disk.exists(f"{GENESIS_FILE}.new"):
        disk.remove(f"{GENESIS_FILE}.new")
