"""What agents and the leader say to each other: attendance, and orders.

An agent asks for orders and is answered when there are some, or after a while with none; so the
leader needs no connection of its own to any agent. An order names what it is about: an agent acts
once on each (job, run, step, attempt), however often it is told, and refuses a lower term than it
has heard. Source: LOG-CONTRACT 3.4, 7.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta

from spur.values.config import NodeBlock
from spur.values.ids import JobId, NodeName, PartitionName
from spur.values.jobspec import JobSpec
from spur.values.states import JobState, Reach
from spur.values.steps import Dealing, StepState
from spur.values.tres import NodeShare, Per
from spur.wire.declare import Answer, Request, answer, request
from spur.wire.jobs import Part

__all__ = [
    "ATTEND_MS_MAX",
    "SESSION_SIZE",
    "AttendOrders",
    "HetPart",
    "KillOrder",
    "KillStepOrder",
    "LaunchOrder",
    "LaunchStepOrder",
    "LetInOrder",
    "NodeHealth",
    "NotifyOrder",
    "Numbered",
    "Order",
    "Orders",
    "SignalOrder",
    "SignalStepOrder",
    "SteerOrder",
]

SESSION_SIZE = 16
"""Bytes that name one life of an agent process."""

ATTEND_MS_MAX = 60_000
"""The longest that an agent may let itself be kept waiting."""


class NodeHealth(Part, frozen=True):
    """How a node is, as its agent sees it; kept by the leader alone."""

    node: NodeName
    load_milli: int
    """Load average of the last minute, in thousandths. Source: scontrol(1) show node, CPULoad."""
    free_memory_mib: int


@request
class AttendOrders(Request, frozen=True, tag="agent.attend"):
    """An agent is there and takes orders; answered with `Orders`, by the leader alone.

    It is told all that rows owe its nodes when the leader does not know this session.
    """

    session: Annotated[bytes, Meta(min_length=SESSION_SIZE, max_length=SESSION_SIZE)]
    """Random, made when the agent process started."""
    heard: Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
    """Number of the last order of the last answer that was taken; 0 asks for everything anew."""
    wait_ms: Annotated[int, Meta(ge=0, le=ATTEND_MS_MAX)]
    """How long the leader may wait for an order before it answers with none."""
    health: Annotated[tuple[NodeHealth, ...], Meta(max_length=100_000)]
    """One for each node that it serves, known or not how it is."""


class HetPart(Part, frozen=True):
    """What a component of a het job has."""

    job_id: JobId
    spec: JobSpec
    partition: PartitionName
    shares: tuple[NodeShare, ...]
    default_memory_per: Per
    default_memory_mib: int


class LaunchOrder(Part, frozen=True, tag="launch"):
    """Launch a node's part of a run."""

    node: NodeName
    job_id: JobId
    run: int
    attempt: int
    uid: int
    gid: int
    spec: JobSpec
    array_id: JobId
    """0 for a job that is no array."""
    task: int | None
    """Which task of the array."""
    array_count: int
    """How many tasks were submitted; 0 for a job that is no array, as are the next three."""
    array_min: int
    array_max: int
    array_step: int
    partition: PartitionName
    partition_nodes: str
    """A host list."""
    shares: tuple[NodeShare, ...]
    """Of all nodes; the first is where the script runs."""
    node_cpus: tuple[int, ...]
    """CPUs that each of these nodes is configured with, in the same order."""
    block: NodeBlock
    """All that is configured of this node and its like."""
    limit_ns: int
    """When its time limit is reached; 0 is never."""
    start_ns: int
    script: bytes
    """As submitted; empty where none runs."""
    environment: bytes
    """As submitted."""
    text: bytes
    """An encoded `JobText`; empty when none was submitted."""
    cluster_name: str
    kill_wait_s: int
    default_memory_per: Per
    """Of what the next is meant: CPU or NODE."""
    default_memory_mib: int
    """For a job whose ask names no memory; 0 is none. Source: slurm.conf(5) DefMemPerCPU."""
    task_plugin: str
    """As written; it decides whether tasks are bound. Source: slurm.conf(5) TaskPlugin."""
    file_append: bool
    """Whether output files are appended to. Source: slurm.conf(5) JobFileAppend."""
    topology: str
    """The switches above the node and its name, joined by dots: "core.leaf0.n1"."""
    topology_pattern: str
    """What each part of it is: "switch.switch.node"."""
    propagated: str = "ALL"
    """Which limits of the submitter the job gets. Source: slurm.conf(5) PropagateResourceLimits."""
    components: tuple[HetPart, ...] = ()
    """Of the het job, where its script runs; empty everywhere else."""
    why_not: str = ""
    """Why it can't be launched any more, so that the node takes it as void; empty otherwise."""


