"""The checker of client histories: it must accept what could be, and nothing else."""

import itertools
import random
from collections.abc import Hashable

import pytest

from spur.testing.simulation.linearizability import UNKNOWN, Operation, is_linearizable


def register(state: Hashable, action: Hashable) -> tuple[Hashable, Hashable]:
    """A register: ("w", v) writes and answers None, ("r",) answers what it holds."""
    assert isinstance(action, tuple)
    return (action[1], None) if action[0] == "w" else (state, state)


def write(called: float, returned: float, value: int) -> Operation:
    return Operation(called, returned, "x", ("w", value), None)


def read(called: float, returned: float, value: int | None) -> Operation:
    return Operation(called, returned, "x", ("r",), value)


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        pytest.param([write(0, 1, 1), read(2, 3, 1)], True, id="read after write"),
        pytest.param([write(0, 1, 1), read(2, 3, None)], False, id="stale read"),
        pytest.param([write(0, 5, 1), read(1, 2, None)], True, id="read before it took effect"),
        pytest.param(
            [write(0, 5, 1), read(1, 2, 1), read(3, 4, None)], False, id="value seen, then gone"
        ),
        pytest.param(
            [write(0, UNKNOWN, 1), read(2, 3, None), read(9, 10, 1)], True, id="unknown, late"
        ),
        pytest.param([write(0, UNKNOWN, 1), read(2, 3, None)], True, id="unknown, never"),
        pytest.param(
            [write(0, UNKNOWN, 1), read(2, 3, 1), read(4, 5, None)], False, id="unknown, undone"
        ),
    ],
)
def test_checker_judges_a_register(history: list[Operation], expected: bool) -> None:
    """Small histories whose answer a person can see."""
    assert is_linearizable(history, None, register) is expected


def brute_force(history: list[Operation]) -> bool:
    """Try every order of every subset that holds all operations with a known outcome."""
    known = [operation for operation in history if operation.returned != UNKNOWN]
    unknown = [operation for operation in history if operation.returned == UNKNOWN]
    for size in range(len(unknown) + 1):
        for some in itertools.combinations(unknown, size):
            for order in itertools.permutations([*known, *some]):
                if _explains(order):
                    return True
    return False


def _explains(order: tuple[Operation, ...]) -> bool:
    state: Hashable = None
    for place, operation in enumerate(order):
        if any(later.returned < operation.called for later in order[place + 1 :]):
            return False
        state, result = register(state, operation.action)
        if operation.returned != UNKNOWN and result != operation.result:
            return False
    return True


@pytest.mark.parametrize("seed", range(150))
def test_checker_agrees_with_trying_every_order(seed: int) -> None:
    """Random histories of up to six operations, judged by brute force as well."""
    rng = random.Random(seed)
    history = []
    for _ in range(rng.randrange(2, 7)):
        called = rng.randrange(10)
        returned = UNKNOWN if rng.random() < 0.2 else called + rng.randrange(1, 6)
        value = rng.randrange(2)
        history.append(
            write(called, returned, value) if rng.random() < 0.5 else read(called, returned, value)
        )
    assert is_linearizable(history, None, register) is brute_force(history)
