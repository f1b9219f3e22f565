"""The clock's command: what has fallen due becomes events."""

from __future__ import annotations

from spur.commands.decide import Context, Decision, command
from spur.commands.permissions import Permission
from spur.projections.due import due
from spur.projections.state import State
from spur.wire.cluster import Tick
from spur.wire.declare import Done

__all__ = ["decide_tick"]


@command(Tick, permission=Permission.CLUSTER)
def decide_tick(state: State, request: Tick, context: Context) -> Decision:
    """Turn the oldest consequences of time into events; what is left waits for the next tick."""
    events = tuple(event for item in due(state, context.now_ns) for event in item.events)
    return Decision(events, Done())
