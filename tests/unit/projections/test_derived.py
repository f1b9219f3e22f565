"""What is derived from configured rows is kept as long as they stay."""

from __future__ import annotations

import pytest

from spur.projections.derived import Derived
from spur.testing.builders import SMALL_CONFIG, Cluster


def test_a_value_is_made_once_until_a_row_changes() -> None:
    """Many jobs are submitted, and then the hall is configured anew."""
    cluster = Cluster()
    cluster.configure()
    made = []

    def make() -> int:
        made.append(1)
        return len(made)

    hardware = cluster.state.of_hardware
    assert [hardware.get("key", make) for _ in range(3)] == [1, 1, 1]
    cluster.configure(SMALL_CONFIG.replace("512000", "256000"))
    assert hardware.get("key", make) == 2


def test_a_value_that_could_not_be_made_is_asked_for_again() -> None:
    """Making a value fails the first time."""
    derived = Derived()

    def fail() -> int:
        raise ValueError("no")

    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            derived.get("key", fail)
    assert derived.get("key", lambda: 3) == 3
