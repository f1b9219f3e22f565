"""The scheduler's process: it follows the log, and where this controller leads it plans.

    python -m spur.controller.scheduler DIRECTORY --channel FD

A cycle is made when the log moved, after a moment in which more may come, and each second, since
time alone makes jobs ready. What a plan proposes is asked of the front, which judges it on its own
state; the next cycle waits until this state holds what came of it. Nothing here waits for an agent.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from contextlib import suppress
from pathlib import Path

from spur.controller.follower import Follower, run_child
from spur.scheduling.foresee import Foreseen
from spur.scheduling.plan import Plan, plan, plan_and_foresee, policy_digest
from spur.scheduling.queue import Queue, batch_delay_s
from spur.values.errors import Rejection
from spur.values.hostlist import format_hostlist
from spur.wire.declare import Answer, Done
from spur.wire.followers import Cycled
from spur.wire.jobs import StartView
from spur.wire.runs import PlaceJobs, PlacementsJudged, StateReasons

__all__ = ["Scheduler", "main"]

PERIOD_S = 1.0
"""The longest between two cycles."""

GATHER_S = 0.01
"""After something happened: more often comes than one entry."""

REASONS_PERIOD_S = 1.05
"""Between two statements of reasons: a little over what the front allows."""

FORESEE_PERIOD_S = 2.0
"""Between two foresights, at the least."""

FORESEE_SHARE = 0.05
"""The part of a processor that foresights take at most."""

REST_SHARE = 1.0
"""A cycle is followed by a rest as long as itself, so that planning leaves half of a processor."""

LOG = logging.getLogger("spur.scheduler")


class Scheduler:
    """Plans on the state of a follower."""

    def __init__(self, directory: Path, channel: int) -> None:
        """Load the newest snapshot of a controller's directory; blocks."""
        self._woken = asyncio.Event()
        self.follower = Follower(
            directory, channel, on_entries=self._woken.set, on_role=self._woken.set
        )
        self._queue = Queue(self.follower.state)
        self._digest = policy_digest()
        self._foresees_s = 0.0
        """When starts of waiting jobs are foreseen next, on the monotonic clock."""
        self._planned_s = 0.0
        """When a plan was begun last, on the monotonic clock."""
        self._stated_s = 0.0
        """When reasons were stated last, on the monotonic clock."""
        self.cycles = 0
        self.longest_cycle_s = 0.0

    async def run(self) -> str:
        """Plan until the front ends; return nothing, or why to begin anew."""
        planning = asyncio.create_task(self._plan_on())
        following = asyncio.create_task(self.follower.run())
        try:
            await asyncio.wait((planning, following), return_when=asyncio.FIRST_COMPLETED)
            if planning.done() and not following.done():
                planning.result()
            return await following
        finally:
            planning.cancel()
            with suppress(asyncio.CancelledError, ConnectionError):
                await planning

    async def _plan_on(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(PERIOD_S):
                    await self._woken.wait()
            await asyncio.sleep(GATHER_S)
            self._woken.clear()
            while self._may_plan() and await self._cycle():
                pass

    def _may_plan(self) -> bool:
        """Whether this controller leads, the state has all that was committed, and it is time."""
        state = self.follower.state
        if not self.follower.leads or state.index < self.follower.commit:
            return False
        delay_s = batch_delay_s(state)
        if not delay_s or time.monotonic() - self._planned_s >= delay_s:
            return True
        self._queue.refresh()
        return self._queue.hurries

    async def _cycle(self) -> bool:
        """Make a plan and ask for it; return whether another is due at once."""
        state = self.follower.state
        began_s = self._planned_s = time.monotonic()
        self._queue.hurries = False
        now_ns = max(time.time_ns(), state.time_ns)
        if began_s >= self._foresees_s:
            made, starts = plan_and_foresee(state, now_ns, self._queue)
            self.follower.link.foresaw(tuple(map(_view, starts)))
            took_s = time.monotonic() - began_s
            self._foresees_s = began_s + max(FORESEE_PERIOD_S, took_s / FORESEE_SHARE)
        else:
            made = plan(state, now_ns, self._queue)
        took_s = time.monotonic() - began_s
        self.cycles += 1
        self.longest_cycle_s = max(self.longest_cycle_s, took_s)
        started = 0
        self.follower.link.cycled(
            Cycled(int(took_s * 1e6), made.depth, self._queue.waiting(), made.passed_over)
        )
        if made.placements:
            request = PlaceJobs(state.index, self._digest, made.placements)
            judged = await self.follower.call(request, PlacementsJudged)
            if isinstance(judged, Rejection):
                LOG.warning("a plan was refused: %s", judged.text)
            else:
                started = judged.started
                if judged.refused:
                    codes = ", ".join(refusal.code for refusal in judged.refusals)
                    LOG.info("%d starts did not hold: %s", judged.refused, codes)
        await self._state_reasons(made)
        await asyncio.sleep(took_s * REST_SHARE)
        return made.is_cut and started > 0

    async def _state_reasons(self, made: Plan) -> None:
        """State the reasons that changed, once a second at most; what is left out comes again."""
        now_s = time.monotonic()
        if not (made.groups or made.jobs) or now_s - self._stated_s < REASONS_PERIOD_S:
            return
        self._stated_s = now_s
        outcome: Answer | Rejection = await self.follower.call(
            StateReasons(made.groups, made.jobs), Done
        )
        if isinstance(outcome, Rejection):
            LOG.info("reasons were not taken: %s", outcome.text)


def _view(start: Foreseen) -> StartView:
    return StartView(start.job_id, start.start_ns, format_hostlist(start.nodes))


async def main(directory: Path, channel: int) -> str:
    """Run the scheduler until the front ends."""
    return await Scheduler(directory, channel).run()


if __name__ == "__main__":
    sys.exit(run_child(main, sys.argv[1:]))
