"""What the verdict of a run of real controllers takes for right, and what not."""

from __future__ import annotations

import pytest

from spur.testing.live.load import FIRST_VALUES, register
from spur.testing.simulation.linearizability import UNKNOWN, Operation, is_linearizable

BOTH = (7, 0)


def history(*operations: tuple[float, float, object, object]) -> list[Operation]:
    """Return operations on one register: called, returned, action, result."""
    return [
        Operation(called, returned, 1, action, result)
        for called, returned, action, result in operations
    ]


def is_right(*operations: tuple[float, float, object, object]) -> bool:
    """Judge a history."""
    return is_linearizable(history(*operations), FIRST_VALUES, register)


def test_register_holds_a_priority_and_a_hold() -> None:
    """One client sets the priority, another the hold; a reader sees both."""
    assert is_right(
        (0, 1, None, FIRST_VALUES),
        (2, 3, ("nice", 7), "written"),
        (4, 5, ("hold", 0), "written"),
        (6, 7, None, (7, 0)),
    )


def test_acknowledged_write_that_is_gone_is_found() -> None:
    """A priority was acknowledged, and a later read shows the one before."""
    assert not is_right(
        (0, 1, ("nice", 7), "written"),
        (2, 3, ("hold", 0), "written"),
        (4, 5, None, (FIRST_VALUES[0], 0)),
    )


@pytest.mark.parametrize("seen", [FIRST_VALUES, (7, FIRST_VALUES[1])])
def test_unknown_write_may_have_happened_or_not(seen: tuple[int, int]) -> None:
    """A client gave up on a write: both are right, but not first one and then the other."""
    unknown = (0.0, UNKNOWN, ("nice", 7), None)
    assert is_right(unknown, (1, 2, None, seen), (3, 4, None, seen))
    assert not is_right(unknown, (1, 2, None, (7, FIRST_VALUES[1])), (3, 4, None, FIRST_VALUES))
