"""Requests about runs: what the scheduler places, agents report, and the cluster gives up."""

from __future__ import annotations

from typing import Literal

from spur.values.ids import JobId, NodeName, PartitionName
from spur.values.states import NodeShareState, Reason
from spur.values.tres import NodeShare
from spur.wire.declare import Answer, Request, answer, request
from spur.wire.jobs import GroupReasonView, Part

__all__ = [
    "ConfirmNodeDead",
    "JobReasonView",
    "PlaceJobs",
    "Placement",
    "PlacementsJudged",
    "RefusedCount",
    "RefusedPlacement",
    "ReportAnswered",
    "ReportRun",
    "StateReasons",
]


class RefusedCount(Part, frozen=True):
    """How many nodes were passed over for one cause."""

    cause: Reason
    count: int


class Placement(Part, frozen=True):
    """One start that the scheduler proposes."""

    job_id: JobId
    run: int
    task: int | None
    """The task to start when the row stands for several; else None."""
    partition: PartitionName
    shares: tuple[NodeShare, ...]
    """The batch host first."""
    factors: tuple[tuple[str, int], ...]
    """Priority factors by name, in millionths."""
    refused: tuple[RefusedCount, ...]
    why_these: str
    joined: bool = False
    """Whether it starts with the one before or not at all: the next component of its het job."""


@request
class PlaceJobs(Request, frozen=True, tag="jobs.place"):
    """Start the jobs of a plan; each placement is judged by itself against the present state."""

    based_on: int
    """Index of the state that the plan was made on."""
    policy_digest: bytes
    placements: tuple[Placement, ...]


class RefusedPlacement(Part, frozen=True):
    """A placement that does not hold any more."""

    place: int
    """In the plan, from 0."""
    code: str
    """Of the table of errors."""


@answer
class PlacementsJudged(Answer, frozen=True, tag="jobs.placed"):
    """What came of a plan; of one done in parts, of its last part.

    The starts are in the log, which the scheduler follows.
    """

    started: int
    refused: int
    refusals: tuple[RefusedPlacement, ...]
    """The first few."""


@request
class ReportRun(Request, frozen=True, tag="run.report"):
    """A node's next report. Source: LOG-CONTRACT 7.6."""

    node: NodeName
    outbox: bytes
    """16 random bytes that the agent made with the outbox."""
    number: int
    """One more than the last that was answered."""
    job_id: JobId
    run: int
    attempt: int
    state: NodeShareState
    """LAUNCHED, ENDED or VOID; DEAD when the node booted, or lost the supervisor, as it ran."""
    exit_code: int
    signal: int
    out_of_memory: bool
    age_ns: int
    """Boot-time clock since the last process ended, time in the outbox included."""


@answer
class ReportAnswered(Answer, frozen=True, tag="run.answered"):
    """What came of a report; in each case the agent forgets it and sends the next."""

    outcome: Literal["done", "already", "void"]
    """already: this number was heard before, and answered as one of the others; void: the attempt
    is not open there, and what is left of it is to be killed."""


@request
class ConfirmNodeDead(Request, frozen=True, tag="node.confirm-dead"):
    """State that nothing of any run lives on a lost node: it was fenced. Done in parts."""

    node: NodeName


class JobReasonView(Part, frozen=True):
    """Why one pending job waits, where that differs from its group."""

    job_id: JobId
    reason: Reason


@request
class StateReasons(Request, frozen=True, tag="jobs.reasons"):
    """Say why jobs wait. Source: LOG-CONTRACT 3.7."""

    groups: tuple[GroupReasonView, ...]
    jobs: tuple[JobReasonView, ...]
    """At most 1000."""
