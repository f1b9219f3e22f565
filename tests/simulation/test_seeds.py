"""Seeds of the simulated cluster: each is a whole run with its own troubles.

A seed that fails says so with the command that runs it again; its story is in `out/SEED.log`.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from spur.testing.simulation.run import run_seed
from spur.testing.simulation.sweep import Sweep, replay_command, save_story, sweep

OUT = Path(__file__).parent / "out"

SEEDS = range(1, 301)
"""What every change must pass; `ops/sim` runs many more."""

JOBS = 2

# Each of these must happen in some runs, or the seeds prove less than they seem to.
REACHED = (
    # troubles
    *("power", "kill", "pause", "storm", "halves", "one-way", "pair", "apart", "leader-apart"),
    *("operation", "clock", "slow-disk", "full-disk", "failing-sync", "silent-node", "heal"),
    *("struck after VoteReply", "struck after Append", "struck after AppendReply"),
    *("leader-power", "leader-pause", "power lost within a job", "torn groups cut"),
    *("damage to ledger", "damage to blobs", "damage to snapshots", "ended by a disk fault"),
    # late members, and what is repaired from peers
    *("appends from the ledger", "SnapshotChunk", "snapshots installed", "snapshots written"),
    *("SegmentPart", "BlobPart"),
    # what callers hear
    *("told: not-leader", "told: ask-again", "told: disk-low", "told: clock-step"),
    *("told the state without a quorum", "refused: outcome-unknown", "refused: job-ended"),
    *("report already", "report void", "nodes given up", "effects lost with their leader"),
    # who takes part
    *("controllers added", "controllers removed", "disks lost", "change refused: wrong-state"),
    # what the log holds
    *("ClusterCheckpointed", "ClockAccepted", "JobTasksSplit", "JobRequeued", "JobRelaunched"),
    *("JobPurged", "JobHeld", "RunStopped", "NodeCutOff", "ReportVoided"),
)


@pytest.fixture(scope="module")
def swept() -> Sweep:
    """All seeds, run once."""
    return sweep(SEEDS, jobs=JOBS)


def _commit() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    found = subprocess.run(command, capture_output=True, text=True, cwd=OUT.parent, check=False)
    return found.stdout.strip() or "unknown"


@pytest.mark.timeout(1200)
def test_seeds_find_no_fault(swept: Sweep) -> None:
    """A cluster is cut, killed and damaged for a while, then healed, and must have lost nothing."""
    lines = [
        f"seed {result.seed} at commit {_commit()}: {result.fault}\n"
        f"    {replay_command(result.seed)}\n    {save_story(result.seed, OUT)}"
        for result in swept.faulty
    ]
    assert not lines, "\n".join(lines)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("path", REACHED)
def test_seeds_reach_each_path(swept: Sweep, path: str) -> None:
    """Somebody tames the simulation by accident, and would notice nothing else."""
    assert swept.runs_with[path] > 0


def test_same_seed_gives_the_same_run() -> None:
    """Somebody replays a seed that failed elsewhere."""
    assert run_seed(3, tells=True) == run_seed(3, tells=True)
