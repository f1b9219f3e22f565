"""What happens to the runs of jobs: start, reports of the nodes, stop, end.

A run is named (job, run number); an attempt is one launch of it on its nodes. Each run ends
exactly once, by `run.ended`, whether it was started or not (LOG-CONTRACT 7.2).
"""

from __future__ import annotations

from spur.events.declare import Event, Stored, event
from spur.values.ids import JobId, NodeName, PartitionName
from spur.values.states import Hold, JobState, NodeShareState, Reach, Reason
from spur.values.tres import NodeShare

__all__ = [
    "JobRelaunched",
    "JobStarted",
    "NodeCutOff",
    "PlacementDecision",
    "RefusedNodes",
    "ReportVoided",
    "RunEnded",
    "RunNotified",
    "RunReported",
    "RunResumed",
    "RunSignalled",
    "RunStopped",
    "RunSuspended",
]


class RefusedNodes(Stored, frozen=True):
    """How many nodes were passed over for one cause."""

    cause: Reason
    count: int


class PlacementDecision(Stored, frozen=True):
    """Why this job, now, there: kept in the log for those who ask, in no row."""

    policy_digest: bytes
    """SHA-256 of the settings the plan was made with."""
    based_on: int
    """Index of the state the plan was made on."""
    factors: tuple[tuple[str, int], ...]
    """Priority factors by name, in millionths."""
    refused: tuple[RefusedNodes, ...]
    why_these: str
    """In the scheduler's words."""


@event("job.started")
class JobStarted(Event, frozen=True):
    """A run got its allocation; its nodes are told to launch it."""

    job_id: JobId
    run: int
    attempt: int
    """One more than any attempt of the job so far."""
    partition: PartitionName
    """Which of the job's partitions it runs in."""
    shares: tuple[NodeShare, ...]
    """What it holds on each node; the first is where a batch script runs."""
    time_limit_s: int
    """0 is no limit."""
    decision: PlacementDecision


@event("job.relaunched")
class JobRelaunched(Event, frozen=True):
    """The run is launched again on the same allocation: its former attempt lives nowhere."""

    job_id: JobId
    run: int
    attempt: int


@event("run.reported")
class RunReported(Event, frozen=True):
    """A node said what became of the attempt there."""

    node: NodeName
    outbox: bytes
    number: int
    """Place in the sequence of this node and outbox."""
    job_id: JobId
    run: int
    attempt: int
    state: NodeShareState
    """LAUNCHED, ENDED, VOID or DEAD."""
    exit_code: int
    signal: int
    """0 when no signal ended it."""
    out_of_memory: bool
    end_ns: int
    """When its last process ended, never before the start; 0 for LAUNCHED."""


@event("run.report-voided")
class ReportVoided(Event, frozen=True):
    """A node reported an attempt that the state does not hold there; it changed nothing else."""

    node: NodeName
    outbox: bytes
    number: int
    job_id: JobId
    run: int
    attempt: int


@event("run.node-cut-off")
class NodeCutOff(Event, frozen=True):
    """A node of a run was given up, or turned out to hold nothing of it any more."""

    job_id: JobId
    run: int
    node: NodeName
    state: NodeShareState
    """LOST while nobody knows, DEAD when it was fenced or rebooted."""
    last_seen_ns: int
    """When the node was last heard, for billing."""


@event("run.stopped")
class RunStopped(Event, frozen=True):
    """It is settled that and how a started run ends; nodes that hold it owe its death."""

    job_id: JobId
    run: int
    state: JobState
    """What the run will be recorded as."""
    reason: Reason
    requeue: bool
    """Whether the job waits again once the run has ended."""
    hold: Hold
    """How it then waits."""
    exit_code: int
    """Of one without a script, as whoever held it said; a script's own is reported."""
    signal: int


@event("run.ended")
class RunEnded(Event, frozen=True):
    """The one record of a run; what it held is free."""

    job_id: JobId
    run: int
    state: JobState
    reason: Reason
    exit_code: int
    signal: int
    end_ns: int
    unfenced: bool
    """Whether a lost node may still have had it alive."""


@event("run.signalled", ignorable=True)
class RunSignalled(Event, frozen=True):
    """Someone sent a signal to a run; it is delivered at most once and no row remembers it."""

    job_id: JobId
    run: int
    attempt: int
    signal: int
    reach: Reach


@event("run.suspended")
class RunSuspended(Event, frozen=True):
    """All processes of a run stand still on its nodes until it is resumed; it keeps what it has."""

    job_id: JobId
    run: int


@event("run.resumed")
class RunResumed(Event, frozen=True):
    """A suspended run goes on; what it stood still for is added to when its limit is reached."""

    job_id: JobId
    run: int


@event("run.notified", ignorable=True)
class RunNotified(Event, frozen=True):
    """Someone said something to what runs of a job: the job's attachment "notice"."""

    job_id: JobId
    run: int
    attempt: int
