"""Virtual time and the one source of chance: a seed is a whole run."""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

__all__ = ["World"]

DETAIL_MAX = 200
"""Letters of one detail in a story: bodies of entries are not told."""


class World:
    """Calls in the order of virtual time; equal times in the order they were asked for."""

    def __init__(self, seed: int, *, tells: bool = False) -> None:
        self.rng = random.Random(seed)
        self.now_s = 0.0
        self.calls = 0
        self.counts: Counter[str] = Counter()
        """How often each thing happened that a run is meant to meet."""
        self.story: list[str] | None = [] if tells else None
        """What happened, a line each; kept only when a run is told again."""
        self._queue: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._number = 0

    def after(self, delay_s: float, call: Callable[..., None], *arguments: Any) -> None:
        """Call something later."""
        self._number += 1
        heapq.heappush(self._queue, (self.now_s + delay_s, self._number, call, arguments))

    def pass_time(self, seconds: float) -> None:
        """Let virtual time pass."""
        queue, end_s = self._queue, self.now_s + seconds
        while queue and queue[0][0] <= end_s:
            self.now_s, _, call, arguments = heapq.heappop(queue)
            self.calls += 1
            call(*arguments)
        self.now_s = end_s

    def tell(self, who: object, what: str, *details: object) -> None:
        """Add a line to the story, if one is kept."""
        if self.story is not None:
            text = " ".join([what, *(str(detail)[:DETAIL_MAX] for detail in details)])
            self.story.append(f"{self.now_s:9.4f}  {who!s:<10} {text}")
