"""What happens to the steps of a run: start, reports of the nodes, stop, end.

A step is named (job, run, step). It ends once: by `step.ended`, or with its run, whose `run.ended`
ends every step that is still open as CANCELLED. What it executes is not in the log: it steers no
decision.
"""

from __future__ import annotations

from spur.events.declare import Event, event
from spur.values.ids import JobId, NodeName
from spur.values.states import NodeShareState
from spur.values.steps import Dealing, StepState
from spur.values.tres import NodeShare

__all__ = [
    "GuestAdmitted",
    "StepEnded",
    "StepReported",
    "StepSignalled",
    "StepStarted",
    "StepStopped",
]


@event("step.started")
class StepStarted(Event, frozen=True):
    """A step got its part of the run's allocation; its nodes are told to launch it."""

    job_id: JobId
    run: int
    attempt: int
    """Of the run."""
    step_id: int
    """Counts from 0 in each run."""
    name: str
    shares: tuple[NodeShare, ...]
    """What it uses on each node, within what the run holds there."""
    tasks: tuple[int, ...]
    """How many tasks run on each of these nodes."""
    dealing: Dealing
    plane: int
    """Size of the blocks of `Dealing.PLANE`."""
    cpus_per_task: int
    overlaps: bool
    """Whether other steps may use the same resources."""
    time_limit_s: int
    """0 is none but the job's."""
    key_digest: bytes
    """SHA-256 of the key that opens its streams."""


@event("step.reported")
class StepReported(Event, frozen=True):
    """A node said what became of the step there."""

    node: NodeName
    outbox: bytes
    number: int
    """Place in the sequence of this node and outbox, which reports of runs share."""
    job_id: JobId
    run: int
    attempt: int
    step_id: int
    state: NodeShareState
    """LAUNCHED, ENDED or VOID."""
    exit_code: int
    """The highest of its tasks there."""
    signal: int
    """0 when no signal ended one."""
    out_of_memory: bool
    end_ns: int
    """When its last task ended, never before the start; 0 for LAUNCHED."""


@event("step.stopped")
class StepStopped(Event, frozen=True):
    """It is settled that and how a step ends; nodes that hold it owe its death."""

    job_id: JobId
    run: int
    step_id: int
    state: StepState
    """What it will be recorded as."""
    at_once: bool
    """Whether its tasks get SIGKILL without a warning and KillWait before."""


@event("step.ended")
class StepEnded(Event, frozen=True):
    """The record of a step; what it used is free for other steps."""

    job_id: JobId
    run: int
    step_id: int
    state: StepState
    exit_code: int
    signal: int
    end_ns: int


@event("step.signalled", ignorable=True)
class StepSignalled(Event, frozen=True):
    """Someone sent a signal to a step; it is delivered at most once and no row remembers it."""

    job_id: JobId
    run: int
    attempt: int
    step_id: int
    signal: int


@event("step.guest-admitted", ignorable=True)
class GuestAdmitted(Event, frozen=True):
    """Someone with this key may speak with a step's nodes, or a run's; no row remembers it."""

    job_id: JobId
    run: int
    attempt: int
    step_id: int
    """`EXTERN_STEP` for the run itself: to hand over files."""
    key_digest: bytes
    """SHA-256 of the guest's key."""
