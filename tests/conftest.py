"""Which tests share a process when they run in several: `ops/test` runs them in two lanes.

A file stays together, for the sake of what it starts once; so do files that share a cluster or a
range of ports. What starts processes and mostly waits goes first; what computes fills the gaps.
"""

from __future__ import annotations

import pytest

_TOGETHER = ("tests/e2e/real/", "tests/contract/log/")
"""Directories whose files share a cluster, or ports."""

_PASTS = {"lone_past", "past"}
"""Clusters that several files copy."""

_FIRST = ("tests/e2e/",)


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each test its group, and put those that wait before those that compute."""
    for item in items:
        if " at 0x" in item.name:
            raise pytest.UsageError(f"{item.name}: a test's name must be the same in each process")
        item.add_marker(pytest.mark.xdist_group(_group_of(item)))
    items.sort(key=lambda item: not item.nodeid.startswith(_FIRST))


def _group_of(item: pytest.Item) -> str:
    if _PASTS.intersection(getattr(item, "fixturenames", ())):
        return "past"
    path = item.nodeid.partition("::")[0]
    return next((each for each in _TOGETHER if path.startswith(each)), path)
