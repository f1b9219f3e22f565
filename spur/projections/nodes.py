"""Nodes: what configuration says of them, and what became of each.

A configured block is one row for all its nodes, however many. A node has a row of its own from
the first time that something happens to it, so a hall of ten thousand nodes is configured by an
entry of a few rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from spur.events.nodes import NodeLost, NodeRegistered, NodesUpdated
from spur.projections.apply import At, applies
from spur.projections.invariants import invariant
from spur.projections.tables import Row, replace_rows
from spur.values.config import NodeBlock, NodeStart
from spur.values.hostlist import parse_hostlist
from spur.values.ids import HostId, NodeName
from spur.values.machines import UNKNOWN_MACHINE, Machine
from spur.values.states import NodeAction

if TYPE_CHECKING:
    from spur.projections.state import State

__all__ = [
    "UNTOUCHED",
    "NodeBlockRow",
    "NodeRow",
    "agent_of",
    "block_of",
    "configure_nodes",
    "is_closed",
    "is_drained_by_fault",
    "is_out",
    "is_usable",
    "names_in_block",
    "node_names",
    "node_row",
    "nodes_of_agent",
]


class NodeBlockRow(Row, frozen=True):
    """One configured block; its key is the block's host list."""

    number: int
    """Its place in the file, from 0."""
    block: NodeBlock


class NodeRow(Row, frozen=True):
    """What became of one node."""

    host_id: HostId
    """The host whose agent registered it last; 0 for none, or for the cluster itself."""
    boot_id: bytes
    """Empty until it registers."""
    registered_ns: int
    lost_ns: int
    """When its agent was last seen, once it was declared lost; 0 while it is there."""
    drain: bool
    down: bool
    fail: bool
    """Whether it is about to fail: it takes no new jobs, as one that drains."""
    reason: str
    reason_uid: int
    reason_ns: int
    cpus: int
    """What it found when it registered; what it may give away is configured."""
    memory_mib: int
    gpu_kind: str
    gpus: int
    address: str
    """Where its agent takes streams of steps; empty when it takes none."""
    fault: str
    """Why its host could launch nothing when it registered; empty when it could."""
    comment: str
    """What operators write of it, as is the next."""
    extra: str
    machine: Machine


UNTOUCHED = NodeRow(
    host_id=HostId(0),
    boot_id=b"",
    registered_ns=0,
    lost_ns=0,
    drain=False,
    down=False,
    fail=False,
    reason="",
    reason_uid=0,
    reason_ns=0,
    cpus=0,
    memory_mib=0,
    gpu_kind="",
    gpus=0,
    address="",
    fault="",
    comment="",
    extra="",
    machine=UNKNOWN_MACHINE,
)
"""The row of a node that nothing happened to yet."""


def names_in_block(key: str, row: NodeBlockRow) -> tuple[str, ...]:
    """Return the nodes of a block; no two blocks share one."""
    return parse_hostlist(key)


def block_of(state: State, node: str) -> NodeBlock | None:
    """Return what is configured for a node; None when it is not configured."""
    key = state.block_of_node.key(node)
    return None if key is None else state.node_blocks[key].block


def node_names(state: State) -> list[NodeName]:
    """Return every configured node, in the order of names."""
    return [NodeName(name) for name in state.block_of_node.values()]


def agent_of(state: State, node: str) -> str | None:
    """Return the name of the host whose agent may serve a node; None when not configured."""
    block = block_of(state, node)
    return None if block is None else block.agent or node


def nodes_of_agent(state: State, name: str) -> list[NodeName]:
    """Return the configured nodes that the agent of a host may serve, in the order of the file."""
    rows = sorted(state.node_blocks.rows.values(), key=lambda row: row.number)
    found: list[NodeName] = []
    for row in rows:
        names = parse_hostlist(row.block.names)
        if row.block.agent == name:
            found.extend(NodeName(node) for node in names)
        elif not row.block.agent and name in names:
            found.append(NodeName(name))
    return found


