"""Waiting jobs, in groups that are placed alike.

Jobs of one group name the same partitions, ask for the same and have the same time limit, so when
one does not fit, none behind it does: a cycle looks at each group, not at each job. The queue is
kept up to date by watching the tables: rows that changed are filed anew before the next cycle, so
it equals one that is made afresh from the state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from sortedcontainers import SortedList

from spur.projections.cluster import scheduler_parameters
from spur.projections.dependencies import never_holds
from spur.projections.jobs import JobRow
from spur.projections.resources import held_shares
from spur.projections.runrows import RunRow
from spur.projections.state import State
from spur.scheduling.priority import QueueKey, queue_key
from spur.values.ids import JobId, NodeName, PartitionName
from spur.values.jobspec import ResourceAsk, Sharing
from spur.values.states import Hold, Phase, Reason

__all__ = ["Group", "Queue", "batch_delay_s", "group_of", "owners_of"]

DELAY_S_MAX = 60
"""The longest that batch jobs are let wait."""


class Group(NamedTuple):
    """What the jobs of a group have in common."""

    partitions: tuple[PartitionName, ...]
    ask: ResourceAsk
    time_limit_s: int | None
    is_fixed: bool
    """Whether an operator fixed their priorities, which then do not grow with age."""


class _Filed(NamedTuple):
    """Where a job is filed: in a group, with its het job, or among those that begin later."""

    group: Group | None
    key: QueueKey
    het_id: JobId


class Queue:
    """The waiting jobs of a state."""

    def __init__(self, state: State) -> None:
        """File every waiting job, and watch the tables from now on."""
        self.groups: dict[Group, SortedList[QueueKey]] = {}
        """Jobs that may start as far as they themselves are concerned."""
        self.later: set[JobId] = set()
        """Jobs that begin later, wait for others, or are ranked zero."""
        self.hets: dict[JobId, dict[JobId, QueueKey]] = {}
        """Het jobs, and those of their components that wait and are not held."""
        self.stated: set[JobId] = set()
        """Waiting jobs that have a reason of their own."""
        self.by_user: set[JobId] = set()
        """Jobs that hold nodes which only jobs of their user may share."""
        self.hurries = False
        """Whether somebody waits at a terminal for a job that was filed since this was set back."""
        self._state = state
        self._filed: dict[JobId, _Filed] = {}
        self._changed: set[JobId] = set(state.runs.rows)
        self._ranks = _Ranks()
        state.jobs.watch(self)
        state.runs.watch(self)
        state.dependencies.watch(self)
        for table in (state.config, state.partitions, state.node_blocks):
            table.watch(self._ranks)
        for entities in (state.users, state.associations, state.qos):
            entities.watch(self._ranks)

    # -- an index of the tables that it watches
    def change(self, key: JobId, old: Any, new: Any) -> None:
        """Note that a job is to be filed anew."""
        self._changed.add(key)

    def fill(self, rows: Mapping[JobId, Any]) -> None:
        """Follow every row of a table at once."""
        self._changed.update(rows)

    def fresh(self) -> _Nothing:
        """Return an index that says as little as this one."""
        return _Nothing()

    def contents(self) -> object:
        """Return nothing: it is filed when it is read."""
        return None

    # -- reading
    def refresh(self) -> None:
        """File every job whose rows changed."""
        changed, self._changed = self._changed, set()
        if self._ranks.changed:
            self._ranks.changed = False
            changed |= self._state.runs.rows.keys()
        for job_id in changed:
            self._file(job_id)

    def eligible(self, now_ns: int) -> Iterator[tuple[Group, list[QueueKey]]]:
        """Yield those of `later` whose time to begin has come, by group."""
        found: dict[Group, list[QueueKey]] = {}
        for job_id in sorted(self.later):
            job, run = self._state.jobs[job_id], self._state.runs[job_id]
            if self.later_reason(job_id, job, run, now_ns) is Reason.NONE:
                found.setdefault(group_of(job, run), []).append(
                    queue_key(self._state, job_id, job, run)
                )
        yield from found.items()

    def later_reason(self, job_id: JobId, job: JobRow, run: RunRow, now_ns: int) -> Reason:
        """Return why a job may not start yet; NONE when it may."""
        dependency = self._state.dependencies.get(job_id)
        if dependency is not None:
            never = never_holds(dependency)
            return Reason.DEPENDENCY_NEVER_SATISFIED if never else Reason.DEPENDENCY
        if job.spec.begin_ns > now_ns:
            return Reason.BEGIN_TIME
        return Reason.HELD_BY_ADMIN if run.priority == 0 else Reason.NONE

    def waiting(self) -> int:
        """Return how many rows wait."""
        return len(self._filed)

    # -- filing
    def _file(self, job_id: JobId) -> None:
        former = self._filed.pop(job_id, None)
        if former is not None:
            if former.het_id:
                waiting = self.hets[former.het_id]
                del waiting[job_id]
                if not waiting:
                    del self.hets[former.het_id]
            elif former.group is None:
                self.later.discard(job_id)
            else:
                jobs = self.groups[former.group]
                jobs.remove(former.key)
                if not jobs:
                    del self.groups[former.group]
        self.stated.discard(job_id)
        self.by_user.discard(job_id)
        job, run = self._state.jobs.get(job_id), self._state.runs.get(job_id)
        if job is None or run is None:
            return
        if run.phase is not Phase.PENDING:
            if run.started is not None and run.phase is not Phase.ENDED:
                if self._is_by_user(job, run.started.partition):
                    self.by_user.add(job_id)
            return
        if run.reason is not Reason.NONE:
            self.stated.add(job_id)
        if run.hold is not Hold.NONE:
            return
        self.hurries |= not job.spec.batch
        key = queue_key(self._state, job_id, job, run)
        if job.het_id:
            self._filed[job_id] = _Filed(None, key, job.het_id)
            self.hets.setdefault(job.het_id, {})[job_id] = key
        elif job.spec.begin_ns or run.priority == 0 or job_id in self._state.dependencies:
            self._filed[job_id] = _Filed(None, key, JobId(0))
            self.later.add(job_id)
        else:
            group = group_of(job, run)
            self._filed[job_id] = _Filed(group, key, JobId(0))
            listed = self.groups.get(group)
            if listed is None:
                listed = self.groups[group] = SortedList()
            listed.add(key)

    def _is_by_user(self, job: JobRow, partition: PartitionName) -> bool:
        row = self._state.partitions.get(partition)
        by_partition = row is not None and row.block.exclusive_user
        return job.spec.ask.sharing is Sharing.USER or by_partition


def owners_of(state: State, by_user: set[JobId]) -> dict[NodeName, int]:
    """Return the nodes that only one user's jobs may share, and that user."""
    return {
        share.node: state.jobs[job_id].uid
        for job_id in by_user
        for share in held_shares(state.runs[job_id])
    }


