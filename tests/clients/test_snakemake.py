"""snakemake with its slurm executor, which asks squeue by name and submits with --wrap."""

from __future__ import annotations

from spur.testing.clients import Client


def test_rules_run_as_jobs(client: Client) -> None:
    """A rule makes its file; one fails, and one is cancelled."""
    assert client("snakemake") == {
        "exit": 1,
        "said": "42\n",
        "failed": True,
        "cancelled": True,
    }