def node_row(state: State, node: NodeName) -> NodeRow:
    """Return what became of a node; before anything did, what it is configured to begin as."""
    row = state.nodes.get(node)
    if row is not None:
        return row
    block = block_of(state, node)
    if block is None or block.start not in (NodeStart.DOWN, NodeStart.DRAIN):
        return UNTOUCHED
    return replace(
        UNTOUCHED,
        drain=block.start is NodeStart.DRAIN,
        down=block.start is NodeStart.DOWN,
        reason=block.reason,
    )


def is_closed(row: NodeRow) -> bool:
    """Return whether a node that registered takes no new jobs."""
    return bool(row.lost_ns or row.drain or row.down or row.fail)


def is_drained_by_fault(row: NodeRow) -> bool:
    """Return whether the cluster drained it for its agent's sake, and nobody said otherwise."""
    return row.drain and row.fault != "" and row.reason == row.fault


def is_usable(state: State, node: NodeName) -> bool:
    """Return whether new jobs may start on the node."""
    row = state.nodes.get(node)
    return (
        row is not None
        and row.boot_id != b""
        and not is_closed(row)
        and state.block_of_node.key(node) is not None
    )


def is_out(_: NodeName, row: NodeRow) -> bool | None:
    """Return True for a node that is lost or down, None for any other: an index of the few."""
    return True if row.lost_ns or row.down else None


def configure_nodes(state: State, blocks: tuple[NodeBlock, ...]) -> None:
    """Replace the configured blocks, and forget nodes that are in none of them."""
    wanted = {block.names: NodeBlockRow(number, block) for number, block in enumerate(blocks)}
    replace_rows(state.node_blocks, wanted)
    for name in state.nodes.sorted_keys():
        if state.block_of_node.key(name) is None:
            state.nodes.delete(name)


@applies(NodeRegistered)
def apply_node_registered(state: State, at: At, event: NodeRegistered) -> None:
    """Take the node as there; whether it is drained or down is not the agent's to say."""
    former = node_row(state, event.node)
    state.nodes.put(
        event.node,
        replace(
            former,
            host_id=event.host_id,
            boot_id=event.boot_id,
            registered_ns=at.time_ns,
            lost_ns=0,
            cpus=event.cpus,
            memory_mib=event.memory_mib,
            gpu_kind=event.gpu_kind,
            gpus=event.gpus,
            address=event.address,
            fault=event.fault,
            machine=event.machine,
        ),
    )


@applies(NodeLost)
def apply_node_lost(state: State, at: At, event: NodeLost) -> None:
    """Take the node as cut off until it registers again."""
    row = state.nodes[event.node]
    if row.lost_ns:
        raise ValueError(f"node {event.node!r} is lost already")
    state.nodes.put(event.node, replace(row, lost_ns=event.last_seen_ns))


@applies(NodesUpdated)
def apply_nodes_updated(state: State, at: At, event: NodesUpdated) -> None:
    """Set and clear what an operator may."""
    action = event.action
    for node in event.nodes:
        row = node_row(state, node)
        changed = replace(
            row,
            drain=action is NodeAction.DRAIN or (row.drain and action not in _UNDRAINING),
            down=action is NodeAction.DOWN or (row.down and action is not NodeAction.RESUME),
            fail=action is NodeAction.FAIL or (row.fail and action is not NodeAction.RESUME),
            comment=row.comment if event.comment is None else event.comment,
            extra=row.extra if event.extra is None else event.extra,
        )
        state.nodes.put(node, _with_reason(changed, at, event.reason))


def _with_reason(row: NodeRow, at: At, reason: str) -> NodeRow:
    """Return the row with a new reason, or with the former; one in full use has none."""
    if not is_closed(row):
        return replace(row, reason="", reason_uid=0, reason_ns=0)
    if not reason:
        return row
    return replace(row, reason=reason, reason_uid=at.actor.uid, reason_ns=at.time_ns)


_UNDRAINING = frozenset({NodeAction.UNDRAIN, NodeAction.RESUME})


@invariant("nodes-are-configured")
def unconfigured_nodes(state: State) -> Iterator[str]:
    """Nothing is remembered of a node that is not configured."""
    for name in state.nodes.sorted_keys():
        if state.block_of_node.key(name) is None:
            yield f"node {name!r} has a row and no configuration"
