"""reframe-hpc, which asks sacct with ends as seconds, and squeue for reasons."""

from __future__ import annotations

from spur.testing.clients import Client


def test_checks_run_as_jobs(client: Client) -> None:
    """A check passes, one fails by its exit code, and one because its job is cancelled."""
    seen = client("reframe-hpc")
    assert seen["exit"] == 1
    assert seen["results"] == {"Good": "pass", "Bad": "fail", "Killed": "fail"}
    assert seen["phases"]["Bad"] == "sanity"
    assert seen["nodes"] == 1
