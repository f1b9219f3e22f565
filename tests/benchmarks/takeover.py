"""Failover of whole controllers with a long queue, through a login agent; etcd beside it.

    ops/bench takeover [--times 50] [--pending 100000] [--strikes kill,freeze,cut]
                       [--sides spur,etcd]

From the strike at the leader to the next accepted submission, by a client that asks all the while
with the same request id at a login agent's socket, as sbatch does. Strikes: kill -9 of the leader,
SIGSTOP, and its cable cut; each controller is a host of its own (network namespaces, as root). A
struck controller is healed and catches up before the next strike.

etcd, with its own defaults and without TLS, is struck in turn; its client puts a key at every
other member each 20 ms, without waiting for the earlier tries.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import signal
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from spur.client.client import Client
from spur.controller.authority import Authority
from spur.controller.birth import AUTHORITY_DIRECTORY
from spur.controller.enrol import NewAgent, enrol
from spur.testing.agentprocess import AgentProcess
from spur.testing.builders import SMALL_CONFIG
from spur.testing.controllers import ControllerProcess, Controllers
from spur.testing.live.hosts import Hosts, can_make_hosts
from spur.values.config import ConfigFile
from spur.values.configfile import CONFIG_FILE
from spur.wire.cluster import Configured, Reconfigure, ReplicaInfo, ShowReplica
from spur.wire.jobs import JobAccepted
from tests.benchmarks.etcd import EtcdCluster, etcd_version
from tests.benchmarks.figures import Figure, describe_machine, percentile, print_figures, progress
from tests.benchmarks.queue_load import SUBMISSION, fill
from tests.benchmarks.scratch import scratch_directory

FIRST_PORT = 25620

ETCD_PORT = 25640

CONTROLLERS = (1, 2, 3)
"""Hosts of the controllers, and of etcd's members."""

LOGIN = 4
"""The host of the login agent, and of the clients."""

SETTLE_S = 1.0
"""Rest between a healed cluster and the next strike."""

HEAL_S_MAX = 120.0

ETCD_KEYS_MAX = 10_000
"""Entries that etcd has before the first strike, at most."""

PUT_S_MAX = 3.0

PERIOD_S = 0.02

