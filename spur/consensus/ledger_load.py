"""Opening a ledger: which segments are there, which of them end it, and what is wrong with them."""

from __future__ import annotations

from dataclasses import dataclass, field

from spur.consensus.disk import Disk, File, numbers_of
from spur.consensus.faults import LedgerDamaged
from spur.consensus.genesis import Genesis, genesis_chain
from spur.consensus.segment_files import (
    DIRECTORY,
    FrameCache,
    RawSegment,
    SealedSegment,
    Segment,
    raw_name,
    read_whole,
)
from spur.consensus.segments import START_SIZE, RecordWalk, decode_start

__all__ = ["Loaded", "load"]


@dataclass
class Loaded:
    """The segments of a directory, by number."""

    raw: dict[int, RawSegment] = field(default_factory=dict)
    """Those that end the ledger, in a row."""
    sealed: dict[int, SealedSegment] = field(default_factory=dict)
    damages: dict[int, LedgerDamaged] = field(default_factory=dict)
    cut: str | None = None
    cache: FrameCache = field(default_factory=FrameCache)


def load(disk: Disk, genesis: Genesis, covered_from: int | None) -> Loaded:
    """Read the raw segments and the seals.

    `covered_from`: from this index on what is bad is cut off, and leftovers are removed. None: for
    reading alone, nothing is changed.

    Raises: LedgerDamaged when the end can't be known; ForeignDirectory, NewerFormat.
    """
    return _Loader(disk, genesis, covered_from).load()


