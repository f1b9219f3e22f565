"""Both kinds of loop that a daemon may run on, for tests of what runs on one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import uvloop

__all__ = ["LOOPS", "Run", "run_on_loop", "until"]

LOOPS = ("asyncio", "uvloop")

Run: TypeAlias = Callable[[Awaitable[None]], None]
"""Runs a coroutine to its end."""


def run_on_loop(kind: str, main: Awaitable[None]) -> None:
    """Run a coroutine on a loop of this kind.

    Raises: what it raises, and AssertionError when a callback of the loop failed.
    """
    factory = uvloop.new_event_loop if kind == "uvloop" else asyncio.new_event_loop

    async def guarded() -> None:
        faults: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, what: faults.append(what))
        await main
        await asyncio.sleep(0.02)
        if faults:
            raise AssertionError(f"a callback failed: {faults}")

    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(guarded())


async def until(condition: Callable[[], bool], wait_s: float = 3.0) -> None:
    """Wait for a condition. Raises: TimeoutError when it does not come."""
    async with asyncio.timeout(wait_s):
        while not condition():  # noqa: ASYNC110  # there is no event for any change of a state
            await asyncio.sleep(0.005)