class KillOrder(Part, frozen=True, tag="kill"):
    """End, or never begin, a node's part of a run, and report it."""

    node: NodeName
    job_id: JobId
    run: int
    attempt: int
    state: JobState
    """What the run will be recorded as; it decides which warning the processes get."""
    kill_wait_s: int
    """Between SIGTERM and SIGKILL."""


class SignalOrder(Part, frozen=True, tag="signal"):
    """Send a signal to a node's part of a run; at most once."""

    node: NodeName
    job_id: JobId
    run: int
    attempt: int
    signal: int
    reach: Reach
    index: int
    """The log entry that says so; an agent acts once on it."""


class LaunchStepOrder(Part, frozen=True, tag="launch-step"):
    """Launch a node's part of a step. What it executes comes over its stream (`streams.py`)."""

    node: NodeName
    job_id: JobId
    run: int
    attempt: int
    """Of the run that it belongs to; void where the node does not hold that."""
    step_id: int
    name: str
    uid: int
    gid: int
    shares: tuple[NodeShare, ...]
    """What the step uses on all of its nodes, within what the run holds there."""
    tasks: tuple[int, ...]
    """How many tasks run on each of these nodes; `values.steps.tasks_on` numbers them."""
    dealing: Dealing
    plane: int
    cpus_per_task: int
    key_digest: bytes
    """SHA-256 of the key that opens its streams."""
    limit_ns: int
    """When its own time limit is reached; 0 is never. The cluster ends it, not the agent."""
    cluster_name: str
    kill_wait_s: int


class KillStepOrder(Part, frozen=True, tag="kill-step"):
    """End, or never begin, a node's part of a step, and report it."""

    node: NodeName
    job_id: JobId
    run: int
    attempt: int
    step_id: int
    state: StepState
    """What the step will be recorded as; it decides which warning the processes get."""
    kill_wait_s: int
    """0: SIGKILL at once."""


class SignalStepOrder(Part, frozen=True, tag="signal-step"):
    """Send a signal to the tasks of a step; at most once."""

    node: NodeName
    job_id: JobId
    run: int
    attempt: int
    step_id: int
    signal: int
    index: int
    """The log entry that says so; an agent acts once on it."""


class NotifyOrder(Part, frozen=True, tag="notify"):
    """Say something to a node's part of a run; at most once."""

    node: NodeName
    job_id: JobId
    run: int
    attempt: int
    text: bytes
    index: int
    """The log entry that says so; an agent acts once on it."""


class LetInOrder(Part, frozen=True, tag="let-in"):
    """Let a guest with this key speak with a node's part of a step, or of a run."""

    node: NodeName
    job_id: JobId
    run: int
    attempt: int
    step_id: int
    """`EXTERN_STEP` for the run itself."""
    key_digest: bytes


class SteerOrder(Part, frozen=True, tag="steer"):
    """Let a node's part of a run stand still or go on, and say when its limit is reached."""

    node: NodeName
    job_id: JobId
    run: int
    attempt: int
    paused: bool
    limit_ns: int
    """0 is never. Of a run that stands still: if it went on at once."""
    index: int
    """The log entry that says so; an agent obeys the newest alone."""


Order: TypeAlias = (
    LaunchOrder
    | KillOrder
    | SignalOrder
    | SteerOrder
    | NotifyOrder
    | LaunchStepOrder
    | KillStepOrder
    | SignalStepOrder
    | LetInOrder
)
"""Everything that an agent may be told to do."""


class Numbered(Part, frozen=True):
    """An order in the sequence of its session."""

    number: int
    index: int
    """The log entry up to which the order rests on the log."""
    order: Order


@answer
class Orders(Answer, frozen=True, tag="agent.orders"):
    """What an agent has to do, oldest first; empty when there is nothing."""

    incarnation: int
    term: int
    """Of the leader that says so; the agent refuses lower ones."""
    orders: tuple[Numbered, ...]
    register: tuple[NodeName, ...]
    """Of its nodes, those that the state holds for lost or has never met: to be registered."""
