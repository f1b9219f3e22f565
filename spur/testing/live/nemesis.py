"""What goes wrong with real controllers: the network, their processes, in an order from a seed.

The seed fixes what strikes and for how long, not when a message is under way: a run can't be
replayed, only repeated.
"""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence

from spur.testing.controllers import ControllerProcess, Controllers
from spur.testing.live.hosts import Hosts
from spur.testing.live.load import Wrong
from spur.values.errors import SpurError
from spur.wire.cluster import ReplicaInfo, ShowReplica

__all__ = ["Nemesis"]

DWELL_S = (0.2, 0.8, 1.5, 3.0)
"""How long a strike lasts, at most; drawn from these."""

CALM_S = 1.5
"""The longest pause between two strikes."""

TROUBLE_S_MAX = 8.0
"""After so long without a moment of peace everything is healed for one."""


class Nemesis:
    """Strikes until it is told to stop; `heal` undoes everything."""

    def __init__(self, controllers: Controllers, hosts: Hosts, rng: random.Random) -> None:
        self.counts: Counter[str] = Counter()
        """How often each strike came."""
        self.is_over = False
        self._controllers = controllers
        self._hosts = hosts
        self._rng = rng
        self._numbers = list(range(1, len(controllers.members) + 1))
        self._expected_down: set[int] = set()
        self._leader = 1
        self._peace_s = time.monotonic()
        self._strikes: dict[str, Callable[[], None]] = {
            "kill": self._kill,
            "kill many": self._kill_many,
            "stop": self._stop,
            "restart": self._restart,
            "halves": self._halves,
            "one way": self._one_way,
            "pair": self._pair,
            "leader apart": self._leader_apart,
            "leader deaf": self._leader_deaf,
            "client apart": self._client_apart,
        }

    async def rage(self) -> None:
        """Strike again and again. Raises: Wrong when a controller ended by itself."""
        rng = self._rng
        while not self.is_over:
            self._look_at_processes()
            await self._find_leader()
            name = rng.choice(sorted(self._strikes))
            self.counts[name] += 1
            self._strikes[name]()
            await asyncio.sleep(rng.choice(DWELL_S) * (0.3 + 0.7 * rng.random()))
            in_trouble_s = time.monotonic() - self._peace_s
            # Troubles may pile up, but now and then there is peace, or nothing would be decided.
            if rng.random() < 0.6 or in_trouble_s > TROUBLE_S_MAX:
                await self.heal()
                await asyncio.sleep(rng.random() * CALM_S)
                self._peace_s = time.monotonic()

    async def heal(self) -> None:
        """Let every message pass and every controller run."""
        self._look_at_processes()
        self._hosts.heal()
        for number in self._numbers:
            self._member(number).signal(signal.SIGCONT)
        self._controllers.start()
        self._expected_down.clear()

    @property
    def strikes(self) -> int:
        """How many strikes there were."""
        return self.counts.total()

    # -- processes
    def _member(self, number: int) -> ControllerProcess:
        return self._controllers.members[number - 1]

    def _look_at_processes(self) -> None:
        """See that nobody ended but those who were made to. Raises: Wrong."""
        for number in self._numbers:
            member = self._member(number)
            if number not in self._expected_down and not member.is_running:
                status = member.wait()
                raise Wrong(
                    f"controller {number} ended by itself with status {status}:\n{member.words()}"
                )

    def _kill(self) -> None:
        self._down(self._rng.choice(self._numbers))

    def _kill_many(self) -> None:
        for number in self._rng.sample(self._numbers, self._rng.randint(2, len(self._numbers))):
            self._down(number)

    def _down(self, number: int) -> None:
        self._expected_down.add(number)
        self._member(number).kill()

    def _stop(self) -> None:
        for number in self._rng.sample(self._numbers, self._rng.choice((1, 1, 2))):
            self._member(number).signal(signal.SIGSTOP)

    def _restart(self) -> None:
        """End one politely and start it at once."""
        number = self._rng.choice(self._numbers)
        member = self._member(number)
        if member.is_running:
            status = member.stop()
            # One that has not begun to serve yet is ended by the signal itself.
            if status not in (0, -signal.SIGTERM):
                raise Wrong(f"controller {number} ended with status {status} after SIGTERM")
            member.start()

    # -- the network
    async def _find_leader(self) -> None:
        asked = await asyncio.gather(*map(self._leads, self._numbers))
        leading = [number for number, leads in zip(self._numbers, asked, strict=True) if leads]
        self._leader = self._rng.choice(leading or self._numbers)

    async def _leads(self, number: int) -> bool:
        member = self._member(number)
        if not member.is_running:
            return False
        try:
            async with self._controllers.local(member, deadline_s=0.2) as client:
                answer = await client.ask(ShowReplica(), ReplicaInfo)
        except SpurError:
            return False
        return isinstance(answer, ReplicaInfo) and answer.leads

    def _others(self, side: Sequence[int]) -> list[int]:
        return [number for number in self._numbers if number not in side]

    def _halves(self) -> None:
        side = self._rng.sample(self._numbers, self._rng.randint(1, len(self._numbers) - 1))
        self._hosts.cut_both(side, self._others(side))

    def _one_way(self) -> None:
        sender = self._rng.choice(self._numbers)
        others = self._others([sender])
        for receiver in self._rng.sample(others, self._rng.randint(1, len(others))):
            self._hosts.cut(sender, receiver)

    def _pair(self) -> None:
        one, two = self._rng.sample(self._numbers, 2)
        self._hosts.cut_both([one], [two])

    def _leader_apart(self) -> None:
        """Clients still reach it, and the others do not."""
        self._hosts.cut_both([self._leader], self._others([self._leader]))

    def _leader_deaf(self) -> None:
        """It is heard, and hears nobody."""
        for number in self._others([self._leader]):
            self._hosts.cut(number, self._leader)

    def _client_apart(self) -> None:
        """The clients' host and one controller do not reach each other."""
        self._hosts.cut_both([self._hosts.count], [self._rng.choice(self._numbers)])
