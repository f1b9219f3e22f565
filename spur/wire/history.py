"""Requests for history: what the read model remembers, long after the state has forgotten it.

The front narrows such a request to what its caller may see, and the projector answers it from the
read model (LOG-CONTRACT 8.1). Private text is not here: who may read it asks for it by job.
"""

from __future__ import annotations

import msgspec

from spur.values.arrays import TaskSet
from spur.values.ids import JobId, NodeName, PartitionName
from spur.values.jobspec import JobSpec
from spur.values.states import Hold, JobState, Reason
from spur.values.tres import NodeShare
from spur.wire.declare import Answer, Part, Request, answer, request

__all__ = [
    "JobRecord",
    "QueryRecords",
    "ReadStory",
    "RecordFilter",
    "RecordPage",
    "RunRecord",
    "StepRecord",
    "StoryLine",
    "StoryPage",
    "decode_job_record",
]


class RecordFilter(Part, frozen=True):
    """Which runs of which jobs: all conditions hold; an empty one always does."""

    job_ids: tuple[JobId, ...] = ()
    """Raw ids, and ids of arrays and het jobs, which name all of their jobs."""
    uids: tuple[int, ...] = ()
    gids: tuple[int, ...] = ()
    accounts: tuple[str, ...] = ()
    partitions: tuple[PartitionName, ...] = ()
    qos: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    nodes: tuple[NodeName, ...] = ()
    """It held something on one of these."""
    states: tuple[JobState, ...] = ()
    """It was in one of these within the window."""
    start_ns: int = 0
    """Alive at or after this time; 0 is since ever."""
    end_ns: int = 0
    """Alive at or before this time; 0 is without end."""
    all_runs: bool = False
    """Every run that fits; else the newest of each job, if it does."""


@request
class QueryRecords(Request, frozen=True, tag="history.records"):
    """Return a slice of the records of jobs, in order of job ids; answered with `RecordPage`."""

    filter: RecordFilter
    after: JobId
    """0 for the first slice, then what the slice before said is `next`."""
    limit: int
    """At most so many jobs."""


class StepRecord(Part, frozen=True):
    """One step of a run, as far as it came."""

    step: int
    """Its number, or the one that stands for the script or what holds its place."""
    name: str
    state: JobState
    exit_code: int
    signal: int
    start_ns: int
    end_ns: int
    """0 when it has not ended."""
    tasks: int
    shares: tuple[NodeShare, ...]
    distribution: str
    """How its tasks were laid out, in Slurm's word; empty when nobody said."""
    killed_by: int | None
    """uid of who ended it; None for nobody."""


class RunRecord(Part, frozen=True):
    """One run of a job, as far as it came."""

    run: int
    """How often the job was put back into the queue before."""
    index: int
    """The log's entry that this record began with: its place among all records."""
    state: JobState
    reason: Reason
    """Why it waits, or what it was last said to wait for."""
    submit_ns: int
    """When this run was opened: the submission, or the requeue."""
    eligible_ns: int
    """Since when it may start; 0 while it is held."""
    start_ns: int
    """0 when it has not started."""
    end_ns: int
    """0 when it has not ended."""
    suspended_ns: int
    """How long it was suspended, until it went on last."""
    time_limit_s: int | None
    """0 is without limit; None is the partition's default, and the run has not started."""
    partition: PartitionName
    """Where it runs or ran; empty when it has not started."""
    shares: tuple[NodeShare, ...]
    """What it holds or held on each node, the batch host first."""
    exit_code: int
    signal: int
    killed_by: int | None
    """uid of who ended it; None when it ended by itself, or the cluster ended it."""
    unfenced: bool
    """Whether a lost node may still have had it alive when its end was recorded."""
    steps: tuple[StepRecord, ...]
    """The script, what holds its place, and its steps by number."""
    suspended_since_ns: int = 0
    """Since when it is suspended, or was when it ended; 0 for one that is not."""


class JobRecord(Part, frozen=True):
    """A job and those of its runs that were asked for, oldest first."""

    job_id: JobId
    array_id: JobId
    """0 for a job that is no array."""
    tasks: TaskSet | None
    throttle: int
    het_id: JobId
    het_offset: int
    uid: int
    gid: int
    spec: JobSpec
    hold: Hold
    priority: int | None
    runs: tuple[RunRecord, ...]


@answer
class RecordPage(Answer, frozen=True, tag="history.page"):
    """A slice of the records."""

    rows: tuple[msgspec.Raw, ...]
    """Each a `JobRecord`: see `decode_job_record`."""
    next: JobId | None
    """What to ask the next slice `after`; None when this was the last."""


@request
class ReadStory(Request, frozen=True, tag="history.story"):
    """Return what happened to a job, oldest first; answered with `StoryPage`."""

    job_id: JobId
    """A raw id; the id of an array tells of the submission and of what its last task did."""
    after: int
    """Lines to pass over: 0 for the first slice."""
    limit: int
    uids: tuple[int, ...] = ()
    """Whose jobs may be told of; empty is everybody's."""


class StoryLine(Part, frozen=True):
    """One event of a job."""

    index: int
    position: int
    """Its place among the events of that entry."""
    time_ns: int
    uid: int
    host_role: str
    """Of the host that vouched for the user; "cluster" for the cluster itself."""
    command: str
    """What was asked, as the log names it."""
    event: str
    words: str
    """The event in a sentence."""


@answer
class StoryPage(Answer, frozen=True, tag="history.lines"):
    """A slice of a story; a job that is unknown, or someone else's, has no lines."""

    lines: tuple[StoryLine, ...]
    more: bool


_DECODER = msgspec.msgpack.Decoder(JobRecord)


def decode_job_record(row: msgspec.Raw) -> JobRecord:
    """Read one row of a page."""
    return _DECODER.decode(row)
