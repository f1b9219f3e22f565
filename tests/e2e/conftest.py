"""Clusters with a past, made once and copied for each test that spoils one."""

from __future__ import annotations

import pytest

from spur.testing.past import Past, grown


@pytest.fixture(scope="session")
def past_port(worker_id: str) -> int:
    """Return the first of the ports that are this process's own."""
    return 21600 + 20 * int(worker_id.removeprefix("gw") if worker_id != "master" else 0)


@pytest.fixture(scope="session")
def lone_past(tmp_path_factory: pytest.TempPathFactory, past_port: int) -> Past:
    """Return a single controller with a past, stopped."""
    return grown(tmp_path_factory.mktemp("lone"), 1, past_port)


@pytest.fixture(scope="session")
def past(tmp_path_factory: pytest.TempPathFactory, past_port: int) -> Past:
    """Return three controllers with a past, stopped."""
    return grown(tmp_path_factory.mktemp("three"), 3, past_port + 10)
