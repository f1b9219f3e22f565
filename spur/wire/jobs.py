"""Requests about jobs, and jobs as rows."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec.structs import astuple

from spur.values.arrays import TaskSet
from spur.values.dependencies import Condition, Dependency
from spur.values.ids import JobId, NodeName, PartitionName
from spur.values.jobspec import JobSpec
from spur.values.states import Hold, JobState, Reach, Reason
from spur.values.tres import GresAsk, NodeShare, Per
from spur.wire.declare import Answer, Attachment, Part, Request, answer, request

__all__ = [
    "AskChanges",
    "CancelJob",
    "CancelJobs",
    "ConditionView",
    "DependencyView",
    "GroupReasonView",
    "HetComponent",
    "HoldJob",
    "JobAccepted",
    "JobChanges",
    "JobFilter",
    "JobKind",
    "JobOwn",
    "JobPage",
    "JobView",
    "NotifyJob",
    "Part",
    "QueryJobs",
    "ReleaseJob",
    "RequeueJob",
    "ResumeJob",
    "SignalJob",
    "StartView",
    "SubmitHetJob",
    "SubmitJob",
    "SuspendJob",
    "TopJobs",
    "UpdateJob",
    "decode_kind",
    "page_views",
    "with_own",
]


@request
class SubmitJob(Request, frozen=True, tag="job.submit"):
    """Accept a job; answered with `JobAccepted`."""

    spec: JobSpec
    tasks: TaskSet | None
    """The tasks of an array; None for a job that is no array."""
    throttle: int
    """At most this many tasks run at a time; 0 is no limit."""
    hold: bool
    priority: int | None
    """Fixed, which takes an operator; None leaves it to the scheduler."""
    attachments: tuple[Attachment, ...]
    """script, environment, text: each at most once; a batch job has a script."""


class HetComponent(Part, frozen=True):
    """One component of a het job."""

    spec: JobSpec
    hold: bool
    priority: int | None
    """As of `SubmitJob`."""
    attachments: tuple[int, ...]
    """Which of the request's attachments are this component's, by position."""


@request
class SubmitHetJob(Request, frozen=True, tag="job.submit-het"):
    """Accept a job of several components, all or none; answered with the first's `JobAccepted`.

    The ids of the others follow in a row.
    """

    components: tuple[HetComponent, ...]
    """From 2 to 128, the first with the script of a batch job."""
    attachments: tuple[Attachment, ...]


@answer
class JobAccepted(Answer, frozen=True, tag="job.accepted"):
    """The job was submitted and will have a record whatever happens."""

    job_id: JobId


@request
class HoldJob(Request, frozen=True, tag="job.hold"):
    """Keep a job, an array or tasks of an array from starting."""

    job_id: JobId
    tasks: TaskSet | None
    """Which tasks of array `job_id`; None for all that the id names."""
    hold: Hold
    """USER or ADMIN; ADMIN takes an operator."""


@request
class ReleaseJob(Request, frozen=True, tag="job.release"):
    """Lift the hold of a job, an array or tasks of an array."""

    job_id: JobId
    tasks: TaskSet | None


class AskChanges(Part, frozen=True):
    """New values of a `ResourceAsk`; None leaves one as it is."""

    nodes_min: int | None = None
    nodes_max: int | None = None
    tasks: int | None = None
    memory_mib: int | None = None
    memory_per: Per | None = None
    memory_is_default: bool | None = None
    gres: tuple[GresAsk, ...] | None = None
    features: str | None = None
    nodes_required: str | None = None
    nodes_excluded: str | None = None
    licenses: str | None = None
    reservation: str | None = None
    cores_per_socket: int | None = None
    threads_per_core: int | None = None
    sockets_per_node: int | None = None
    cpus_per_node_min: int | None = None
    disk_mib: int | None = None
    contiguous: bool | None = None
    preferred: str | None = None


class JobChanges(Part, frozen=True):
    """New values; None leaves one as it is."""

    name: str | None = None
    partitions: tuple[PartitionName, ...] | None = None
    account: str | None = None
    qos: str | None = None
    time_limit_s: int | None = None
    begin_ns: int | None = None
    nice: int | None = None
    requeue: bool | None = None
    priority: int | None = None
    """Fixed, which takes an operator; -1 gives it back to the scheduler."""
    dependency: Dependency | None = None
    """One without conditions takes the former away."""
    deadline_ns: int | None = None
    throttle: int | None = None
    """Of the whole array; 0 is no limit."""
    time_limit_min_s: int | None = None
    ask: AskChanges | None = None


@request
class UpdateJob(Request, frozen=True, tag="job.update"):
    """Change what a job asks for."""

    job_id: JobId
    tasks: TaskSet | None
    changes: JobChanges
    attachments: tuple[Attachment, ...] = ()
    """comment, stdout: each at most once; it takes the place of that part of the job's text."""


