"""batchspawner, which reads squeue's state and batch host of one job."""

from __future__ import annotations

from spur.testing.clients import Client


def test_servers_are_jobs(client: Client) -> None:
    """A server runs on a node and is stopped; two others end, one of them badly."""
    seen = client("batchspawner")
    assert seen.pop("running") in ([True, "c1"], [True, "c2"])
    assert seen == {"ended": [True, True], "said": True, "killed": True}
