"""Why one job waits: every filter's verdict, with what was asked and what is there.

The filters are the tables that a cycle goes by. The nodes' filters tell how many nodes of the
partition are left after each; what is free is looked at last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from spur.projections.dependencies import never_holds
from spur.projections.jobs import JobRow
from spur.projections.licenses import licenses_free
from spur.projections.partitions import PartitionRow, not_for
from spur.projections.runrows import RunRow
from spur.projections.state import State
from spur.scheduling.choose import choose, gpus_of_job
from spur.scheduling.filters import JOB_FILTERS, NODE_FILTERS, NodeFilter
from spur.scheduling.fit import room_on
from spur.scheduling.need import Need, counts_memory, need_of
from spur.scheduling.sites import Site, Sites
from spur.values.ids import JobId, PartitionName
from spur.values.licenses import parse_licenses
from spur.values.states import HOLD_REASONS, Hold, Reason
from spur.values.tres import Per
from spur.wire.why import FilterVerdict

__all__ = ["explain"]

_ANYWHERE = PartitionName("")


class _Condition(NamedTuple):
    """One row: a question about a job that no partition matters for."""

    name: str
    asked: Callable[[State, JobId, JobRow, RunRow, int], str]
    available: Callable[[State, JobId, JobRow, RunRow, int], str]
    reason: Callable[[State, JobId, JobRow, RunRow, int], Reason]
    """NONE when the job passes."""


def _dependency(state: State, job_id: JobId, job: JobRow, run: RunRow, now_ns: int) -> Reason:
    row = state.dependencies.get(job_id)
    if row is None:
        return Reason.NONE
    return Reason.DEPENDENCY_NEVER_SATISFIED if never_holds(row) else Reason.DEPENDENCY


def _conditions_left(state: State, job_id: JobId, job: JobRow, run: RunRow, now_ns: int) -> str:
    row = state.dependencies.get(job_id)
    if row is None:
        return "none is left"
    words = [f"{each.kind}:{each.job_id}" for each in row.conditions]
    return "left: " + ("?" if row.any_holds else ",").join(words)


def _throttled(state: State, job_id: JobId, job: JobRow, run: RunRow, now_ns: int) -> Reason:
    array = state.arrays.get(job.array_id) if job.array_id else None
    if array is None or not array.throttle:
        return Reason.NONE
    running = state.allocations.running_tasks(job.array_id)
    return Reason.ARRAY_TASK_LIMIT if running >= array.throttle else Reason.NONE


def _throttle(state: State, job_id: JobId, job: JobRow, run: RunRow, now_ns: int) -> str:
    array = state.arrays.get(job.array_id) if job.array_id else None
    if array is None or not array.throttle:
        return "no limit"
    return f"{state.allocations.running_tasks(job.array_id)} of {array.throttle} tasks run"


def _licenses(state: State, job_id: JobId, job: JobRow, run: RunRow, now_ns: int) -> Reason:
    free = licenses_free(state)
    asked = parse_licenses(job.spec.ask.licenses)
    lacks = any(count > free.get(name, 0) for name, count in asked.items())
    return Reason.LICENSES if lacks else Reason.NONE


def _licenses_free(state: State, job_id: JobId, job: JobRow, run: RunRow, now_ns: int) -> str:
    free = licenses_free(state)
    asked = parse_licenses(job.spec.ask.licenses)
    return ", ".join(f"{free.get(name, 0)} of {name}" for name in asked) or "not asked"


_CONDITIONS = (
    _Condition(
        "hold",
        lambda state, job_id, job, run, now_ns: "released",
        lambda state, job_id, job, run, now_ns: (
            "released" if run.hold is Hold.NONE else f"held ({run.hold.name})"
        ),
        lambda state, job_id, job, run, now_ns: HOLD_REASONS.get(run.hold, Reason.NONE),
    ),
    _Condition(
        "priority",
        lambda state, job_id, job, run, now_ns: "over 0",
        lambda state, job_id, job, run, now_ns: (
            "ranked by the scheduler" if run.priority is None else f"fixed at {run.priority}"
        ),
        lambda state, job_id, job, run, now_ns: (
            Reason.HELD_BY_ADMIN if run.priority == 0 else Reason.NONE
        ),
    ),
    _Condition(
        "dependency",
        lambda state, job_id, job, run, now_ns: (
            "none" if job.spec.dependency is None else "all met"
        ),
        _conditions_left,
        _dependency,
    ),
    _Condition(
        "begin time",
        lambda state, job_id, job, run, now_ns: "reached" if job.spec.begin_ns else "at once",
        lambda state, job_id, job, run, now_ns: (
            f"in {(job.spec.begin_ns - now_ns) / 1e9:.0f} s"
            if job.spec.begin_ns > now_ns
            else "reached"
        ),
        lambda state, job_id, job, run, now_ns: (
            Reason.BEGIN_TIME if job.spec.begin_ns > now_ns else Reason.NONE
        ),
    ),
    _Condition(
        "array throttle",
        lambda state, job_id, job, run, now_ns: "another task",
        _throttle,
        _throttled,
    ),
    _Condition(
        "licences",
        lambda state, job_id, job, run, now_ns: job.spec.ask.licenses or "none",
        _licenses_free,
        _licenses,
    ),
)


def explain(state: State, job_id: JobId, now_ns: int) -> tuple[FilterVerdict, ...]:
    """Return what every filter says of a waiting job, for each of its partitions."""
    job, run = state.jobs[job_id], state.runs[job_id]
    found = []
    for row in _CONDITIONS:
        context = (state, job_id, job, run, now_ns)
        reason = row.reason(*context)
        passes = reason is Reason.NONE
        asked, available = row.asked(*context), row.available(*context)
        found.append(FilterVerdict(_ANYWHERE, row.name, asked, available, passes, reason))
    if not len(state.config):
        return tuple(found)
    sites = Sites.of(state)
    settings = state.config[1].settings
    for name in job.spec.partitions:
        partition = state.partitions.get(name)
        if partition is None:
            gone = Reason.PARTITION_INACTIVE
            found.append(FilterVerdict(name, "partition", "there", "gone", False, gone))
            continue
        memory = counts_memory(state)
        need = need_of(job.spec.ask, partition.block, settings, counts_memory=memory)
        found += _of_partition(name, partition, job, need, sites.members(name))
    return tuple(found)


def _of_partition(
    name: PartitionName, partition: PartitionRow, job: JobRow, need: Need, members: Sequence[Site]
) -> Iterator[FilterVerdict]:
    limit_s = job.spec.time_limit_s
    for row in JOB_FILTERS:
        passes = row.passes(need, partition, limit_s)
        asked = row.asked(need, partition, limit_s)
        available = row.available(need, partition, limit_s)
        reason = Reason.NONE if passes else row.reason
        yield FilterVerdict(name, row.name, asked, available, passes, reason)
    closed = not_for(partition.block, job.spec)
    yield FilterVerdict(
        name,
        "account and QOS",
        f"{job.spec.account or 'no account'}, {job.spec.qos or 'no QOS'}",
        "taken" if closed is Reason.NONE else "not taken by the partition",
        closed is Reason.NONE,
        closed,
    )
    left = list(members)
    # A node that is out of use is counted last, so that the table tells what the job asks first.
    for filter_row in sorted(NODE_FILTERS, key=lambda each: each.reason is Reason.NODE_DOWN):
        before = len(left)
        left = [site for site in left if _passes(filter_row, need, site)]
        passes = len(left) >= need.nodes_min
        lacks = Reason.NODES_UNAVAILABLE if filter_row.reason is Reason.NODE_DOWN else None
        yield FilterVerdict(
            name,
            f"node {filter_row.name}",
            filter_row.asked(need),
            f"{len(left)} of {before} nodes",
            passes,
            Reason.NONE if passes else lacks or filter_row.reason,
        )
    yield from _of_required(name, need, left)
    yield from _free(name, need, left)


def _passes(row: NodeFilter, need: Need, site: Site) -> bool:
    if row.of_node is not None:
        return row.of_node(need, site)
    return row.of_kind is None or row.of_kind(need, site.kind)


def _of_required(name: PartitionName, need: Need, left: Sequence[Site]) -> Iterator[FilterVerdict]:
    if need.required:
        there = {site.name for site in left}
        missing = [node for node in need.required if node not in there]
        yield FilterVerdict(
            name,
            "node list",
            need.ask.nodes_required,
            f"without {','.join(missing)}" if missing else "all of them",
            not missing,
            Reason.REQ_NODE_NOT_AVAIL if missing else Reason.NONE,
        )


def _free(name: PartitionName, need: Need, left: Sequence[Site]) -> Iterator[FilterVerdict]:
    """Yield what is free now, and whether it is enough for the job."""
    cores = sum(site.cores_free * site.kind.threads for site in left)
    idle = sum(1 for site in left if not site.use.jobs)
    memory_mib = max((site.memory_free for site in left), default=0)
    cpus = need.tasks * need.cpus_per_task
    told = [
        (
            "free CPUs",
            f"{cpus}",
            f"{cores} on {len(left)} nodes",
            cores >= cpus or need.is_shared or need.overcommits,
        ),
        (
            "free memory",
            _memory(need),
            f"up to {memory_mib} MiB on a node",
            memory_mib >= max(need.memory_mib, 0),
        ),
    ]
    if need.gpus:
        kinds = [gres.kind for gres in need.gpus]
        count = sum(site.gpus_free(kind).bit_count() for kind in kinds for site in left)
        most = max((site.gpus_free(kind).bit_count() for kind in kinds for site in left), default=0)
        asked = ", ".join(
            f"{gres.count} {gres.kind or 'any'} per {gres.per.name.lower()}" for gres in need.gpus
        )
        of_node = max((gres.count for gres in need.gpus if gres.per is Per.NODE), default=0)
        enough = most >= of_node and count >= gpus_of_job(need)
        told.append(("free GPUs", asked, f"{count}, up to {most} on a node", enough))
    if need.is_whole:
        told.append(("idle nodes", str(need.nodes_min), str(idle), idle >= need.nodes_min))
    rooms = {site.name: room.tasks for site in left if (room := room_on(site, need)).tasks}
    tasks = sum(min(room, need.tasks) for room in rooms.values())
    full = [node for node in need.required if node not in rooms]
    for what, asked, available, passes in told:
        reason = Reason.NONE if passes else Reason.RESOURCES
        yield FilterVerdict(name, what, asked, available, passes, reason)
    fits = choose(need, left) is not None
    asked = f"{need.tasks} tasks on {need.nodes_min} nodes"
    if gpus_of_job(need):
        asked += f" with {gpus_of_job(need)} GPUs"
    yield FilterVerdict(
        name,
        "room now",
        asked,
        f"room for {min(tasks, need.tasks)} on {len(rooms)} nodes"
        + (f", none on {','.join(full)}" if full else ""),
        fits,
        Reason.NONE if fits else Reason.RESOURCES,
    )


def _memory(need: Need) -> str:
    if need.memory_mib < 0:
        return "all of a node"
    return f"{need.memory_mib} MiB per {need.memory_per.name.lower()}"
