"""Invariants: what must hold of every state, each under a name.

    @invariant("resources-never-oversold")
    def oversold(state: State) -> Iterator[str]:
        ...  # yields one sentence for each breach

They run after each event in tests and by `spur audit verify`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from spur.values.errors import InvariantBroken

if TYPE_CHECKING:
    from spur.projections.state import State

__all__ = ["INVARIANTS", "check_invariants", "invariant"]

Check = Callable[[Any], Iterator[str]]

INVARIANTS: dict[str, Check] = {}

C = TypeVar("C", bound=Check)


def invariant(name: str) -> Callable[[C], C]:
    """Register a check that yields one sentence for each breach that it finds."""

    def register(check: C) -> C:
        if name in INVARIANTS:
            raise ValueError(f"invariant {name!r} is declared twice")
        INVARIANTS[name] = check
        return check

    return register


def check_invariants(state: State) -> None:
    """Run every check. Raises: InvariantBroken naming each check that fails and all it found."""
    broken = [f"{name}: {breach}" for name, check in INVARIANTS.items() for breach in check(state)]
    if broken:
        raise InvariantBroken(f"after entry {state.index}: " + "; ".join(broken))


@invariant("indexes-match-their-rows")
def stale_indexes(state: State) -> Iterator[str]:
    """Each secondary index holds exactly what its table's rows say."""
    for table in state.tables():
        for number, index in enumerate(table.indexes()):
            fresh = index.fresh()
            fresh.fill(table.rows)
            if fresh.contents() != index.contents():
                yield f"index {number} of table {table.name!r} differs from its rows"


@invariant("digests-match-their-rows")
def stale_digests(state: State) -> Iterator[str]:
    """Each table's running digest is the sum over its rows."""
    for table in state.tables():
        if table.digest() != table.fresh_digest():
            yield f"the running digest of table {table.name!r} differs from its rows"
