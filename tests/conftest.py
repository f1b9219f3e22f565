"""Which tests share a process when they run in several: `ops/test` runs them in two lanes.

A file stays together, for the sake of what it starts once; so do files that share a cluster or a
range of ports. What starts processes and mostly waits goes first; what computes fills the gaps.
"""

from __future__ import annotations

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

_TOGETHER = ("tests/e2e/real/", "tests/contract/log/")
"""Directories whose files share a cluster, or ports."""

_FIRST = ("tests/e2e/",)


class Lanes(LoadScopeScheduling):  # type: ignore[misc]  # xdist ships no types
    """Deals files, or what stays together, to the processes in the order of their names."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return next((each for each in _TOGETHER if path.startswith(each)), path)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Lanes:
    """Let `-n` deal the tests as said above."""
    return Lanes(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put those that wait before those that compute."""
    for item in items:
        if " at 0x" in item.name:
            raise pytest.UsageError(f"{item.name}: a test's name must be the same in each process")
    items.sort(key=lambda item: not item.nodeid.startswith(_FIRST))
