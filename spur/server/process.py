"""What every daemon of ours does with its process: interpreter settings, signals, the loop."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import signal
import sys
from collections.abc import Coroutine
from typing import TypeVar

__all__ = [
    "die_with_parent",
    "freeze_garbage",
    "run_daemon",
    "run_until_stopped",
    "tune_interpreter",
]

SWITCH_INTERVAL_S = 0.0005
"""How long a thread may hold the interpreter while another waits. Source: LOG-CONTRACT 8.2."""

OLDEST_THRESHOLD = 1_000_000
"""Middle collections before the oldest generation is collected: never, in practice."""

PR_SET_PDEATHSIG = 1
"""Source: prctl(2)."""

T = TypeVar("T")


def die_with_parent(parent: int = 0) -> None:
    """Let the kernel kill this process when the one that started it ends, however it ends.

    With `parent`, its pid, an end that came before this process could read a line is seen too.

    Raises: OSError when the kernel refuses.
    """
    parent = parent or os.getppid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)  # It ended before this was asked.


def tune_interpreter() -> None:
    """Let disk threads hand over quickly; never collect the oldest generation by itself."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, OLDEST_THRESHOLD)
    freeze_garbage()


def freeze_garbage() -> None:
    """Collect what is young, and keep what survives out of later collections.

    A full collection walks everything that lives, hundreds of milliseconds with a long queue.
    """
    gc.collect(1)
    gc.freeze()


def run_daemon(main: Coroutine[None, None, T]) -> T:
    """Run a coroutine on uvloop where there is one, else on asyncio's own loop."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    return uvloop.run(main)


async def run_until_stopped(failed: asyncio.Future[BaseException]) -> BaseException | None:
    """Wait for SIGTERM or SIGINT, which give None, or for a fault, which is returned."""
    loop = asyncio.get_running_loop()
    stopped: asyncio.Future[None] = loop.create_future()

    def stop() -> None:
        if not stopped.done():
            stopped.set_result(None)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    await asyncio.wait((stopped, failed), return_when=asyncio.FIRST_COMPLETED)
    return failed.result() if failed.done() else None
