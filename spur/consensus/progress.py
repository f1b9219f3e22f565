"""What a leader knows of one follower, and how much it may have under way to it.

    PROBE      where the logs agree is not known: one append at a time
    REPLICATE  they agree up to `match`: appends go out ahead of their answers, within a window of
               messages and of bytes
    SNAPSHOT   the follower is behind everything that can be sent as entries: chunks, one at a time
    LOST       it acknowledged entries that it does not hold any more: nothing is sent, nothing
               it says counts; it has to be removed and added anew

Pure; the transitions are methods here, the reasons for them are in leadership.py.
"""

from __future__ import annotations

from collections import deque
from enum import IntEnum

from spur.events.envelope import Entry

__all__ = ["Progress", "ProgressState"]


class ProgressState(IntEnum):
    """How a follower is being served."""

    PROBE = 0
    REPLICATE = 1
    SNAPSHOT = 2
    LOST = 3


_PROBE = ProgressState.PROBE
_REPLICATE = ProgressState.REPLICATE
_SNAPSHOT = ProgressState.SNAPSHOT
_LOST = ProgressState.LOST


class Progress:
    """One follower or learner, as its leader sees it."""

    __slots__ = (
        "_inflight",
        "active",
        "chunk",
        "chunk_count",
        "chunk_due",
        "id",
        "inflight_bytes",
        "known_index",
        "known_term",
        "match",
        "next",
        "paused",
        "round",
        "snapshot_index",
        "snapshot_term",
        "state",
        "waited_ticks",
        "wanted",
    )

    def __init__(self, replica: int, following: int) -> None:
        self.id = replica
        self.state = _PROBE
        self.match = 0
        """Known to be durable there, in this term."""
        self.next = following
        """The next index to send."""
        self.active = False
        """Was heard since the last look at the quorum."""
        self.round = 0
        """The newest round of read barriers that it confirmed."""
        self.paused = False
        """A probe is under way."""
        self.wanted = 0
        """The first of the entries, older than memory, that were asked of the shell, or 0."""
        self.known_index = 0
        self.known_term = 0
        """The term of an index that may be older than memory."""
        self.waited_ticks = 0
        """Ticks since something was sent or answered, while an answer is due."""
        self._inflight: deque[tuple[int, int]] = deque()
        self.inflight_bytes = 0
        self.snapshot_index = 0
        self.snapshot_term = 0
        self.chunk = 0
        """The number of the chunk that is next to be made durable there."""
        self.chunk_count = 0
        self.chunk_due = False
        """That chunk must be asked of the shell."""

    def knows_term_at(self, index: int) -> bool:
        """Tell whether the term of an index older than memory is known; that of 0 is 0."""
        return index in (0, self.known_index)

    def note_term(self, entry: Entry) -> None:
        """Remember the term of an entry older than memory."""
        self.known_index = entry.index
        self.known_term = entry.term

    def may_append(self, count_max: int, bytes_max: int) -> bool:
        """Tell whether an append may go out now."""
        if self.wanted:
            return False
        if self.state is _REPLICATE:
            return len(self._inflight) < count_max and self.inflight_bytes < bytes_max
        return self.state is _PROBE and not self.paused

    def sent(self, last: int, size: int) -> None:
        """Note an append up to `last`, weighing `size` bytes, as under way."""
        if self.state is _PROBE:
            self.paused = True
            self.waited_ticks = 0
            return
        if not self._inflight:
            self.waited_ticks = 0
        self._inflight.append((last, size))
        self.inflight_bytes += size
        self.next = last + 1

    def acknowledged(self, index: int) -> None:
        """Note that everything up to `index` is durable there."""
        self.match = max(self.match, index)
        self.waited_ticks = 0
        if self.state is _REPLICATE:
            inflight = self._inflight
            while inflight and inflight[0][0] <= index:
                self.inflight_bytes -= inflight.popleft()[1]
            if self.next <= index:
                self.next = index + 1
        elif self.state is _PROBE or (
            self.state is _SNAPSHOT and self.match >= self.snapshot_index
        ):
            self._enter(_REPLICATE, self.match + 1)

    def probe(self, following: int) -> None:
        """Look for where the logs agree, one append at a time, from this index on."""
        self._enter(_PROBE, following)

    def begin_snapshot(self, index: int, term: int, count: int) -> None:
        """Serve this follower with a snapshot from now on."""
        self._enter(_SNAPSHOT, index + 1)
        self.snapshot_index = index
        self.snapshot_term = term
        self.known_index, self.known_term = index, term
        self.chunk_count = count
        self.chunk = 0

    def lose(self) -> None:
        """Give the follower up: what it acknowledged is gone."""
        self._enter(_LOST, self.next)
        self.match = 0
        self.active = False

    def has_waited(self, ticks_max: int) -> bool:
        """Count one tick; tell whether an answer has been due for too long."""
        state = self.state
        if state is _LOST:
            return False
        if not (self.wanted or self.paused or self._inflight or state is _SNAPSHOT):
            return False
        self.waited_ticks += 1
        return self.waited_ticks >= ticks_max

    def _enter(self, state: ProgressState, following: int) -> None:
        self.state = state
        self.next = following
        self.paused = self.chunk_due = False
        self.wanted = 0
        self.waited_ticks = 0
        self._inflight.clear()
        self.inflight_bytes = 0
