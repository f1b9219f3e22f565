"""What happens to partitions, besides their configuration."""

from __future__ import annotations

from spur.events.declare import Event, event
from spur.values.config import PartitionBlock, PartitionState
from spur.values.ids import PartitionName

__all__ = ["PartitionCreated", "PartitionDeleted", "PartitionUpdated"]


@event("partition.created")
class PartitionCreated(Event, frozen=True):
    """An operator made a partition that no file has; the next configuration takes it away."""

    block: PartitionBlock


@event("partition.updated")
class PartitionUpdated(Event, frozen=True):
    """An operator changed a partition, until the next configuration."""

    block: PartitionBlock
    """All of it as it is now; its state is that of the file."""
    state: PartitionState


@event("partition.deleted")
class PartitionDeleted(Event, frozen=True):
    """An operator took a partition away, until the next configuration."""

    partition: PartitionName
