"""What runs on when the daemons have ended: jobs under supervisors, ended as by a power cut."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

from spur.agent.manifest import AttemptName
from spur.agent.processes import descendants, kill_leftovers
from spur.agent.spool import Spool
from spur.up.layout import AgentPlace, Layout, Places

__all__ = ["end_jobs"]

SWEEPS = 20
"""How often is looked for processes that a job started while it was being killed."""

_PAUSE_S = 0.02


def end_jobs(places: Places, layout: Layout) -> int:
    """Kill every supervisor of agents that do not run, and all below it; return how many lived.

    Nothing is written about it: the next agents find what a machine finds after a power cut, and
    the jobs are requeued or have failed, as they wished.

    Raises: OperatorFault when an agent runs.
    """
    return sum(_end_of(places, place) for place in layout.agents if place.nodes)


def _end_of(places: Places, place: AgentPlace) -> int:
    path = places.agent(place.key) / "spool"
    if not path.exists():
        return 0
    spool = Spool(path)
    try:
        living = [found.name for found in spool.scan() if found.lives]
        for name in living:
            _kill(spool, name)
        for name in living:
            _sweep(name, str(places.socket(place.key)))
    finally:
        spool.close()
    return len(living)


def _kill(spool: Spool, name: AttemptName) -> None:
    pid = spool.holder(name)
    if not pid:
        return
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        try:
            below = descendants(pid)
            if spool.holder(name) == pid:
                # The supervisor first, so that it writes no end of what is killed next.
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                for process in below:
                    with suppress(ProcessLookupError):
                        os.kill(process, signal.SIGKILL)
        finally:
            os.close(handle)


def _sweep(name: AttemptName, relay: str) -> None:
    for _ in range(SWEEPS):
        if not kill_leftovers(name.job_id, name.node, relay):
            return
        time.sleep(_PAUSE_S)
