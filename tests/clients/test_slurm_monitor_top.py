"""slurm-monitor-top, a viewer that reads squeue --Format and sinfo with bars between fields."""

from __future__ import annotations

from spur.testing.clients import Client


def test_the_viewer_sees_jobs_and_nodes(client: Client) -> None:
    """A job that holds GPUs is seen while it runs, and gone when it was cancelled."""
    assert client("slurm-monitor-top") == {
        "running": "RUNNING",
        "job": ["gpu", "seen", "1", "2", "g1"],
        "gpus": True,
        "node": ["mix", "8", "2", "6"],
        "detail": "RUNNING",
        "snapshot": [3, True],
        "killed": None,
        "failed": None,
    }
