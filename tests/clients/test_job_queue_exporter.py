"""job-queue-exporter, which reads squeue in twelve fields with commas between them."""

from __future__ import annotations

from spur.testing.clients import Client


def test_states_are_counted(client: Client) -> None:
    """A job that runs and one that failed are scraped, and then that the first was cancelled."""
    seen = client("job-queue-exporter")
    assert {"RUNNING", "FAILED"} <= set(seen["first"])
    assert "CANCELLED" in seen["then"]
