"""What time brings to jobs: limits reached, records that leave the state, nodes that went out."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from spur.events.declare import Event
from spur.events.jobs import JobPurged
from spur.events.runs import RunEnded, RunStopped
from spur.projections.cluster import settings_of
from spur.projections.due import Due, falls_due
from spur.projections.nodes import NodeRow
from spur.projections.runrows import RunRow
from spur.projections.settling import after_node_failed, after_node_lost
from spur.values.ids import JobId, NodeName
from spur.values.jobspec import JobSpec
from spur.values.states import Hold, JobState, NodeShareState, Phase, Reason

if TYPE_CHECKING:
    from spur.projections.state import State

__all__ = ["deadlines_passed", "limits_reached", "purges", "runs_of_nodes_out"]

_NS = 1_000_000_000

_NEVER_NS = (1 << 63) - 1


@falls_due
def limits_reached(state: State, now_ns: int, limit: int) -> Iterator[Due]:
    """Yield runs whose time limit is reached: they stop as TIMEOUT."""
    for job_id in islice(state.runs_by_limit.up_to(now_ns), limit):
        run = state.runs[job_id]
        if run.started is None:
            continue
        stopped = RunStopped(
            job_id, run.number, JobState.TIMEOUT, Reason.TIME_LIMIT, False, Hold.NONE, 0, 0
        )
        yield Due(run.started.limit_ns, "runs", job_id, (stopped,))


@falls_due
def deadlines_passed(state: State, now_ns: int, limit: int) -> Iterator[Due]:
    """Yield jobs that could not end before their deadline any more, and runs that reached it.

    Source: sbatch(1) --deadline.
    """
    found = 0
    for job_id in state.jobs_by_deadline.up_to(_NEVER_NS):
        job, run = state.jobs[job_id], state.runs[job_id]
        deadline_ns = job.spec.deadline_ns
        latest_ns = deadline_ns - _shortest_ns(state, job.spec)
        time_ns = latest_ns if run.phase is Phase.PENDING else deadline_ns
        if run.phase not in (Phase.PENDING, Phase.RUNNING) or time_ns > now_ns:
            continue
        if run.phase is Phase.PENDING and run.hold is not Hold.NONE:
            continue  # who holds it may still give it a later deadline
        if found == limit:
            return
        found += 1
        event: Event
        if run.phase is Phase.PENDING:
            # It ends now: the moment that was its last may be long over, or before it was there.
            event = RunEnded(
                job_id, run.number, JobState.DEADLINE, Reason.DEADLINE, 0, 0, now_ns, False
            )
        else:
            event = RunStopped(
                job_id, run.number, JobState.DEADLINE, Reason.DEADLINE, False, Hold.NONE, 0, 0
            )
        yield Due(time_ns, "runs", job_id, (event,))


def _shortest_ns(state: State, spec: JobSpec) -> int:
    """Return how long the job runs at least, if it runs as long as it may."""
    if spec.time_limit_min_s is not None:
        return spec.time_limit_min_s * _NS
    if spec.time_limit_s is not None:
        return spec.time_limit_s * _NS
    row = state.partitions.get(spec.partitions[0])
    if row is None:
        return 0
    block = row.block
    limit_s = block.default_time_s if block.default_time_s is not None else block.max_time_s
    return (limit_s or 0) * _NS


@falls_due
def purges(state: State, now_ns: int, limit: int) -> Iterator[Due]:
    """Yield jobs that ended long enough ago: they leave the state.

    A component stays as long as another of its het job may be put back, and it with that.
    A MinJobAge of 0 keeps them for ever. Source: slurm.conf(5) MinJobAge.
    """
    if not state.runs_by_end:
        return
    age_ns = settings_of(state).min_job_age_s * 1_000_000_000
    if not age_ns:
        return
    for job_id in islice(state.runs_by_end.up_to(now_ns - age_ns), limit):
        run = state.runs[job_id]
        if run.end is None or _is_awaited(state, run) or run.het_id in state.live.values():
            continue
        yield Due(run.end.end_ns + age_ns, "runs", job_id, (JobPurged(job_id),))


def _is_awaited(state: State, run: RunRow) -> bool:
    """Whether someone waits for the rest of its array, and will then ask how this task ended."""
    array_id = run.array_id
    return array_id in state.live.values() and array_id in state.dependents.values()


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
