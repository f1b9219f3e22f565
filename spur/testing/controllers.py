"""Real controllers as processes: for end-to-end tests, benchmarks and the demonstration.

What runs is the front alone, without the parent that would start it again: here the test does;
unless a parent is asked for.

Each controller has its own directory and ports on one host address, or a host of its own when a
prefix command is given (`ip netns exec NAME`, say). Only processes started here are ever signalled.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from spur.client.blocking import BlockingClient
from spur.client.client import Client
from spur.client.tls import TlsFiles, credentials_in
from spur.consensus.genesis import SEGMENT_ENTRIES
from spur.controller.admission import admit
from spur.controller.authority import Authority
from spur.controller.birth import (
    AUTHORITY_DIRECTORY,
    TLS_DIRECTORY,
    NewController,
    give_birth,
)
from spur.controller.settings import SETTINGS_FILE
from spur.values.errors import SpurError
from spur.wire.cluster import ReplicaInfo, ShowReplica

__all__ = ["ControllerProcess", "Controllers"]

PATIENCE_S = 30.0
"""How long a controller may take to serve, or the cluster to find a leader."""


@dataclass
class ControllerProcess:
    """One controller of the cluster, running or not."""

    directory: Path
    raft_address: str
    rpc_address: str
    prefix: Sequence[str] = ()
    """Words before the command: how to run it on its host."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Added to this process's environment."""
    has_parent: bool = False
    """Whether it runs as `spurctld run` does, with a parent that starts its front again."""
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def socket(self) -> str:
        """Address of its Unix socket."""
        return f"unix:{self.directory / 'spurctld.sock'}"

    @property
    def pid(self) -> int:
        """Its process id. Raises: ValueError when it is not running."""
        if self.process is None:
            raise ValueError(f"{self.directory.name} is not running")
        return self.process.pid

    @property
    def is_running(self) -> bool:
        """Whether the process is there."""
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        """Start it; its words are added to `log` in its directory."""
        if self.is_running:
            return
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*self.prefix, sys.executable, "-P", "-m", *self._words()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **self.environment},
                start_new_session=True,
            )

    def _words(self) -> tuple[str, ...]:
        directory = str(self.directory)
        if self.has_parent:
            return ("spur.controller.main", "run", "--dir", directory)
        return ("spur.controller.frontmain", directory)

    def signal(self, number: int) -> None:
        """Send a signal to its process."""
        if self.is_running:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it as a crash would, and what it started with it."""
        if self.process is not None:
            if self.is_running:
                os.killpg(self.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None

    def wait(self) -> int:
        """Wait until it ends by itself; return its exit status.

        Raises: subprocess.TimeoutExpired when it goes on for long.
        """
        if self.process is None:
            return 0
        try:
            return self.process.wait(PATIENCE_S)
        finally:
            self.kill()

    def stop(self) -> int:
        """End it politely; return its exit status."""
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        return self.wait()

    def words(self) -> str:
        """Return what it has said so far."""
        path = self.directory / "log"
        return path.read_text() if path.exists() else ""


class Controllers:
    """A cluster of controllers on this machine."""

    def __init__(self, members: Sequence[ControllerProcess]) -> None:
        self.members = list(members)

    @classmethod
    def create(
        cls,
        directory: Path,
        count: int,
        *,
        first_port: int,
        hosts: Sequence[str] = (),
        prefixes: Sequence[Sequence[str]] = (),
        settings: str = "",
        segment_entries: int = SEGMENT_ENTRIES,
    ) -> Controllers:
        """Make a cluster: ports count up from the first, two for each controller.

        Without `hosts` all of them listen on a loopback address of this very process.
        `settings` is added to each controller's settings file; `segment_entries` is the length of
        a ledger segment.
        """
        members = []
        for number in range(count):
            host = hosts[number] if hosts else _loopback()
            port = first_port + 2 * number
            members.append(
                ControllerProcess(
                    directory / f"c{number + 1}",
                    f"{host}:{port}",
                    f"{host}:{port + 1}",
                    prefixes[number] if prefixes else (),
                )
            )
        give_birth(
            [
                NewController(
                    directory=member.directory,
                    raft_address=member.raft_address,
                    rpc_address=member.rpc_address,
                )
                for member in members
            ],
            segment_entries=segment_entries,
        )
        for member in members:
            with (member.directory / SETTINGS_FILE).open("a") as file:
                file.write(settings)
        return cls(members)

    def add(self, directory: Path, *, first_port: int) -> ControllerProcess:
        """Add a controller to the cluster, which must be running, and start it.

        It lives in a directory of this one, beside the others, and listens where they do.
        """
        first = self.members[0]
        host = first.rpc_address.rpartition(":")[0]
        member = ControllerProcess(
            directory, f"{host}:{first_port}", f"{host}:{first_port + 1}", first.prefix
        )
        with self.blocking() as client:
            admit(
                client,
                Authority.open(first.directory / AUTHORITY_DIRECTORY),
                directory=directory,
                name=directory.name,
                raft_address=member.raft_address,
                rpc_address=member.rpc_address,
            )
        self.members.append(member)
        member.start()
        return member

    def copy(self, directory: Path) -> Controllers:
        """Return a copy of the whole cluster, as its files are now; only one of the two can run."""
        members = []
        for member in self.members:
            target = directory / member.directory.name
            # What is not written yet of a log is zeros; holes are quicker to copy.
            subprocess.run(
                ["cp", "-a", "--sparse=always", str(member.directory), str(target)], check=True
            )
            (target / "log").unlink(missing_ok=True)
            members.append(replace(member, directory=target, process=None))
        return Controllers(members)

    @property
    def credentials(self) -> TlsFiles:
        """Credentials of the first controller's host, whose root is an administrator."""
        return credentials_in(self.members[0].directory / TLS_DIRECTORY)

    def start(self) -> None:
        """Start every controller that is not running."""
        for member in self.members:
            member.start()

    def stop(self) -> None:
        """End every controller politely."""
        for member in self.members:
            member.signal(signal.SIGCONT)
            member.signal(signal.SIGTERM)
        for member in self.members:
            member.stop()

    def client(self, *, deadline_s: float = PATIENCE_S) -> Client:
        """Return an administrator's client that knows all controllers, over TLS."""
        return Client(
            [member.rpc_address for member in self.members],
            tls=self.credentials,
            deadline_s=deadline_s,
        )

    def local(self, member: ControllerProcess, *, deadline_s: float = PATIENCE_S) -> Client:
        """Return a client of one controller's Unix socket."""
        return Client([member.socket], deadline_s=deadline_s)

    def blocking(
        self, member: ControllerProcess | None = None, *, deadline_s: float = PATIENCE_S
    ) -> BlockingClient:
        """Return a blocking client: of all controllers over TLS, or of one by its Unix socket."""
        if member is not None:
            return BlockingClient([member.socket], deadline_s=deadline_s)
        return self.blocking_of([each.rpc_address for each in self.members], deadline_s=deadline_s)

    def blocking_of(
        self, addresses: Sequence[str], *, deadline_s: float = PATIENCE_S
    ) -> BlockingClient:
        """Return an administrator's blocking client that asks the first of these at first."""
        return BlockingClient(addresses, tls=self.credentials, deadline_s=deadline_s)

    async def leader(self) -> ControllerProcess:
        """Return the controller that leads.

        Raises: SpurError when none does for long.
        """
        loop = asyncio.get_running_loop()
        end_s = loop.time() + PATIENCE_S
        while loop.time() < end_s:
            for member in self.members:
                if member.is_running and await self._leads(member):
                    return member
            await asyncio.sleep(0.05)
        raise SpurError(f"no controller led within {PATIENCE_S:g} s")

    async def _leads(self, member: ControllerProcess) -> bool:
        try:
            async with self.local(member, deadline_s=0.5) as client:
                answer = await client.ask(ShowReplica(), ReplicaInfo)
        except SpurError:
            return False
        return isinstance(answer, ReplicaInfo) and answer.leads


def _loopback() -> str:
    """Return an address of its own for each process, so that two runs of the tests never meet."""
    number = os.getpid() % (1 << 22)
    return f"127.{64 + (number >> 16)}.{number >> 8 & 0xFF}.{number & 0xFF or 255}"
