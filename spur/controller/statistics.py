"""What a controller counts: requests, what became of jobs, and the scheduler's cycles.

It decides nothing and is in no log: a controller that begins to lead counts from zero.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from spur.events.declare import Event
from spur.events.jobs import JobSubmitted
from spur.events.runs import JobStarted, RunEnded
from spur.projections.state import State
from spur.values.states import JobState, Phase
from spur.wire.calls import Reply
from spur.wire.declare import Request, name_of
from spur.wire.followers import Cycled
from spur.wire.statistics import CycleCounts, RequestCount, Statistics

__all__ = ["Counter"]

K = TypeVar("K", bound=Hashable)

USERS_MAX = 10_000
"""Users whose requests are counted apart; those of others are counted by kind alone."""

_CANCELED = (JobState.CANCELLED, JobState.PREEMPTED)


class Counter:
    """The counts of one controller."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin at zero."""
        self._since_ns = time.time_ns()
        self._submitted = self._started = 0
        self._ended = {"completed": 0, "canceled": 0, "failed": 0}
        self._requests: dict[str, list[int]] = {}
        self._users: dict[int, list[int]] = {}
        self._cycles = CycleCounts()

    def timed(
        self, request: Request, uid: int, respond: Callable[[Reply], None]
    ) -> Callable[[Reply], None]:
        """Return what answers a request, and counts it then."""
        began_ns = time.monotonic_ns()
        name = name_of(type(request))

        def answer(reply: Reply) -> None:
            took_us = (time.monotonic_ns() - began_ns) // 1000
            _add(self._requests, name, took_us)
            if uid in self._users or len(self._users) < USERS_MAX:
                _add(self._users, uid, took_us)
            respond(reply)

        return answer

    def decided(self, events: Sequence[Event]) -> None:
        """Count what events say of jobs."""
        for event in events:
            if isinstance(event, JobStarted):
                self._started += 1
            elif isinstance(event, JobSubmitted):
                self._submitted += 1
            elif isinstance(event, RunEnded):
                self._ended[_end_of(event.state)] += 1

    def cycled(self, cycle: Cycled) -> None:
        """Count a cycle of the scheduler."""
        old = self._cycles
        self._cycles = CycleCounts(
            count=old.count + 1,
            total_us=old.total_us + cycle.took_us,
            longest_us=max(old.longest_us, cycle.took_us),
            last_us=cycle.took_us,
            last_ns=time.time_ns(),
            depth_total=old.depth_total + cycle.depth,
            last_depth=cycle.depth,
            last_queue=cycle.queue,
            queue_total=old.queue_total + cycle.queue,
            passed_over=old.passed_over + cycle.passed_over,
        )

    def told(self, state: State, agents: int) -> Statistics:
        """Return all counts."""
        pending = running = 0
        for run in state.runs.rows.values():
            pending += run.phase is Phase.PENDING
            running += run.phase is Phase.RUNNING
        return Statistics(
            now_ns=time.time_ns(),
            since_ns=self._since_ns,
            submitted=self._submitted,
            started=self._started,
            completed=self._ended["completed"],
            canceled=self._ended["canceled"],
            failed=self._ended["failed"],
            pending=pending,
            running=running,
            agents=agents,
            cycles=self._cycles,
            requests=tuple(
                RequestCount(name, 0, count, time_us)
                for name, (count, time_us) in sorted(self._requests.items())
            ),
            users=tuple(
                RequestCount("", uid, count, time_us)
                for uid, (count, time_us) in sorted(self._users.items())
            ),
        )


def _add(counts: dict[K, list[int]], key: K, took_us: int) -> None:
    counted = counts.get(key)
    if counted is None:
        counts[key] = [1, took_us]
    else:
        counted[0] += 1
        counted[1] += took_us


def _end_of(state: JobState) -> str:
    if state is JobState.COMPLETED:
        return "completed"
    return "canceled" if state in _CANCELED else "failed"