@request
class CancelJob(Request, frozen=True, tag="job.cancel"):
    """End a job, an array or tasks of an array, whether they wait or run."""

    job_id: JobId
    tasks: TaskSet | None


class JobFilter(Part, frozen=True):
    """Which jobs: all conditions hold; an empty one always does."""

    job_ids: tuple[JobId, ...] = ()
    """Raw ids, and ids of arrays and het jobs, which name all of their jobs."""
    uids: tuple[int, ...] = ()
    partitions: tuple[PartitionName, ...] = ()
    accounts: tuple[str, ...] = ()
    qos: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    states: tuple[JobState, ...] = ()
    nodes: tuple[NodeName, ...] = ()
    """It holds something on one of these now."""
    completing: bool = False
    """Besides those in `states`, what nodes have still to report dead."""


@request
class CancelJobs(Request, frozen=True, tag="jobs.cancel"):
    """End all jobs that a filter names and the caller may cancel. Done in parts."""

    filter: JobFilter


@request
class SignalJob(Request, frozen=True, tag="job.signal"):
    """Send a signal to what runs of a job. Delivered at most once: nobody sends it again."""

    job_id: JobId
    tasks: TaskSet | None
    signal: int
    reach: Reach


@request
class RequeueJob(Request, frozen=True, tag="job.requeue"):
    """Put a job that runs or has ended back into the queue."""

    job_id: JobId
    tasks: TaskSet | None
    hold: bool
    """Whether it then waits to be released."""


@request
class SuspendJob(Request, frozen=True, tag="job.suspend"):
    """Let all processes of what runs of a job stand still, until it is resumed."""

    job_id: JobId
    tasks: TaskSet | None


@request
class ResumeJob(Request, frozen=True, tag="job.resume"):
    """Let what is suspended of a job go on."""

    job_id: JobId
    tasks: TaskSet | None


@request
class NotifyJob(Request, frozen=True, tag="job.notify"):
    """Say something to what runs of a job, on its script's errors; said at most once."""

    job_id: JobId
    tasks: TaskSet | None
    attachments: tuple[Attachment, ...]
    """notice, which must be there."""


@request
class TopJobs(Request, frozen=True, tag="jobs.top"):
    """Let waiting jobs go before the others of their user, partition, account and QOS.

    Their nice is changed, and that of the others. Source: scontrol(1) top.
    """

    job_ids: tuple[JobId, ...]
    """In the order in which they shall go."""


@request
class QueryJobs(Request, frozen=True, tag="jobs.query"):
    """Return a slice of the jobs in order of their ids."""

    filter: JobFilter
    after: JobId
    """The slice begins above this id; 0 for the first."""
    limit: int
    """Rows at most, from 1 to 5000; there may be fewer although more follow."""


class ConditionView(Part, frozen=True):
    """One condition that a job waits for."""

    condition: Condition
    is_array: bool
    """Whether it is about all tasks of an array."""
    failed: bool
    """Whether it can hold no more."""


class DependencyView(Part, frozen=True):
    """What a job still waits for in other jobs."""

    any_holds: bool
    """Whether one condition is enough."""
    conditions: tuple[ConditionView, ...]


