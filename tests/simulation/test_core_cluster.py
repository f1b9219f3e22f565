"""Runs of the core's simulation without any fault planted: nothing may be found."""

from __future__ import annotations

import pytest

from spur.testing.simulation.core_cluster import STORM, CoreSimulation

SEEDS_PER_CASE = 25
CASES = 8


@pytest.mark.parametrize("case", range(CASES))
def test_cores_keep_their_promises_in_any_weather(case: int) -> None:
    """A few hundred small clusters live through everything that can go wrong, and recover."""
    elections = 0
    committed = 0
    for seed in range(case * SEEDS_PER_CASE, (case + 1) * SEEDS_PER_CASE):
        simulation = CoreSimulation(seed)
        simulation.run()
        elections += simulation.elections
        committed += len(simulation.committed_entries)
    # A simulation in which nothing happens would pass every check.
    assert elections > 2 * SEEDS_PER_CASE
    assert committed > 40 * SEEDS_PER_CASE


def test_cores_keep_their_promises_in_storms() -> None:
    """Elections follow each other without a pause, votes and messages cross their terms."""
    for seed in range(50):
        CoreSimulation(seed, weather=STORM).run()


def test_simulation_of_a_seed_is_always_the_same() -> None:
    """A run that found something must find it again under the debugger."""
    runs = []
    for _ in range(2):
        simulation = CoreSimulation(7)
        simulation.run()
        runs.append((simulation.time, simulation.steps, simulation.committed_entries))
    assert runs[0] == runs[1]


def test_simulations_meet_everything_they_are_meant_to() -> None:
    """Snapshots, changes of members, reads and elections all happen within a few dozen seeds."""
    seen = {"installs": 0, "changes": 0, "reads": 0, "elections": 0}
    for seed in range(40):
        simulation = CoreSimulation(seed)
        simulation.run()
        for name in seen:
            seen[name] += getattr(simulation, name)
    assert all(count >= 10 for count in seen.values()), seen
