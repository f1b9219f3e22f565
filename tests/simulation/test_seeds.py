"""Seeds of the simulated cluster: each is a whole run with its own troubles."""

import pytest

from spur.testing.simulation.run import run_seed


@pytest.mark.parametrize("seed", range(1, 11))
def test_seed_finds_no_fault(seed: int) -> None:
    """A cluster is cut, killed and delayed for a while, then healed, and must have lost nothing."""
    assert run_seed(seed).fault == ""


def test_same_seed_gives_the_same_run() -> None:
    """Somebody replays a seed that failed elsewhere."""
    assert run_seed(3) == run_seed(3)
