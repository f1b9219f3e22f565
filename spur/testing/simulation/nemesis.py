"""What goes wrong in a run, and when; at the end everything heals, and the cluster must answer.

Some strikes come right after a vote, an append or an acknowledgement left, where they hurt most
(FoundationDB's BUGGIFY).
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence

from spur.consensus.messages import Append, AppendReply, VoteReply
from spur.testing.simulation.agents import Agent
from spur.testing.simulation.damage import Vandal
from spur.testing.simulation.member import TICK_S, SimMember
from spur.testing.simulation.network import Network, Weather
from spur.testing.simulation.plan import Plan
from spur.testing.simulation.world import World

__all__ = ["Nemesis"]

SOUND_DISK_S = 0.002
"""Longest delay of a disk that is healed."""

WRONG_AT_BOOT = 0.1
"""Share of the starts that find another time on the machine's clock than there was before."""

NEVER = 1 << 60


class Nemesis:
    """Strikes members, their disks and clocks, the network and the nodes."""

    def __init__(
        self,
        world: World,
        network: Network,
        members: Sequence[SimMember],
        agents: Sequence[Agent],
        plan: Plan,
    ) -> None:
        self._world = world
        self._network = network
        self._members = members
        self._agents = agents
        self._plan = plan
        self._stopped = True
        self._vandal = Vandal(world, members) if plan.has_damage else None
        self._strikes: dict[str, Callable[[], None]] = {
            "power": lambda: self._down(self._someone(), power=True),
            "kill": lambda: self._down(self._someone(), power=False),
            "pause": self._pause,
            "storm": self._storm,
            "halves": lambda: self._cut(one_way=False),
            "one-way": lambda: self._cut(one_way=True),
            "pair": self._pair,
            "apart": lambda: self._cut_off(self._someone()),
            "leader-apart": self._leader_apart,
            "leader-power": self._leader_power,
            "leader-pause": self._leader_pause,
            "heal": network.heal,
            "operation": self._operation,
            "clock": self._clock,
            "slow-disk": self._slow_disk,
            "full-disk": self._full_disk,
            "failing-sync": self._failing_sync,
            "silent-node": self._silent_node,
        }

    def start(self) -> None:
        """Let the weather turn bad, and begin to strike."""
        self._stopped = False
        self._network.weather = self._plan.weather
        rng, drift = self._world.rng, self._plan.drift
        for member in self._members:
            member.clocks.drift = drift * (2 * rng.random() - 1)
        self._someone().tick_s *= self._plan.slow_ticks
        self._world.after(self._plan.pace_s, self._strike)

    def stop(self) -> None:
        """Heal the network, the clocks and the disks, and let everybody run."""
        self._stopped = True
        self._world.tell("nemesis", "heals everything")
        self._network.heal()
        self._network.weather = Weather()
        self._plan.buggify = 0.0
        for agent in self._agents:
            agent.is_silent = False
        for member in self._members:
            member.clocks.offset_ns = 0
            member.tick_s = TICK_S
            member.disk_delay_s = SOUND_DISK_S
            member.disk.crash_after(NEVER)
            self._mend_disk(member)
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
                self._world.counts["struck after " + type(message).__name__] += 1
                self._world.after(rng.random() * 0.02, self._down_if_up, member)

    def came_down(self, member: SimMember) -> None:
        """Called when a member ended by itself: somebody must look after it."""
        self._later_up(member)

    @property
    def _ids(self) -> list[int]:
        return [member.me for member in self._members]

    def _someone(self) -> SimMember:
        return self._world.rng.choice(self._members)

    def _strike(self) -> None:
        if self._stopped or not self._plan.strikes:
            return
        rng = self._world.rng
        kind = rng.choice(self._plan.strikes)
        self._world.counts[kind] += 1
        self._world.tell("nemesis", "strikes:", kind)
        self._strikes[kind]()
        self._world.after(self._plan.pace_s * (0.2 + 1.6 * rng.random()), self._strike)

    # -- processes
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
        # Some come back before what was sent to them has arrived.
        delay_s = rng.choice((0.02, 0.1, 0.5, 3.0)) * (0.5 + rng.random())
        self._world.after(delay_s, self._up, member)

    def _up(self, member: SimMember) -> None:
        if member.is_up:
            return
        if self._vandal is not None and not self._stopped:
            self._vandal.visit(member)
        if "clock" in self._plan.strikes and self._world.rng.random() < WRONG_AT_BOOT:
            self._set_clock(member)
        self._mend_disk(member)
        member.start()
        if not member.is_up:
            self._later_up(member)

    def _leader_power(self) -> None:
        for member in self._members:
            if member.is_up and member.replica.core.is_leader:
                self._down(member, power=True)

    def _leader_pause(self) -> None:
        for member in self._members:
            if member.is_up and member.replica.core.is_leader:
                member.pause(1.0 + 3.0 * self._world.rng.random())

    def _storm(self) -> None:
        rng = self._world.rng
        for member in rng.sample(self._members, rng.randrange(1, len(self._members) + 1)):
            if rng.random() < 0.5:
                self._down(member, power=rng.random() < 0.7)

    def _pause(self) -> None:
        self._someone().pause(self._world.rng.choice((0.5, 3.0)))

    # -- the network
    def _cut(self, *, one_way: bool) -> None:
        rng = self._world.rng
        side = set(rng.sample(self._ids, rng.randrange(1, len(self._ids) + 1)))
        self._network.cut_sides(side, self._ids, one_way=one_way)

    def _pair(self) -> None:
        if len(self._ids) > 1:
            self._network.cut_pair(*self._world.rng.sample(self._ids, 2))

    def _cut_off(self, member: SimMember) -> None:
        self._network.cut_sides({member.me}, self._ids, one_way=False)

    def _leader_apart(self) -> None:
        for member in self._members:
            if member.is_up and member.replica.core.is_leader:
                self._cut_off(member)

    # -- disks and clocks
    def _operation(self) -> None:
        """Let the power fail at one of the next operations of a disk."""
        member = self._someone()
        if member.is_up:
            member.disk.crash_after(self._world.rng.randrange(1, 25))

    def _slow_disk(self) -> None:
        member = self._someone()
        member.disk_delay_s = self._world.rng.choice((0.002, 0.1, 0.8))

    def _full_disk(self) -> None:
        """Let somebody else's files fill a disk nearly or wholly, until they are cleared away."""
        rng, disk = self._world.rng, (member := self._someone()).disk
        disk.capacity_bytes = disk.used_bytes() + rng.randrange(1, 80) * 1024
        member.disk_is_bad = True
        self._world.after(rng.choice((2.0, 6.0)), self._mend_disk, member)

    def _failing_sync(self) -> None:
        """Let one of the next syncs of a disk fail, which ends the process."""
        member = self._someone()
        if member.is_up:
            member.disk_is_bad = True
            member.disk.fail_after(self._world.rng.randrange(1, 6), errno.EIO, "sync")

    def _mend_disk(self, member: SimMember) -> None:
        member.disk.capacity_bytes = None
        member.disk.fail_after(NEVER, errno.EIO)
        member.disk_is_bad = False

    def _clock(self) -> None:
        self._set_clock(self._someone())

    def _set_clock(self, member: SimMember) -> None:
        rng = self._world.rng
        member.clocks.offset_ns += int(rng.choice((-1, 1)) * rng.choice((0.3, 3, 3700)) * 1e9)

    # -- nodes
    def _silent_node(self) -> None:
        rng = self._world.rng
        agent = rng.choice(self._agents)
        agent.fall_silent(rng.choice((1.0, 2.5, 5.0)))
