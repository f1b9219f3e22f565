"""The command line that all peers' node programs share."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path

from spur.testing.edge import EdgeNode, EdgeServer

__all__ = ["Arguments", "run_node"]


class Arguments(argparse.Namespace):
    """Which node of which cluster this is."""

    id: int
    dir: Path
    ports: list[int]
    """The log's port of each node, node 1 first."""
    edge: int

    @property
    def address(self) -> str:
        """This node's address in the log."""
        return f"127.0.0.1:{self.ports[self.id - 1]}"

    @property
    def others(self) -> list[str]:
        """The other nodes' addresses."""
        own = self.ports[self.id - 1]
        return [f"127.0.0.1:{port}" for port in self.ports if port != own]


def run_node(start: Callable[[Arguments], Awaitable[EdgeNode]]) -> None:
    """Read the command line, start a node and serve its edge until the process is killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--id", type=int, required=True)
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--ports", type=lambda text: [int(port) for port in text.split(",")])
    parser.add_argument("--edge", type=int, required=True)
    arguments = parser.parse_args(namespace=Arguments())

    async def serve() -> None:
        edge = EdgeServer(await start(arguments))
        await edge.listen("127.0.0.1", arguments.edge)
        await asyncio.Event().wait()

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve())
