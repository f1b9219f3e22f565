"""Placement: which starts of a plan still hold on the present state.

The scheduler plans on a state that it followed; meanwhile jobs were cancelled and nodes lost.
Each placement is judged by itself and those that hold are taken, so a plan is never wasted and
resources are never given twice. The components of a het job are judged together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from spur.commands.decide import Context, Decision, command
from spur.commands.permissions import Permission
from spur.events.declare import Event
from spur.events.jobs import JobTasksSplit
from spur.events.runs import JobStarted, PlacementDecision, RefusedNodes
from spur.projections.hetjobs import components_of
from spur.projections.jobs import JobRow, next_job_id
from spur.projections.licenses import licenses_free
from spur.projections.nodes import block_of, is_usable
from spur.projections.partitions import PartitionRow, may_share, not_for
from spur.projections.resources import NodeUse, can_hold
from spur.projections.runrows import RunRow
from spur.projections.state import State
from spur.values.arrays import TaskSet
from spur.values.config import NodeBlock, PartitionState
from spur.values.errors import Rejection
from spur.values.hostlist import parse_hostlist
from spur.values.ids import JobId, NodeName, PartitionName
from spur.values.licenses import parse_licenses
from spur.values.states import Hold, Phase, Reason
from spur.wire.runs import PlaceJobs, Placement, PlacementsJudged, RefusedPlacement

__all__ = ["PLACEMENTS_PER_PART_MAX", "held_beyond"]

PLACEMENTS_PER_PART_MAX = 300
"""Starts of one part: each may split a task off and start it, which changes six rows."""

SHARES_PER_PART_MAX = 40_000
"""Shares of nodes of one part, unless one placement has more: a megabyte of the entry."""

REFUSALS_TOLD_MAX = 8
"""Refusals that an answer tells, which has to stay small."""


@dataclass(slots=True)
class _Draft:
    """The state as it will be after the placements accepted so far in this entry."""

    state: State
    next_id: JobId
    started: set[JobId] = field(default_factory=set)
    left: dict[JobId, TaskSet] = field(default_factory=dict)
    """Tasks of rows from which some were split off."""
    used: dict[NodeName, NodeUse] = field(default_factory=dict)
    """What is held by now on nodes that were touched."""
    running_tasks: dict[JobId, int] = field(default_factory=dict)
    nodes_of: dict[PartitionName, frozenset[str]] = field(default_factory=dict)
    licenses: dict[str, int] | None = None
    """How many of each licence are free by now; None before a job asked for any."""

    def copy(self) -> _Draft:
        """Return one to go back to."""
        licenses = None if self.licenses is None else dict(self.licenses)
        return replace(
            self,
            started=set(self.started),
            left=dict(self.left),
            used=dict(self.used),
            running_tasks=dict(self.running_tasks),
            licenses=licenses,
        )

    def take_back(self, former: _Draft) -> None:
        """Go back to what it was."""
        self.next_id, self.started, self.left = former.next_id, former.started, former.left
        self.used, self.running_tasks = former.used, former.running_tasks
        self.licenses = former.licenses

    def used_on(self, node: NodeName) -> NodeUse:
        """Return what is held on a node."""
        return self.used.get(node) or self.state.allocations.use(node)

    def nodes_in(self, name: PartitionName, partition: PartitionRow) -> frozenset[str]:
        """Return the nodes of a partition."""
        known = self.nodes_of.get(name)
        if known is None:
            known = self.nodes_of[name] = frozenset(parse_hostlist(partition.block.nodes))
        return known

    def free_licenses(self) -> dict[str, int]:
        """Return how many of each licence are free, to be lowered as they are given."""
        if self.licenses is None:
            self.licenses = licenses_free(self.state)
        return self.licenses

    def tasks_of(self, job_id: JobId, job: JobRow) -> TaskSet | None:
        """Return the tasks that a row still stands for."""
        return self.left.get(job_id, job.tasks)

    def running_of(self, array_id: JobId) -> int:
        """Return how many tasks of an array run."""
        known = self.running_tasks.get(array_id)
        return self.state.allocations.running_tasks(array_id) if known is None else known


@command(PlaceJobs, permission=Permission.CLUSTER, divisible=True)
def decide_place_jobs(state: State, request: PlaceJobs, context: Context) -> Decision:
    """Start what still holds; each part deals with the next placements of the plan."""
    first, last = _slice_of(request.placements, context.part)
    draft = _Draft(state, next_job_id(state))
    events: list[Event] = []
    refusals: list[RefusedPlacement] = []
    started = 0
    for place, bunch in _bunches(request.placements, first, last):
        taken = _take_all(draft, bunch, request, context)
        if isinstance(taken, Rejection):
            refusals.append(RefusedPlacement(place, taken.code))
        else:
            events += taken
            started += len(bunch)
    answer = PlacementsJudged(started, len(refusals), tuple(refusals[:REFUSALS_TOLD_MAX]))
    return Decision(tuple(events), answer, more=last < len(request.placements))


def _bunches(
    placements: tuple[Placement, ...], first: int, last: int
) -> Iterator[tuple[int, tuple[Placement, ...]]]:
    """Yield what starts together or not at all, each with its place in the plan."""
    while first < last:
        end = first + 1
        while end < last and placements[end].joined:
            end += 1
        yield first, placements[first:end]
        first = end


def _take_all(
    draft: _Draft, bunch: tuple[Placement, ...], request: PlaceJobs, context: Context
) -> list[Event] | Rejection:
    """Return the events of starts that go together, or why they do not hold; then none is taken."""
    refused = _refuse_incomplete(draft.state, bunch)
    if refused is not None:
        return refused
    former = draft.copy() if len(bunch) > 1 else None
    events: list[Event] = []
    for placement in bunch:
        judged = _judge(draft, placement, context)
        if isinstance(judged, Rejection):
            if former is not None:
                draft.take_back(former)
            return judged
        _take(draft, placement, judged, request, events)
    return events


def _refuse_incomplete(state: State, bunch: tuple[Placement, ...]) -> Rejection | None:
    """Return why these are not all components of one het job, or one job that is none; or None."""
    job_id = bunch[0].job_id
    whole = components_of(state, state.jobs[job_id].het_id) if job_id in state.jobs else []
    is_torn = bool(whole) and state.jobs[job_id].het_id in state.het_runs.apart
    if is_torn or [each.job_id for each in bunch] != (whole or [job_id]):
        return Rejection("wrong-state", f"job {job_id} starts with all components or not at all")
    return None


def _slice_of(placements: tuple[Placement, ...], part: int) -> tuple[int, int]:
    """Return where in the plan a part begins and ends."""
    first = last = 0
    for _ in range(part):
        first = last
        shares = 0
        while last < len(placements) and last - first < PLACEMENTS_PER_PART_MAX:
            end = last + 1
            while end < len(placements) and placements[end].joined:
                end += 1
            shares += sum(len(placement.shares) for placement in placements[last:end])
            if shares > SHARES_PER_PART_MAX and last > first:
                break
            last = end
    return first, last


def _judge(draft: _Draft, placement: Placement, context: Context) -> int | Rejection:
    """Return the time limit in seconds, 0 for none, that a placement gives; or why it fails."""
    state, job_id = draft.state, placement.job_id
    run, job = state.runs.get(job_id), state.jobs.get(job_id)
    if run is None or job is None:
        return Rejection("unknown-job", f"there is no job {job_id}")
    partition = state.partitions.get(placement.partition)
    if partition is None or placement.partition not in job.spec.partitions:
        return Rejection(
            "unknown-partition", f"job {job_id} is in no partition {placement.partition!r}"
        )
    refused = _refuse_run(draft, placement, run, job, context) or _refuse_nodes(
        draft, placement, job, partition
    )
    if refused is not None:
        return refused
    limit_s = job.spec.time_limit_s
    if limit_s is None:
        block = partition.block
        limit_s = block.default_time_s if block.default_time_s is not None else block.max_time_s
    return limit_s or 0


def _refuse_run(
    draft: _Draft, placement: Placement, run: RunRow, job: JobRow, context: Context
) -> Rejection | None:
    """Return why this run does not start now, wherever; or None."""
    job_id, task = placement.job_id, placement.task
    if run.phase is not Phase.PENDING or run.number != placement.run or job_id in draft.started:
        return Rejection(
            "wrong-state", f"job {job_id} is {run.phase.name}, run {run.number}: it does not start"
        )
    if run.hold is not Hold.NONE:
        return Rejection("wrong-state", f"job {job_id} is held")
    if job_id in draft.state.dependencies:
        return Rejection("wrong-state", f"job {job_id} waits for others")
    if job.spec.begin_ns > context.now_ns:
        return Rejection("wrong-state", f"job {job_id} begins later")
    tasks = draft.tasks_of(job_id, job)
    if (task is None) != (tasks is None) or (tasks is not None and task not in tasks):
        return Rejection("wrong-state", f"job {job_id} does not stand for task {task}")
    array = draft.state.arrays.get(job.array_id)
    if array is not None and array.throttle and draft.running_of(job.array_id) >= array.throttle:
        return Rejection("wrong-state", f"array {job.array_id} runs {array.throttle} tasks already")
    return _refuse_licenses(draft, job)


def _refuse_licenses(draft: _Draft, job: JobRow) -> Rejection | None:
    if job.spec.ask.licenses:
        free = draft.free_licenses()
        for name, count in parse_licenses(job.spec.ask.licenses).items():
            if count > free.get(name, 0):
                return _does_not_fit(f"{free.get(name, 0)} of licence {name!r} are free")
    return None


def _refuse_nodes(
    draft: _Draft, placement: Placement, job: JobRow, partition: PartitionRow
) -> Rejection | None:
    """Return why these shares can't be given, or None."""
    ask, shares = job.spec.ask, placement.shares
    if partition.state not in (PartitionState.UP, PartitionState.DRAIN):
        return _does_not_fit(f"partition {placement.partition!r} is {partition.state}")
    closed = not_for(partition.block, job.spec)
    if closed is not Reason.NONE:
        return _does_not_fit(f"partition {placement.partition!r} is not for the job: {closed}")
    if not ask.nodes_min <= len(shares) <= (ask.nodes_max or len(shares)):
        return _does_not_fit(f"job {placement.job_id} does not ask for {len(shares)} nodes")
    if len({share.node for share in shares}) != len(shares):
        return _does_not_fit("a node is named twice")
    members = draft.nodes_in(placement.partition, partition)
    jobs_per_cpu_max = partition.block.jobs_per_resource_max
    for share in shares:
        node, block = share.node, block_of(draft.state, share.node)
        if block is None or node not in members or not is_usable(draft.state, node):
            return _does_not_fit(f"node {node!r} takes no jobs of {placement.partition!r}")
        if share.is_shared and not may_share(partition.block, ask):
            return _does_not_fit(f"job {placement.job_id} shares its CPUs with no other")
        use = draft.used_on(node)
        if not can_hold(use, share, block, jobs_per_cpu_max=jobs_per_cpu_max):
            return _does_not_fit(f"what is asked of node {node!r} is not free there")
    return None


