"""Commands about nodes."""

from __future__ import annotations

from bisect import bisect_right

from msgspec.structs import replace

from spur.commands.decide import Context, Decision, command
from spur.commands.permissions import Permission
from spur.events.declare import Event
from spur.events.nodes import NodeLost, NodeRegistered, NodesUpdated
from spur.projections.nodes import (
    agent_of,
    block_of,
    is_closed,
    is_drained_by_fault,
    node_names,
    node_row,
)
from spur.projections.nodeviews import node_infos
from spur.projections.state import State
from spur.values.config import NodeBlock
from spur.values.errors import Rejection
from spur.values.hostlist import format_hostlist, parse_hostlist
from spur.values.ids import HostId, NodeName
from spur.values.machines import MACHINE_LETTERS_MAX
from spur.values.states import NodeAction
from spur.wire.declare import Done
from spur.wire.nodes import ListNodes, MarkNodeLost, NodeInfo, NodeList, RegisterNode, UpdateNodes

__all__ = [
    "NODES_PER_PAGE_MAX",
    "decide_list_nodes",
    "decide_mark_node_lost",
    "decide_register_node",
    "decide_update_nodes",
    "refuse_agent",
]


ADDRESS_LENGTH_MAX = 262
"""The longest host name, a colon and a port, with some room for brackets."""

TEXT_LETTERS_MAX = 4_096
"""Letters of a reason, a comment or an extra text: each stands in the row of every node named."""

_WITH_REASON = frozenset({NodeAction.DRAIN, NodeAction.FAIL, NodeAction.DOWN})
"""What nobody does to a node without saying why."""

NODES_PER_PAGE_MAX = 1_000
"""Nodes that one answer shows, so that no query holds the loop."""


def refuse_agent(state: State, context: Context, node: str) -> Rejection | None:
    """Return why the actor may not speak for a node, or None. The cluster itself always may."""
    agent = agent_of(state, node)
    if agent is None:
        return Rejection("unknown-node", f"node {node!r} is not configured; nothing was changed")
    actor = context.actor
    if actor.host_role == "cluster":
        return None
    host = state.hosts.get(HostId(actor.host_id))
    if host is None or host.name != agent:
        speaker = f"host {actor.host_id}" if host is None else f"host {host.name!r}"
        return Rejection(
            "not-permitted",
            f"{speaker} may not speak for node {node!r}: that is for host {agent!r}; "
            "nothing was changed",
        )
    return None


@command(RegisterNode, permission=Permission.AGENT)
def decide_register_node(
    state: State, request: RegisterNode, context: Context
) -> Decision | Rejection:
    """Take a node as there.

    One that found less than is configured, or whose host can launch nothing, is drained; when
    its host can again, what was drained for that alone is taken back.
    """
    refused = refuse_agent(state, context, request.node)
    if refused is not None:
        return refused
    if not request.boot_id:
        return Rejection("invalid-value", "the boot id is empty; nothing was changed")
    if len(request.address) > ADDRESS_LENGTH_MAX:
        return Rejection(
            "invalid-value",
            f"an address of {len(request.address)} characters; it has at most "
            f"{ADDRESS_LENGTH_MAX}; nothing was changed",
        )
    if len(request.fault) > TEXT_LETTERS_MAX:
        return Rejection(
            "limit-exceeded",
            f"text-letters-max is {TEXT_LETTERS_MAX}, and this needs {len(request.fault)}; "
            "nothing was changed",
        )
    texts = (request.machine.arch, request.machine.system, request.machine.version)
    if max(map(len, texts)) > MACHINE_LETTERS_MAX:
        return Rejection(
            "limit-exceeded",
            f"machine-letters-max is {MACHINE_LETTERS_MAX}, and this needs "
            f"{max(map(len, texts))}; nothing was changed",
        )
    row = node_row(state, request.node)
    registered = NodeRegistered(
        node=request.node,
        host_id=HostId(context.actor.host_id),
        boot_id=request.boot_id,
        cpus=request.cpus,
        memory_mib=request.memory_mib,
        gpu_kind=request.gpu_kind,
        gpus=request.gpus,
        address=request.address,
        fault=request.fault,
        machine=request.machine,
    )
    events: list[Event] = []
    if row.lost_ns or any(
        getattr(row, field) != getattr(registered, field)
        for field in registered.__struct_fields__
        if field != "node"
    ):
        events.append(registered)
    block = block_of(state, request.node)
    why = (block is not None and _lack(block, request)) or request.fault
    is_own = is_drained_by_fault(row)
    if why and (not row.drain or (is_own and why != row.reason)):
        events.append(NodesUpdated((request.node,), NodeAction.DRAIN, why, None, None))
    elif is_own and not why:
        events.append(NodesUpdated((request.node,), NodeAction.UNDRAIN, "", None, None))
    return Decision(tuple(events), Done())


