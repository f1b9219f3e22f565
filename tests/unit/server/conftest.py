"""What the tests of this room share."""

from __future__ import annotations

from functools import partial

import pytest

from spur.testing.loops import LOOPS, Run, run_on_loop


@pytest.fixture(name="run", params=LOOPS)
def run_on_each_loop(request: pytest.FixtureRequest) -> Run:
    """Return what runs a test's coroutine, on each kind of loop in turn."""
    return partial(run_on_loop, request.param)
