"""Commands about agents themselves: who may take orders."""

from __future__ import annotations

from spur.commands.decide import Context, Decision, command
from spur.commands.permissions import Permission
from spur.projections.state import State
from spur.values.errors import Rejection
from spur.values.ids import HostId
from spur.wire.agents import AttendOrders
from spur.wire.declare import Done

__all__ = ["decide_attend_orders"]


@command(AttendOrders, permission=Permission.AGENT, soft=True)
def decide_attend_orders(
    state: State, request: AttendOrders, context: Context
) -> Decision | Rejection:
    """Let the agent of a listed compute host take orders; the dispatcher answers."""
    actor = context.actor
    host = state.hosts.get(HostId(actor.host_id))
    if host is None or host.role != "compute":
        return Rejection(
            "not-permitted",
            f"host {actor.host_id} is no compute host of this cluster and takes no orders;"
            " nothing was done",
        )
    return Decision((), Done())
