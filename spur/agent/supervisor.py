"""A supervisor: the process that holds one attempt of a run or step on one node.

It is forked from the warm process and answers to nobody's life but that of the job: it goes on
while agents and controllers come and go, and what it has to say afterwards is in its directory.
"""

from __future__ import annotations

import os
import socket
import sys

from spur.agent.attempt import Attempt, NotOurs
from spur.agent.batch import run_batch
from spur.agent.filesin import FileGuests
from spur.agent.linux import adopt_orphans, take_host_name
from spur.agent.step import run_step
from spur.agent.tending import Tending
from spur.values.errors import OperatorFault
from spur.wire.agents import LaunchOrder, LaunchStepOrder

__all__ = ["supervise"]


def supervise(directory: str, channel: socket.socket | None) -> int:
    """Run the attempt of a directory to its end, and return the status to exit with.

    The status is 0 when the attempt was settled or is another's, else 1: the agent then finds an
    unclaimed attempt, or a claimed one without an outcome.
    """
    os.setsid()
    adopt_orphans()
    try:
        attempt = Attempt(directory, channel)
        site = attempt.manifest.site
        if site.host_name:
            take_host_name(site.host_name)
        _run(attempt)
    except NotOurs:
        return 0
    except (OSError, OperatorFault) as error:
        sys.stderr.write(f"spurd: supervisor of {directory}: {error}\n")
        return 1
    return 0


def _run(attempt: Attempt) -> None:
    order = attempt.manifest.order
    if isinstance(order, LaunchStepOrder):
        run_step(attempt, order)
    elif order.spec.batch and order.shares[0].node == order.node:
        run_batch(attempt, order)
    else:
        _hold_place(attempt, order)


def _hold_place(attempt: Attempt, order: LaunchOrder) -> None:
    """Hold the place of a job where no script of it runs, until it is ended."""
    tending = Tending(attempt.directory, terms_all=True)
    tending.holds = True
    tending.on_guest = FileGuests(tending, order).take
    attempt.claim()
    attempt.say_claimed()
    tending.run()
    attempt.settle()
