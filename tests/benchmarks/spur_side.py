"""Our own log as a side: bare log nodes, no scheduler on top."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from tests.benchmarks.load import Target
from tests.benchmarks.sides import wait_until
from tests.contract.log.cluster import wait_leader
from tests.contract.log.spur import SpurCluster

__all__ = ["SpurSide"]


class SpurSide:
    """Our engine, bare: log nodes with an edge, no scheduler on top."""

    def __init__(self) -> None:
        self.name = "spur"
        self.python = Path(sys.executable)
        self.cluster: SpurCluster

    async def start(self, directory: Path, *, tls: bool) -> None:
        shutil.rmtree(directory, ignore_errors=True)
        self.cluster = SpurCluster(directory, tls=tls)
        await self.cluster.start(3)
        await self.leader()

    async def leader(self) -> int:
        return await wait_leader(self.cluster)

    def nodes(self) -> list[int]:
        return sorted(self.cluster.pids())

    def target(self, node: int) -> Target:
        files = self.cluster.client_files()
        return Target(
            kind="edge",
            address=f"127.0.0.1:{self.cluster.edge_port(node)}",
            authority=files.authority if files else None,
            identity=files.host if files else None,
        )

    def h2load_url(self, node: int) -> str | None:
        return None

    async def count(self) -> int:
        return await self._applied(await self.leader())

    async def _applied(self, node: int) -> int:
        status = await self.cluster.status(node)
        return -1 if status is None else status.applied

    def kill(self, node: int) -> None:
        self.cluster.kill(node)

    async def heal(self, node: int) -> None:
        self.cluster.restart(node)
        await wait_until(lambda: self._has_all(node), f"all entries on {self.name} node {node}")

    async def _has_all(self, node: int) -> bool:
        return await self._applied(node) >= await self.count()

    async def stop(self) -> None:
        await self.cluster.stop()
