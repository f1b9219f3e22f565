"""In which order waiting jobs are tried.

Jobs of a partition of a higher tier come first, then those of a higher priority, then those that
were submitted earlier. A priority that an operator fixed stands as it is; any other is the least,
less the job's nice. Factors of age, size and share have their place here.
"""

from __future__ import annotations

from spur.projections.jobs import JobRow
from spur.projections.runrows import RunRow
from spur.values.ids import JobId

__all__ = ["PRIORITY_LEAST", "QueueKey", "factors_of", "priority_of", "queue_key"]

PRIORITY_LEAST = 1
"""Priority of a job that nobody ranked: the least that may start."""

QueueKey = tuple[int, int, JobId]
"""Sorts the jobs of one group: those to be tried first are least."""


def priority_of(job: JobRow, run: RunRow) -> int:
    """Return a job's priority."""
    return PRIORITY_LEAST - job.spec.nice if run.priority is None else run.priority


def queue_key(job_id: JobId, job: JobRow, run: RunRow) -> QueueKey:
    """Return a job's place among others of its group."""
    return -priority_of(job, run), job.submit_ns, job_id


def factors_of(job: JobRow, run: RunRow) -> tuple[tuple[str, int], ...]:
    """Return what a job's priority is made of, in millionths, for the record of its start."""
    if run.priority is not None:
        return (("fixed", run.priority * 1_000_000),)
    return (("nice", -job.spec.nice * 1_000_000),)