def _does_not_fit(text: str) -> Rejection:
    return Rejection("does-not-fit", text)


def _take(
    draft: _Draft, placement: Placement, limit_s: int, request: PlaceJobs, events: list[Event]
) -> None:
    """Add the events of one start, and note in the draft what it takes."""
    state, job_id = draft.state, placement.job_id
    job, run = state.jobs[job_id], state.runs[job_id]
    tasks = draft.tasks_of(job_id, job)
    started = job_id
    if tasks is not None and placement.task is not None and not tasks.is_single:
        alone = TaskSet.single(placement.task)
        started = draft.next_id
        draft.next_id = JobId(started + 1)
        draft.left[job_id] = tasks.without(alone)
        events.append(JobTasksSplit(started, job_id, alone))
    draft.started.add(started)
    if job.spec.ask.licenses:
        free = draft.free_licenses()
        for name, count in parse_licenses(job.spec.ask.licenses).items():
            free[name] -= count
    if job.array_id:
        draft.running_tasks[job.array_id] = draft.running_of(job.array_id) + 1
    for share in placement.shares:
        draft.used[share.node] = draft.used_on(share.node).plus(started, share)
    decision = PlacementDecision(
        request.policy_digest,
        request.based_on,
        placement.factors,
        tuple(RefusedNodes(refused.cause, refused.count) for refused in placement.refused),
        placement.why_these,
    )
    events.append(
        JobStarted(
            started,
            run.number,
            run.attempt + 1,
            placement.partition,
            placement.shares,
            limit_s,
            decision,
        )
    )


def held_beyond(state: State, blocks: tuple[NodeBlock, ...]) -> Rejection | None:
    """Return why these blocks can't become the nodes: one would have less than is held on it."""
    configured = {name: block for block in blocks for name in parse_hostlist(block.names)}
    for node in state.allocations.nodes():
        use, block = state.allocations.use(node), configured.get(node)
        if block is None:
            return Rejection(
                "wrong-state",
                f"node {node!r} has running jobs and would be gone; nothing was changed",
                "drain it first, and wait until its jobs have ended",
            )
        if (
            use.cpu_mask >> block.cpus
            or use.memory_mib > block.memory_mib
            or use.gpus >> block.gpus
        ):
            return Rejection(
                "wrong-state",
                f"running jobs hold more of node {node!r} than it would have; nothing was changed",
                "drain it first, and wait until its jobs have ended",
            )
    return None
