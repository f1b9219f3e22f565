"""psij-python, which polls squeue for ids, states and reasons in three columns."""

from __future__ import annotations

from spur.testing.clients import Client


def test_jobs_of_the_slurm_executor(client: Client) -> None:
    """A job that prints, one that fails with 3, and one that is cancelled."""
    assert client("psij-python") == {
        "states": ["COMPLETED", "FAILED", "ACTIVE", "CANCELED"],
        "exit": 3,
        "said": "42\n",
    }
