"""Commands about partitions."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from spur.commands.decide import Context, Decision, command
from spur.commands.permissions import Permission
from spur.events.declare import Event
from spur.events.partitions import PartitionCreated, PartitionDeleted, PartitionUpdated
from spur.projections.nodes import node_names
from spur.projections.nodeviews import partition_infos
from spur.projections.state import State
from spur.slurm.partitionupdates import BadPartition, changed_partition, fresh_partition
from spur.values.config import PartitionBlock, SlurmParameter
from spur.values.errors import Rejection
from spur.values.hostlist import format_hostlist, parse_hostlist
from spur.values.ids import NAME_GRAMMAR, PartitionName, is_name
from spur.values.states import Phase
from spur.wire.declare import Done
from spur.wire.partitions import (
    CreatePartition,
    DeletePartition,
    ListPartitions,
    PartitionList,
    UpdatePartition,
)

__all__ = ["decide_list_partitions", "decide_update_partition"]


@command(UpdatePartition, permission=Permission.OPERATOR)
def decide_update_partition(
    state: State, request: UpdatePartition, context: Context
) -> Decision | Rejection:
    """Change what a partition is, or whether it takes and starts jobs."""
    row = state.partitions.get(request.partition)
    if row is None:
        return _unknown(request.partition)
    judged = _judged(state, row.block, request.changes)
    if isinstance(judged, Rejection):
        return judged
    block, fields = judged
    present = fields.get("state", request.state or row.state)
    block = replace(block, state=row.block.state)
    events: list[Event] = _no_other_default(state, block)
    if (block, present) != (row.block, row.state):
        events.append(PartitionUpdated(block, present))
    return Decision(tuple(events), Done())


@command(CreatePartition, permission=Permission.OPERATOR)
def decide_create_partition(
    state: State, request: CreatePartition, context: Context
) -> Decision | Rejection:
    """Make a partition."""
    name = request.partition
    if not is_name(name) or name.upper() == "DEFAULT":
        return Rejection(
            "unknown-partition", f"a partition's name takes {NAME_GRAMMAR}; nothing was changed"
        )
    if name in state.partitions:
        return Rejection("already-exists", f"there is a partition {name!r}; nothing was changed")
    judged = _judged(state, fresh_partition(name), request.changes)
    if isinstance(judged, Rejection):
        return judged
    block, _ = judged
    return Decision((*_no_other_default(state, block), PartitionCreated(block)), Done())


@command(DeletePartition, permission=Permission.OPERATOR)
def decide_delete_partition(
    state: State, request: DeletePartition, context: Context
) -> Decision | Rejection:
    """Take a partition away."""
    name = request.partition
    if name not in state.partitions:
        return _unknown(name)
    runs = state.runs.rows
    for job_id, job in state.jobs.rows.items():
        if name in job.spec.partitions and runs[job_id].phase is not Phase.ENDED:
            return Rejection("partition-in-use", f"job {job_id} is in it; nothing was changed")
    return Decision((PartitionDeleted(name),), Done())


def _unknown(name: str) -> Rejection:
    return Rejection("unknown-partition", f"no partition is named {name!r}; nothing was changed")


def _judged(
    state: State, block: PartitionBlock, changes: tuple[SlurmParameter, ...]
) -> tuple[PartitionBlock, dict[str, Any]] | Rejection:
    """Return a partition after changes, and what they set; or why it cannot be so."""
    try:
        changed, fields = changed_partition(block, changes)
        nodes = _nodes(state, changed.nodes) if "nodes" in fields else changed.nodes
    except (BadPartition, ValueError) as error:
        return Rejection("invalid-value", f"{error}; nothing was changed")
    if nodes is None:
        return Rejection(
            "unknown-node", f"{changed.nodes!r} has nodes that are not there; nothing was changed"
        )
    changed = replace(changed, nodes=nodes)
    return _contradiction(state, changed) or (changed, fields)


def _nodes(state: State, text: str) -> str | None:
    """Return a partition's nodes as a host list; None when one of them is not configured."""
    if text.upper() == "ALL":
        return format_hostlist(node_names(state))
    names = parse_hostlist(text) if text else ()
    if any(state.block_of_node.key(name) is None for name in names):
        return None
    return format_hostlist(names)


def _contradiction(state: State, block: PartitionBlock) -> Rejection | None:
    """Return why a partition cannot be as it would be, or None."""
    if block.alternate and PartitionName(block.alternate) not in state.partitions:
        return _unknown(block.alternate)
    if block.qos and block.qos not in state.qos:
        return Rejection("invalid-qos", f"there is no QOS {block.qos!r}; nothing was changed")
    for least, most, words in (
        (block.default_time_s, block.max_time_s, "a default time limit above its longest"),
        (block.nodes_min, block.nodes_max, "a smallest number of nodes above its largest"),
    ):
        if least is not None and most is not None and least > most:
            return Rejection("invalid-value", f"it would have {words}; nothing was changed")
    return None


def _no_other_default(state: State, block: PartitionBlock) -> list[Event]:
    """Return what takes it from the former default, when this one becomes it."""
    if not block.default:
        return []
    return [
        PartitionUpdated(replace(row.block, default=False), row.state)
        for name, row in ((name, state.partitions[name]) for name in state.partitions.sorted_keys())
        if row.block.default and name != block.name
    ]


@command(ListPartitions, permission=Permission.USER, reads=True)
def decide_list_partitions(state: State, request: ListPartitions, context: Context) -> Decision:
    """Show every partition."""
    return Decision((), PartitionList(partition_infos(state)))
