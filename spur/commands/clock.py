"""The clock's commands: what has fallen due becomes events; a clock that stepped is accepted."""

from __future__ import annotations

from spur.commands.decide import Context, Decision, command
from spur.commands.permissions import Permission
from spur.events.cluster import ClockAccepted
from spur.projections.due import due
from spur.projections.state import State
from spur.wire.cluster import AcceptClock, Tick
from spur.wire.declare import Done

__all__ = ["decide_accept_clock", "decide_tick"]


@command(Tick, permission=Permission.CLUSTER)
def decide_tick(state: State, request: Tick, context: Context) -> Decision:
    """Turn the oldest consequences of time into events; what is left waits for the next tick."""
    events = tuple(event for item in due(state, context.now_ns) for event in item.events)
    return Decision(events, Done())


@command(AcceptClock, permission=Permission.ADMINISTRATOR)
def decide_accept_clock(state: State, request: AcceptClock, context: Context) -> Decision:
    """Record who vouched for the clock, and from which stamp on."""
    return Decision((ClockAccepted(state.time_ns),), Done())
