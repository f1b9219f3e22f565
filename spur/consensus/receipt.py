"""A snapshot on its way in, as the follower sees it. Pure.

Chunks are taken in order, one after the other becomes durable, and a chunk that comes again is
answered with the one that is wanted. Once the last has come the snapshot is being installed, and
nothing else touches the log until that is done or has failed.
"""

from __future__ import annotations

from enum import IntEnum

from spur.consensus.messages import SnapshotChunk

__all__ = ["ChunkVerdict", "Receipt"]


class ChunkVerdict(IntEnum):
    """What to do with a chunk that came in."""

    WRITE = 0
    """It is the next one."""
    ANSWER = 1
    """It is not; say which is."""
    DROP = 2
    """It is being written."""


class Receipt:
    """One snapshot being received from one leader."""

    __slots__ = ("count", "index", "index_term", "sender", "taken", "term", "written")

    def __init__(self, chunk: SnapshotChunk) -> None:
        """Begin with chunk 0, which counts as not yet taken."""
        self.sender = chunk.sender
        self.term = chunk.term
        self.index = chunk.index
        self.index_term = chunk.index_term
        self.count = chunk.count
        self.taken = 0
        """Chunks given to the shell."""
        self.written = 0
        """Chunks that are durable."""

    @property
    def complete(self) -> bool:
        """All chunks have come: the snapshot is being installed."""
        return self.taken == self.count

    def fits(self, chunk: SnapshotChunk) -> bool:
        """Tell whether a chunk belongs to this snapshot."""
        return (
            chunk.sender == self.sender
            and chunk.term == self.term
            and chunk.index == self.index
            and chunk.index_term == self.index_term
            and chunk.count == self.count
        )

    def awaits(self, sender: int, index: int, number: int) -> bool:
        """Tell whether this chunk is the one being written."""
        return (sender, index, number) == (
            self.sender,
            self.index,
            self.written,
        ) and self.written < self.taken

    def take(self, number: int) -> ChunkVerdict:
        """Judge a chunk of this snapshot by its number."""
        if number == self.taken < self.count:
            self.taken += 1
            return ChunkVerdict.WRITE
        if number < self.written or number > self.taken:
            return ChunkVerdict.ANSWER
        return ChunkVerdict.DROP
