"""Reading a write-ahead log: all segments of a directory in order, judged group by group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spur.consensus.disk import Disk, numbers_of
from spur.consensus.faults import ForeignDirectory, WalDamaged, WalLost
from spur.consensus.hardstate import HardState
from spur.consensus.records import (
    RESTART,
    SECTOR,
    Group,
    SegmentHeader,
    Torn,
    WalIdentity,
    decode_header,
    read_group,
)
from spur.events.envelope import Entry

__all__ = ["DIRECTORY", "WalReader", "WalSegment", "read_identity", "segment_name"]

DIRECTORY = "wal"


@dataclass
class WalSegment:
    """A segment file, and which entries lie in it."""

    number: int
    size: int
    top: int
    """Highest index of an entry in it; 0 for none."""
    bottom: int = 0
    """Lowest index of an entry in it; 0 for none."""

    @property
    def name(self) -> str:
        """The file's name."""
        return segment_name(self.number)

    def note(self, entries: Sequence[Entry]) -> None:
        """Take note of entries that lie in it."""
        if entries:
            first, last = entries[0].index, entries[-1].index
            self.bottom = min(self.bottom or first, first)
            self.top = max(self.top, last)


class WalReader:
    """Reads all segments of a directory in order; changes nothing."""

    def __init__(self, disk: Disk, identity: WalIdentity | None) -> None:
        self._disk = disk
        self._identity = identity
        self.segments: list[WalSegment] = []
        self.ends: dict[int, int] = {}
        """Where the groups of each segment end."""
        self.superseded: list[str] = []
        """Segments whose entries a later one copied."""
        self.spares: list[str] = []
        self.spare_number = 0
        self.hard = HardState(0, 0)
        self.commit = 0
        self.first = 1
        self.entries: list[Entry] = []
        self.tail = 1
        """Index of the first entry of the last group."""
        self.tail_offset = 0
        """Where the last group begins in its segment."""
        self.next_group = 1
        self.groups = 0
        self.cut: str | None = None

    def read(self) -> None:
        """Read everything. Raises as `Wal.open` does."""
        row = self._row()
        oldest = row[0][0]
        self.first = self.tail = oldest.next_index
        self.next_group = oldest.next_group
        self.hard = HardState(oldest.term, oldest.vote)
        self.commit = oldest.commit
        for position, (header, seed) in enumerate(row):
            successor = row[position + 1][0] if position + 1 < len(row) else None
            self._read_segment(header, seed, successor)
        if self.commit >= self.first + len(self.entries):
            raise WalDamaged(
                segment_name(row[-1][0].number),
                self.ends[row[-1][0].number],
                f"entry {self.commit} was committed but is not there",
            )

    def needed(self) -> list[WalSegment]:
        """Return the segments still needed once the tail lies in a new one: a first part of all.

        Those at the end that hold nothing but what is copied go; if everything held is copied,
        none is needed.
        """
        if self.tail == self.first:
            return []
        kept = list(self.segments)
        while not kept[-1].top or kept[-1].bottom >= self.tail:
            kept.pop()
        return kept

    def proven_end(self, segment: WalSegment) -> int:
        """Return where the groups of a segment end that need not be moved."""
        return self.tail_offset if segment is self.segments[-1] else self.ends[segment.number]

    def headers(self) -> list[tuple[SegmentHeader, int]]:
        """Return header and seed of each segment file, by number."""
        names = self._disk.names(DIRECTORY)
        for number in numbers_of(names, "spare-", ""):
            self.spares.append(f"{DIRECTORY}/spare-{number}")
            self.spare_number = number
        numbers = numbers_of(names, "", ".wal")
        if not numbers:
            raise WalLost("the write-ahead log is missing")
        return [self._header(segment_name(number)) for number in numbers]

    def _header(self, name: str) -> tuple[SegmentHeader, int]:
        file = self._disk.open(name)
        try:
            header, seed = decode_header(name, file.read_at(0, SECTOR))
            size = file.size()
        finally:
            file.close()
        if name != segment_name(header.number):
            raise WalDamaged(name, 0, f"its header is that of {segment_name(header.number)}")
        if size != header.size:
            raise WalDamaged(name, size, f"it has {size} bytes and its header says {header.size}")
        if self._identity is not None:
            _require_ours(name, header.identity, self._identity)
        return header, seed

    def _row(self) -> list[tuple[SegmentHeader, int]]:
        """Return the segments that count, oldest first, by following the links from the newest."""
        by_number = {header.number: (header, seed) for header, seed in self.headers()}
        newest = max(by_number)
        row = [by_number.pop(newest)]
        while row[-1][0].previous in by_number:
            row.append(by_number.pop(row[-1][0].previous))
        oldest = row[-1][0]
        for number in by_number:
            if oldest.previous and number < oldest.number:
                missing = segment_name(oldest.previous)
                raise WalLost(f"{missing} is missing while {segment_name(number)} is there")
            self.superseded.append(segment_name(number))
        row.reverse()
        return row

    def _read_segment(
        self, header: SegmentHeader, seed: int, successor: SegmentHeader | None
    ) -> None:
        name = segment_name(header.number)
        file = self._disk.open(name)
        try:
            image = file.read_at(0, header.size)
        finally:
            file.close()
        segment = WalSegment(header.number, header.size, 0)
        end = header.size if successor is None else successor.previous_end
        offset = SECTOR
        if header.next_group < self.next_group:
            raise WalDamaged(name, 0, f"group {self.next_group} should be the next one")
        self.next_group = header.next_group
        while offset < end:
            group = read_group(name, image, offset, end, seed, self.next_group)
            if not isinstance(group, Group):
                self._end_segment(name, offset, group, successor)
                break
            self._take(name, offset, group)
            self.tail_offset = offset
            segment.note(group.entries)
            offset = group.end
        self.segments.append(segment)
        self.ends[header.number] = offset

    def _end_segment(
        self, name: str, offset: int, torn: Torn | None, successor: SegmentHeader | None
    ) -> None:
        """Judge a place where no whole group is: only the very last one may be torn."""
        if successor is not None:
            raise WalDamaged(name, offset, f"group {self.next_group} is not whole here")
        if offset == SECTOR:
            raise WalDamaged(name, offset, "its first group was synced before it had its name")
        if torn is not None:
            self.cut = (
                f"{name} ended in a torn group (number {torn.number} at byte {torn.offset}), whose "
                "sync never returned; it was cut off, and nothing in it had been acknowledged"
            )

    def _take(self, name: str, offset: int, group: Group) -> None:
        self.groups += 1
        self.next_group = group.number + 1
        self.hard = HardState(group.term, group.vote)
        self.commit = max(self.commit, group.commit)
        self.tail = group.first
        entries = group.entries
        if [entry.index for entry in entries] != list(
            range(group.first, group.first + len(entries))
        ):
            raise WalDamaged(name, offset, f"the entries of group {group.number} are not in a row")
        if group.flags & RESTART or group.first < self.first:
            self.first, self.entries = group.first, entries
            return
        if group.first > self.first + len(self.entries):
            raise WalDamaged(name, offset, f"no entry comes before {group.first}")
        if entries:
            del self.entries[group.first - self.first :]
            self.entries += entries


def read_identity(disk: Disk) -> WalIdentity:
    """Return whose log lies here, from the newest segment's header; checks no group.

    Raises: WalLost, WalDamaged, NewerFormat.
    """
    header, _ = max(WalReader(disk, None).headers(), key=lambda each: each[0].number)
    return header.identity


def segment_name(number: int) -> str:
    """Return the file name of a segment."""
    return f"{DIRECTORY}/{number:012d}.wal"


def _require_ours(name: str, found: WalIdentity, ours: WalIdentity) -> None:
    pairs = (
        ("cluster", found.cluster_id.hex(), ours.cluster_id.hex()),
        ("disk", found.disk_id.hex(), ours.disk_id.hex()),
        ("incarnation", found.incarnation, ours.incarnation),
        ("node", found.node_id, ours.node_id),
    )
    for what, theirs, expected in pairs:
        if theirs != expected:
            raise ForeignDirectory(
                f"{name} belongs to {what} {theirs}, and this is {what} {expected}; "
                "nothing was changed"
            )
