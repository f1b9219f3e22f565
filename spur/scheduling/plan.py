"""One cycle: which waiting jobs start now, and why the others wait.

1. Groups of jobs are taken in the order of their first jobs, in each of their partitions.
2. A job that fits starts; what it gets is taken off the nodes of the plan.
3. One that lacks licences waits, and keeps those of them that are free.
4. A het job starts with all of its components, each on nodes of its own, or not at all.
5. When one does not fit, none behind it in its group does. The first such job of each partition
   keeps the nodes that it will start on; later jobs may use those if they are over by then.
6. The reasons that differ from those stated are stated: one for each partition and shape, and one
   for each job where it differs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import islice
from operator import itemgetter
from typing import NamedTuple

from msgspec.structs import replace

from spur.projections.cluster import scheduler_parameters
from spur.projections.hetjobs import components_of
from spur.projections.jobs import GroupKey, JobRow
from spur.projections.licenses import licenses_free
from spur.projections.partitions import PartitionRow, not_for
from spur.projections.priority import points_in, weights_of
from spur.projections.resources import can_hold
from spur.projections.state import State
from spur.scheduling.choose import choose, shares_of
from spur.scheduling.filters import Sorter, Sorting, lacking, refused_group
from spur.scheduling.foresee import JOBS_MAX as FORESEEN_MAX
from spur.scheduling.foresee import Foreseen, Foresight, Waiting
from spur.scheduling.holdings import Holdings
from spur.scheduling.need import Need, counts_memory, need_of
from spur.scheduling.priority import QueueKey, priority_at, queue_key, started_with
from spur.scheduling.queue import Group, Queue, group_of, owners_of
from spur.scheduling.reserve import UNLIMITED_NS, Reservation, reserve
from spur.scheduling.sites import Site, Sites
from spur.values.ids import JobId, NodeName, PartitionName
from spur.values.licenses import parse_licenses
from spur.values.states import Reason
from spur.wire.jobs import GroupReasonView
from spur.wire.runs import JobReasonView, Placement

__all__ = ["STARTS_MAX", "Plan", "limit_of", "plan", "plan_and_foresee", "policy_digest"]

STARTS_MAX = 2_000
"""Starts of one plan, so that a cycle is short and its request well below a request's limit."""

SHARES_MAX = 30_000
"""Nodes of all starts of one plan, of which the last may have more: with 1 000 CPUs a node that is
a request of 6 MiB."""

GROUPS_MAX = 900
"""Reasons of groups that one request may state."""

JOBS_MAX = 1_000
"""Source: LOG-CONTRACT 3.7."""

LIMIT_RETRY_NS = 500 * 1_000_000_000
"""When a job that only a limit keeps from starting is taken to start. Source: Slurm's backfill."""

POLICY = b"tier, factors, submission; the first waiting job of a partition keeps its nodes"

_SECOND_NS = 1_000_000_000


class Plan(NamedTuple):
    """What a cycle proposes. Reasons are those that differ from the stated ones."""

    placements: tuple[Placement, ...]
    groups: tuple[GroupReasonView, ...]
    jobs: tuple[JobReasonView, ...]
    is_cut: bool
    """Whether more jobs might start, if the plan were longer."""
    depth: int = 0
    """How many jobs were looked at."""
    passed_over: int = 0
    """How many start although one before them in their partition waits."""


def policy_digest() -> bytes:
    """Return what names the rules that plans are made by."""
    return hashlib.sha256(POLICY).digest()


def plan(state: State, now_ns: int, queue: Queue | None = None) -> Plan:
    """Return what should happen at this moment.

    `queue` is one that watches the state; without it the waiting jobs are looked for anew.
    """
    cycle = _cycle(state, now_ns, queue)
    return _NOTHING if cycle is None else cycle.run()


def plan_and_foresee(
    state: State, now_ns: int, queue: Queue | None = None
) -> tuple[Plan, tuple[Foreseen, ...]]:
    """Return a plan, and when and where those that wait for room would start.

    It takes about twice the time of the plan alone.
    """
    cycle = _cycle(state, now_ns, queue)
    return (_NOTHING, ()) if cycle is None else (cycle.run(), cycle.foresee())


