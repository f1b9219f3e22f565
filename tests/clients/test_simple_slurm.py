"""simple-slurm, which reads squeue as comma-separated values with quotes."""

from __future__ import annotations

from spur.testing.clients import Client


def test_scripts_run_as_jobs(client: Client) -> None:
    """A script that prints, a step that fails, and a job that is cancelled."""
    assert client("simple-slurm") == {
        "said": ["42", "1"],
        "exit": 3,
        "running": {"NAME": "simple", "ST": "R", "NODES": "1", "CPUS": "1"},
        "gone": True,
    }
