"""Each planted fault is found: by the seeds that CI runs, or by a script made for it."""

from __future__ import annotations

import pytest

from tests.simulation.planted import FAULTS, SEEDS_MAX


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", FAULTS)
def test_planted_fault_is_found(name: str) -> None:
    """Somebody makes the mistake that `tests.simulation.planted` describes under this name."""
    assert FAULTS[name].found_by(SEEDS_MAX)