_NOTHING = Plan((), (), (), is_cut=False)


def _cycle(state: State, now_ns: int, queue: Queue | None) -> _Cycle | None:
    """Return what makes a plan; None when there is nothing to plan."""
    if not len(state.config):
        return None
    if queue is None:
        queue = Queue(state)
    queue.refresh()
    waits = queue.groups or queue.later or queue.hets
    if not (waits or queue.stated or len(state.reasons)):
        return None
    return _Cycle(state, now_ns, queue)


def limit_of(time_limit_s: int | None, partition: PartitionRow) -> int:
    """Return the seconds that a job may run in a partition; 0 is no limit."""
    block = partition.block
    if time_limit_s is None:
        time_limit_s = (
            block.default_time_s if block.default_time_s is not None else block.max_time_s
        )
    return time_limit_s or 0


class _Stream:
    """The jobs of one group on their way into one partition."""

    __slots__ = (
        "choice",
        "closed_for",
        "first",
        "group",
        "is_short",
        "jobs",
        "licenses",
        "name",
        "need",
        "next",
        "partition",
        "shift",
        "sites",
        "sorting",
        "tier",
    )

    def __init__(
        self, group: Group, choice: int, partition: PartitionRow, jobs: Sequence[QueueKey]
    ) -> None:
        self.group = group
        self.choice = choice
        """Which of the jobs' partitions it is."""
        self.name = group.partitions[choice]
        self.partition = partition
        self.tier = partition.block.priority_tier
        self.shift = 0.0
        """How many points more than in the first of its partitions a job has here."""
        self.jobs = jobs
        self.next = 0
        """Place of the job that is tried next."""
        self.need: Need | None = None
        self.licenses: dict[str, int] = {}
        """What each of its jobs asks for."""
        self.sorting = Sorting()
        self.sites: list[Site] = []
        """Nodes that could do, in the order in which they are tried."""
        self.first = 0
        """Nodes before this one have no room any more."""
        self.is_short = False
        """Whether its next job waits for room alone."""
        self.closed_for: set[int] = set()
        """Users whose jobs do not fit, though those of others may."""


class _Whole:
    """A het job on its way to be started as a whole."""

    __slots__ = ("choice", "het_id", "jobs", "next", "shift", "tier")

    def __init__(self, het_id: JobId, tier: int, key: QueueKey) -> None:
        self.het_id = het_id
        self.tier = tier
        """That of the first component's first partition, as is the place in the queue."""
        self.jobs = (key,)
        self.next = 0
        self.choice = 0
        self.shift = 0.0


