"""What a job waits for of other jobs. Source: sbatch(1) --dependency."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from spur.values.ids import JobId

__all__ = ["CONDITIONS_MAX", "Condition", "Dependency", "DependencyKind"]

CONDITIONS_MAX = 1_000
"""Conditions of one job."""


class DependencyKind(StrEnum):
    """What has to become of another job."""

    AFTER = "after"
    """It started, or was cancelled before it did."""
    AFTER_ANY = "afterany"
    """It ended."""
    AFTER_OK = "afterok"
    """It ended with exit code 0."""
    AFTER_NOT_OK = "afternotok"
    """It ended in another way than with exit code 0."""
    AFTER_CORR = "aftercorr"
    """Its array task of the same number ended with exit code 0."""
    AFTER_BURST_BUFFER = "afterburstbuffer"
    """It ended; there are no burst buffers to be staged out."""
    SINGLETON = "singleton"
    """No earlier job of the same user and name is left."""


class Condition(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """One condition."""

    kind: DependencyKind
    job_id: JobId
    """The job, or the array; 0 for a singleton, which names none."""
    task: int | None
    """Which task of array `job_id`; None for the job, or for all tasks."""
    delay_s: int
    """So long after the condition came to hold."""


class Dependency(
    msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True
):
    """All conditions of a job."""

    any_holds: bool
    """Whether one of them is enough; else all have to hold."""
    conditions: tuple[Condition, ...]
