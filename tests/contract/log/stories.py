"""Running one story on a fresh cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from tests.contract.log.cluster import CrashableCluster, LogCluster
from tests.contract.log.engines import Engine

__all__ = ["crash_story", "numbered", "story"]

C = TypeVar("C", bound=LogCluster)


def story(
    engine: Engine, directory: Path, tell: Callable[[LogCluster], Awaitable[None]], nodes: int = 0
) -> None:
    """Start a cluster (of `nodes`, else the engine's usual size), tell the story, end it."""
    asyncio.run(_told(engine.make(directory), nodes or engine.nodes, tell))


def crash_story(
    engine: Engine,
    directory: Path,
    tell: Callable[[CrashableCluster], Awaitable[None]],
    nodes: int = 0,
) -> None:
    """Do the same on a cluster of processes."""
    if engine.make_crashable is None:
        raise TypeError(f"{engine.name} has no processes that could crash")
    asyncio.run(_told(engine.make_crashable(directory), nodes or engine.nodes, tell))


async def _told(cluster: C, nodes: int, tell: Callable[[C], Awaitable[None]]) -> None:
    try:
        await cluster.start(nodes)
        await tell(cluster)
    finally:
        await cluster.stop()


def numbered(count: int, what: str = "entry") -> list[bytes]:
    """Return distinct pieces of data, alike in nothing that matters."""
    return [b"%s-%04d" % (what.encode(), number) for number in range(count)]
