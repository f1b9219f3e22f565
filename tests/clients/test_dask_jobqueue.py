"""dask-jobqueue, which takes the first digits of what sbatch says for the job's number."""

from __future__ import annotations

from spur.testing.clients import Client


def test_workers_are_jobs(client: Client) -> None:
    """A task's result and exception, a worker whose job is cancelled, and workers let go."""
    assert client("dask-jobqueue") == {
        "product": 36,
        "in_job": True,
        "error": "ValueError",
        "killed": "KilledWorker",
        "left": 0,
    }
