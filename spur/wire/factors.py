"""A request about what the priorities of waiting jobs are made of."""

from __future__ import annotations

from spur.values.ids import JobId, PartitionName
from spur.wire.declare import Answer, Part, Request, answer, request

__all__ = ["FactorList", "FactorView", "JobFactors", "QueryFactors"]


@request
class QueryFactors(Request, frozen=True, tag="jobs.factors"):
    """Ask for the factors of jobs; of those that wait, and that the caller may see."""

    job_ids: tuple[JobId, ...]
    """At most 1000."""


class FactorView(Part, frozen=True):
    """One part of a priority; age is left out, which grows while this is read."""

    name: str
    value: float
    """From 0 to 1."""
    weight: float


class JobFactors(Part, frozen=True):
    """A job in one of its partitions."""

    job_id: JobId
    partition: PartitionName
    factors: tuple[FactorView, ...]


@answer
class FactorList(Answer, frozen=True, tag="jobs.factor-rows"):
    """The factors, by job and in the order of its partitions."""

    rows: tuple[JobFactors, ...]
