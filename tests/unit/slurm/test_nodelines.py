"""What sinfo sorts by."""

from __future__ import annotations

from spur.slurm.nodelines import AVAILABLE
from spur.values.config import PartitionState


def test_every_state_of_a_partition_has_its_place() -> None:
    """`sinfo -S a` where a partition is INACTIVE."""
    assert sorted(AVAILABLE) == sorted(state.value.lower() for state in PartitionState)