_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Without the proxy that this machine may have."""


class Side(Protocol):
    """What is struck: three members, each on a host of its own."""

    name: str

    def leader(self) -> int:
        """Return the host whose member leads."""

    def pid(self, host: int) -> int:
        """Return the process of a member."""

    def accept(self, strike: Callable[[], None], leader: int) -> float:
        """Strike; return the seconds until another member accepted a write."""

    def restart(self, host: int) -> None:
        """Start a member whose process is gone."""

    def heal(self, host: int) -> None:
        """Wait until a member that was struck is level with the others."""


class SpurSide:
    """Controllers with a login agent in front of them."""

    def __init__(self, directory: Path, hosts: Hosts, pending: int) -> None:
        self.name = "spur"
        self._hosts = hosts
        self.controllers = Controllers.create(
            directory / "controllers",
            len(CONTROLLERS),
            first_port=FIRST_PORT,
            hosts=[hosts.address(host) for host in CONTROLLERS],
            prefixes=[hosts.prefix(host) for host in CONTROLLERS],
        )
        self.controllers.start()
        with hosts.inside(LOGIN):
            self.login = self._make_login(directory)
            self.login.start()
            asyncio.run(self._fill(pending))

    def _make_login(self, directory: Path) -> AgentProcess:
        with self.controllers.blocking() as client:
            files = (ConfigFile(CONFIG_FILE, SMALL_CONFIG),)
            answer = client.ask(Reconfigure(files), Configured)
            if not isinstance(answer, Configured):
                raise RuntimeError(f"the configuration was refused: {answer}")
            new = NewAgent(
                directory=directory / "login",
                name="login",
                role="login",
                controllers=tuple(each.rpc_address for each in self.controllers.members),
            )
            member = self.controllers.members[0]
            enrol(client, Authority.open(member.directory / AUTHORITY_DIRECTORY), new)
        return AgentProcess(new.directory, self._hosts.prefix(LOGIN))

    async def _fill(self, pending: int) -> None:
        clients = [self.controllers.client() for _ in range(4)]
        await fill(clients, pending)
        for client in clients:
            await client.close()

    def leader(self) -> int:
        member = asyncio.run(self.controllers.leader())
        return self.controllers.members.index(member) + 1

    def _member(self, host: int) -> ControllerProcess:
        return self.controllers.members[host - 1]

    def pid(self, host: int) -> int:
        return self._member(host).pid

    def accept(self, strike: Callable[[], None], leader: int) -> float:
        return asyncio.run(self._accept(strike))

    async def _accept(self, strike: Callable[[], None]) -> float:
        socket = f"unix:{self.login.directory / 'spurd.sock'}"
        async with Client([socket], deadline_s=60.0) as client:
            await _submit(client)
            struck_s = time.perf_counter()
            strike()
            await _submit(client)
            return time.perf_counter() - struck_s

    def restart(self, host: int) -> None:
        self._member(host).kill()
        self._member(host).start()

    def heal(self, host: int) -> None:
        other = self._member(1 if host != 1 else 2)
        asyncio.run(_level(self.controllers, self._member(host), other))

    def stop(self) -> None:
        """End everything."""
        self.login.kill()
        for member in self.controllers.members:
            member.kill()


async def _submit(client: Client) -> None:
    answer = await client.ask(SUBMISSION, JobAccepted)
    if not isinstance(answer, JobAccepted):
        raise RuntimeError(f"a submission was refused: {answer}")


async def _level(
    controllers: Controllers, late: ControllerProcess, other: ControllerProcess
) -> None:
    """Wait until a controller is level with another one."""
    async with controllers.local(late, deadline_s=HEAL_S_MAX) as mine:
        while True:
            async with controllers.local(other) as theirs:
                goal = await theirs.ask(ShowReplica(), ReplicaInfo)
            here = await mine.ask(ShowReplica(), ReplicaInfo)
            if (
                isinstance(goal, ReplicaInfo)
                and isinstance(here, ReplicaInfo)
                and here.commit >= goal.commit
                and here.leader
            ):
                return
            await asyncio.sleep(0.1)


class EtcdSide:
    """etcd's members, each on a host of its own."""

    def __init__(self, directory: Path, hosts: Hosts, pending: int) -> None:
        self.name = f"etcd {etcd_version()}"
        self._hosts = hosts
        self._threads: list[AbstractContextManager[None]] = []
        """What keeps each thread on its host."""
        self.cluster = EtcdCluster(
            directory,
            base_port=ETCD_PORT,
            hosts=[hosts.address(host) for host in CONTROLLERS],
            prefixes=[hosts.prefix(host) for host in CONTROLLERS],
        )
        with hosts.inside(LOGIN):
            self.cluster.start()
            url = self.cluster.url(self.cluster.wait_leader())
        keys = min(pending, ETCD_KEYS_MAX)
        with ThreadPoolExecutor(16, initializer=self._enter) as pool:
            list(pool.map(lambda number: _put(url, number), range(keys)))

    def _enter(self) -> None:
        """Let this thread be on the clients' host for good."""
        inside = self._hosts.inside(LOGIN)
        inside.__enter__()
        self._threads.append(inside)

    def leader(self) -> int:
        with self._hosts.inside(LOGIN):
            return self.cluster.wait_leader() + 1

    def pid(self, host: int) -> int:
        return self.cluster.pids()[host - 1]

    def accept(self, strike: Callable[[], None], leader: int) -> float:
        urls = [self.cluster.url(host - 1) for host in CONTROLLERS if host != leader]
        accepted = threading.Event()
        at_s: list[float] = []

        def ask(url: str) -> None:
            try:
                _put(url, 0)
            except OSError:
                return
            at_s.append(time.perf_counter())
            accepted.set()

        with ThreadPoolExecutor(512, initializer=self._enter) as pool:
            ask(urls[0])
            at_s.clear()
            accepted.clear()
            struck_s = time.perf_counter()
            strike()
            while not accepted.wait(PERIOD_S):
                for url in urls:
                    pool.submit(ask, url)
            return at_s[0] - struck_s

    def restart(self, host: int) -> None:
        self.cluster.kill(host - 1)
        self.cluster.start_member(host - 1)

    def heal(self, host: int) -> None:
        end_s = time.monotonic() + HEAL_S_MAX
        goal: int | None = None
        with self._hosts.inside(LOGIN):
            while time.monotonic() < end_s:
                try:
                    if goal is None:
                        goal = self.cluster.revision(self.cluster.wait_leader())
                    # Read through a member, it waits until that has applied what was committed.
                    if self.cluster.revision(host - 1) >= goal:
                        return
                except OSError:
                    pass
                time.sleep(0.1)
        raise TimeoutError(f"{self.name}: member {host} is not level after {HEAL_S_MAX:g} s")

    def stop(self) -> None:
        """End everything."""
        self.cluster.stop()


