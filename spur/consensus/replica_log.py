"""The log of one replica: its tail in memory, what of it is durable, written and committed. Pure.

base ... commit ... last      commit never falls; nothing at or below it is ever replaced
base ... stable ... last      durable here; falls back when a conflict replaces entries
               unwritten      the first entry that no Ready has carried yet
"""

from __future__ import annotations

from collections.abc import Sequence

from spur.consensus.membership import Membership, MembershipLog
from spur.consensus.tail import Tail
from spur.events.envelope import Entry
from spur.values.errors import InvariantBroken, PeerFault

__all__ = ["ReplicaLog"]


class ReplicaLog:
    """A tail with its marks and memberships."""

    __slots__ = ("_generation", "commit", "memberships", "stable", "tail", "unwritten")

    def __init__(
        self,
        base_index: int,
        base_term: int,
        membership: Membership,
        entries: Sequence[Entry],
        commit: int,
    ) -> None:
        """Begin with what is durable.

        Raises: InvariantBroken when the entries don't follow the base or each other, or when
        committed ones are missing.
        """
        try:
            self.tail = Tail(base_index, base_term, entries)
        except PeerFault as fault:
            raise InvariantBroken(
                f"the log on disk does not follow (entry {base_index}, term {base_term}): {fault}"
            ) from fault
        self.memberships = MembershipLog(base_index, membership)
        self.memberships.note(entries)
        self.commit = max(commit, base_index)
        self.stable = self.tail.last
        self.unwritten = self.tail.last + 1
        self._generation = 0
        if self.commit > self.tail.last:
            raise InvariantBroken(
                f"commit index {self.commit} lies behind the last entry {self.tail.last}: "
                "committed entries are missing; the replica did not start"
            )

    def append(self, entry: Entry, size: int) -> None:
        """Add an entry of this replica's own term."""
        self.tail.append(entry, size)

    def accept(self, prev: int, entries: tuple[Entry, ...]) -> None:
        """Take a leader's entries behind `prev`, at which both logs agree.

        Only a proven conflict cuts the log: an append that is shorter, or that comes late or
        twice, leaves it as it is. Source: Raft §5.3, AppendEntries step 3.
        """
        tail = self.tail
        known = 0
        if prev < tail.last:
            for entry in entries:
                if entry.index > tail.last or tail.term_at(entry.index) != entry.term:
                    break
                known += 1
        if known == len(entries):
            return
        if prev + known < tail.last:
            self._truncate(prev + known + 1)
        following = entries[known:] if known else entries
        tail.extend(following)
        self.memberships.note(following)

    def _truncate(self, first: int) -> None:
        if first <= self.commit:
            raise InvariantBroken(
                f"the leader would replace entry {first}, but entries up to {self.commit} are "
                "committed; nothing was replaced"
            )
        self.tail.truncate(first)
        self.memberships.truncate(first)
        self.stable = min(self.stable, first - 1)
        self.unwritten = min(self.unwritten, first)

    def check_committed(self, prev: int, prev_term: int, entries: tuple[Entry, ...]) -> None:
        """Compare a leader's entries with the committed ones here.

        Raises: InvariantBroken when they differ: one of the two logs is not the cluster's.
        """
        claims = [(prev, prev_term), *((entry.index, entry.term) for entry in entries)]
        for index, term in claims:
            if self.tail.base <= index <= self.commit and self.tail.term_at(index) != term:
                raise InvariantBroken(
                    f"entry {index} is committed here with term {self.tail.term_at(index)}, but "
                    f"the leader holds it with term {term}"
                )

    def commit_to(self, index: int) -> None:
        """Take everything up to `index` for committed."""
        self.commit = max(self.commit, index)

    def take_unwritten(self) -> tuple[Entry, ...]:
        """Return the entries that no Ready has carried yet."""
        last = self.tail.last
        entries = tuple(self.tail.slice(self.unwritten, last))
        self.unwritten = last + 1
        return entries

    def written(self, entries: tuple[Entry, ...], generation: int) -> None:
        """Take note that these entries are durable, if they are still of this log."""
        if entries and generation == self._generation:
            newest = entries[-1]
            # Entries that were replaced meanwhile are in the next Ready. They don't count.
            if newest.index > self.stable and self.tail.holds(newest.index, newest.term):
                self.stable = newest.index

    def trim(self, index: int) -> None:
        """Forget entries up to `index`, as far as they are committed and durable."""
        index = min(index, self.commit, self.stable)
        self.tail.trim(index)
        self.memberships.trim(index)

    @property
    def generation(self) -> int:
        """Rises when the log goes on behind a snapshot."""
        return self._generation

    def restart(self, index: int, term: int, membership: Membership) -> None:
        """Go on behind a snapshot that is durable."""
        self.tail.restart(index, term)
        self.memberships = MembershipLog(index, membership)
        self.commit = self.stable = index
        self.unwritten = index + 1
        self._generation += 1
