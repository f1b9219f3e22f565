"""The queue as rows for people and programs, encoded once per change and served in slices.

The encoded rows are a cache that the tables of jobs and runs keep as an index: a change of a row
forgets what was made of it. A page is made of bytes that are there already (LOG-CONTRACT 8.2), and
looks at a bounded number of rows, so that no query holds the loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec.structs import replace

from spur.projections.arrays import ArrayJobs
from spur.projections.dependencies import DependencyRow, never_holds
from spur.projections.indexes import Groups
from spur.projections.jobfilters import candidate_jobs, shown_state, test_of
from spur.projections.jobs import GroupKey
from spur.projections.priority import points_of, weights_of
from spur.projections.runrows import RunRow
from spur.values.ids import JobId, PartitionName
from spur.values.states import HOLD_REASONS, Hold, Phase, Reason
from spur.wire.jobs import (
    ConditionView,
    DependencyView,
    GroupReasonView,
    JobFilter,
    JobKind,
    JobOwn,
    JobPage,
    JobView,
    StartView,
)

if TYPE_CHECKING:
    from spur.projections.state import State

__all__ = [
    "PAGE_BYTES_MAX",
    "PAGE_FRESH_MAX",
    "PAGE_ROWS_MAX",
    "PAGE_SCAN_MAX",
    "EncodedOfAll",
    "EncodedOfArrays",
    "EncodedView",
    "EncodedViews",
    "encoded_view",
    "job_page",
    "job_view",
]

PAGE_ROWS_MAX = 5_000
"""Rows of one page."""

PAGE_FRESH_MAX = 1_000
"""Rows of one page that nobody asked for since they changed: they take most of the time."""

PAGE_BYTES_MAX = 4 << 20
"""Bytes of rows after which a page ends: a job of a thousand nodes is a long row."""

PAGE_SCAN_MAX = 10_000
"""Rows that one page may look at."""

NOWHERE = PartitionName("")
"""Where a job runs that has not started."""

_ENCODE = msgspec.msgpack.Encoder().encode


class EncodedView(NamedTuple):
    """An encoded row: a `JobOwn`, and the `JobView` that it shares with its like."""

    own: bytes
    common: bytes


class EncodedViews:
    """Encoded rows by job: forgotten at each change of the job or its run."""

    def __init__(self) -> None:
        self.rows: dict[JobId, EncodedView] = {}
        self._newest = b""

    def keep(self, job_id: JobId, row: EncodedView) -> EncodedView:
        """Keep a row and return it; what it shares with the one before it is kept once."""
        if row.common == self._newest:
            row = EncodedView(row.own, self._newest)
        self._newest = row.common
        self.rows[job_id] = row
        return row

    def change(self, key: JobId, old: Any, new: Any) -> None:
        """Forget what was made of the row."""
        self.rows.pop(key, None)

    def fill(self, rows: Mapping[JobId, Any]) -> None:
        """Follow every row of a table at once: nothing is encoded before someone asks."""

    def fresh(self) -> EncodedViews:
        """Return an empty index."""
        return EncodedViews()

    def contents(self) -> object:
        """Return nothing: a cache is judged by the invariant that compares it with its rows."""
        return None


class EncodedOfAll:
    """Forgets every encoded row when that changes which priorities are made of."""

    def __init__(self, views: EncodedViews) -> None:
        self._views = views

    def change(self, key: Any, old: Any, new: Any) -> None:
        """Forget everything."""
        self._views.rows.clear()

    def fill(self, rows: Mapping[Any, Any]) -> None:
        """Follow every row of a table at once: nothing is encoded before someone asks."""

    def fresh(self) -> EncodedOfAll:
        """Return an equal one, which holds nothing of its own."""
        return self

    def contents(self) -> object:
        """Return nothing: see `EncodedViews`."""
        return None


class EncodedOfArrays:
    """Forgets encoded rows when an array changes.

    Of its own jobs what they share; of jobs that wait for it, that it is an array.
    """

    def __init__(
        self, views: EncodedViews, members: ArrayJobs, waiting: Groups[JobId, DependencyRow]
    ) -> None:
        self._views = views
        self._members = members
        self._waiting = waiting

    def change(self, key: JobId, old: Any, new: Any) -> None:
        """Forget what was made of the rows."""
        gone: list[JobId] = []
        if old is None or new is None:
            gone = self._waiting.keys(key)
        elif old.throttle != new.throttle:
            gone = self._members.jobs(key)
        for job_id in gone:
            self._views.rows.pop(job_id, None)

    def fill(self, rows: Mapping[JobId, Any]) -> None:
        """Follow every row of a table at once: nothing is encoded before someone asks."""

    def fresh(self) -> EncodedOfArrays:
        """Return an equal one, which holds nothing of its own."""
        return self

    def contents(self) -> object:
        """Return nothing: see `EncodedViews`."""
        return None


def _shown_reason(run: RunRow, waits: DependencyRow | None) -> Reason:
    if run.end is not None:
        return run.end.reason
    if run.stop is not None:
        return run.stop.reason
    if run.hold is not Hold.NONE:
        return HOLD_REASONS[run.hold]
    if waits is not None:
        return Reason.DEPENDENCY_NEVER_SATISFIED if never_holds(waits) else Reason.DEPENDENCY
    return run.reason


def _shown_dependency(state: State, waits: DependencyRow | None) -> DependencyView | None:
    if waits is None:
        return None
    conditions = tuple(
        ConditionView(
            condition,
            condition.task is None and condition.job_id in state.arrays,
            condition in waits.failed,
        )
        for condition in waits.conditions
    )
    return DependencyView(waits.any_holds, conditions)


def job_view(state: State, job_id: JobId) -> JobView:
    """Return the row of a job that is in the state."""
    job, run = state.jobs[job_id], state.runs[job_id]
    started = run.started
    end_ns = 0
    if run.end is not None:
        end_ns = run.end.end_ns
    elif run.stop is not None:
        end_ns = run.stop.time_ns
    exit_code = signal = 0
    if run.end is not None:
        exit_code, signal = run.end.exit_code, run.end.signal
    elif started is not None:
        exit_code, signal = started.exit_code, started.signal
    pending = run.phase is Phase.PENDING
    course = None if started is None else started.course
    waits = state.dependencies.get(job_id)
    return JobView(
        job_id,
        job.submit_ns,
        run.since_ns,
        job.array_id,
        job.tasks,
        state.arrays[job.array_id].throttle if job.array_id else 0,
        job.het_id,
        job.het_offset,
        job.het_size,
        job.uid,
        job.gid,
        job.spec,
        run.number,
        shown_state(run),
        run.phase is Phase.STOPPING,
        _shown_reason(run, waits),
        state.shared.shape(job.spec.ask) if pending else b"",
        run.hold,
        run.priority,
        points_of(state, job, run),
        NOWHERE if started is None else started.partition,
        0 if started is None else started.start_ns,
        0 if started is None else started.limit_ns,
        end_ns,
        exit_code,
        signal,
        () if started is None else started.shares,
        _shown_dependency(state, waits),
        course is not None and course.paused,
        0 if course is None else course.turned_ns,
        0 if course is None else course.ran_ns,
    )


def encoded_view(view: JobView) -> EncodedView:
    """Return a row's two parts."""
    own = JobOwn(view.job_id, view.submit_ns, view.since_ns)
    return EncodedView(
        _ENCODE(own), _ENCODE(replace(view, job_id=JobId(0), submit_ns=0, since_ns=0))
    )


