"""What -d adds to nodes and jobs."""

from __future__ import annotations

import pytest

from spur.slurm.shownode import format_indexes, used_gres
from spur.values.config import GresPool

POOLS = (
    GresPool("gpu", "a100", 2, "", "", ()),
    GresPool("shard", "", 9, "", "", ()),
    GresPool("gpu", "", 3, "", "", ()),
)


@pytest.mark.parametrize(
    ("indexes", "shown"), [([], ""), ([3], "3"), ([0, 1, 2, 5, 7, 8], "0-2,5,7-8")]
)
def test_numbers_are_put_together(indexes: list[int], shown: str) -> None:
    """Runs of numbers, as Slurm spells them."""
    assert format_indexes(indexes) == shown


@pytest.mark.parametrize(
    ("held", "zeros", "shown"),
    [
        (0, False, ""),
        (0, True, "gpu:a100:0(IDX:N/A),gpu:0(IDX:N/A)"),
        (0b00001, False, "gpu:a100:1(IDX:0)"),
        (0b10110, False, "gpu:a100:1(IDX:1),gpu:2(IDX:2,4)"),
    ],
)
def test_devices_that_are_held_are_told_by_kind(held: int, zeros: bool, shown: str) -> None:
    """Indexes go through the pools in their order."""
    assert used_gres(POOLS, held, zeros=zeros) == shown
