"""In which order waiting jobs are tried.

Jobs of a partition of a higher tier come first, then those of a higher priority, then those that
were submitted earlier. A priority that an operator fixed stands as it is; what any other is made of
stands in `projections/priority.py`.

Every job of a cluster ages at the same rate, so those of one group keep their order while they
wait: it is reckoned once, when a job is filed, as if all had waited since 1970.
"""

from __future__ import annotations

from spur.projections.jobs import JobRow
from spur.projections.priority import (
    POINTS_LEAST,
    Factor,
    Weights,
    age_factor,
    factors_of,
    points_of,
    waits_since_ns,
    weights_of,
)
from spur.projections.runrows import RunRow
from spur.projections.state import State
from spur.values.ids import JobId, PartitionName

__all__ = ["QueueKey", "priority_at", "queue_key", "started_with"]

QueueKey = tuple[float, int, JobId]
"""Sorts the jobs of one group: those to be tried first are least."""

_NS = 1_000_000_000


def queue_key(state: State, job_id: JobId, job: JobRow, run: RunRow) -> QueueKey:
    """Return a job's place among others of its group."""
    points = points_of(state, job, run)
    if run.priority is None:
        weights = weights_of(state)
        if weights.is_multifactor and weights.age:
            points -= weights.age * (waits_since_ns(job, run) // _NS) / weights.max_age_s
    return -points, job.submit_ns, job_id


def priority_at(
    weights: Weights, key: QueueKey, job: JobRow, run: RunRow, now_ns: int, shift: float
) -> int:
    """Return what a filed job's priority is now, in a partition that is worth `shift` more."""
    if run.priority is not None:
        return run.priority
    points = shift - key[0]
    if weights.is_multifactor:
        if weights.age:
            since_ns = waits_since_ns(job, run)
            points += weights.age * (
                (since_ns // _NS) / weights.max_age_s + age_factor(weights, now_ns - since_ns)
            )
        return max(int(points), POINTS_LEAST)
    return int(points)


def started_with(
    state: State, job: JobRow, run: RunRow, partition: PartitionName, now_ns: int
) -> tuple[tuple[str, int], ...]:
    """Return what a job's priority is made of, in millionths, for the record of its start."""
    if run.priority is not None:
        return (("fixed", run.priority * 1_000_000),)
    weights = weights_of(state)
    factors = factors_of(state, job.spec, job.uid, partition)
    if factors:
        age = age_factor(weights, now_ns - waits_since_ns(job, run))
        factors = (Factor("age", age, weights.age), *factors)
    return (
        *((factor.name, int(factor.value * factor.weight * 1_000_000)) for factor in factors),
        ("nice", -job.spec.nice * 1_000_000),
    )
