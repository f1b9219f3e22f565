"""submitit, which asks sacct for the states of base ids, arrays among them."""

from __future__ import annotations

from spur.testing.clients import Client


def test_functions_run_as_jobs(client: Client) -> None:
    """Three squares as an array, a division by zero, and a sleep that is cancelled."""
    assert client("submitit") == {
        "squares": [4, 9, 16],
        "error": "FailedJobError",
        "says": True,
        "failed": "FAILED",
        "running": "RUNNING",
        "killed": "CANCELLED",
    }
