"""A request for when a job would start, without submitting it."""

from __future__ import annotations

from spur.values.ids import JobId, PartitionName
from spur.values.jobspec import JobSpec
from spur.wire.declare import Answer, Request, answer, request

__all__ = ["ForecastJob", "JobForecast"]


@request
class ForecastJob(Request, frozen=True, tag="job.forecast"):
    """Judge a submission and estimate its start; nothing is changed."""

    spec: JobSpec


@answer
class JobForecast(Answer, frozen=True, tag="job.forecasted"):
    """An estimate that nothing promises."""

    job_id: JobId
    """The id that it would get now."""
    start_ns: int
    partition: PartitionName
    nodes: str
    """A host list."""
    cpus: int
