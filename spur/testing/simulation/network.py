"""The network between simulated replicas: it loses, delays, repeats, reorders and cuts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from spur.consensus.messages import Vote, VoteReply
from spur.testing.simulation.world import World

__all__ = ["Network", "Weather"]


@dataclass
class Weather:
    """How bad the network is, for the whole run."""

    loss: float = 0.0
    repeats: float = 0.0
    delay_s: float = 0.002
    """Typical longest delay; one message in a hundred takes twenty times that."""
    late_votes: float = 0.0
    """Share of the votes, and requests for them, that take longer than a restart does."""


class Network:
    """Carries batches of messages between replicas by their ids."""

    def __init__(self, world: World, weather: Weather, receive: Callable[[Any], None]) -> None:
        self.weather = weather
        self.cut: set[tuple[int, int]] = set()
        """Directed pairs that nothing passes."""
        self.takes_away: Callable[[int, Any], bool] = _nothing_taken
        """Asked of each message with its sender; one that it takes is the asker's to deliver."""
        self._world = world
        self._receive = receive

    def send(self, sender: int, messages: Sequence[Any]) -> None:
        """Send each message on its own way."""
        rng, weather = self._world.rng, self.weather
        for message in messages:
            self._world.counts[type(message).__name__] += 1
            if self.takes_away(sender, message):
                continue
            if (sender, message.to) in self.cut or rng.random() < weather.loss:
                self._world.tell(sender, "loses", message)
                continue
            self._world.tell(sender, "sends", message)
            for _ in range(2 if rng.random() < weather.repeats else 1):
                delay_s = 0.0001 + rng.random() ** 3 * weather.delay_s
                if rng.random() < 0.01:
                    delay_s *= 20
                if isinstance(message, Vote | VoteReply) and rng.random() < weather.late_votes:
                    delay_s += rng.random() * 0.6
                self._world.after(delay_s, self._arrive, sender, message)

    def deliver(self, message: Any) -> None:
        """Deliver a message that was taken away."""
        self._receive(message)

    def _arrive(self, sender: int, message: Any) -> None:
        if (sender, message.to) not in self.cut:
            self._receive(message)

    def heal(self) -> None:
        """Let everything pass again."""
        self.cut.clear()

    def cut_sides(self, side: set[int], everyone: Sequence[int], *, one_way: bool) -> None:
        """Cut a set of replicas off the rest, in one direction or both."""
        self.cut = {(a, b) for a in sorted(side) for b in everyone if b not in side}
        if not one_way:
            self.cut |= {(b, a) for a, b in self.cut}

    def cut_pair(self, a: int, b: int) -> None:
        """Cut two replicas off each other; both still reach the rest."""
        self.cut = {(a, b), (b, a)}


def _nothing_taken(sender: int, message: Any) -> bool:
    return False
