"""The guard against hidden clocks catches them, and leaves everything as it was."""

from __future__ import annotations

import os
import random
import socket
import time
from collections.abc import Callable

import pytest

from spur.testing.purity import Impure, no_clock_chance_or_network


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: time.time_ns(), "time.time_ns"),
        (lambda: time.sleep(0), "time.sleep"),
        (lambda: random.random(), "random.random"),
        (lambda: os.urandom(1), "os.urandom"),
        (lambda: socket.socket(), "socket.socket"),
    ],
)
def test_guard_catches_a_call(call: Callable[[], object], name: str) -> None:
    """An arm of apply reads the clock after all: the test of that arm fails and says where."""
    with no_clock_chance_or_network(), pytest.raises(Impure, match=name):
        call()


def test_guard_is_gone_afterwards() -> None:
    """The next test needs a clock."""
    before = time.time_ns
    with no_clock_chance_or_network(), pytest.raises(RuntimeError):
        raise RuntimeError
    assert time.time_ns is before
    assert time.time_ns() > 0


def test_guard_leaves_seeded_chance_alone() -> None:
    """A test makes its data from a seed."""
    with no_clock_chance_or_network():
        assert random.Random(1).randrange(100) == random.Random(1).randrange(100)
