"""Which jobs a filter names: the ids to look at, and a test made of its conditions alone.

A long queue is walked in one go, so the test costs only what the filter asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from spur.projections.jobs import JobRow
from spur.projections.runrows import RunRow, is_paused
from spur.values.ids import JobId, PartitionName
from spur.values.states import JobState, Phase
from spur.wire.jobs import JobFilter

if TYPE_CHECKING:
    from spur.projections.state import State

__all__ = ["Test", "candidate_jobs", "shown_state", "test_of"]

Test = Callable[[JobId, JobRow, RunRow], bool]


def shown_state(run: RunRow) -> JobState:
    """Return the state that a job is shown in."""
    if run.phase is Phase.PENDING:
        return JobState.PENDING
    if run.phase is Phase.RUNNING:
        return JobState.SUSPENDED if is_paused(run) else JobState.RUNNING
    if run.stop is not None:
        return run.stop.state
    return JobState.COMPLETED if run.end is None else run.end.state


def _partitions_of(job: JobRow, run: RunRow) -> tuple[PartitionName, ...]:
    """Return where a job may run, or does."""
    return job.spec.partitions if run.started is None else (run.started.partition,)


def candidate_jobs(state: State, wanted: JobFilter, after: JobId) -> Iterator[JobId]:
    """Yield the ids above one that a filter may name, in order, by the index with the fewest.

    Each is in the state, which must not change meanwhile.
    """
    if wanted.job_ids:
        ids = set(wanted.job_ids)
        for job_id in wanted.job_ids:
            ids.update(state.array_jobs.jobs(job_id))
            ids.update(state.het_runs.jobs(job_id))
        return iter(sorted(job_id for job_id in ids if job_id > after and job_id in state.jobs))
    if wanted.nodes:
        on_nodes = {job_id for node in wanted.nodes for job_id in state.allocations.use(node).jobs}
        return iter(sorted(job_id for job_id in on_nodes if job_id > after))
    if len(wanted.uids) == 1:
        return state.jobs_of_user.after(wanted.uids[0], after)
    return state.job_ids.after(after)


def test_of(state: State, wanted: JobFilter) -> Test:
    """Return what tells whether a job meets every condition of a filter."""
    tests: list[Test] = []
    if wanted.uids:
        uids = frozenset(wanted.uids)
        tests.append(lambda _, job, run: job.uid in uids)
    if wanted.states:
        states = frozenset(wanted.states)
        if wanted.completing:
            tests.append(
                lambda _, job, run: run.phase is Phase.STOPPING or shown_state(run) in states
            )
        else:
            tests.append(lambda _, job, run: shown_state(run) in states)
    if wanted.partitions:
        partitions = frozenset(wanted.partitions)
        tests.append(lambda _, job, run: not partitions.isdisjoint(_partitions_of(job, run)))
    if wanted.accounts:
        accounts = frozenset(wanted.accounts)
        tests.append(lambda _, job, run: job.spec.account in accounts)
    if wanted.qos:
        qos = frozenset(wanted.qos)
        tests.append(lambda _, job, run: job.spec.qos in qos)
    if wanted.names:
        names = frozenset(wanted.names)
        tests.append(lambda _, job, run: job.spec.name in names)
    if wanted.nodes:
        held = [state.allocations.use(node).jobs for node in wanted.nodes]
        on_nodes = frozenset[JobId]().union(*held)
        tests.append(lambda job_id, job, run: job_id in on_nodes)
    if len(tests) == 1:
        return tests[0]
    return lambda job_id, job, run: all(test(job_id, job, run) for test in tests)
