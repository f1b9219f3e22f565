"""What the benchmarks of whole controllers share: the load, and a cluster with a long queue."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from spur.client.client import Client
from spur.testing.builders import SMALL_CONFIG
from spur.testing.controllers import Controllers
from spur.testing.hall import SPEC, submission
from spur.values.config import ConfigFile
from spur.values.configfile import CONFIG_FILE
from spur.wire.cluster import Configured, Reconfigure
from spur.wire.declare import Attachment
from spur.wire.jobs import JobAccepted

__all__ = ["SUBMISSION", "fill", "keep_submitting", "running_cluster", "submit_steadily"]

FIRST_PORT = 22700

_SCRIPT = b"#!/bin/sh\n" + b"# a line of a script that somebody wrote\n" * 25
_ENVIRONMENT = b"".join(b"SOME_VARIABLE_%02d=/opt/site/tools/%02d\0" % (n, n) for n in range(40))


_PLAIN = submission(SPEC)

SUBMISSION = replace(
    _PLAIN,
    attachments=(
        Attachment("script", _SCRIPT),
        Attachment("environment", _ENVIRONMENT),
        _PLAIN.attachments[-1],
    ),
)
"""A batch job of a 1 KB script, 40 variables and the text of its command line."""


@contextlib.asynccontextmanager
async def running_cluster(
    directory: Path, count: int, *, settings: str = ""
) -> AsyncIterator[Controllers]:
    """Start controllers with a small configuration, and stop them at the end."""
    controllers = Controllers.create(directory, count, first_port=FIRST_PORT, settings=settings)
    controllers.start()
    try:
        async with controllers.client() as client:
            files = (ConfigFile(CONFIG_FILE, SMALL_CONFIG),)
            answer = await client.ask(Reconfigure(files), Configured)
            if not isinstance(answer, Configured):
                raise RuntimeError(f"the cluster did not take its configuration: {answer}")
        yield controllers
    finally:
        controllers.stop()


async def keep_submitting(
    client: Client, until: float, took_s: list[float], *, count: int | None = None
) -> None:
    """Submit one job after the other, noting how long each took."""
    done = 0
    while time.perf_counter() < until and (count is None or done < count):
        began = time.perf_counter()
        answer = await client.ask(SUBMISSION, JobAccepted)
        if not isinstance(answer, JobAccepted):
            raise RuntimeError(f"a submission was refused: {answer}")
        took_s.append(time.perf_counter() - began)
        done += 1


async def submit_steadily(client: Client, rate: float, until: float, took_s: list[float]) -> None:
    """Submit at a fixed rate, whatever the answers take."""

    async def one() -> None:
        began = time.perf_counter()
        answer = await client.ask(SUBMISSION, JobAccepted)
        if not isinstance(answer, JobAccepted):
            raise RuntimeError(f"a submission was refused: {answer}")
        took_s.append(time.perf_counter() - began)

    loop = asyncio.get_running_loop()
    due = loop.time()
    tasks = set()
    while time.perf_counter() < until:
        task = loop.create_task(one())
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        due += 1 / rate
        await asyncio.sleep(max(0.0, due - loop.time()))
    await asyncio.gather(*tasks)


async def fill(clients: Sequence[Client], count: int) -> None:
    """Submit `count` jobs as fast as the clients can."""
    workers = 64
    share = -(-count // workers)
    await asyncio.gather(
        *(
            keep_submitting(clients[n % len(clients)], float("inf"), [], count=share)
            for n in range(workers)
        )
    )
