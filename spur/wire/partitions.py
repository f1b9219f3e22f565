"""Requests about partitions, and rows of partitions."""

from __future__ import annotations

import msgspec

from spur.values.config import PartitionBlock, PartitionState
from spur.values.ids import PartitionName
from spur.wire.declare import Answer, Request, answer, request

__all__ = ["ListPartitions", "PartitionInfo", "PartitionList", "UpdatePartition"]


@request
class UpdatePartition(Request, frozen=True, tag="partition.update"):
    """Change whether a partition takes and starts jobs, until the next change of its file.

    Source: scontrol(1) update PartitionName.
    """

    partition: PartitionName
    state: PartitionState


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
