"""Requests about nodes, and rows of nodes."""

from __future__ import annotations

import msgspec

from spur.values.config import NodeBlock
from spur.values.ids import HostId, NodeName
from spur.values.machines import UNKNOWN_MACHINE, Machine
from spur.values.states import NodeAction
from spur.wire.declare import Answer, Request, answer, request

__all__ = ["ListNodes", "MarkNodeLost", "NodeInfo", "NodeList", "RegisterNode", "UpdateNodes"]


@request
class RegisterNode(Request, frozen=True, tag="node.register"):
    """An agent says that it serves a node, and what it found there."""

    node: NodeName
    boot_id: bytes
    cpus: int
    memory_mib: int
    gpu_kind: str
    gpus: int
    address: str = ""
    """host:port where it takes streams of steps; empty when it takes none."""
    fault: str = ""
    """Why the host can launch nothing now, a full spool; empty when it can."""
    machine: Machine = UNKNOWN_MACHINE


@request
class MarkNodeLost(Request, frozen=True, tag="node.mark-lost"):
    """A node's agent was silent too long; the cluster asks this of itself."""

    node: NodeName
    last_seen_ns: int


@request
class UpdateNodes(Request, frozen=True, tag="node.update"):
    """Drain nodes, take them down or into use, or write something of them.

    Source: scontrol(1) update NodeName.
    """

    nodes: str
    """A host list."""
    action: NodeAction
    reason: str
    """Needed to drain, to fail and to take down; empty leaves the former."""
    comment: str | None = None
    """Free text; None leaves it as it is, as in the next."""
    extra: str | None = None


@request
class ListNodes(Request, frozen=True, tag="node.list"):
    """Return a slice of the nodes in order of their names."""

    nodes: str
    """A host list; empty for all."""
    after: str
    """The slice begins above this name; empty for the first."""
    limit: int
    """Rows at most, from 1 to 1000."""


class NodeInfo(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """A node, as people are shown it."""

    name: NodeName
    state: str
    """Slurm's words, joined by "+": IDLE, MIXED+DRAIN, DOWN+NOT_RESPONDING."""
    cpus: int
    """Configured, as are memory and GPUs."""
    memory_mib: int
    gpu_kind: str
    gpus: int
    cpus_allocated: int
    memory_mib_allocated: int
    gpus_allocated: int
    """Bit i set: the GPU with index i is held."""
    features: tuple[str, ...]
    partitions: tuple[str, ...]
    reason: str
    reason_uid: int
    reason_ns: int
    host_id: HostId
    boot_id: bytes
    block: NodeBlock
    """All that is configured of it and its like."""
    comment: str = ""
    """What operators write of it, as is the next."""
    extra: str = ""
    load_milli: int | None = None
    """Load average in thousandths, as its agent said last; None when the controller that answers
    does not know, as is the next."""
    free_memory_mib: int | None = None
    machine: Machine = UNKNOWN_MACHINE
    registered_ns: int = 0
    """When it registered last; 0 for never."""


@answer
class NodeList(Answer, frozen=True, tag="node.rows"):
    """A slice of the nodes, in the order of their names."""

    nodes: tuple[NodeInfo, ...]
    next: NodeName | None
    """What to ask the next slice `after`; None when this was the last."""
