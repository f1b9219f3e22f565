"""Three controllers on hosts of their own, through cuts, kills and freezes: see `ops/nemesis`."""

from __future__ import annotations

from pathlib import Path

import pytest

from spur.testing.live.hosts import can_make_hosts
from spur.testing.live.run import run

SECONDS = 20.0


def test_cluster_goes_through_an_ordeal_and_loses_nothing(tmp_path: Path) -> None:
    """Links break in one direction or both, controllers are killed, frozen and restarted.

    Clients work all the while. In the end everything heals, and what they saw has one explanation.
    """
    if not can_make_hosts():
        pytest.skip("takes root and ip-netns(8): makes network namespaces")
    ordeal = run(tmp_path, seconds=SECONDS, seed=4)
    assert ordeal.nemesis.strikes > 3
    assert ordeal.load.counts["answered"] > 50
    assert len(ordeal.load.acknowledged) > 10
