"""When and where a job that does not fit now could start, as far as time limits tell.

The first waiting job of a partition keeps those nodes from that time on: a later job may use them
only if it is over by then. Source: "EASY" backfilling, Lifka 1995; the ADR on the order of starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from spur.projections.state import State
from spur.scheduling.choose import choose
from spur.scheduling.fit import room_on
from spur.scheduling.need import Need
from spur.scheduling.sites import Site
from spur.values.ids import JobId, NodeName
from spur.values.states import Phase

__all__ = ["UNLIMITED_NS", "Reservation", "end_of", "reserve"]

UNLIMITED_NS = 365 * 86_400 * 1_000_000_000
"""How long a job without a time limit is taken to run."""

ENDS_MAX = 2_000
"""Ends that are looked at. A job that needs more gets all nodes that could do from there on, which
keeps later jobs back longer than they must be."""


class Reservation(NamedTuple):
    """Nodes that a waiting job will need."""

    start_ns: int
    nodes: frozenset[NodeName]


def reserve(
    state: State,
    need: Need,
    candidates: Sequence[Site],
    *,
    now_ns: int,
    planned_ends: Mapping[JobId, int],
) -> Reservation:
    """Return when the job could start, and on which of the nodes that could do.

    `planned_ends` says of the plan's own starts when they reach their time limits.
    """
    copies = [site.copy() for site in candidates]
    ends: list[tuple[int, int, JobId]] = sorted(
        (end_of(state, job_id, now_ns, planned_ends), place, job_id)
        for place, site in enumerate(copies)
        for job_id in site.use.jobs
    )
    rooms = [room_on(site, need).tasks for site in copies]
    tasks, nodes = sum(rooms), sum(1 for room in rooms if room)
    for count, (end_ns, place, job_id) in enumerate(ends):
        if count == ENDS_MAX:
            return Reservation(end_ns, frozenset(site.name for site in copies))
        site = copies[place]
        site.set_use(site.use.minus(job_id, site.use.jobs[job_id]))
        room = room_on(site, need).tasks
        tasks += room - rooms[place]
        nodes += bool(room) - bool(rooms[place])
        rooms[place] = room
        is_last_of_moment = count + 1 == len(ends) or ends[count + 1][0] > end_ns
        if is_last_of_moment and tasks >= need.tasks and nodes >= need.nodes_min:
            found = choose(need, copies)
            if found is not None:
                return Reservation(end_ns, frozenset(each.name for each, _ in found))
    return Reservation(now_ns + UNLIMITED_NS, frozenset(site.name for site in copies))


def end_of(state: State, job_id: JobId, now_ns: int, planned_ends: Mapping[JobId, int]) -> int:
    """Return when a job that runs, or starts by the plan, reaches its time limit."""
    planned = planned_ends.get(job_id)
    if planned is not None:
        return planned
    run = state.runs[job_id]
    if run.phase is Phase.STOPPING or run.started is None:
        return now_ns
    limit_ns = run.started.limit_ns or run.started.start_ns + UNLIMITED_NS
    if (course := run.started.course) is not None and course.paused:
        limit_ns += now_ns - course.turned_ns  # as if it went on now
    return max(limit_ns, now_ns)
