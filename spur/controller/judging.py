"""Judging a request, whatever it runs into.

One connection carries the commands of a whole host: a request that runs into a fault of ours is
answered, so that the others on it go on. `decide` changes nothing, so nothing is left of it.
"""

from __future__ import annotations

import logging

from spur.commands.decide import Context, Decision, decide
from spur.projections.state import State
from spur.values.errors import Rejection
from spur.wire.declare import Request

__all__ = ["judge"]

LOG = logging.getLogger("spurctld")


def judge(state: State, request: Request, context: Context) -> Decision | Rejection:
    """Return what a request comes to; a fault of ours is logged, and a rejection too."""
    try:
        return decide(state, request, context)
    except Exception as error:
        name = type(request).__name__
        LOG.exception("%s of uid %d ran into a fault of ours", name, context.actor.uid)
        return Rejection("fault", f"{type(error).__name__}: {error}; nothing was changed")
