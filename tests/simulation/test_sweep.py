"""What is left behind of a seed that found a fault."""

from __future__ import annotations

from pathlib import Path

from spur.testing.simulation.run import run_seed
from spur.testing.simulation.sweep import Sweep, replay_command, save_story
from tests.simulation.planted import FAULTS

FAULT = FAULTS["answered-before-the-commit"]
SEED = FAULT.seeds[0]


def test_story_of_a_faulty_seed_is_saved(tmp_path: Path) -> None:
    """Somebody opens the file that CI names: fault, command, plan, and all that led to it."""
    with FAULT.planted():
        fault = run_seed(SEED).fault
        path = save_story(SEED, tmp_path / "out")
    lines = path.read_text().splitlines()
    assert path.name == f"{SEED}.log"
    assert lines[:2] == [f"seed {SEED}: {fault}", replay_command(SEED)]
    assert "plan" in lines[2]
    assert any("sends" in line for line in lines)
    assert any("finds a violation" in line for line in lines)


def test_sweep_counts_the_faulty_seeds() -> None:
    """Somebody reads the last line of a sweep."""
    total = Sweep()
    with FAULT.planted():
        total.add(run_seed(SEED))
    assert [result.seed for result in total.faulty] == [SEED]
    assert total.summary().startswith("1 seeds, 1 with a fault; ")
