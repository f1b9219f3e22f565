"""One simulated run: a cluster, its clients and its nemesis, from a seed to a verdict."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from spur.projections.react import resume
from spur.testing.simulation.checks import Checks
from spur.testing.simulation.clocks import ClockBound
from spur.testing.simulation.ending import check_ending, is_whole
from spur.testing.simulation.founding import found_members
from spur.testing.simulation.load import Load
from spur.testing.simulation.member import SimMember, Violation
from spur.testing.simulation.nemesis import Nemesis
from spur.testing.simulation.network import Network, Weather
from spur.testing.simulation.operators import Operators
from spur.testing.simulation.plan import draw_plan, small_limits
from spur.testing.simulation.world import World
from spur.wire.declare import Answer

__all__ = ["Result", "Run", "run_seed"]

CHANGES_EVERY = 3
"""Of so many seeds one changes the members."""

SETTING_UP_S = 10.0
"""Virtual time within which an undisturbed cluster elects a leader and is set up."""

TROUBLE_S = 20.0
"""Virtual time in which the nemesis strikes."""

HEALING_S = 20.0
"""Virtual time after healing within which everything must have converged, and then answered, and
then be whole."""

LOOK_S = 0.5
"""Virtual time between two looks whether it has."""


@dataclass(frozen=True)
class Result:
    """What came of a seed."""

    seed: int
    fault: str
    """Empty when nothing was wrong."""
    steps: int
    entries: int
    counts: Counter[str]
    """How often each thing happened."""
    story: tuple[str, ...]
    """What happened, when it was asked for."""


class Run:
    """Everything of one run."""

    def __init__(self, seed: int, *, tells: bool = False) -> None:
        world = self.world = World(seed, tells=tells)
        plan = self.plan = draw_plan(world.rng, has_changes=seed % CHANGES_EVERY == 0)
        world.tell("plan", str(plan))
        clocks = self._clocks = ClockBound(world)
        self.checks = Checks(world, clocks)
        self._network = Network(world, Weather(), self._receive)
        self.members = found_members(world, self._network, self.checks, plan)
        self._load = Load(world, self.members, self.checks, plan)
        self._nemesis = Nemesis(world, self._network, self.members, self._load.agents, plan)
        self.checks.agents = self._load.agents
        self.checks.on_effect = self._load.performed
        self._by_id: dict[int, SimMember] = {}
        """Those who were removed as well: they run on until they learn of it."""
        for member in self.members:
            self._adopt(member)
        self._operators = Operators(
            world, self._network, self.members, plan, seed, adopt=self._adopt
        )
        self._was_answered = False

    def _adopt(self, member: SimMember) -> None:
        """Look after a member that was added."""
        self._by_id[member.me] = member
        member.on_sent = self._nemesis.sent
        member.on_end = self._nemesis.came_down

    def _receive(self, message: Any) -> None:
        if message.to in self._by_id:
            self._by_id[message.to].receive(message)

    def judge(self) -> None:
        """Run to the end. Raises: Violation."""
        with small_limits(self.plan):
            self._trouble()
            self._heal()

    def _trouble(self) -> None:
        for member in self.members:
            member.start()
        self._clocks.start(self.members, is_alone=self.plan.has_changes)
        self._load.start()
        if self.plan.is_calm_at_first:
            self._wait_for_load()
        self._nemesis.start()
        self._operators.start()
        self.world.pass_time(TROUBLE_S)

    def _wait_for_load(self) -> None:
        if not self._comes_true(lambda: self._load.has_begun, SETTING_UP_S):
            raise Violation("an undisturbed cluster was not set up in time")

    def _comes_true(self, condition: Callable[[], bool], limit_s: float) -> bool:
        """Let time pass until something is so; False when it takes longer than the limit."""
        end_s = self.world.now_s + limit_s
        while not condition():
            if self.world.now_s >= end_s:
                return False
            self.world.pass_time(LOOK_S)
        return True

    def _heal(self) -> None:
        members = self.members
        self._load.stop()
        self._operators.stop()
        self._clocks.note()
        self._nemesis.stop()
        self._comes_true(self._is_quiet, HEALING_S)
        self._load.last_request(self._last_answered)
        if not self._comes_true(lambda: self._was_answered, HEALING_S):
            raise Violation("the healed cluster did not answer")
        # Whole and quiet at one moment: what was asked before may still have consequences.
        self._comes_true(lambda: self._is_whole() and self._is_quiet(), HEALING_S)
        down = [member.me for member in members if not member.is_up]
        if down:
            raise Violation(f"healed members are down: {down}")
        self._check_members()
        self.checks.converged(members)
        check_ending(members, self.checks)
        self.checks.submitted_once()
        self._load.judge()

    def _check_members(self) -> None:
        """Those who are there are those whom the log names."""
        named = self.checks.members.voters()
        there = sorted(member.me for member in self.members)
        if list(named) != there:
            raise Violation(f"members {there} are there, and the log lets {named} vote")

    def _is_quiet(self) -> bool:
        """Whether all members stand at one place, and nobody waits for anything."""
        members = self.members
        if not self._operators.is_quiet:
            return False
        if not all(member.is_up and member.replica.is_attached for member in members):
            return False
        replicas = [member.replica for member in members]
        indexes = {index for each in replicas for index in (each.core.commit, each.recorded)}
        indexes |= {member.front.state.index for member in members}
        return len(indexes) == 1 and self._load.is_quiet and not resume(members[0].front.state)

    def _is_whole(self) -> bool:
        """Look at all files; what is damaged is asked of the peers."""
        verdicts = [is_whole(member) for member in self.members if member.is_up]
        return all(verdicts)

    def _last_answered(self, answer: Answer) -> None:
        self._was_answered = True


def run_seed(seed: int, *, tells: bool = False) -> Result:
    """Run one seed and return what came of it; the same seed gives the same result."""
    run = Run(seed, tells=tells)
    fault = ""
    try:
        run.judge()
    except Violation as violation:
        fault = str(violation)
        run.world.tell("judge", "finds a violation:", *traceback.format_exception(violation))
    except Exception as error:
        fault = f"{type(error).__name__}: {error}"
        run.world.tell("judge", "meets an error:", *traceback.format_exception(error))
    return Result(
        seed=seed,
        fault=fault,
        steps=run.world.calls,
        entries=run.checks.last,
        counts=run.world.counts,
        story=tuple(run.world.story or ()),
    )
