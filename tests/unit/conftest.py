"""Unit tests of the pure rooms run without a clock, a random source and a network."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from spur.testing.purity import no_clock_chance_or_network

PURE_ROOMS = ("values", "wire", "slurm", "events", "projections", "commands")


@pytest.fixture(autouse=True)
def pure_rooms_stay_pure(request: pytest.FixtureRequest) -> Iterator[None]:
    """Guard each test that lies in the folder of a pure room.

    Hypothesis reads the clock to bound its own search; its tests go without.
    """
    is_search = getattr(request.function, "is_hypothesis_test", False)
    if request.path.parent.name not in PURE_ROOMS or is_search:
        yield
        return
    with no_clock_chance_or_network():
        yield
