"""executorlib with pysqa, which reads squeue in five fields, the directory among them."""

from __future__ import annotations

from spur.testing.clients import Client


def test_functions_run_as_jobs(client: Client) -> None:
    """A product and an exception; a job that fails and one that is deleted leave the queue."""
    assert client("executorlib") == {
        "product": 42,
        "error": "ValueError",
        "failed": None,
        "running": "running",
        "killed": None,
    }
