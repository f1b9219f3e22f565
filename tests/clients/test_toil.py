"""toil, which reads sinfo, sacct and records of scontrol, and gives limits as 0:SECONDS."""

from __future__ import annotations

from spur.testing.clients import Client


def test_a_workflow_runs_as_jobs(client: Client) -> None:
    """Two products are summed; a job raises, and one is cancelled."""
    assert client("toil") == {
        "sum": 42,
        "failed": "FailedJobsException",
        "killed": "FailedJobsException",
    }