class _Loader:
    def __init__(self, disk: Disk, genesis: Genesis, covered_from: int | None) -> None:
        self._disk = disk
        self._genesis = genesis
        self._covered_from = covered_from
        self._found = Loaded()

    def load(self) -> Loaded:
        found = self._found
        numbers = self._load_seals()
        newest = max([*numbers, *found.sealed, *found.damages], default=0)
        for number in numbers:
            if number == newest or self._is_followed(number, numbers):
                segment = self._load_raw(number, is_last=number == newest)
            else:
                segment = self._load_complete(number)
            if segment is not None:
                found.raw[number] = segment
            if found.cut is not None:
                break
        for number in numbers:
            if number not in found.raw and number not in found.damages:
                self._remove(raw_name(number))
        self._check_links()
        return found

    def _load_seals(self) -> list[int]:
        """Read all seals; return the numbers of the raw segments that still count."""
        names = self._disk.names(DIRECTORY)
        raw, sealed = numbers_of(names, "", ".raw"), numbers_of(names, "", ".sealed")
        for name in names:
            if name.endswith((".raw.new", ".sealed.new")):
                self._remove(f"{DIRECTORY}/{name}")
        found = self._found
        for each in sealed:
            try:
                found.sealed[each] = SealedSegment.open(
                    self._disk, self._genesis, each, found.cache
                )
            except LedgerDamaged as damage:
                # The raw one goes only after the sealed one is durable: it is good if it is here.
                if each not in raw:
                    found.damages[each] = damage
        for each in raw:
            if each in found.sealed:
                self._remove(raw_name(each))
        return [each for each in raw if each not in found.sealed]

    def _is_followed(self, number: int, raw: list[int]) -> bool:
        """Tell whether the next segment takes up where this one should end.

        It does not where a snapshot was installed in between.
        """
        number += 1
        if number in self._found.sealed:
            first = self._found.sealed[number].start.first
        elif number in raw:
            file = self._disk.open(raw_name(number))
            try:
                first = decode_start(self._genesis, number, file.read_at(0, START_SIZE)).first
            except LedgerDamaged:
                return True
            finally:
                file.close()
        else:
            return number in self._found.damages
        return first == (number - 1) * self._genesis.segment_entries + 1

    def _load_complete(self, number: int) -> RawSegment | None:
        """Read a raw segment from before a snapshot; None unless it is complete and sound."""
        data = read_whole(self._disk, raw_name(number))
        try:
            start = decode_start(self._genesis, number, data[:START_SIZE])
            walk = RecordWalk(start)
            walk.walk(data, 0)
        except LedgerDamaged:
            return None
        if walk.index != number * self._genesis.segment_entries + 1:
            return None
        return RawSegment(self._disk.open(raw_name(number)), start, walk)

    def _load_raw(self, number: int, *, is_last: bool) -> RawSegment | None:
        """Read a raw segment; None if all of it is cut off or damaged."""
        name = raw_name(number)
        data = read_whole(self._disk, name)
        try:
            start = decode_start(self._genesis, number, data[:START_SIZE])
        except LedgerDamaged as damage:
            if self._is_covered(damage.index):
                self._tell_cut(name, damage)
            elif is_last:
                raise
            else:
                self._found.damages[number] = damage
            return None
        walk = RecordWalk(start)
        self._walk(name, data, walk, is_last=is_last)
        file = self._disk.open(name)
        if self._covered_from is not None:
            if walk.offset < len(data) and self._found.cut is not None:
                file.truncate(walk.offset)
            self._write_again(file, data, walk, start.first)
        return RawSegment(file, start, walk)

    def _write_again(self, file: File, data: bytes, walk: RecordWalk, first: int) -> None:
        """Make durable what may not be: everything from where the log covers it.

        If a sync had failed before, the page cache may show what the disk does not hold, and
        another sync would pass it over. The same bytes written once more are not passed over.
        """
        position = max(0, (self._covered_from or 0) - first)
        if position < len(walk.offsets):
            begin = walk.offsets[position]
            file.write_at(begin, data[begin : walk.offset])
        file.sync()

    def _walk(self, name: str, data: bytes, walk: RecordWalk, *, is_last: bool) -> None:
        """Walk to the end, over confined damage, or to where the rest is cut off."""
        last = walk.number * self._genesis.segment_entries
        while True:
            try:
                walk.walk(data, 0)
                if walk.index > last + 1 or (walk.index <= last and not is_last):
                    what = f"its last entry should be {last}"
                    raise LedgerDamaged(walk.number, walk.offset, walk.index, what)
            except LedgerDamaged as damage:
                if self._is_covered(damage.index):
                    self._tell_cut(name, damage)
                    return
                if walk.step_over(data, 0):
                    self._found.damages.setdefault(walk.number, damage)
                    continue
                # Where another segment follows, its start tells what this one ended with.
                if not is_last:
                    self._found.damages.setdefault(walk.number, damage)
                elif self._covered_from is None:
                    self._tell_cut(name, damage)
                else:
                    raise
            return

    def _is_covered(self, index: int) -> bool:
        return self._covered_from is not None and index >= self._covered_from

    def _tell_cut(self, name: str, damage: LedgerDamaged) -> None:
        if self._covered_from is None:
            self._found.cut = (
                f"{name} ends within entry {damage.index} (byte {damage.offset}): it was being "
                "written, or is torn; shown is what lies before"
            )
        else:
            self._found.cut = (
                f"{name} was cut at entry {damage.index} (byte {damage.offset}: {damage.what}); "
                "the write-ahead log holds all entries from there on"
            )

    def _remove(self, name: str) -> None:
        if self._covered_from is not None:
            self._disk.remove(name)

    def _check_links(self) -> None:
        """Compare neighbours; where they differ the older one is in doubt."""
        found = self._found
        segments: dict[int, Segment] = {**found.sealed, **found.raw}
        for number, segment in segments.items():
            start, before = segment.start, segments.get(number - 1)
            if number == 1 and start.first == 1 and start.chain != genesis_chain(self._genesis):
                what = "it does not begin with this genesis"
                found.damages.setdefault(1, LedgerDamaged(1, 0, 1, what))
            if before is None or start.first != before.last + 1:
                continue
            if (start.term, start.chain) != (before.last_term, before.chain):
                what = "the segment behind it does not follow it"
                found.damages.setdefault(
                    number - 1, LedgerDamaged(number - 1, 0, before.start.first, what)
                )
