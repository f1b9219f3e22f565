"""Virtual time and the one source of chance: a seed is a whole run."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from typing import Any

__all__ = ["World"]


class World:
    """Calls in the order of virtual time; equal times in the order they were asked for."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.now_s = 0.0
        self.calls = 0
        self._queue: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._number = 0

    def after(self, delay_s: float, call: Callable[..., None], *arguments: Any) -> None:
        """Call something later."""
        self._number += 1
        heapq.heappush(self._queue, (self.now_s + delay_s, self._number, call, arguments))

    def run_until(self, end_s: float) -> None:
        """Let virtual time pass."""
        queue = self._queue
        while queue and queue[0][0] <= end_s:
            self.now_s, _, call, arguments = heapq.heappop(queue)
            self.calls += 1
            call(*arguments)
        self.now_s = end_s
