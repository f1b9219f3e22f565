"""aiida-core, which reads squeue in fourteen fields, and all that sacct has."""

from __future__ import annotations

from spur.testing.clients import Client


def test_the_scheduler_plugin(client: Client) -> None:
    """A job that prints, one that fails, and one that is killed, with their detailed records."""
    seen = client("aiida-core")
    assert seen["running"] == "running"
    assert seen["was_killed"]
    assert seen["said"] == "42\n"
    assert seen["ended"] == [True, True, True]
    assert seen["details"] == [["COMPLETED", "0:0"], ["FAILED", "1:0"], ["CANCELLED", "0:0"]]
