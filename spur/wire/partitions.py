"""Requests about partitions, and rows of partitions."""

from __future__ import annotations

import msgspec

from spur.values.config import PartitionBlock, PartitionState, SlurmParameter
from spur.values.ids import PartitionName
from spur.wire.declare import Answer, Request, answer, request

__all__ = [
    "CreatePartition",
    "DeletePartition",
    "ListPartitions",
    "PartitionInfo",
    "PartitionList",
    "UpdatePartition",
]


@request
class UpdatePartition(Request, frozen=True, tag="partition.update"):
    """Change a partition until the next change of its file.

    Source: scontrol(1) update PartitionName.
    """

    partition: PartitionName
    state: PartitionState | None = None
    """None leaves it as it is, unless a change says otherwise."""
    changes: tuple[SlurmParameter, ...] = ()
    """What is set, by the keys' full names, as `read_partition` returns them."""


@request
class CreatePartition(Request, frozen=True, tag="partition.create"):
    """Make a partition, which the next change of the files takes away again."""

    partition: PartitionName
    changes: tuple[SlurmParameter, ...]


@request
class DeletePartition(Request, frozen=True, tag="partition.delete"):
    """Take away a partition that no job is in, until the next change of the files."""

    partition: PartitionName


@request
class ListPartitions(Request, frozen=True, tag="partition.list"):
    """Ask for every partition."""


class PartitionInfo(
    msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True
):
    """A partition, as people are shown it."""

    name: PartitionName
    state: PartitionState
    default: bool
    nodes: str
    node_count: int
    default_time_s: int | None
    max_time_s: int | None
    block: PartitionBlock
    """All that is configured of it; `state` above is what holds now."""
    preempt_mode: str = ""
    """Its own, or else the cluster's; in Slurm's words."""


@answer
class PartitionList(Answer, frozen=True, tag="partition.rows"):
    """Partitions in the order of the file."""

    partitions: tuple[PartitionInfo, ...]
