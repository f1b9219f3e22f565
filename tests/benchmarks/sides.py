"""The sides of a comparison: a log of three replicas that can be started, found and stopped."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

from tests.benchmarks.certificates import make_certificates
from tests.benchmarks.etcd import EtcdCluster, etcd_version
from tests.benchmarks.load import Target

__all__ = ["ROOT", "EtcdSide", "Side", "make_side", "wait_until"]

ROOT = Path(__file__).parents[2]
_ETCD_PORT = 22110
_HEAL_SECONDS_MAX = 30.0


class Side(Protocol):
    """One log under measurement; nodes are numbered as the side likes."""

    name: str
    python: Path
    """The interpreter that its client needs."""

    async def start(self, directory: Path, *, tls: bool) -> None:
        """Start three fresh replicas and wait for a leader."""

    async def leader(self) -> int:
        """Return the node that leads. Raises: AssertionError or TimeoutError when none does."""

    def nodes(self) -> list[int]:
        """Return the nodes that were started and not killed."""

    def target(self, node: int) -> Target:
        """Return how clients reach a node."""

    async def count(self) -> int:
        """Return how many appends are in the log, as its leader counts them."""

    def h2load_url(self, node: int) -> str | None:
        """Return where h2load can put; None when the side does not speak HTTP/2."""

    def kill(self, node: int) -> None:
        """End a node as a crash would (SIGKILL)."""

    async def heal(self, node: int) -> None:
        """Start a killed node again and wait until it has caught up. Raises: TimeoutError."""

    async def stop(self) -> None:
        """End all nodes."""


class EtcdSide:
    """Debian's etcd with its own defaults."""

    def __init__(self) -> None:
        self.name = f"etcd {etcd_version()}"
        self.python = ROOT / ".venv-peers/bin/python"
        if not self.python.exists():
            raise SystemExit("bench: no .venv-peers; run ops/peers first. Nothing was measured")
        self.cluster: EtcdCluster
        self._authority: Path | None = None

    async def start(self, directory: Path, *, tls: bool) -> None:
        shutil.rmtree(directory, ignore_errors=True)
        certificates = make_certificates(directory / "tls") if tls else None
        self._authority = certificates.authority if certificates else None
        self.cluster = EtcdCluster(directory, base_port=_ETCD_PORT, certificates=certificates)
        await asyncio.to_thread(self.cluster.start)

    async def leader(self) -> int:
        return await asyncio.to_thread(self.cluster.wait_leader)

    def nodes(self) -> list[int]:
        return sorted(self.cluster.pids())

    def target(self, node: int) -> Target:
        return Target(kind="etcd", address=self.cluster.address(node), authority=self._authority)

    def h2load_url(self, node: int) -> str | None:
        return self.cluster.url(node)

    async def count(self) -> int:
        leader = await self.leader()
        return await asyncio.to_thread(self.cluster.revision, leader)

    def kill(self, node: int) -> None:
        self.cluster.kill(node)

    async def heal(self, node: int) -> None:
        self.cluster.start_member(node)
        await wait_until(lambda: self._has_all(node), f"all entries on {self.name} node {node}")

    async def _has_all(self, node: int) -> bool:
        try:
            # A read through a member waits until that member has applied all that was committed.
            return await asyncio.to_thread(self.cluster.revision, node) >= await self.count()
        except OSError:
            return False

    async def stop(self) -> None:
        await asyncio.to_thread(self.cluster.stop)


def make_side(name: str) -> Side:
    """Return a side by its name. Raises: SystemExit for one that does not exist."""
    if name == "etcd":
        return EtcdSide()
    if name == "spur":
        from tests.benchmarks.spur_side import SpurSide

        return SpurSide()
    raise SystemExit(f"bench: no side {name!r}; etcd and spur exist. Nothing was measured")


async def wait_until(is_so: Callable[[], Awaitable[bool]], what: str) -> None:
    """Ask ten times a second until it is so. Raises: TimeoutError that says what did not come."""
    for _ in range(int(_HEAL_SECONDS_MAX * 10)):
        if await is_so():
            return
        await asyncio.sleep(0.1)
    raise TimeoutError(f"{what} did not come within {_HEAL_SECONDS_MAX:.0f} s")