class _Cycle:
    """The making of one plan."""

    def __init__(self, state: State, now_ns: int, queue: Queue) -> None:
        self._state = state
        self._now_ns = now_ns
        self._queue = queue
        self._settings = state.config[1].settings
        self._counts_memory = counts_memory(state)
        self._sites = Sites.of(state)
        self._sorter = Sorter(self._sites)
        self._weights = weights_of(state)
        self._heap: list[tuple[int, QueueKey, int, int]] = []
        self._streams: list[_Stream | _Whole] = []
        self._placements: list[Placement] = []
        self._shares = 0
        """How many nodes the starts have in all."""
        self._started: set[JobId] = set()
        self._tasks_started: dict[JobId, int] = {}
        """How many tasks of an array's row start, the first ones."""
        self._ends: dict[JobId, int] = {}
        """When the plan's own starts reach their limits; tasks have numbers below zero."""
        self._running_tasks: dict[JobId, int] = {}
        self._kept: dict[NodeName, int] = {}
        """Nodes that a waiting job keeps, and from when on."""
        self._heads: set[PartitionName] = set()
        """Partitions whose first waiting job was met."""
        self._licenses: dict[str, int] | None = None
        """How many of each licence are free and kept for nobody; None before a job asked."""
        self._owners = owners_of(state, queue.by_user)
        self._waiting: list[int] = []
        """Streams whose next job waits for room."""
        self._stopped: list[tuple[Waiting, int, list[Site]]] = []
        """Jobs that only a limit keeps from starting, and when and where they might."""
        self._holdings = Holdings(state, self._placements)
        self._stops_at_limits = "assoc_limit_stop" in scheduler_parameters(state)
        self._group_reasons: dict[GroupKey, Reason] = {}
        self._job_reasons: dict[JobId, Reason] = {}
        self._first_blocked: dict[Group, JobId] = {}
        self._depth = self._passed_over = 0

    def run(self) -> Plan:
        """Go through the queue."""
        self._open_streams()
        while self._heap and not self._is_full():
            _, _, _, place = heappop(self._heap)
            stream = self._streams[place]
            if isinstance(stream, _Whole):
                self._serve_whole(stream)
            elif self._serve(stream):
                self._push(place)
            elif stream.is_short:
                self._waiting.append(place)
        is_cut = bool(self._heap)
        groups, jobs = self._reasons(is_cut=is_cut)
        return Plan(tuple(self._placements), groups, jobs, is_cut, self._depth, self._passed_over)

    def foresee(self) -> tuple[Foreseen, ...]:
        """Return when and where those that wait for room would start."""
        foresight = Foresight(self._state, self._now_ns, self._ends)
        for waiting, start_ns, sites in self._stopped:
            foresight.promise(waiting, start_ns, sites)
        jobs: list[tuple[tuple[int, QueueKey, int, int], Waiting]] = []
        for place in self._waiting:
            stream = self._streams[place]
            if isinstance(stream, _Whole) or stream.need is None:
                continue
            for key in stream.jobs[stream.next : stream.next + FORESEEN_MAX]:
                jobs.append((self._entry(place, key), self._waiting_job(stream, stream.need, key)))
        for _, waiting in sorted(jobs, key=itemgetter(0)):
            if waiting.job_id not in self._started and not foresight.look(waiting):
                break
        return tuple(foresight.found)

    def _waiting_job(self, stream: _Stream, need: Need, key: QueueKey) -> Waiting:
        return Waiting(key[2], need, stream.sites, self._limit_ns(stream))

    # -- the queue
    def _open_streams(self) -> None:
        queue, now_ns = self._queue, self._now_ns
        begun = dict(queue.eligible(now_ns))
        groups: dict[Group, Sequence[QueueKey]] = dict(queue.groups)
        for group, keys in begun.items():
            groups[group] = sorted([*groups.get(group, ()), *keys])
        for job_id in queue.later:
            job, run = self._state.jobs[job_id], self._state.runs[job_id]
            reason = queue.later_reason(job_id, job, run, now_ns)
            # What a job waits for of others is in the state already, and shown from there.
            if reason is not Reason.NONE and job_id not in self._state.dependencies:
                self._job_reasons[job_id] = reason
        for group, jobs in groups.items():
            first = group.partitions[0]
            for choice, name in enumerate(group.partitions):
                partition = self._state.partitions.get(name)
                if partition is None:
                    self._note(group, Reason.PARTITION_INACTIVE)
                else:
                    self._streams.append(_Stream(group, choice, partition, jobs))
                    if choice:
                        points = [points_in(self._state, group.ask, each) for each in (first, name)]
                        self._streams[-1].shift = points[1] - points[0]
        self._open_wholes()
        for place in range(len(self._streams)):
            self._heap.append(self._entry(place, self._streams[place].jobs[0]))
        heapify(self._heap)

    def _open_wholes(self) -> None:
        """Line up the het jobs of which every component may start."""
        state, queue = self._state, self._queue
        for het_id, keys in queue.hets.items():
            components = components_of(state, het_id)
            is_ready = len(keys) == len(components) and het_id not in state.het_runs.apart
            for job_id in keys:
                job, run = state.jobs[job_id], state.runs[job_id]
                reason = queue.later_reason(job_id, job, run, self._now_ns)
                if reason is not Reason.NONE:
                    is_ready = False
                    if job_id not in state.dependencies:
                        self._job_reasons[job_id] = reason
            if not is_ready:
                continue
            partition = state.partitions.get(state.jobs[het_id].spec.partitions[0])
            tier = 0 if partition is None else partition.block.priority_tier
            self._streams.append(_Whole(het_id, tier, keys[het_id]))

    def _entry(self, place: int, key: QueueKey) -> tuple[int, QueueKey, int, int]:
        """Return where a job of a stream stands in the whole queue."""
        stream = self._streams[place]
        job_id = key[2]
        job, run = self._state.jobs[job_id], self._state.runs[job_id]
        rank = priority_at(self._weights, key, job, run, self._now_ns, stream.shift)
        return -stream.tier, (-rank, *key[1:]), stream.choice, place

    def _push(self, place: int) -> None:
        stream = self._streams[place]
        if stream.next < len(stream.jobs):
            heappush(self._heap, self._entry(place, stream.jobs[stream.next]))

    # -- one job
    def _serve(self, stream: _Stream) -> bool:
        """Deal with the stream's next job; return whether the stream goes on."""
        self._depth += 1
        job_id = stream.jobs[stream.next][2]
        job = self._state.jobs[job_id]
        if stream.need is None:
            reason = self._prepare(stream)
            if reason is not Reason.NONE:
                self._note(stream.group, reason)
                return False
        if job_id in self._started or job.uid in stream.closed_for:
            stream.next += 1
            return True
        reason = not_for(stream.partition.block, job.spec)
        if reason is not Reason.NONE:
            if stream.choice == len(stream.group.partitions) - 1:
                self._job_reasons.setdefault(job_id, reason)
            stream.next += 1
            return True
        begun = self._tasks_started.get(job_id, 0)
        limit_s = limit_of(stream.group.time_limit_s, stream.partition)
        for task in (None,) if job.tasks is None else islice(job.tasks, begun, None):
            if self._is_throttled(job):
                self._job_reasons[job_id] = Reason.ARRAY_TASK_LIMIT
                stream.next += 1
                return True
            if self._is_full():
                return True
            reason = (
                Reason.NONE
                if stream.need is None
                else self._holdings.broken(job, stream.name, stream.need, limit_s)
            )
            if reason is not Reason.NONE:
                self._limited(stream, job_id, job, reason)
                return True
            if not self._has_licenses(stream):
                waits_first = stream.name not in self._heads
                self._note(stream.group, Reason.LICENSES if waits_first else Reason.PRIORITY)
                return False
            if not self._start(stream, job_id, job, task):
                return self._blocked(stream, job_id, job)
        self._started.add(job_id)
        stream.next += 1
        return True

    # -- a het job
    def _serve_whole(self, whole: _Whole) -> None:
        """Start all components of a het job, or note why it waits and keep nodes for it."""
        mark = len(self._placements)
        licenses = None if self._licenses is None else dict(self._licenses)
        owners = dict(self._owners)
        components = components_of(self._state, whole.het_id)
        taken: set[NodeName] = set()
        for job_id in components:
            reason = self._start_component(job_id, taken)
            if reason is not Reason.NONE:
                self._take_back(mark)
                self._owners = owners
                if reason is not Reason.LICENSES:  # those that are free are kept for it
                    self._licenses = licenses
                self._blocked_whole(components, job_id, reason)
                return
            taken.update(share.node for share in self._placements[-1].shares)
        for place in range(mark + 1, len(self._placements)):
            self._placements[place] = replace(self._placements[place], joined=True)
        self._started.update(components)

    def _start_component(self, job_id: JobId, taken: set[NodeName]) -> Reason:
        """Place a component in one of its partitions; return why not, or NONE."""
        job = self._state.jobs[job_id]
        reason = Reason.NONE
        for stream in self._streams_of(job_id, job):
            reason = self._prepare(stream)
            if reason is Reason.NONE:
                reason = not_for(stream.partition.block, job.spec)
            if reason is not Reason.NONE or stream.need is None:
                continue
            limit_s = limit_of(stream.group.time_limit_s, stream.partition)
            reason = self._holdings.broken(job, stream.name, stream.need, limit_s)
            if reason is not Reason.NONE:
                continue
            if not self._has_licenses(stream):
                reason = Reason.LICENSES
                continue
            # No two components share a node. Source: what Slurm 22.05 does.
            stream.sites = [site for site in stream.sites if site.name not in taken]
            if self._start(stream, job_id, job, None):
                return Reason.NONE
            reason = lacking(stream.need, stream.sorting)
            if reason is Reason.NONE:
                reason = Reason.RESOURCES
        return Reason.PARTITION_INACTIVE if reason is Reason.NONE else reason

    def _streams_of(self, job_id: JobId, job: JobRow) -> Iterator[_Stream]:
        """Yield one component's ways into its partitions."""
        run = self._state.runs[job_id]
        group = group_of(job, run)
        key = queue_key(self._state, job_id, job, run)
        for choice, name in enumerate(group.partitions):
            partition = self._state.partitions.get(name)
            if partition is not None:
                yield _Stream(group, choice, partition, (key,))

    def _take_back(self, mark: int) -> None:
        """Undo the plan's newest starts."""
        for placement in self._placements[mark:]:
            self._sites.release(placement.job_id, placement.shares)
            self._shares -= len(placement.shares)
            del self._ends[placement.job_id]
        del self._placements[mark:]
        self._holdings.forget()

    def _blocked_whole(self, components: list[JobId], blocked: JobId, reason: Reason) -> None:
        """Note why a het job waits; the first of a partition keeps nodes, all from one time on."""
        is_head = False
        kept: list[Reservation] = []
        taken: set[NodeName] = set()
        for job_id in components if reason is Reason.RESOURCES else ():
            stream = next(self._streams_of(job_id, self._state.jobs[job_id]), None)
            if stream is None or stream.name in self._heads:
                continue
            if self._prepare(stream) is not Reason.NONE or stream.need is None:
                continue
            is_head = True
            sites = [site for site in stream.sites if site.name not in taken]
            found = self._reserve(stream.need, sites)
            kept.append(found)
            taken |= found.nodes
        if is_head:
            jobs = self._state.jobs
            self._heads.update(jobs[job_id].spec.partitions[0] for job_id in components)
        start_ns = max((each.start_ns for each in kept), default=0)
        for node in taken:
            self._kept[node] = min(self._kept.get(node, start_ns), start_ns)
        if reason is Reason.RESOURCES and not is_head:
            reason = Reason.PRIORITY
        self._job_reasons[blocked] = reason

    def _reserve(self, need: Need, sites: Sequence[Site]) -> Reservation:
        """Return when and where one that waits could start."""
        now = choose(need, sites)
        if now is not None:
            return Reservation(self._now_ns, frozenset(site.name for site, _ in now))
        return reserve(self._state, need, sites, now_ns=self._now_ns, planned_ends=self._ends)

    def _prepare(self, stream: _Stream) -> Reason:
        """Work out what the stream's jobs need and where; return why none of them may start."""
        need = need_of(
            stream.group.ask,
            stream.partition.block,
            self._settings,
            counts_memory=self._counts_memory,
        )
        stream.need = need
        stream.licenses = parse_licenses(stream.group.ask.licenses)
        reason = refused_group(need, stream.partition, stream.group.time_limit_s)
        if reason is Reason.NONE:
            stream.sorting = self._sorter.sort(need, stream.name)
            stream.sites = stream.sorting.usable
            if not stream.sites:
                reason = lacking(need, stream.sorting)
        return reason

    def _is_full(self) -> bool:
        return len(self._placements) >= STARTS_MAX or self._shares >= SHARES_MAX

    def _is_throttled(self, job: JobRow) -> bool:
        array = self._state.arrays.get(job.array_id) if job.array_id else None
        return (
            array is not None
            and bool(array.throttle)
            and self._tasks_running(job.array_id) >= array.throttle
        )

    def _tasks_running(self, array_id: JobId) -> int:
        known = self._running_tasks.get(array_id)
        return self._state.allocations.running_tasks(array_id) if known is None else known

    def _has_licenses(self, stream: _Stream) -> bool:
        """Whether there are licences for the stream's next job; it keeps those that there are."""
        if not stream.licenses:
            return True
        if self._licenses is None:
            self._licenses = licenses_free(self._state)
        free = self._licenses
        if all(count <= free.get(name, 0) for name, count in stream.licenses.items()):
            return True
        self._take_licenses(stream)
        return False

    def _take_licenses(self, stream: _Stream) -> None:
        free = self._licenses or {}
        for name, count in stream.licenses.items():
            free[name] = max(free.get(name, 0) - count, 0)

    def _limited(self, stream: _Stream, job_id: JobId, job: JobRow, reason: Reason) -> None:
        """Let a job wait that its association or QOS keeps from starting."""
        self._job_reasons.setdefault(job_id, reason)
        need = stream.need
        waiting = (
            None if need is None else self._waiting_job(stream, need, stream.jobs[stream.next])
        )
        stream.next += 1
        if need is None or waiting is None:
            return
        if not self._stops_at_limits or stream.name in self._heads:
            return
        # As Slurm does: it keeps where it would start if it might, for a while, from later jobs.
        self._heads.add(stream.name)
        starts_ns = self._now_ns + LIMIT_RETRY_NS
        chosen = choose(need, self._candidates(stream, need, job.uid, starts_ns))
        if chosen is None:
            self._keep(stream, need)
            return
        self._stopped.append((waiting, starts_ns, [site for site, _ in chosen]))
        for site, _ in chosen:
            self._kept[site.name] = min(starts_ns, self._kept.get(site.name, starts_ns))

    # -- starting
    def _start(self, stream: _Stream, job_id: JobId, job: JobRow, task: int | None) -> bool:
        """Place a job, or one task; return whether there was room."""
        need = stream.need
        if need is None:
            return False
        end_ns = self._now_ns + self._limit_ns(stream)
        candidates = self._candidates(stream, need, job.uid, end_ns)
        chosen = choose(need, candidates)
        if chosen is None:
            return False
        shares = shares_of(need, chosen)
        for share in shares:
            site = self._sites.by_name[share.node]
            most = need.jobs_per_cpu_max
            if not can_hold(site.use, share, site.kind.block, jobs_per_cpu_max=most):
                return False
        if need.is_single and not self._owners and not stream.partition.block.least_loaded:
            # What was passed over has no room, and gets none before the next cycle.
            stream.first = stream.sites.index(chosen[0][0], stream.first)
        run = self._state.runs[job_id]
        placed = job_id if task is None else JobId(-1 - len(self._placements))
        self._sites.hold(placed, shares, stream.name)
        self._shares += len(shares)
        self._ends[placed] = end_ns
        if task is not None:
            self._tasks_started[job_id] = self._tasks_started.get(job_id, 0) + 1
        self._take_licenses(stream)
        if job.array_id:
            self._running_tasks[job.array_id] = self._tasks_running(job.array_id) + 1
        if need.is_by_user:
            self._owners.update((share.node, job.uid) for share in shares)
        self._passed_over += stream.name in self._heads
        self._placements.append(
            Placement(
                job_id,
                run.number,
                task,
                stream.name,
                shares,
                started_with(self._state, job, run, stream.name, self._now_ns),
                stream.sorting.refused,
                "the first nodes with room, by weight",
            )
        )
        self._holdings.count(self._placements[-1])
        return True

    def _limit_ns(self, stream: _Stream) -> int:
        limit_s = limit_of(stream.group.time_limit_s, stream.partition)
        return limit_s * _SECOND_NS or UNLIMITED_NS

    def _candidates(self, stream: _Stream, need: Need, uid: int, end_ns: int) -> Sequence[Site]:
        """Return the nodes that a job may use now, in the order in which they are tried."""
        sites = stream.sites[stream.first :] if stream.first else stream.sites
        kept, owners = self._kept, self._owners
        if not need.is_shared:
            sites = [site for site in sites if site.cores_free]
        if kept:
            sites = [site for site in sites if kept.get(site.name, end_ns) >= end_ns]
        if owners:
            sites = [site for site in sites if owners.get(site.name, uid) == uid]
        if need.is_by_user:
            sites = [site for site in sites if self._is_alone(site, uid)]
        if stream.partition.block.least_loaded:
            sites = sorted(sites, key=lambda site: -site.cores_free)
        return sites

    def _is_alone(self, site: Site, uid: int) -> bool:
        """Whether all jobs of a node are of one user."""
        if site.name in self._owners:
            return self._owners[site.name] == uid
        jobs = self._state.jobs
        return all(job_id in jobs and jobs[job_id].uid == uid for job_id in site.use.jobs)

    # -- waiting
    def _blocked(self, stream: _Stream, job_id: JobId, job: JobRow) -> bool:
        """Note why a job that does not fit waits; return whether its stream goes on."""
        need = stream.need
        if need is None:
            return False
        reason = lacking(need, stream.sorting)
        if reason is not Reason.NONE:
            self._note(stream.group, reason)
            return False
        self._note(stream.group, Reason.PRIORITY)
        if stream.name not in self._heads:
            self._job_reasons[job_id] = (
                Reason.NODES_UNAVAILABLE if self._is_behind(stream) else Reason.RESOURCES
            )
            self._heads.add(stream.name)
            self._first_blocked[stream.group] = job_id
            self._keep(stream, need)
        if not (self._owners or need.is_by_user):
            stream.is_short = True
            return False
        stream.closed_for.add(job.uid)
        stream.next += 1
        return True

    def _is_behind(self, stream: _Stream) -> bool:
        """Whether each node that would do is of a partition in which a job of higher rank waits."""
        if not self._heads:
            return False
        behind = {site.name for name in self._heads for site in self._sites.members(name)}
        return all(site.name in behind for site in stream.sites)

    def _keep(self, stream: _Stream, need: Need) -> None:
        """Keep the nodes that the first waiting job of a partition will start on."""
        reservation = reserve(
            self._state, need, stream.sites, now_ns=self._now_ns, planned_ends=self._ends
        )
        for node in reservation.nodes:
            known = self._kept.get(node)
            if known is None or reservation.start_ns < known:
                self._kept[node] = reservation.start_ns

    def _note(self, group: Group, reason: Reason) -> None:
        """Take this as the reason of a group's jobs; of several partitions the last one says."""
        key = (group.partitions[0], self._state.shared.shape(group.ask))
        self._group_reasons[key] = reason
        former = self._first_blocked.pop(group, None)
        if former is not None:
            self._job_reasons.pop(former, None)

    # -- reasons
    def _reasons(
        self, *, is_cut: bool
    ) -> tuple[tuple[GroupReasonView, ...], tuple[JobReasonView, ...]]:
        """Return the reasons that differ from those stated."""
        state, queue = self._state, self._queue
        groups = [
            GroupReasonView(*key, reason)
            for key, reason in sorted(self._group_reasons.items())
            if key not in state.reasons or state.reasons[key].reason is not reason
        ]
        shape = state.shared.shape
        waiting = {(group.partitions[0], shape(group.ask)) for group in queue.groups}
        waiting.update(self._group_reasons)
        groups += [
            GroupReasonView(*key, Reason.NONE)
            for key in state.reasons.sorted_keys()
            if key not in waiting
        ]
        wanted = {
            job_id: reason
            for job_id, reason in self._job_reasons.items()
            if job_id not in self._started
        }
        if not is_cut:
            wanted |= {
                job_id: Reason.NONE
                for job_id in queue.stated
                if job_id not in wanted and job_id not in self._started
            }
        jobs = [
            JobReasonView(job_id, wanted[job_id])
            for job_id in sorted(wanted)
            if state.runs[job_id].reason is not wanted[job_id]
        ]
        return tuple(groups[:GROUPS_MAX]), tuple(jobs[:JOBS_MAX])
