"""parsl, whose provider asks sacct for single states and whose blocks use srun."""

from __future__ import annotations

from spur.testing.clients import Client


def test_functions_run_in_blocks(client: Client) -> None:
    """A product and an exception from a worker; a block that fails, and one that is cancelled."""
    assert client("parsl") == {
        "product": 42,
        "error": "ValueError",
        "failed": "FAILED",
        "running": "RUNNING",
        "killed": "CANCELLED",
    }
