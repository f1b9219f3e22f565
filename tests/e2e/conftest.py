"""Clusters with a past, made once and copied for each test that spoils one."""

from __future__ import annotations

import pytest

from spur.testing.past import Past, grown


@pytest.fixture(scope="session")
def lone_past(tmp_path_factory: pytest.TempPathFactory) -> Past:
    """Return a single controller with a past, stopped."""
    return grown(tmp_path_factory.mktemp("lone"), 1, 24000)


@pytest.fixture(scope="session")
def past(tmp_path_factory: pytest.TempPathFactory) -> Past:
    """Return three controllers with a past, stopped."""
    return grown(tmp_path_factory.mktemp("three"), 3, 24010)
