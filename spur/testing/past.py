"""Clusters with a past, for tests that spoil a copy of one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from spur.testing.controllers import ControllerProcess, Controllers
from spur.testing.errands import configure, info, submit_many, until

__all__ = ["SEGMENT_ENTRIES", "SETTINGS", "Past", "grown"]

SETTINGS = """\
tick_ms = 10
snapshot_entries = 100
"""
"""Quick to elect, and quick to write snapshots."""

SEGMENT_ENTRIES = 200
"""Entries of a ledger segment, so that a few hundred submissions fill one."""


@dataclass(frozen=True)
class Past:
    """A stopped cluster, and what it had acknowledged."""

    controllers: Controllers
    jobs: dict[str, int]
    """Ids by name."""

    def copy(self, directory: Path) -> Past:
        """Return a copy to spoil."""
        return Past(self.controllers.copy(directory), self.jobs)


def _segments(member: ControllerProcess) -> int:
    """Return how many segments of the write-ahead log are in use."""
    return len(list((member.directory / "wal").glob("*.wal")))


def _live(controllers: Controllers, number: int, *, is_first: bool = False) -> dict[str, int]:
    """Run a cluster while jobs are submitted, until all have a snapshot behind them."""
    controllers.start()
    with controllers.blocking() as client:
        if is_first:
            configure(client)
        made = submit_many(client, number)
        last = client.position[1]
    for member in controllers.members:
        until(
            f"{member.directory} has a snapshot and has let the log before it go",
            lambda member=member: (  # type: ignore[misc]  # a lambda with a default
                info(controllers, member).snapshot_index > last - 100
                and _segments(member) == 1
                and not list((member.directory / "snapshots").glob("*.writing"))
            ),
        )
    return made


def grown(directory: Path, count: int, first_port: int) -> Past:
    """Return a cluster that has run three times.

    Its ledger has a sealed segment and an open one, of which the write-ahead log covers only the
    end; there are two snapshots.
    """
    controllers = Controllers.create(
        directory, count, first_port=first_port, settings=SETTINGS, segment_entries=SEGMENT_ENTRIES
    )
    try:
        made = _live(controllers, 250, is_first=True)
        controllers.stop()
        made |= _live(controllers, 110)
        controllers.stop()
        controllers.start()
        with controllers.blocking() as client:
            made |= submit_many(client, 7)
        for member in controllers.members:
            sealed = member.directory / "ledger" / "000000000001.sealed"
            until(f"{sealed} is there", sealed.exists)
    finally:
        controllers.stop()
    return Past(controllers, made)
