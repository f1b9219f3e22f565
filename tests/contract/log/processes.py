"""A cluster of node processes with an edge each (`spur.testing.edge`), on loopback."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import ssl
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from spur.testing.edge import AppendUnknown, EdgeClient, NodeStatus

__all__ = ["NodeCommand", "ProcessCluster", "free_ports"]

_FIRST_PORT = int(os.environ.get("SPUR_TEST_PORTS", "22300"))
_PORT_COUNT = 600
_HOST = "127.0.0.1"
_next_port = [0]

NodeCommand = Callable[[int, Sequence[int], Sequence[int], Path], list[str]]
"""(node, log ports of all nodes, edge ports of all nodes, the node's directory) -> argv"""


def free_ports(count: int) -> list[int]:
    """Return ports that nobody uses now, below the range the kernel hands out by itself."""
    ports: list[int] = []
    for _ in range(_PORT_COUNT):
        port = _FIRST_PORT + _next_port[0] % _PORT_COUNT
        _next_port[0] += 1
        if _is_free(port, socket.SOCK_STREAM) and _is_free(port, socket.SOCK_DGRAM):
            ports.append(port)
            if len(ports) == count:
                return ports
    raise RuntimeError(f"fewer than {count} free ports from {_FIRST_PORT} on; nothing was started")


def _is_free(port: int, kind: socket.SocketKind) -> bool:
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, port))
        except OSError:
            return False
    return True


class ProcessCluster:
    """Implements `LogCluster` over processes that one command line each starts."""

    def __init__(
        self,
        directory: Path,
        command: NodeCommand,
        *,
        patience_s: float,
        environment: dict[str, str] | None = None,
    ) -> None:
        self.nodes: Sequence[int] = ()
        self.patience_s = patience_s
        self._directory = directory
        self._command = command
        self._environment = {**os.environ, **(environment or {})}
        self.tls: ssl.SSLContext | None = None
        """How the edges are reached; None without TLS."""
        self._log_ports: list[int] = []
        self._edge_ports: list[int] = []
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._paused: set[int] = set()
        self._clients: dict[int, EdgeClient] = {}

    async def start(self, count: int) -> None:
        ports = free_ports(2 * count)
        self._log_ports, self._edge_ports = ports[:count], ports[count:]
        self.nodes = tuple(range(1, count + 1))
        self.prepare(count)
        for node in self.nodes:
            self.restart(node)

    def restart(self, node: int) -> None:
        home = self.home(node)
        home.mkdir(parents=True, exist_ok=True)
        argv = self._command(node, self._log_ports, self._edge_ports, home)
        with self._words(node).open("ab") as words:
            self._processes[node] = subprocess.Popen(
                argv, stdout=words, stderr=subprocess.STDOUT, env=self._environment
            )

    def prepare(self, count: int) -> None:
        """Make what the nodes need before they start. Raises: SizeRefused."""

    def log_port(self, node: int) -> int:
        """Return where the node's log listens to the others."""
        return self._log_ports[node - 1]

    def home(self, node: int) -> Path:
        """Return the node's directory."""
        return self._directory / f"node-{node}"

    def edge_port(self, node: int) -> int:
        """Return where the node's edge listens."""
        return self._edge_ports[node - 1]

    def pids(self) -> dict[int, int]:
        """Return the process ids of the nodes that were started and not killed."""
        return {node: process.pid for node, process in self._processes.items()}

    def _words(self, node: int) -> Path:
        return self._directory / f"node-{node}.log"

    async def append(self, node: int, data: bytes) -> int:
        client = await self._client(node)
        try:
            return await asyncio.wait_for(client.append(data), self.patience_s)
        except TimeoutError:
            raise AppendUnknown(f"no answer within {self.patience_s:.0f} s") from None

    async def applied(self, node: int) -> list[bytes]:
        client = await self._client(node)
        try:
            return await asyncio.wait_for(client.applied(), self.patience_s)
        except TimeoutError:
            raise AppendUnknown(f"no answer within {self.patience_s:.0f} s") from None

    async def status(self, node: int) -> NodeStatus | None:
        if node in self._paused or not self.is_running(node):
            return None
        try:
            client = await self._client(node)
            return await asyncio.wait_for(client.status(), 1.0)
        except (AppendUnknown, TimeoutError):
            return None

    async def _client(self, node: int) -> EdgeClient:
        client = self._clients.get(node)
        if client is None or client.transport is None:
            try:
                client = await EdgeClient.connect(_HOST, self.edge_port(node), self.tls)
            except OSError as failure:
                raise AppendUnknown(f"node {node} does not listen: {failure}") from None
            self._clients[node] = client
        return client

    def kill(self, node: int) -> None:
        self._signal(node, signal.SIGKILL)
        self._paused.discard(node)
        self._processes.pop(node).wait()
        self._disconnect(node)

    def _disconnect(self, node: int) -> None:
        client = self._clients.pop(node, None)
        if client is not None:
            client.close()

    def pause(self, node: int) -> None:
        self._signal(node, signal.SIGSTOP)
        self._paused.add(node)

    def resume(self, node: int) -> None:
        self._signal(node, signal.SIGCONT)
        self._paused.discard(node)

    def _signal(self, node: int, number: signal.Signals) -> None:
        self._processes[node].send_signal(number)

    def is_running(self, node: int) -> bool:
        process = self._processes.get(node)
        return process is not None and process.poll() is None

    def last_words(self, node: int) -> str:
        return self._words(node).read_text(errors="replace")[-2000:]

    def ended(self) -> str:
        return "".join(
            f"; node {node} ended: {self.last_words(node).strip().splitlines()[-1:]}"
            for node in self._processes
            if not self.is_running(node)
        )

    def files(self, node: int) -> list[Path]:
        return sorted(path for path in self.home(node).rglob("*") if path.is_file())

    async def stop(self) -> None:
        for node in list(self._processes):
            self.kill(node)
        # One turn of the loop, so that closed connections are gone before it ends.
        await asyncio.sleep(0)
