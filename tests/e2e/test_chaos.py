"""A whole cluster on hosts of its own while jobs run and everything breaks: see `ops/chaos`."""

from __future__ import annotations

from pathlib import Path

import pytest

from spur.testing.chaos.main import go_through
from spur.testing.chaos.plan import draw
from spur.testing.live.hosts import can_make_hosts

JOBS = 100
SECONDS = 12.0


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_jobs_go_through_everything_that_breaks(tmp_path: Path, seed: int) -> None:
    """Controllers, agents and links break at random while users submit, cancel, hold and look.

    Each job ends with one record a run, none ran twice, and nobody saw what can't be.
    """
    if not can_make_hosts():
        pytest.skip("takes root and ip-netns(8): makes network namespaces")
    tmp_path.chmod(0o755)
    run = go_through(draw(seed, jobs=JOBS, seconds=SECONDS), tmp_path)
    assert run.wrong == ""
    assert run.verdict is not None
    assert run.verdict.jobs == JOBS
    assert run.verdict.began > JOBS // 2
    assert run.strikes.total() > 8
