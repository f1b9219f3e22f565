"""What goes wrong in a run, when, and how often: drawn from the seed.

Half of the runs use tiny batches, since splitting what usually travels together finds most of the
rare faults; some strike right after a vote, an append or an acknowledgement left, where it hurts
most (FoundationDB's BUGGIFY). At the end everything heals, and then the cluster must answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from spur.consensus.messages import Append, AppendReply, VoteReply
from spur.testing.simulation.member import SimMember
from spur.testing.simulation.network import Network, Weather
from spur.testing.simulation.world import World

__all__ = ["Nemesis", "Plan", "draw_plan"]


@dataclass
class Plan:
    """The temper of one run."""

    members: int
    pace_s: float
    """Time between two strikes, on average."""
    buggify: float
    """Chance of a power loss right after a message that matters."""
    tiny_batches: bool
    disk_delay_s: float
    weather: Weather
    strikes: list[str] = field(default_factory=list)


STRIKES = (
    "power", "power", "kill", "pause", "storm", "halves", "one-way", "pair", "heal",
    "operation", "operation", "clock", "slow-disk",
)  # fmt: skip
"""What may strike; a name that stands twice strikes twice as often."""


def draw_plan(world: World) -> Plan:
    """Draw how bad this run will be; each kind of trouble is absent from some runs."""
    rng = world.rng
    plan = Plan(
        members=rng.choice((1, 3, 3, 3, 3, 5)),
        pace_s=rng.choice((1.0, 3.0, 8.0)),
        buggify=rng.choice((0.0, 0.01, 0.05)),
        tiny_batches=rng.random() < 0.5,
        disk_delay_s=rng.choice((0.002, 0.02, 0.2)),
        weather=Weather(
            loss=rng.choice((0.0, 0.01, 0.1)),
            repeats=rng.choice((0.0, 0.05, 0.2)),
            delay_s=rng.choice((0.005, 0.05, 0.3)),
        ),
    )
    kinds = sorted(set(STRIKES))
    absent = set(rng.sample(kinds, rng.randrange(len(kinds) // 2)))
    plan.strikes = [strike for strike in STRIKES if strike not in absent] or ["power"]
    return plan


class Nemesis:
    """Strikes until it is told to stop, then heals."""

    def __init__(
        self, world: World, network: Network, members: Sequence[SimMember], plan: Plan
    ) -> None:
        self._world = world
        self._network = network
        self._members = members
        self._plan = plan
        self._stopped = False
        self._ids = [member.me for member in members]
        self._strikes: dict[str, Callable[[], None]] = {
            "power": lambda: self._down(self._someone(), power=True),
            "kill": lambda: self._down(self._someone(), power=False),
            "pause": lambda: self._someone().pause(world.rng.choice((0.5, 3.0))),
            "storm": self._storm,
            "halves": lambda: self._cut(one_way=False),
            "one-way": lambda: self._cut(one_way=True),
            "pair": self._pair,
            "heal": network.heal,
            "operation": self._operation,
            "clock": self._clock,
            "slow-disk": self._slow_disk,
        }

    def start(self) -> None:
        """Begin to strike."""
        self._world.after(self._plan.pace_s, self._strike)

    def stop(self) -> None:
        """Heal the network, the clocks and the disks, and let everybody run."""
        self._stopped = True
        self._network.heal()
        self._network.weather = Weather()
        self._plan.buggify = 0.0
        for member in self._members:
            member.clocks.offset_ns = 0
            member.disk_delay_s = 0.002
            member.disk.crash_after(1 << 60)
            member.start()

    def sent(self, member: SimMember, messages: Sequence[object]) -> None:
        """Look at what a member just sent; perhaps its power fails now."""
        rng, chance = self._world.rng, self._plan.buggify
        if not chance or self._stopped:
            return
        for message in messages:
            matters = (
                (isinstance(message, VoteReply) and message.granted)
                or (isinstance(message, Append) and message.entries and rng.random() < 0.2)
                or (isinstance(message, AppendReply) and rng.random() < 0.1)
            )
            if matters and rng.random() < chance:
                self._world.after(rng.random() * 0.05, self._down_if_up, member)

    def _someone(self) -> SimMember:
        return self._world.rng.choice(self._members)

    def _strike(self) -> None:
        if self._stopped:
            return
        rng = self._world.rng
        self._strikes[rng.choice(self._plan.strikes)]()
        self._world.after(self._plan.pace_s * (0.2 + 1.6 * rng.random()), self._strike)

    def _down_if_up(self, member: SimMember) -> None:
        if not self._stopped:
            self._down(member, power=True)

    def _down(self, member: SimMember, *, power: bool) -> None:
        if not member.is_up:
            return
        if power:
            member.lose_power()
        else:
            member.end_process()
        self._later_up(member)

    def _later_up(self, member: SimMember) -> None:
        rng = self._world.rng
        self._world.after(rng.choice((0.1, 0.5, 3.0)) * (0.5 + rng.random()), self._up, member)

    def _up(self, member: SimMember) -> None:
        if not member.is_up:
            member.start()
            if not member.is_up:
                self._later_up(member)

    def _storm(self) -> None:
        rng = self._world.rng
        for member in rng.sample(self._members, rng.randrange(1, len(self._members) + 1)):
            if rng.random() < 0.5:
                self._down(member, power=rng.random() < 0.7)

    def _cut(self, *, one_way: bool) -> None:
        rng = self._world.rng
        side = set(rng.sample(self._ids, rng.randrange(1, len(self._ids) + 1)))
        self._network.cut_sides(side, self._ids, one_way=one_way)

    def _pair(self) -> None:
        if len(self._ids) > 1:
            self._network.cut_pair(*self._world.rng.sample(self._ids, 2))

    def _operation(self) -> None:
        """Let the power fail at one of the next operations of a disk."""
        member = self._someone()
        if member.is_up:
            member.disk.crash_after(self._world.rng.randrange(1, 25))

    def down_at_operation(self, member: SimMember) -> None:
        """Called when the power failed inside an operation: somebody must press the button."""
        self._later_up(member)

    def _clock(self) -> None:
        rng = self._world.rng
        member = self._someone()
        member.clocks.offset_ns += int(rng.choice((-1, 1)) * rng.choice((0.3, 3, 3700)) * 1e9)

    def _slow_disk(self) -> None:
        member = self._someone()
        member.disk_delay_s = self._world.rng.choice((0.002, 0.1, 0.8))