def _put(url: str, number: int) -> None:
    """Put a key. Raises: OSError when it is not accepted."""
    key = base64.b64encode(b"key-%07d" % number).decode()
    body = json.dumps({"key": key, "value": base64.b64encode(b"x" * 200).decode()})
    request = urllib.request.Request(f"{url}/v3/kv/put", data=body.encode())
    with _DIRECT.open(request, timeout=PUT_S_MAX) as answer:
        json.load(answer)


def strike_once(side: Side, hosts: Hosts, kind: str) -> float:
    """Strike the leader and heal it; return the seconds until another accepted a write."""
    leader = side.leader()
    pid = side.pid(leader)
    others = [host for host in (*CONTROLLERS, LOGIN) if host != leader]
    strikes: dict[str, Callable[[], None]] = {
        "kill": lambda: os.kill(pid, signal.SIGKILL),
        "freeze": lambda: os.kill(pid, signal.SIGSTOP),
        "cut": lambda: hosts.cut_both([leader], others),
    }
    took_s = side.accept(strikes[kind], leader)
    if kind == "kill":
        side.restart(leader)
    elif kind == "freeze":
        os.kill(pid, signal.SIGCONT)
    else:
        hosts.heal()
    side.heal(leader)
    time.sleep(SETTLE_S)
    return took_s


@contextmanager
def sides_of(scratch: Path, hosts: Hosts, options: argparse.Namespace) -> Iterator[list[Side]]:
    """Start the sides, and end them."""
    makers: dict[str, type[SpurSide | EtcdSide]] = {"spur": SpurSide, "etcd": EtcdSide}
    made: list[SpurSide | EtcdSide] = []
    try:
        for name in options.sides.split(","):
            made.append(makers[name](scratch / name, hosts, options.pending))
        yield list(made)
    finally:
        for side in made:
            side.stop()


def main() -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description="failover of whole controllers")
    parser.add_argument("--times", type=int, default=50, help="of each strike")
    parser.add_argument("--pending", type=int, default=100_000)
    parser.add_argument("--strikes", default="kill,freeze,cut")
    parser.add_argument("--sides", default="spur,etcd")
    options = parser.parse_args()
    if not can_make_hosts():
        raise SystemExit("bench: takes root and ip-netns(8). Nothing was measured")
    figures = []
    with scratch_directory("takeover") as scratch, Hosts(LOGIN) as hosts:
        machine = describe_machine(scratch)
        with sides_of(scratch, hosts, options) as sides:
            for kind in options.strikes.split(","):
                took_s: dict[str, list[float]] = {side.name: [] for side in sides}
                for _ in range(options.times):
                    for side in sides:
                        took_s[side.name].append(strike_once(side, hosts, kind))
                        progress(f"{kind}, {side.name}: {took_s[side.name][-1]:.3f} s")
                figures += [
                    Figure(
                        name=f"takeover after {kind}",
                        subject=f"{name}, 3 members",
                        unit="s",
                        values=tuple(values),
                        conditions={
                            "pending": options.pending,
                            "p95": round(percentile(sorted(values), 0.95), 3),
                        },
                    )
                    for name, values in took_s.items()
                ]
    print_figures(figures, machine)


if __name__ == "__main__":
    main()
