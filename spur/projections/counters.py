"""Numbers that only rise, each under a name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spur.projections.tables import Row

if TYPE_CHECKING:
    from spur.projections.state import State

__all__ = ["JOB_ID_COUNTER", "REQUEST_FLOOR", "CounterRow", "counter", "raise_counter"]

JOB_ID_COUNTER = "job-id"
"""The newest job id given out."""

REQUEST_FLOOR = "request-floor"
"""The newest index whose request was forgotten."""


class CounterRow(Row, frozen=True):
    """A number that only rises; its key is its name."""

    value: int


def counter(state: State, name: str) -> int:
    """Return a counter's value; 0 before it first rose."""
    row = state.counters.get(name)
    return 0 if row is None else row.value


def raise_counter(state: State, name: str, value: int) -> None:
    """Set a counter. Raises: ValueError when it would not rise."""
    present = counter(state, name)
    if value <= present:
        raise ValueError(f"counter {name!r} is at {present} and only rises")
    state.counters.put(name, CounterRow(value))
