"""What time brings to jobs: limits reached, records that leave the state, nodes that went out."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from spur.events.declare import Event
from spur.events.jobs import JobPurged
from spur.events.runs import RunStopped
from spur.projections.cluster import settings_of
from spur.projections.due import Due, falls_due
from spur.projections.nodes import NodeRow
from spur.projections.settling import after_node_failed, after_node_lost
from spur.values.ids import JobId, NodeName
from spur.values.states import Hold, JobState, NodeShareState, Reason

if TYPE_CHECKING:
    from spur.projections.state import State

__all__ = ["limits_reached", "purges", "runs_of_nodes_out"]


@falls_due
def limits_reached(state: State, now_ns: int, limit: int) -> Iterator[Due]:
    """Yield runs whose time limit is reached: they stop as TIMEOUT."""
    for job_id in islice(state.runs_by_limit.up_to(now_ns), limit):
        run = state.runs[job_id]
        if run.started is None:
            continue
        stopped = RunStopped(
            job_id, run.number, JobState.TIMEOUT, Reason.TIME_LIMIT, False, Hold.NONE
        )
        yield Due(run.started.limit_ns, "runs", job_id, (stopped,))


@falls_due
def purges(state: State, now_ns: int, limit: int) -> Iterator[Due]:
    """Yield jobs that ended long enough ago: they leave the state.

    A MinJobAge of 0 keeps them for ever. Source: slurm.conf(5) MinJobAge.
    """
    if not state.runs_by_end:
        return
    age_ns = settings_of(state).min_job_age_s * 1_000_000_000
    if not age_ns:
        return
    for job_id in islice(state.runs_by_end.up_to(now_ns - age_ns), limit):
        run = state.runs[job_id]
        if run.end is None:
            continue
        yield Due(run.end.end_ns + age_ns, "runs", job_id, (JobPurged(job_id),))


@falls_due
def runs_of_nodes_out(state: State, now_ns: int, limit: int) -> Iterator[Due]:
    """Yield runs that hold something on a node that was lost or taken down: they are given up."""
    found = 0
    for node in state.nodes_out.keys(True):
        row = state.nodes[node]
        for job_id in state.allocations.jobs_on(node):
            if found == limit:
                return
            events = _given_up(state, job_id, node, row, now_ns)
            if events:
                found += 1
                yield Due(row.lost_ns or row.reason_ns, "runs", job_id, tuple(events))


def _given_up(
    state: State, job_id: JobId, node: NodeName, row: NodeRow, now_ns: int
) -> list[Event]:
    """Return what becomes of a run whose node is out; nothing when that is settled."""
    job, run = state.jobs[job_id], state.runs[job_id]
    if not row.lost_ns:
        return after_node_failed(job_id, job, run, now_ns=now_ns)
    return after_node_lost(
        job_id,
        job,
        run,
        node,
        state=NodeShareState.LOST,
        last_seen_ns=row.lost_ns,
        now_ns=now_ns,
        policy=settings_of(state).requeue_policy,
    )
