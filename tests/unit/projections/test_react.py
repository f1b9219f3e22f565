"""Effects: owed by a row until an event clears it, or done at most once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from spur.events.declare import EVENTS, Event
from spur.events.nodes import NodeLost, NodesUpdated
from spur.projections.apply import Applied
from spur.projections.react import EFFECTS, OWERS, Effect, effect, reactions_to
from spur.projections.state import State
from spur.testing.builders import check_effects, newborn
from spur.values.errors import InvariantBroken
from spur.values.ids import NodeName
from spur.values.states import NodeAction


def every_effect(cls: type[Effect] = Effect) -> Iterator[type[Effect]]:
    """Yield every class of effects of the product."""
    for sub in cls.__subclasses__():
        if sub.__module__.startswith("spur."):
            yield sub
        yield from every_effect(sub)


def test_every_effect_says_who_owes_it_and_what_clears_it() -> None:
    """Someone adds an effect and forgets what a new leader must do about it."""
    tables = {table.name for table in newborn().tables()}
    declared = {row.cls for row in EVENTS.values()}
    assert set(every_effect()) == set(EFFECTS)
    for row in EFFECTS.values():
        assert row.table in tables or not row.table
        assert set(row.cleared_by) <= declared
    assert {row.cls for row in EFFECTS.values() if row.table} == set(OWERS)


def test_reactions_are_to_declared_events() -> None:
    """A reaction to a class that no log holds would never run."""
    assert reactions_to(Event) is None


def test_an_effect_is_owed_or_done_at_most_once() -> None:
    """Someone names a table and forgets the clearing event, or claims both."""
    for arguments in ({}, {"table": "nodes"}, {"table": "nodes", "at_most_once": True}):
        with pytest.raises(ValueError, match="names table and clearing events"):
            effect(**arguments)


class Knock(Effect, frozen=True):
    """An effect of this test: owed by a node's row until the node is lost."""


class Shout(Effect, frozen=True):
    """An effect of this test that no row owes."""


@pytest.fixture
def _registered() -> Iterator[None]:
    """Register the effects of this test, and take them out again."""
    effect(table="nodes", cleared_by=(NodeLost,))(Knock)
    effect(at_most_once=True)(Shout)
    yield
    del EFFECTS[Knock], EFFECTS[Shout]


LOST = NodeLost(NodeName("n1"), 0)
UPDATED = NodesUpdated((NodeName("n1"),), NodeAction.DRAIN, "fans", None, None)


@pytest.mark.usefixtures("_registered")
def test_debts_and_effects_are_compared() -> None:
    """The check that stories run after each entry finds each kind of lie."""
    knock, shout = Knock("n1"), Shout(None)
    check_effects([], Applied(None, (UPDATED,), (knock, shout)), [knock])
    check_effects([knock], Applied(None, (LOST,), ()), [])
    with pytest.raises(InvariantBroken, match="no row owes it"):
        check_effects([], Applied(None, (UPDATED,), (knock,)), [])
    with pytest.raises(InvariantBroken, match="was not released"):
        check_effects([], Applied(None, (UPDATED,), ()), [knock])
    with pytest.raises(InvariantBroken, match="no event cleared it"):
        check_effects([knock], Applied(None, (UPDATED,), ()), [])


def test_a_newborn_state_owes_nothing() -> None:
    """Before the first entry there is no row that could owe anything."""
    state: State = newborn()
    assert [owed for ower in OWERS.values() for owed in ower(state)] == []
