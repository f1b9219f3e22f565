"""What happens to partitions, besides their configuration."""

from __future__ import annotations

from spur.events.declare import Event, event
from spur.values.config import PartitionState
from spur.values.ids import PartitionName

__all__ = ["PartitionUpdated"]


@event("partition.updated")
class PartitionUpdated(Event, frozen=True):
    """An operator changed whether a partition takes and starts jobs."""

    partition: PartitionName
    state: PartitionState
