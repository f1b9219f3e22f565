"""The directed scripts end quietly on the product as it is."""

from __future__ import annotations

import pytest

from tests.simulation import directed


@pytest.mark.parametrize("name", directed.__all__)
def test_script_finds_no_fault(name: str) -> None:
    """A situation that chance meets too seldom is brought about."""
    getattr(directed, name)()
