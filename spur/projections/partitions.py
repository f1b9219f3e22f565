"""Partitions: configured queues of nodes, and whether they are in use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from spur.events.partitions import PartitionCreated, PartitionDeleted, PartitionUpdated
from spur.projections.apply import At, applies
from spur.projections.invariants import invariant
from spur.projections.tables import Row, replace_rows
from spur.values.config import OverSubscribe, PartitionBlock, PartitionState
from spur.values.hostlist import parse_hostlist
from spur.values.ids import NodeName, PartitionName
from spur.values.jobspec import JobSpec, ResourceAsk, Sharing
from spur.values.states import Reason

if TYPE_CHECKING:
    from spur.projections.state import State

__all__ = [
    "Members",
    "PartitionRow",
    "configure_partitions",
    "default_partition",
    "may_share",
    "not_for",
]


class PartitionRow(Row, frozen=True):
    """A partition; its key is its name."""

    number: int
    """Its place in the file, from 0."""
    block: PartitionBlock
    state: PartitionState
    """Configured, until an operator changes it."""


class Members:
    """The partitions of each node, in the order of the file; an index of the partitions."""

    def __init__(self) -> None:
        self._numbers: dict[NodeName, dict[PartitionName, int]] = {}

    def change(
        self, key: PartitionName, old: PartitionRow | None, new: PartitionRow | None
    ) -> None:
        """Follow one partition; a change of its state alone is none of its nodes."""
        if old is not None and new is not None and old.number == new.number:
            if old.block.nodes == new.block.nodes:
                return
        for node in () if old is None else parse_hostlist(old.block.nodes):
            partitions = self._numbers[NodeName(node)]
            del partitions[key]
            if not partitions:
                del self._numbers[NodeName(node)]
        if new is not None:
            for node in parse_hostlist(new.block.nodes):
                self._numbers.setdefault(NodeName(node), {})[key] = new.number

    def fill(self, rows: Mapping[PartitionName, PartitionRow]) -> None:
        """Follow every partition at once; the index must be empty."""
        for key, row in rows.items():
            self.change(key, None, row)

    def fresh(self) -> Members:
        """Return an empty index."""
        return Members()

    def contents(self) -> object:
        """Return all that the index holds."""
        return self._numbers

    def of(self, node: NodeName) -> tuple[PartitionName, ...]:
        """Return the partitions that a node is in."""
        numbers = self._numbers.get(node, {})
        return tuple(sorted(numbers, key=numbers.__getitem__))


def default_partition(state: State) -> PartitionName | None:
    """Return where a job goes that names no partition; None when it must name one."""
    for name in state.partitions.sorted_keys():
        if state.partitions[name].block.default:
            return name
    return None


def may_share(block: PartitionBlock, ask: ResourceAsk) -> bool:
    """Return whether a job of this ask holds CPUs that other jobs may hold as well.

    Source: slurm.conf(5) OverSubscribe.
    """
    if block.jobs_per_resource_max < 2 or ask.sharing in (Sharing.EXCLUSIVE, Sharing.USER):
        return False
    if block.over_subscribe is OverSubscribe.YES:
        return ask.sharing is Sharing.OVERSUBSCRIBE
    return block.over_subscribe is OverSubscribe.FORCE


def configure_partitions(state: State, blocks: tuple[PartitionBlock, ...]) -> None:
    """Replace the partitions. One whose configured state is as before keeps its present state."""
    wanted: dict[PartitionName, PartitionRow] = {}
    for number, block in enumerate(blocks):
        former = state.partitions.get(block.name)
        keeps = former is not None and former.block.state is block.state
        present = former.state if former is not None and keeps else block.state
        wanted[block.name] = PartitionRow(number, block, present)
    replace_rows(state.partitions, wanted)


@applies(PartitionCreated)
def apply_partition_created(state: State, at: At, event: PartitionCreated) -> None:
    """Add the partition behind all others."""
    name = event.block.name
    if name in state.partitions:
        raise ValueError(f"partition {name!r} is there already")
    number = max((row.number for row in state.partitions.rows.values()), default=-1) + 1
    state.partitions.put(name, PartitionRow(number, event.block, event.block.state))


@applies(PartitionUpdated)
def apply_partition_updated(state: State, at: At, event: PartitionUpdated) -> None:
    """Change what the partition is, or its present state."""
    row = state.partitions[event.block.name]
    state.partitions.put(event.block.name, replace(row, block=event.block, state=event.state))


@applies(PartitionDeleted)
def apply_partition_deleted(state: State, at: At, event: PartitionDeleted) -> None:
    """Take the partition away."""
    state.partitions.delete(event.partition)


@invariant("partitions-have-configured-nodes")
def unknown_nodes(state: State) -> Iterator[str]:
    """A partition lists configured nodes alone."""
    for name in state.partitions.sorted_keys():
        for node in parse_hostlist(state.partitions[name].block.nodes):
            if state.block_of_node.key(node) is None:
                yield f"partition {name!r} lists node {node!r}, which is not configured"


def not_for(block: PartitionBlock, spec: JobSpec) -> Reason:
    """Return why a partition takes no job of this account or QOS; NONE when it does.

    Source: slurm.conf(5) AllowAccounts, DenyAccounts, AllowQos, DenyQos.
    """
    if _is_closed(spec.account, block.allow_accounts, block.deny_accounts):
        return Reason.ACCOUNT_NOT_ALLOWED
    if _is_closed(spec.qos, block.allow_qos, block.deny_qos):
        return Reason.QOS_NOT_ALLOWED
    return Reason.NONE


def _is_closed(name: str, allowed: tuple[str, ...], denied: tuple[str, ...]) -> bool:
    if not name:
        return False
    return name not in allowed if allowed else name in denied
