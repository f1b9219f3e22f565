"""When and where those that wait would start, if everybody who runs used up their time limits.

One waiting job after the other, in the order of the queue, is given the earliest moment at which
enough is free, and its nodes for as long as its limit: those behind it go round that. It promises
nothing: nobody starts by it, and it is made anew every few seconds.

Source: slurm.conf(5) SchedulerType=sched/backfill; squeue(1) --start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from spur.projections.cluster import scheduler_parameters
from spur.projections.state import State
from spur.scheduling.choose import choose
from spur.scheduling.need import Need
from spur.scheduling.reserve import end_of
from spur.scheduling.sites import Site
from spur.values.ids import JobId, NodeName

__all__ = ["JOBS_MAX", "Foreseen", "Foresight", "Waiting"]

JOBS_MAX = 100
"""Waiting jobs that are looked at. Source: slurm.conf(5) bf_max_job_test, which is 500 there."""

LOOKS_MAX = 50_000
"""Nodes that are looked at for all of them: the rest of the queue is not foreseen."""


WINDOW_MIN = 1440
"""How far ahead, in minutes. Source: slurm.conf(5) bf_window."""

_MINUTE_NS = 60 * 1_000_000_000


class Waiting(NamedTuple):
    """A job that waits for room."""

    job_id: JobId
    need: Need
    sites: Sequence[Site]
    """Nodes that could do for it, in the order in which they are tried."""
    limit_ns: int


class Foreseen(NamedTuple):
    """A start that nothing promises."""

    job_id: JobId
    start_ns: int
    nodes: tuple[NodeName, ...]
    """In the order of configuration."""


class _Window(NamedTuple):
    """Nodes that a job before is to have for some time."""

    start_ns: int
    end_ns: int
    nodes: frozenset[NodeName]


def _window_ns(state: State) -> int:
    """Return how far ahead is looked."""
    text = scheduler_parameters(state).get("bf_window", "")
    minutes = int(text) if text.isascii() and text.isdigit() and len(text) < 7 else 0
    return (minutes or WINDOW_MIN) * _MINUTE_NS


@dataclass(slots=True)
class Foresight:
    """What is foreseen of a queue, job by job."""

    state: State
    now_ns: int
    planned_ends: Mapping[JobId, int]
    """When the plan's own starts reach their limits."""
    found: list[Foreseen] = field(default_factory=list)
    _windows: list[_Window] = field(default_factory=list)
    _looks: int = 0

    def promise(self, waiting: Waiting, start_ns: int, nodes: Sequence[Site]) -> None:
        """Take it that a job starts then and there; those behind it go round it."""
        names = tuple(site.name for site in nodes)
        self.found.append(Foreseen(waiting.job_id, start_ns, names))
        self._windows.append(_Window(start_ns, start_ns + waiting.limit_ns, frozenset(names)))

    def look(self, waiting: Waiting) -> bool:
        """Foresee one job; return whether there is time for another."""
        if len(self.found) >= JOBS_MAX or self._looks >= LOOKS_MAX:
            return False
        sites = [site.copy() for site in waiting.sites]
        places = {site.name: site for site in sites}
        ends = sorted(
            (end_of(self.state, job_id, self.now_ns, self.planned_ends), site.name, job_id)
            for site in sites
            for job_id in site.use.jobs
        )
        moments = {self.now_ns, *(end_ns for end_ns, _, _ in ends)}
        moments |= {each.end_ns for each in self._windows if not each.nodes.isdisjoint(places)}
        passed = 0
        last_ns = self.now_ns + _window_ns(self.state)
        for moment_ns in sorted(moments):
            if moment_ns > last_ns or self._looks >= LOOKS_MAX:
                break
            while passed < len(ends) and ends[passed][0] <= moment_ns:
                _, name, job_id = ends[passed]
                site = places[name]
                site.set_use(site.use.minus(job_id, site.use.jobs[job_id]))
                passed += 1
            free = self._free(sites, moment_ns, moment_ns + waiting.limit_ns)
            self._looks += len(free) + 1
            chosen = choose(waiting.need, free)
            if chosen is not None:
                self.promise(waiting, moment_ns, [site for site, _ in chosen])
                break
        return True

    def _free(self, sites: list[Site], start_ns: int, end_ns: int) -> list[Site]:
        """Return the nodes that no window takes up in this time."""
        taken: set[NodeName] = set()
        for window in self._windows:
            if window.start_ns < end_ns and start_ns < window.end_ns:
                taken |= window.nodes
        return [site for site in sites if site.name not in taken] if taken else sites
