"""The port between the replicated log and what follows it.

`Machine` is what an engine drives: the controller's front in production, a list of bytes in the
contract suite. `Log` is what a machine may ask of an engine. Every engine (the Raft replica, the
engine in memory) keeps the same order of calls:

    restored?  committed*  ( leading  committed*  following )*

`leading` comes when every entry up to `last` may be read and applied, and before anything may be
proposed in that term; `following` comes before the first entry of another leader is committed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import msgspec

from spur.events.envelope import Entry
from spur.wire.cluster import ReplicaInfo
from spur.wire.controllers import ControllerList

__all__ = ["Log", "Machine", "Refusal", "SnapshotSource", "TimedLog"]


class Refusal(msgspec.Struct, frozen=True, gc=False):
    """Why a proposal was not taken; nothing was appended."""

    code: str
    """not-leader | busy | too-large | transferring | wrong-membership."""
    leader: int = 0
    """The leader as far as known; 0 when unknown."""


class SnapshotSource(Protocol):
    """A whole snapshot that can be read, chunk by chunk, each checked against its digest."""

    @property
    def index(self) -> int: ...

    def chunks(self) -> Iterator[tuple[str, bytes]]: ...


class Machine(Protocol):
    """Follows the log. Calls come from one thread, in log order, and must not block."""

    def load(self, snapshot: SnapshotSource) -> Any:
        """Read a snapshot and return what it holds; may block, and runs in any thread.

        Raises: SnapshotDamaged.
        """
        ...

    def restored(self, loaded: Any) -> None:
        """Replace everything by what was loaded: at the start, or when one was installed."""
        ...

    def committed(self, entries: Sequence[Entry]) -> None:
        """Take entries that are committed, each once, in order; blobs may be left out."""
        ...

    def leading(self, term: int) -> None:
        """This replica leads: entries up to `Log.last` are to be applied before deciding."""
        ...

    def following(self, leader: int) -> None:
        """This replica does not lead (any more): undo to the last committed entry."""
        ...

    def barrier_passed(self, token: int, index: int | None) -> None:
        """Answer a barrier: reads at or after this index are current; None: ask again."""
        ...


class Log(Protocol):
    """What a machine may ask of its engine."""

    @property
    def last(self) -> int: ...

    @property
    def term(self) -> int: ...

    @property
    def leader(self) -> int: ...

    def entries(self, first: int, last: int) -> Sequence[Entry]: ...

    def propose(self, kind: int, body: bytes, blobs: tuple[bytes, ...]) -> Entry | Refusal: ...

    def barrier(self, token: int) -> bool: ...


class TimedLog(Log, Protocol):
    """A log whose engine also judges the clocks: what the controller's front needs."""

    def stamp(self, previous_ns: int) -> int | None:
        """Return the time of the next entry, or None while too few clocks are known."""
        ...

    def describe(self) -> ReplicaInfo:
        """Return what this replica knows of itself."""
        ...

    def accept_clock(self) -> None:
        """A person vouches for this machine's clock."""
        ...

    def controllers(self) -> ControllerList:
        """Return what this replica knows of all members."""
        ...

    def level_learner(self) -> int:
        """Return the id of a learner that may be promoted now, or 0."""
        ...

    def hand_over(self, successor: int = 0) -> bool:
        """Begin to hand the lead to a voter, or to the best for it; False when there is none."""
        ...

    @property
    def is_handing_over(self) -> bool:
        """The lead is on its way to another one; given up after an election timeout."""
        ...

    def silence_ns(self) -> int:
        """Return how long no leader was heard; 0 while one is."""
        ...
