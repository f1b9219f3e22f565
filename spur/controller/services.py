"""What the process round the front does for it: the dispatcher, blobs, and the read model.

The front decides and waits for commits; what needs a socket, a thread or another process is asked
for here. Every answer comes back on the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

from spur.commands.decide import Attendance
from spur.events.declare import Event
from spur.projections.react import Effect
from spur.values.ids import HostId, JobId, NodeName
from spur.wire.agents import AttendOrders, Orders
from spur.wire.calls import Answered, Refused, Reply
from spur.wire.cluster import ProcessInfo
from spur.wire.declare import Request
from spur.wire.jobs import StartView
from spur.wire.statistics import Statistics

__all__ = ["HistoryDone", "OrdersDone", "ReleaseOnly", "Services"]

OrdersDone = Callable[[Orders | None], None]
"""Takes what an agent is to do; None when this controller does not lead any more."""

HistoryDone = Callable[[Answered | Refused, str], None]
"""Takes the outcome of a query, and a warning when it is older than was asked for."""


class Services(Protocol):
    """What a front may ask of the process that it runs in."""

    def leading(self, term: int) -> None:
        """Hear that this controller leads and is ready; effects that rows owe follow."""

    def following(self) -> None:
        """Hear that it does not lead any more."""

    def committed(self, index: int) -> None:
        """Hear that entries up to this one are committed and applied."""

    def release(self, effect: Effect, index: int) -> None:
        """Perform an effect that rests on this entry, which is committed."""

    def attend(self, request: AttendOrders, host_id: HostId, done: OrdersDone) -> None:
        """Answer an agent when there are orders for it, or after a while."""

    def heard(self, host_id: HostId) -> None:
        """Hear that a host's agent registered or reported something: it is there."""

    def attendances(self) -> Mapping[NodeName, Attendance]:
        """Return what agents said of their nodes."""

    def starts(self) -> Mapping[JobId, StartView]:
        """Return when waiting jobs would start, as far as anybody foresees it."""

    def processes(self) -> tuple[ProcessInfo, ...]:
        """Return what runs beside the front, and itself."""

    def timed(
        self, request: Request, uid: int, respond: Callable[[Reply], None]
    ) -> Callable[[Reply], None]:
        """Return what answers a request, and counts it then."""

    def decided(self, events: Sequence[Event]) -> None:
        """Hear what was put into the log."""

    def statistics(self, *, anew: bool) -> Statistics | None:
        """Return what was counted, or begin `anew`; None when nobody counts."""

    def certificate(self) -> tuple[bytes, int]:
        """Return the digest of the authority's certificate, and when this controller's own ends."""

    def compute(self, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        """Run what may take long and touches no state, and take its result."""

    def read_blobs(
        self, digests: Sequence[bytes], done: Callable[[Sequence[bytes | None]], None]
    ) -> None:
        """Read the contents of attachments; None for one that is erased."""

    def ask_history(self, request: Request, at_least: int, done: HistoryDone) -> None:
        """Let the read model answer a query, once it is as new as `at_least`."""


class ReleaseOnly:
    """Services of a front without a process round it: effects are handed on, nothing else is."""

    def __init__(self, release: Callable[[Effect, int], None]) -> None:
        self._release = release

    def leading(self, term: int) -> None:
        """Nobody is to be told."""

    def following(self) -> None:
        """Nobody is to be told."""

    def committed(self, index: int) -> None:
        """Nobody is to be told."""

    def release(self, effect: Effect, index: int) -> None:
        """Hand the effect on."""
        self._release(effect, index)

    def attend(self, request: AttendOrders, host_id: HostId, done: OrdersDone) -> None:
        """Take no agent."""
        done(None)

    def heard(self, host_id: HostId) -> None:
        """Look for no silent agent."""

    def attendances(self) -> Mapping[NodeName, Attendance]:
        """Know of no agent."""
        return MappingProxyType({})

    def starts(self) -> Mapping[JobId, StartView]:
        """Foresee nothing."""
        return MappingProxyType({})

    def processes(self) -> tuple[ProcessInfo, ...]:
        """Know of no process."""
        return ()

    def timed(
        self, request: Request, uid: int, respond: Callable[[Reply], None]
    ) -> Callable[[Reply], None]:
        """Count nothing."""
        return respond

    def decided(self, events: Sequence[Event]) -> None:
        """Count nothing."""

    def statistics(self, *, anew: bool) -> Statistics | None:
        """Have none."""
        return None

    def certificate(self) -> tuple[bytes, int]:
        """Have none."""
        return b"", 0

    def compute(self, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        """Run it now."""
        done(work())

    def read_blobs(
        self, digests: Sequence[bytes], done: Callable[[Sequence[bytes | None]], None]
    ) -> None:
        """Hold no attachment."""
        done([None] * len(digests))

    def ask_history(self, request: Request, at_least: int, done: HistoryDone) -> None:
        """Keep no history."""
        done(Refused("history-behind", "no projector follows this controller"), "")
