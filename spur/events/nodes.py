"""What happens to nodes."""

from __future__ import annotations

from spur.events.declare import Event, event
from spur.values.ids import HostId, NodeName
from spur.values.machines import Machine
from spur.values.states import NodeAction

__all__ = ["NodeLost", "NodeRegistered", "NodesUpdated"]


@event("node.registered")
class NodeRegistered(Event, frozen=True):
    """An agent said that it serves a node, and what it found there."""

    node: NodeName
    host_id: HostId
    """The host whose agent it is; 0 for the cluster itself, in simulations."""
    boot_id: bytes
    """Changes with every boot of the machine."""
    cpus: int
    memory_mib: int
    gpu_kind: str
    gpus: int
    address: str
    """host:port where it takes streams of steps; empty when it takes none."""
    fault: str
    """Why the host can launch nothing now; empty when it can."""
    machine: Machine


@event("node.lost")
class NodeLost(Event, frozen=True):
    """A node's agent was silent for longer than SlurmdTimeout."""

    node: NodeName
    last_seen_ns: int


@event("node.updated")
class NodesUpdated(Event, frozen=True):
    """An operator, or a check of what a node found, changed what may run on nodes."""

    nodes: tuple[NodeName, ...]
    action: NodeAction
    reason: str
    """Why; empty when they are taken into use, or when the former reason stays."""
    comment: str | None
    """What operators write of them; None leaves it as it is, as in the next."""
    extra: str | None
