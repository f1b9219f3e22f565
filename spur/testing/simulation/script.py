"""A simulated cluster that does what a script says, for what chance meets too seldom.

    script = Script(members=3)
    script.network.takes_away = lambda sender, message: isinstance(message, Vote)
    script.wait(lambda: script.member(3).replica.core.term == 2)

It has no clients of its own, no nemesis and no weather; the checks of a run watch it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from spur.events.envelope import Actor
from spur.testing.simulation.callers import FOR_EVER, Callers, Outcome
from spur.testing.simulation.checks import Checks
from spur.testing.simulation.clocks import ClockBound
from spur.testing.simulation.founding import found_members
from spur.testing.simulation.member import SimMember, Violation
from spur.testing.simulation.network import Network, Weather
from spur.testing.simulation.plan import calm_plan
from spur.testing.simulation.world import World
from spur.wire.declare import Answer, Request

__all__ = ["Script"]

STEP_S = 0.01
"""Virtual time between two looks at what a script waits for."""


class Script:
    """Members, the network between them, and a hand at all of it."""

    def __init__(self, *, members: int, seed: int = 1, tiny_batches: bool = False) -> None:
        self.world = World(seed)
        clocks = ClockBound(self.world)
        self.checks = Checks(self.world, clocks)
        self.network = Network(self.world, Weather(), self._receive)
        plan = replace(calm_plan(members), tiny_batches=tiny_batches)
        self.members = found_members(self.world, self.network, self.checks, plan)
        for member in self.members:
            member.start()
        clocks.start(self.members)

    def _receive(self, message: object) -> None:
        self.member(message.to).receive(message)  # type: ignore[attr-defined]  # any message

    def member(self, number: int) -> SimMember:
        """Return a member by its id."""
        return self.members[number - 1]

    def wait(self, condition: Callable[[], bool], *, limit_s: float = 60.0) -> None:
        """Let time pass until something is so.

        Raises: Violation when it does not come about in time.
        """
        end_s = self.world.now_s + limit_s
        while not condition():
            if self.world.now_s > end_s:
                raise Violation("what the script waits for did not come about")
            self.world.pass_time(STEP_S)

    def leader(self) -> SimMember:
        """Wait for a leader that decides, and return it."""
        found: list[SimMember] = []

        def is_there() -> bool:
            found[:] = [
                each for each in self.members if each.is_up and each.replica.core.no_op_committed
            ]
            return len(found) == 1

        self.wait(is_there)
        return found[0]

    def call(self, member: int, request: Request, actor: Actor) -> list[Outcome]:
        """Let somebody ask one member; the outcome is put into the list that is returned."""
        outcomes: list[Outcome] = []
        callers = Callers(self.world, [self.member(member)])
        callers.caller(actor).ask(request, outcomes.append, patience_s=FOR_EVER)
        return outcomes

    def ask(self, request: Request, actor: Actor) -> Answer:
        """Ask the cluster, and wait for the answer. Raises: Violation when it is refused."""
        outcomes: list[Outcome] = []
        callers = Callers(self.world, self.members)
        callers.caller(actor).ask(request, outcomes.append, patience_s=FOR_EVER)
        self.wait(lambda: bool(outcomes))
        outcome = outcomes[0]
        if not isinstance(outcome, Answer):
            raise Violation(f"{type(request).__name__} was refused: {outcome}")
        return outcome
