"""Requests about what the leading controller counts, and what it counted."""

from __future__ import annotations

import msgspec

from spur.wire.declare import Answer, Request, answer, request

__all__ = ["CycleCounts", "RequestCount", "ResetStatistics", "ShowStatistics", "Statistics"]


@request
class ShowStatistics(Request, frozen=True, tag="statistics.show"):
    """Ask what was counted since the controller leads, or since it was last set to zero."""


@request
class ResetStatistics(Request, frozen=True, tag="statistics.reset"):
    """Set all counts to zero."""


class RequestCount(
    msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True
):
    """Requests of one kind, or of one user."""

    name: str
    """The tag of the request; empty where they are a user's."""
    uid: int
    count: int
    time_us: int
    """From their coming to their answers, added up."""


class CycleCounts(
    msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True
):
    """What the scheduler said of its cycles."""

    count: int = 0
    total_us: int = 0
    longest_us: int = 0
    last_us: int = 0
    last_ns: int = 0
    """When the last one ended; 0 before the first."""
    depth_total: int = 0
    """Jobs that were looked at, added up."""
    last_depth: int = 0
    last_queue: int = 0
    """Jobs that waited at the last one."""
    queue_total: int = 0
    passed_over: int = 0
    """Starts of jobs behind one that waits."""


@answer
class Statistics(Answer, frozen=True, tag="statistics"):
    """What was counted."""

    now_ns: int
    since_ns: int
    submitted: int
    started: int
    completed: int
    canceled: int
    failed: int
    pending: int
    """At this moment, as the ones below."""
    running: int
    agents: int
    """Hosts whose agents wait for orders."""
    cycles: CycleCounts
    requests: tuple[RequestCount, ...]
    users: tuple[RequestCount, ...]
