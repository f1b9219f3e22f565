"""Commands about partitions."""

from __future__ import annotations

from spur.commands.decide import Context, Decision, command
from spur.commands.permissions import Permission
from spur.events.partitions import PartitionUpdated
from spur.projections.nodeviews import partition_infos
from spur.projections.state import State
from spur.values.errors import Rejection
from spur.wire.declare import Done
from spur.wire.partitions import ListPartitions, PartitionList, UpdatePartition

__all__ = ["decide_list_partitions", "decide_update_partition"]


@command(UpdatePartition, permission=Permission.OPERATOR)
def decide_update_partition(
    state: State, request: UpdatePartition, context: Context
) -> Decision | Rejection:
    """Change whether a partition takes and starts jobs."""
    row = state.partitions.get(request.partition)
    if row is None:
        return Rejection(
            "unknown-partition",
            f"no partition is named {request.partition!r}; nothing was changed",
        )
    if row.state is request.state:
        return Decision((), Done())
    return Decision((PartitionUpdated(request.partition, request.state),), Done())


@command(ListPartitions, permission=Permission.USER, reads=True)
def decide_list_partitions(state: State, request: ListPartitions, context: Context) -> Decision:
    """Show every partition."""
    return Decision((), PartitionList(partition_infos(state)))
