"""A request for why a job waits: what each filter says of it."""

from __future__ import annotations

from spur.values.ids import JobId, PartitionName
from spur.values.states import JobState, Reason
from spur.wire.declare import Answer, Request, answer, request
from spur.wire.jobs import Part

__all__ = ["ExplainJob", "FilterVerdict", "JobExplained"]


@request
class ExplainJob(Request, frozen=True, tag="job.explain"):
    """Say of each filter what it makes of a waiting job; answered with `JobExplained`."""

    job_id: JobId
    task: int | None
    """Which task of array `job_id`; None for the job, or what waits of the array."""


class FilterVerdict(Part, frozen=True):
    """What one filter says."""

    partition: PartitionName
    """Empty for what is the same in all partitions of the job."""
    filter: str
    asked: str
    available: str
    passes: bool
    reason: Reason
    """What the job shows when this alone keeps it waiting; NONE for what is only told."""


@answer
class JobExplained(Answer, frozen=True, tag="job.explained"):
    """Every filter's verdict, in the order in which they are looked at."""

    job_id: JobId
    state: JobState
    reason: Reason
    """As it was stated last; NONE when nothing was stated yet."""
    verdicts: tuple[FilterVerdict, ...]
    """None for a job that does not wait."""