def batch_delay_s(state: State) -> float:
    """Return for how long batch jobs may wait for a plan, so that it has more of them.

    Source: slurm.conf(5) batch_sched_delay; 0 unless the site sets it.
    """
    if not len(state.config):
        return 0.0
    text = scheduler_parameters(state).get("batch_sched_delay", "")
    return float(min(int(text), DELAY_S_MAX)) if text.isascii() and text.isdigit() else 0.0


class _Ranks:
    """Notes that something changed which priorities are made of."""

    def __init__(self) -> None:
        self.changed = False

    def change(self, key: Any, old: Any, new: Any) -> None:
        """Note it."""
        self.changed = True

    def fill(self, rows: Mapping[Any, Any]) -> None:
        """Note it."""
        self.changed = True

    def fresh(self) -> _Nothing:
        """Return an index that says as little as this one."""
        return _Nothing()

    def contents(self) -> object:
        """Return nothing: it is read when the queue is."""
        return None


class _Nothing:
    """An index that holds nothing."""

    def change(self, key: Any, old: Any, new: Any) -> None:
        """Take no notice."""

    def fill(self, rows: Mapping[Any, Any]) -> None:
        """Take no notice."""

    def fresh(self) -> _Nothing:
        """Return another."""
        return _Nothing()

    def contents(self) -> object:
        """Return nothing."""
        return None


def group_of(job: JobRow, run: RunRow) -> Group:
    """Return the group of a job, were it none of a het job."""
    spec = job.spec
    return Group(spec.partitions, spec.ask, spec.time_limit_s, run.priority is not None)
