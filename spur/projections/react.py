"""React: what a shell must do because of an event, and what a new leader still owes.

    @effect(table="jobs", cleared_by=(JobStarted, JobEnded))
    class PrepareStart(Effect): ...

    @reacts(JobSubmitted)
    def prepare(state: State, at: At, event: JobSubmitted) -> Iterable[PrepareStart]: ...

    @owes(PrepareStart)
    def preparations_owed(state: State) -> Iterable[PrepareStart]: ...

Reactions run at the moment of apply, on the state after the whole entry; the shell releases their
effects when the entry commits. An effect exists only if a row owes it: its class names the table,
each effect its key, and `cleared_by` the events after which the row owes it no longer. A new
leader performs all of `resume(state)` after its no-op, so an effect may be performed twice and
must bear it. What no row can owe (a signal, a mail) is declared `at_most_once`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from spur.events.declare import Event
from spur.values.ids import NodeName

if TYPE_CHECKING:
    from spur.projections.state import State

__all__ = [
    "EFFECTS",
    "Effect",
    "EffectType",
    "effect",
    "owes",
    "owes_node",
    "reactions_to",
    "reacts",
    "resume",
    "resume_node",
]


class Effect(msgspec.Struct, frozen=True, gc=False):
    """Something that a shell must do; the base of every effect."""

    key: Any
    """Key of the row that owes it; None when it is done at most once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EffectType:
    """What the registry knows of one class of effects."""

    cls: type[Effect]
    table: str
    """Name of the table whose row owes it; empty when it is done at most once."""
    cleared_by: tuple[type[Event], ...]


Reaction = Callable[[Any, Any, Any], Iterable[Effect]]
Ower = Callable[[Any], Iterable[Effect]]
NodeOwer = Callable[[Any, NodeName], Iterable[Effect]]

EFFECTS: dict[type[Effect], EffectType] = {}
OWERS: dict[type[Effect], Ower] = {}
"""What lists the effects of a class that rows owe, by the class."""

NODE_OWERS: list[NodeOwer] = []
"""What lists the effects that rows owe to one node; together they list all that are owed."""

_REACTIONS: dict[type[Event], list[Reaction]] = {}

C = TypeVar("C", bound=type[Effect])
F = TypeVar("F", bound=Reaction)
W = TypeVar("W", bound=Ower)
N = TypeVar("N", bound=NodeOwer)


def effect(
    *, table: str = "", cleared_by: tuple[type[Event], ...] = (), at_most_once: bool = False
) -> Callable[[C], C]:
    """Register a class of effects: owed by a row, or done at most once.

    Raises: ValueError unless it is exactly one of the two.
    """
    if at_most_once == bool(table) or bool(table) != bool(cleared_by):
        raise ValueError("an effect names table and clearing events, or is done at most once")

    def register(cls: C) -> C:
        EFFECTS[cls] = EffectType(cls=cls, table=table, cleared_by=cleared_by)
        return cls

    return register


def reacts(cls: type[Event]) -> Callable[[F], F]:
    """Register what follows from an event."""

    def register(reaction: F) -> F:
        _REACTIONS.setdefault(cls, []).append(reaction)
        return reaction

    return register


def owes(cls: type[Effect]) -> Callable[[W], W]:
    """Register what lists the effects of this class that rows owe, in the order of the rows."""

    def register(ower: W) -> W:
        if cls in OWERS:
            raise ValueError(f"{cls.__name__} is listed twice")
        OWERS[cls] = ower
        return ower

    return register


def owes_node(ower: N) -> N:
    """Register what lists the effects that rows owe to one node, without a walk over all rows."""
    NODE_OWERS.append(ower)
    return ower


def reactions_to(cls: type[Event]) -> list[Reaction] | None:
    """Return what reacts to an event, or None."""
    return _REACTIONS.get(cls)


def resume(state: State) -> list[Effect]:
    """Return every effect that a row of the state owes."""
    return [owed for ower in OWERS.values() for owed in ower(state)]


def resume_node(state: State, node: NodeName) -> list[Effect]:
    """Return every effect that a row owes to this node, for an agent that begins to attend."""
    return [owed for ower in NODE_OWERS for owed in ower(state, node)]
