"""Is there one order of all operations that explains what every client saw?

A depth-first search over the orders that real time allows, with the states already tried
remembered, for one object at a time (objects do not share operations, so a history is
linearizable when each object's part is). An operation of unknown outcome may take effect at any
time after its call, or never.

Source: Wing and Gong, "Testing and verifying concurrent objects"; Lowe, "Testing for
linearizability".
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

__all__ = ["UNKNOWN", "Operation", "is_linearizable"]

UNKNOWN = float("inf")
"""The return time of an operation whose outcome its client never learnt."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One call as its client saw it."""

    called: float
    returned: float
    """`UNKNOWN` when the client gave up."""
    key: Hashable
    """The object it touches."""
    action: Hashable
    result: Hashable
    """What the client was told; meaningless when the outcome is unknown."""


Step = Callable[[Hashable, Hashable], tuple[Hashable, Hashable]]
"""(state, action) -> (next state, result)."""


def is_linearizable(history: Sequence[Operation], initial: Hashable, step: Step) -> bool:
    """Tell whether the history is linearizable for objects that start at `initial`."""
    by_key: dict[Hashable, list[Operation]] = {}
    for operation in history:
        by_key.setdefault(operation.key, []).append(operation)
    return all(_Search(part, initial, step).run() for part in by_key.values())


class _Search:
    """The search over one object's operations.

    `_next` and `_previous` link the calls and returns in order of time; taking an operation
    removes both its events, so the head of the list always shows what may come next.
    """

    def __init__(self, history: Sequence[Operation], initial: Hashable, step: Step) -> None:
        self._history = sorted(history, key=lambda operation: operation.called)
        self._step = step
        self._state = initial
        events = []
        for number, operation in enumerate(self._history):
            events.append((operation.called, 0, number))
            events.append((operation.returned, 1, number))
        events.sort()
        self._events = events
        self._head = head = len(events)
        self._next = [*range(1, head + 1), 0]
        self._previous = [head, *range(head)]
        self._return_at = {
            number: place for place, (_, kind, number) in enumerate(events) if kind == 1
        }

    def run(self) -> bool:
        """Search; memory and time are bounded by the remembered (taken, state) pairs."""
        taken, seen = 0, set()
        stack: list[tuple[int, int, Hashable, int]] = []
        place = self._next[self._head]
        while self._next[self._head] != self._head:
            kind, number = (1, -1) if place == self._head else self._events[place][1:]
            if kind == 0:
                after = self._take(number)
                remembered = (taken | 1 << number, after)
                if after is not _REFUSED and remembered not in seen:
                    seen.add(remembered)
                    stack.append((place, number, self._state, taken))
                    self._state, taken = after, taken | 1 << number
                    self._unlink(place)
                    self._unlink(self._return_at[number])
                    place = self._next[self._head]
                else:
                    place = self._next[place]
            elif number >= 0 and self._history[number].returned == UNKNOWN:
                return True
            elif not stack:
                return False
            else:
                place, number, self._state, taken = stack.pop()
                self._relink(self._return_at[number])
                self._relink(place)
                place = self._next[place]
        return True

    def _take(self, number: int) -> Hashable:
        operation = self._history[number]
        state, result = self._step(self._state, operation.action)
        if operation.returned != UNKNOWN and result != operation.result:
            return _REFUSED
        return state

    def _unlink(self, place: int) -> None:
        self._next[self._previous[place]] = self._next[place]
        self._previous[self._next[place]] = self._previous[place]

    def _relink(self, place: int) -> None:
        self._next[self._previous[place]] = place
        self._previous[self._next[place]] = place


_REFUSED = object()