class JobView(Part, frozen=True):
    """One row of the queue: a job, or the tasks of an array that have all in common."""

    # What even equal jobs have each for itself comes first: see `JobOwn`.
    job_id: JobId
    submit_ns: int
    since_ns: int
    """Since when this run waits, or waited."""
    array_id: JobId
    """0 for a job that is no array."""
    tasks: TaskSet | None
    throttle: int
    het_id: JobId
    """0 for a job that is no component of a het job."""
    het_offset: int
    het_size: int
    uid: int
    gid: int
    spec: JobSpec
    run: int
    """How often it was put back into the queue."""
    state: JobState
    completing: bool
    """Whether nodes have still to report it dead."""
    reason: Reason
    """NONE for a pending job: look for the reason of its group."""
    shape: bytes
    """With the first partition, the group that a pending job belongs to; empty otherwise."""
    hold: Hold
    priority: int | None
    points: float
    """What its priority is made of, but for its age; the fixed one where there is one."""
    partition: PartitionName
    """Where it runs or ran; empty when it has not started."""
    start_ns: int
    """0 when it has not started."""
    limit_ns: int
    """When its time limit is reached; 0 is never, or not started."""
    end_ns: int
    """0 when it has not ended."""
    exit_code: int
    signal: int
    shares: tuple[NodeShare, ...]
    """What it holds or held on each node, the batch host first."""
    dependency: DependencyView | None
    """What it still waits for in other jobs."""
    paused: bool = False
    """Whether it is suspended, or was when it ended."""
    turned_ns: int = 0
    """When it was suspended or resumed last; 0 for never."""
    ran_ns: int = 0
    """How long it had run by then."""


class JobOwn(Part, frozen=True):
    """What even equal jobs have each for itself: the first fields of their `JobView`."""

    job_id: JobId
    submit_ns: int
    since_ns: int


class JobKind(Part, frozen=True):
    """Jobs of a page that are equal but for what each has for itself."""

    common: msgspec.Raw
    """A `JobView` with 0 for what is each job's own."""
    own: msgspec.Raw
    """A `JobOwn` for each job, in order of their ids."""


class GroupReasonView(Part, frozen=True):
    """Why the pending jobs of one partition and one shape wait."""

    partition: PartitionName
    shape: bytes
    reason: Reason


class StartView(Part, frozen=True):
    """When and where a waiting job would start, if all that runs used up its time limit."""

    job_id: JobId
    start_ns: int
    nodes: str
    """A host list."""


@answer
class JobPage(Answer, frozen=True, tag="jobs.page"):
    """A slice of the queue: what equal jobs share is in it once."""

    kinds: tuple[JobKind, ...]
    next: JobId | None
    """What to ask the next slice `after`; None when this was the last."""
    reasons: tuple[GroupReasonView, ...]
    """Of the groups of the pending jobs among the rows."""
    age_weight: int
    """How many points a job has for its age once that is full."""
    age_max_s: int
    """Waiting time at which age is full."""
    age_period_s: int
    """In steps of which it grows."""
    starts: tuple[StartView, ...] = ()
    """Of waiting jobs among the rows, as far as the leader foresees any."""


_COMMON = msgspec.msgpack.Decoder(JobView)
_OWN = msgspec.msgpack.Decoder(tuple[JobOwn, ...])


def decode_kind(kind: JobKind) -> tuple[JobView, tuple[JobOwn, ...]]:
    """Read what the jobs of a kind share, with 0 for what is each job's own, and that."""
    return _COMMON.decode(kind.common), _OWN.decode(kind.own)


def with_own(common: JobView, owns: Iterable[JobOwn]) -> list[JobView]:
    """Return the rows of jobs that share what `common` says."""
    shared = astuple(common)[3:]
    return [JobView(own.job_id, own.submit_ns, own.since_ns, *shared) for own in owns]


def page_views(page: JobPage) -> list[JobView]:
    """Return the rows of a page, in order of their ids."""
    views = [view for kind in page.kinds for view in with_own(*decode_kind(kind))]
    return sorted(views, key=lambda view: view.job_id)
