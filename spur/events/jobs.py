"""What happens to a job apart from its runs: submission, holds, changes, the queue, the purge.

A job is one submission or one or more tasks of an array. An array is one job until tasks are
split off: `job.tasks-split` moves tasks to a job of their own and gives it the raw id.
"""

from __future__ import annotations

from spur.events.declare import Event, Stored, event
from spur.values.arrays import TaskSet
from spur.values.dependencies import Condition
from spur.values.ids import JobId, PartitionName
from spur.values.jobspec import JobSpec
from spur.values.states import Hold, Reason

__all__ = [
    "ArrayThrottled",
    "GroupReason",
    "JobDependencyJudged",
    "JobHeld",
    "JobPriorityChanged",
    "JobPurged",
    "JobReason",
    "JobReasonsStated",
    "JobReleased",
    "JobRequeued",
    "JobSpecChanged",
    "JobSubmitted",
    "JobTasksSplit",
    "JobTextsChanged",
]


@event("job.submitted")
class JobSubmitted(Event, frozen=True):
    """A job was accepted; its run 0 exists from now on."""

    job_id: JobId
    """The next of the counter, which moves past it."""
    uid: int
    gid: int
    spec: JobSpec
    tasks: TaskSet | None
    """The array's tasks; None for a job that is no array."""
    throttle: int
    """At most this many tasks of the array run at a time; 0 is no limit."""
    het_id: JobId
    """Id of the first component of a het job; 0 for a job that is none."""
    het_offset: int
    het_size: int
    """How many components the het job has; 0 for a job that is none."""
    hold: Hold
    priority: int | None
    """Fixed by an operator; None leaves it to the scheduler."""
    attachments: tuple[int, ...]
    """Which of the envelope's attachments are this job's, by position."""


@event("job.tasks-split")
class JobTasksSplit(Event, frozen=True):
    """Some tasks of a pending array went on as a job of their own, equal in all else."""

    job_id: JobId
    """The raw id of the new job: the next of the counter."""
    from_id: JobId
    tasks: TaskSet
    """Not all of the former job's tasks."""


@event("job.held")
class JobHeld(Event, frozen=True):
    """A job does not start until it is released."""

    job_id: JobId
    hold: Hold


@event("job.released")
class JobReleased(Event, frozen=True):
    """A hold was lifted; the age of a job that waits counts from now."""

    job_id: JobId


@event("job.priority-changed")
class JobPriorityChanged(Event, frozen=True):
    """A priority was fixed, or given back to the scheduler."""

    job_id: JobId
    priority: int | None


@event("job.spec-changed")
class JobSpecChanged(Event, frozen=True):
    """What the job asks for was changed: the whole of it as it is now."""

    job_id: JobId
    spec: JobSpec


@event("job.texts-changed")
class JobTextsChanged(Event, frozen=True):
    """Text that steers nothing was written anew: a comment, a path."""

    job_id: JobId
    attachments: tuple[int, ...]
    """Which of the envelope's attachments these are, by position; a former one of the same name
    is gone."""


@event("job.dependency-judged")
class JobDependencyJudged(Event, frozen=True):
    """Of what a waiting job waits for in others, some came to hold or can hold no more."""

    job_id: JobId
    held: tuple[Condition, ...]
    failed: tuple[Condition, ...]
    frees: bool
    """Whether it waits for no other job any more."""


@event("array.throttled")
class ArrayThrottled(Event, frozen=True):
    """How many tasks of an array may run at a time was changed."""

    array_id: JobId
    throttle: int
    """0 is no limit."""


@event("job.requeued")
class JobRequeued(Event, frozen=True):
    """The job waits once more: its next run is open. The one before has ended."""

    job_id: JobId
    run: int
    """The number of the run that this opens."""
    hold: Hold


@event("job.purged")
class JobPurged(Event, frozen=True):
    """An ended job left the state, with all its runs; history is in the read model."""

    job_id: JobId


class GroupReason(Stored, frozen=True):
    """Why the pending jobs of one partition and one shape wait."""

    partition: PartitionName
    shape: bytes
    """`shape_of` their resource ask."""
    reason: Reason
    """NONE takes the group's reason away."""


class JobReason(Stored, frozen=True):
    """Why one pending job waits, where that differs from its group."""

    job_id: JobId
    reason: Reason
    """NONE leaves it to the group."""


@event("job.reasons-stated")
class JobReasonsStated(Event, frozen=True):
    """The scheduler said why jobs wait. Source: LOG-CONTRACT 3.7."""

    groups: tuple[GroupReason, ...]
    jobs: tuple[JobReason, ...]
