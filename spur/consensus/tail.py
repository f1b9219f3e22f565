"""The part of the log that is held in memory: contiguous, from just behind a base.

The base is the last index that is not held; its term is known, so an append can be compared
with it. A running sum of bytes stands beside the entries: how much lies between two indexes, and
how far a byte window reaches, are a subtraction and a binary search instead of a walk. Pure.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from spur.events.envelope import Entry
from spur.values.errors import InvariantBroken, PeerFault

__all__ = ["ENTRY_OVERHEAD_BYTES", "Tail", "entry_bytes"]

ENTRY_OVERHEAD_BYTES = 32
"""What an entry weighs besides its body and blobs: more than its frame on the wire, so that
windows hold for empty entries too."""

_TRIM_SLICE_COUNT = 1024
"""Forgotten entries are cut off the list in slices of at least this many: cutting moves every
pointer that stays."""


def entry_bytes(body: bytes, blobs: Sequence[bytes]) -> int:
    """Return what an entry weighs against the windows and limits."""
    size = ENTRY_OVERHEAD_BYTES + len(body)
    for blob in blobs:
        size += len(blob)
    return size


def _term_of(entry: Entry) -> int:
    return entry.term


class Tail:
    """Entries base + 1 to last."""

    __slots__ = ("_ends", "_entries", "_origin", "base", "base_term", "last", "last_term")

    def __init__(self, base: int, base_term: int, entries: Sequence[Entry] = ()) -> None:
        self.base = base
        self.base_term = base_term
        self.last = base
        self.last_term = base_term
        # `_entries[i - _origin - 1]` is entry i; `_ends[i - _origin]` is the sum of bytes up to
        # and including it. `_origin` is at most the base: forgotten entries go in slices.
        self._origin = base
        self._entries: list[Entry] = []
        self._ends = [0]
        self.extend(entries)

    @property
    def first(self) -> int:
        """The first index held, one past the last when none is."""
        return self.base + 1

    def term_at(self, index: int) -> int:
        """Return the term of an index from the base on."""
        if index == self.last:
            return self.last_term
        if index == self.base:
            return self.base_term
        return self.entry(index).term

    def holds(self, index: int, term: int) -> bool:
        """Tell whether this log is known to contain (index, term)."""
        return self.base <= index <= self.last and self.term_at(index) == term

    def entry(self, index: int) -> Entry:
        """Return one entry.

        Raises: InvariantBroken when it is not in memory.
        """
        if not self.base < index <= self.last:
            raise InvariantBroken(
                f"entry {index} is not in memory, which holds {self.first} to {self.last}"
            )
        return self._entries[index - self._origin - 1]

    def slice(self, first: int, last: int) -> list[Entry]:
        """Return entries `first` to `last`, both included; none when last is before first."""
        if last < first:
            return []
        if first <= self.base or last > self.last:
            raise InvariantBroken(
                f"entries {first} to {last} are not in memory, which holds "
                f"{self.first} to {self.last}"
            )
        origin = self._origin
        return self._entries[first - origin - 1 : last - origin]

    def bytes_between(self, after: int, last: int) -> int:
        """Return what the entries after one index, up to and with another, weigh."""
        return self._ends[last - self._origin] - self._ends[after - self._origin]

    def fit(self, first: int, bytes_max: int) -> int:
        """Return the last index such that `first` to it weigh at most `bytes_max`.

        It is `first` at least: an entry over the limit travels alone.
        """
        ends = self._ends
        at = first - self._origin
        return max(first, bisect_right(ends, ends[at - 1] + bytes_max, at) - 1 + self._origin)

    def last_at_most(self, index: int, term: int) -> int:
        """Return the highest index, at most `index`, whose term is at most `term`.

        Below the base terms are unknown: the answer is then `index` itself, or the one before
        the base, and the caller compares again there.
        """
        high = min(index, self.last)
        if high < self.base:
            return high
        low = self.base - self._origin
        found = bisect_right(self._entries, term, low, high - self._origin, key=_term_of)
        if found > low or self.base_term <= term:
            return found + self._origin
        return self.base - 1

    @property
    def bytes_held(self) -> int:
        """What all entries held weigh."""
        return self.bytes_between(self.base, self.last)

    def index_by_bytes(self, bytes_max: int) -> int:
        """Return the lowest index behind which the entries weigh at most `bytes_max`."""
        ends = self._ends
        low = self.base - self._origin
        return bisect_left(ends, ends[-1] - bytes_max, low) + self._origin

    def append(self, entry: Entry, size: int) -> None:
        """Add the entry behind the last one; `size` is what `entry_bytes` says of it."""
        self._entries.append(entry)
        self._ends.append(self._ends[-1] + size)
        self.last += 1
        self.last_term = entry.term

    def extend(self, entries: Sequence[Entry]) -> None:
        """Add entries behind the last one.

        Raises: PeerFault when they don't follow it, or a term falls; nothing is added then.
        """
        index = self.last
        term = self.last_term
        end = self._ends[-1]
        ends = []
        for entry in entries:
            index += 1
            if entry.index != index or entry.term < term:
                raise PeerFault(
                    f"entry ({entry.index}, term {entry.term}) can't stand at {index} "
                    f"behind term {term}; none of its append was taken"
                )
            term = entry.term
            end += ENTRY_OVERHEAD_BYTES + len(entry.body)
            for blob in entry.blobs:
                end += len(blob)
            ends.append(end)
        self._entries.extend(entries)
        self._ends.extend(ends)
        self.last = index
        self.last_term = term

    def truncate(self, first: int) -> None:
        """Drop the entries from `first` on."""
        if first <= self.base:
            raise InvariantBroken(f"can't drop entry {first}: memory begins at {self.first}")
        keep = first - self._origin - 1
        del self._entries[keep:]
        del self._ends[keep + 1 :]
        self.last = first - 1
        self.last_term = self.base_term if self.last == self.base else self._entries[-1].term

    def trim(self, index: int) -> None:
        """Forget the entries up to and with `index`; it becomes the base."""
        if index <= self.base:
            return
        self.base_term = self.term_at(index)
        self.base = index
        dead = index - self._origin
        if dead >= _TRIM_SLICE_COUNT or 2 * dead >= len(self._entries):
            del self._entries[:dead]
            del self._ends[:dead]
            self._origin = index

    def restart(self, base: int, base_term: int) -> None:
        """Forget everything; the log goes on behind a snapshot."""
        self.base = self.last = self._origin = base
        self.base_term = self.last_term = base_term
        self._entries = []
        self._ends = [0]