def _lack(block: NodeBlock, found: RegisterNode) -> str:
    """Return what a node has less of than is configured, in Slurm's words, or nothing."""
    if found.cpus < block.cpus:
        return f"Low CPUs (found {found.cpus}, configured {block.cpus})"
    if found.memory_mib < block.memory_mib:
        return f"Low RealMemory (found {found.memory_mib}, configured {block.memory_mib})"
    if found.gpus < block.gpus or (block.gpus and block.gpu_kind not in ("", found.gpu_kind)):
        return (
            f"gres/gpu count reported lower than configured ({found.gpus} of "
            f"{found.gpu_kind or 'none'}, configured {block.gpus} of {block.gpu_kind})"
        )
    return ""


@command(MarkNodeLost, permission=Permission.CLUSTER)
def decide_mark_node_lost(
    state: State, request: MarkNodeLost, context: Context
) -> Decision | Rejection:
    """Take a silent node as cut off. What becomes of its jobs falls due by that."""
    row = state.nodes.get(request.node)
    if row is None or not row.boot_id:
        return Rejection(
            "unknown-node", f"node {request.node!r} never registered; nothing was changed"
        )
    if row.lost_ns:
        return Decision((), Done())
    last_seen_ns = min(max(request.last_seen_ns, row.registered_ns), context.now_ns)
    return Decision((NodeLost(request.node, last_seen_ns),), Done())


@command(UpdateNodes, permission=Permission.OPERATOR)
def decide_update_nodes(
    state: State, request: UpdateNodes, context: Context
) -> Decision | Rejection:
    """Change the state of nodes, or what is written of them; all that are named, or none."""
    try:
        names = parse_hostlist(request.nodes)
    except ValueError as error:
        return Rejection("invalid-value", f"{error}; nothing was changed")
    unknown = [name for name in names if block_of(state, name) is None]
    if unknown or not names:
        return Rejection(
            "unknown-node",
            f"nodes {format_hostlist(unknown)} are not configured; nothing was changed"
            if unknown
            else "no node is named; nothing was changed",
        )
    action = request.action
    if action in _WITH_REASON and not request.reason:
        return Rejection(
            "invalid-value",
            f"to {action} a node takes a reason; nothing was changed",
            "say why, so that the next person knows",
        )
    if action is NodeAction.RESUME and all(
        not is_closed(node_row(state, NodeName(name))) for name in names
    ):
        return Rejection(
            "invalid-node-state",
            f"nodes {format_hostlist(names)} are in use already; nothing was changed",
        )
    texts = (request.reason, request.comment or "", request.extra or "")
    for text in texts:
        if len(text) > TEXT_LETTERS_MAX:
            return Rejection(
                "limit-exceeded",
                f"text-letters-max is {TEXT_LETTERS_MAX}, and this needs {len(text)}; "
                "nothing was changed",
            )
    nodes = tuple(NodeName(name) for name in names)
    event = NodesUpdated(nodes, action, request.reason, request.comment, request.extra)
    return Decision((event,), Done())


@command(ListNodes, permission=Permission.USER, reads=True)
def decide_list_nodes(state: State, request: ListNodes, context: Context) -> Decision | Rejection:
    """Show a slice of the nodes, all or those named."""
    if not 1 <= request.limit <= NODES_PER_PAGE_MAX:
        return Rejection(
            "invalid-value",
            f"a page of {request.limit} nodes is not from 1 to {NODES_PER_PAGE_MAX}; "
            "nothing was changed",
        )
    chosen = node_names(state)
    if request.nodes:
        try:
            names = parse_hostlist(request.nodes)
        except ValueError as error:
            return Rejection("invalid-value", f"{error}; nothing was changed")
        unknown = [name for name in names if block_of(state, name) is None]
        if unknown:
            text = f"nodes {format_hostlist(unknown)} are not configured; nothing was changed"
            return Rejection("unknown-node", text)
        chosen = sorted(NodeName(name) for name in names)
    first = bisect_right(chosen, NodeName(request.after))
    page = chosen[first : first + request.limit]
    has_more = first + request.limit < len(chosen)
    nodes = tuple(_with_health(info, context) for info in node_infos(state, page))
    return Decision((), NodeList(nodes, page[-1] if has_more else None))


def _with_health(info: NodeInfo, context: Context) -> NodeInfo:
    """Return the row with what the node's agent said last, if this controller heard it."""
    heard = context.agents.get(info.name)
    if heard is None:
        return info
    return replace(info, load_milli=heard.load_milli, free_memory_mib=heard.free_memory_mib)
