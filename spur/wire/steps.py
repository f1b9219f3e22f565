"""Requests about steps of jobs: srun starts them, agents report them, people look at them."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from spur.values.ids import JobId, NodeName
from spur.values.states import NodeShareState
from spur.values.steps import Dealing
from spur.values.tres import GresAsk, NodeShare, Per
from spur.wire.declare import Answer, Request, answer, request
from spur.wire.jobs import Part

__all__ = [
    "KEY_SIZE",
    "AdmitGuest",
    "CancelStep",
    "GuestAccepted",
    "QuerySteps",
    "ReleaseAllocation",
    "ReportStep",
    "SignalStep",
    "StartStep",
    "StepAccepted",
    "StepAsk",
    "StepPage",
    "StepView",
]

KEY_SIZE = 32
"""Bytes of a step's key."""


class StepAsk(Part, frozen=True):
    """What a step asks of its job's allocation. Source: srun(1)."""

    nodes_min: int
    """0 is as many as its tasks take."""
    nodes_max: int
    """0 is any number."""
    tasks: int
    """0 is one on each node, or what `tasks_per_node` says."""
    tasks_per_node: int
    """0 is any number."""
    cpus_per_task: int
    """0 is one."""
    memory_mib: int
    """0 is what is free of the job's, -1 all of it."""
    memory_per: Per
    """NODE or CPU."""
    gres: tuple[GresAsk, ...] | None
    """None is all that the job has free; empty is none."""
    nodes_required: str
    """A host list that the step must include; empty for none."""
    nodes_excluded: str
    relative: int | None
    """The first node, counted in the allocation from 0; None leaves it to the cluster."""
    dealing: Dealing
    plane: int
    arbitrary: bool
    """Whether one task goes to each of `nodes_required`, in this order."""
    exact: bool
    """Whether it uses no more CPUs than it asks; else all that are free on its nodes."""
    overlaps: bool
    """Whether it shares what it uses with other steps, and may be started beside any."""
    overcommits: bool
    """Whether it may have more tasks than CPUs."""


@request
class StartStep(Request, frozen=True, tag="step.start"):
    """Start a step in a running job; answered with `StepAccepted`.

    Refused as `step-busy` while other steps use what it needs: ask again later.
    """

    job_id: JobId
    name: Annotated[str, Meta(max_length=256)]
    ask: StepAsk
    time_limit_s: Annotated[int, Meta(ge=0, le=1 << 40)]
    """0 is none but the job's."""
    key: Annotated[bytes, Meta(min_length=KEY_SIZE, max_length=KEY_SIZE)]
    """Random; opens the step's streams. The log holds its digest alone."""
    run: Annotated[int, Meta(ge=0, le=1 << 40)] | None = None
    """The run that the asking command is itself a part of; None for one from outside. A run that
    was cut off may live on beside its successor, and gets nothing of what that holds."""


@answer
class StepAccepted(Answer, frozen=True, tag="step.accepted"):
    """The step was started; where is told by `QuerySteps`."""

    run: int
    step_id: int


@request
class ReportStep(Request, frozen=True, tag="step.report"):
    """A node's next report, about a step. It is of the same sequence as those about runs."""

    node: NodeName
    outbox: bytes
    number: int
    job_id: JobId
    run: int
    attempt: int
    step_id: int
    state: NodeShareState
    """LAUNCHED, ENDED or VOID."""
    exit_code: int
    """The highest of its tasks there."""
    signal: int
    out_of_memory: bool
    age_ns: int
    """Boot-time clock since the last task ended, time in the outbox included."""


@request
class CancelStep(Request, frozen=True, tag="step.cancel"):
    """End a step."""

    job_id: JobId
    step_id: int
    at_once: bool = True
    """Without SIGTERM and KillWait before SIGKILL, as scancel does it."""


@request
class SignalStep(Request, frozen=True, tag="step.signal"):
    """Send a signal to the tasks of a step. Delivered at most once."""

    job_id: JobId
    step_id: int
    signal: int


@request
class AdmitGuest(Request, frozen=True, tag="step.admit-guest"):
    """Let one more speak with a step, or with a run; answered with `GuestAccepted`."""

    job_id: JobId
    step_id: int
    """`EXTERN_STEP` for the run itself: to hand over files to its nodes."""
    key: Annotated[bytes, Meta(min_length=KEY_SIZE, max_length=KEY_SIZE)]
    """Random; opens the guest's streams. The log holds its digest alone."""


@answer
class GuestAccepted(Answer, frozen=True, tag="step.guest-accepted"):
    """The nodes are told."""

    run: int
    nodes: tuple[NodeName, ...]
    addresses: tuple[str, ...]
    """Where the agents of these nodes take streams: host:port, empty where that is not known."""


@request
class ReleaseAllocation(Request, frozen=True, tag="job.release-allocation"):
    """End an allocation without a script: the one who held it is done with it."""

    job_id: JobId
    exit_code: Annotated[int, Meta(ge=0, le=255)]
    """As the run will be recorded."""
    signal: Annotated[int, Meta(ge=0, le=127)]


@request
class QuerySteps(Request, frozen=True, tag="steps.query"):
    """Return the open steps of a slice of the jobs, in order."""

    job_ids: tuple[JobId, ...]
    """Empty for all jobs."""
    after: JobId
    """The slice begins above this job's id; 0 for the first."""
    limit: int
    """Rows at most, from 1 to 1000, but all steps of the last job shown."""


class StepView(Part, frozen=True):
    """One open step."""

    job_id: JobId
    run: int
    attempt: int
    step_id: int
    name: str
    uid: int
    is_stopping: bool
    shares: tuple[NodeShare, ...]
    tasks: tuple[int, ...]
    """How many on each node."""
    dealing: Dealing
    plane: int
    cpus_per_task: int
    addresses: tuple[str, ...]
    """Where the agents of these nodes take streams: host:port, empty where that is not known."""
    start_ns: int
    limit_ns: int
    """When its own time limit is reached; 0 is never."""
    kill_wait_s: int
    """Between SIGTERM and SIGKILL, should it be ended."""


@answer
class StepPage(Answer, frozen=True, tag="steps.page"):
    """A slice of the open steps."""

    rows: tuple[StepView, ...]
    next: JobId | None
    """What to ask the next slice `after`; None when this was the last."""
