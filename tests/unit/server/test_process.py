"""What a daemon does with its process."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys

from spur.server.process import run_until_stopped


def test_interpreter_is_tuned_for_a_loop_beside_disk_threads() -> None:
    """A controller starts: threads hand over fast, and loaded objects are never collected again."""
    code = (
        "import gc, sys; from spur.server.process import tune_interpreter; tune_interpreter();"
        "print(sys.getswitchinterval(), gc.get_freeze_count() > 10_000)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "0.0005 True\n"


def test_what_survived_is_kept_out_of_later_collections() -> None:
    """Ten minutes have passed: the queue that grew meanwhile is never walked again."""
    code = (
        "import gc; from spur.server.process import freeze_garbage, tune_interpreter;"
        "tune_interpreter(); before = gc.get_freeze_count(); kept = [[] for _ in range(5000)];"
        "freeze_garbage(); print(gc.get_freeze_count() - before >= 5000, gc.get_threshold()[2])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "True 1000000\n"


def test_daemon_waits_for_the_signal_to_stop() -> None:
    """An administrator stops a controller."""

    async def story() -> BaseException | None:
        failed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        waiting = asyncio.create_task(run_until_stopped(failed))
        await asyncio.sleep(0)
        os.kill(os.getpid(), signal.SIGTERM)
        return await waiting

    assert asyncio.run(story()) is None


def test_daemon_ends_with_the_fault_that_ends_it() -> None:
    """The disk fails under a running controller."""
    fault = OSError("the disk failed")

    async def story() -> BaseException | None:
        failed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        failed.set_result(fault)
        return await run_until_stopped(failed)

    assert asyncio.run(story()) is fault