def job_page(
    state: State,
    wanted: JobFilter,
    *,
    after: JobId,
    limit: int,
    foreseen: Mapping[JobId, StartView] = MappingProxyType({}),
) -> JobPage:
    """Return a slice of the queue, with what is foreseen of its waiting jobs."""
    views = state.encoded_views
    encoded = views.rows
    kinds: dict[bytes, list[msgspec.Raw]] = {}
    groups: set[GroupKey] = set()
    starts: list[StartView] = []
    found = looked_at = size = fresh = 0
    following: JobId | None = None
    jobs, runs, is_wanted = state.jobs.rows, state.runs.rows, test_of(state, wanted)
    for job_id in candidate_jobs(state, wanted, after):
        if found == limit or looked_at == PAGE_SCAN_MAX or fresh == PAGE_FRESH_MAX:
            break
        if size >= PAGE_BYTES_MAX:
            break
        looked_at += 1
        following = job_id
        job, run = jobs[job_id], runs[job_id]
        if not is_wanted(job_id, job, run):
            continue
        row = encoded.get(job_id)
        if row is None:
            row = views.keep(job_id, encoded_view(job_view(state, job_id)))
            fresh += 1
        own, common = row
        owns = kinds.get(common)
        if owns is None:
            owns = kinds[common] = []
            size += len(common)
            if run.phase is Phase.PENDING:  # equal rows are of one group
                groups.add((job.spec.partitions[0], state.shared.shape(job.spec.ask)))
        if job_id in foreseen and run.phase is Phase.PENDING:
            starts.append(foreseen[job_id])
        owns.append(msgspec.Raw(own))
        found += 1
        size += len(own)
    else:
        following = None
    rows = tuple(
        JobKind(msgspec.Raw(common), msgspec.Raw(_ENCODE(owns))) for common, owns in kinds.items()
    )
    weights = weights_of(state)
    weight = weights.age if weights.is_multifactor else 0
    aging = (weight, weights.max_age_s, weights.period_s)
    return JobPage(rows, following, _reasons(state, groups), *aging, tuple(starts))


def _reasons(state: State, groups: set[GroupKey]) -> tuple[GroupReasonView, ...]:
    found = ((key, state.reasons.get(key)) for key in sorted(groups))
    return tuple(GroupReasonView(*key, row.reason) for key, row in found if row is not None)
