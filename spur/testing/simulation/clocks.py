"""What the clocks of the members allow a leader to stamp, seen from outside."""

from __future__ import annotations

from collections.abc import Sequence

from spur.consensus.clock import READING_AGE_MAX_NS, SECONDS_2_NS
from spur.testing.simulation.member import SimMember
from spur.testing.simulation.world import World

__all__ = ["ClockBound"]

LOOK_S = 0.1

SLACK_NS = 1_000_000_000
"""What a reading may be off by: half the time that the question took, which had no bound."""


class ClockBound:
    """Remembers how far ahead a majority's clocks were.

    A leader goes by the lower median of the clocks of some majority, itself included. Whichever
    majority that is, at least one other clock in it is as far ahead (unless it is alone): so the
    second furthest clock, then or at any time before, bounds every honest stamp.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._members: Sequence[SimMember] = ()
        self._bound_ns = 0
        self._is_alone = False

    def start(self, members: Sequence[SimMember], *, is_alone: bool = False) -> None:
        """Begin to look at the members' clocks; one of them may be a majority all alone."""
        self._members = members
        self._is_alone = is_alone
        self._bound_ns = self._second_furthest_ns()
        self._world.after(LOOK_S, self._look)

    def _second_furthest_ns(self) -> int:
        walls = sorted(member.clocks.wall_ns() for member in self._members)
        return walls[-2] if len(walls) > 1 and not self._is_alone else walls[-1]

    def note(self) -> None:
        """Look now: the clocks are about to be set, and a leader may go by what they show."""
        self._bound_ns = max(self._bound_ns, self._second_furthest_ns())

    def _look(self) -> None:
        step_ns = int(LOOK_S * 1e9)
        self._bound_ns = max(self._bound_ns + step_ns, self._second_furthest_ns())
        self._world.after(LOOK_S, self._look)

    def latest_ns(self) -> int:
        """Return the latest stamp that an honest leader can give now."""
        drifted_ns = READING_AGE_MAX_NS // 100
        bound_ns = max(self._bound_ns, self._second_furthest_ns())
        return bound_ns + SECONDS_2_NS + SLACK_NS + drifted_ns
