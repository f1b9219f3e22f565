"""The hosts of a run and what runs on them.

    hosts 1 to C            controllers, as spurctld runs them
    hosts C+1 to C+3        agents: one node, one node, four nodes
    host C+4                the login agent, and those who ask

Each controller's clock is a file that holds how far it is off. One controller lies on a small file
system, which can be filled.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

from spur.agent.processes import descendants, kill_leftovers
from spur.agent.spool import Spool
from spur.client.blocking import BlockingClient
from spur.controller.authority import Authority
from spur.controller.birth import AUTHORITY_DIRECTORY
from spur.controller.clocks import OFFSET_BYTES
from spur.controller.enrol import NewAgent, enrol
from spur.controller.settings import SETTINGS_FILE
from spur.testing.agentprocess import AgentProcess
from spur.testing.chaos.plan import AGENTS, Plan
from spur.testing.chaos.scripts import write_srun
from spur.testing.controllers import ControllerProcess, Controllers
from spur.testing.live.hosts import Hosts
from spur.testing.live.load import Wrong
from spur.testing.small_disk import SmallDisk, small_disk
from spur.values.config import ConfigFile
from spur.values.configfile import CONFIG_FILE
from spur.values.errors import OperatorFault
from spur.wire.cluster import Configured, Reconfigure

__all__ = ["SLURMD_TIMEOUT_S", "Stage", "staged"]

FIRST_PORT = 25600

STREAM_PORT = 25690

SLURMD_TIMEOUT_S = 3
"""Short, so that nodes are lost within a run."""

SMALL_DISK_MIB = 200

FIRST_MARK_MIB, SECOND_MARK_MIB = 60, 30

SMALL_AGENT_MIB, AGENT_MARK_MIB = 32, 12

TICK_MS = 25

BUILT_S = 120.0
"""How long controllers may take until one leads, at first: on a busy machine they start slowly."""

CONFIG = """\
[cluster]
name = "chaos"
slurmd_timeout_s = {timeout_s}
kill_wait_s = 1
min_job_age_s = 1000000
requeue_policy = "{policy}"

{nodes}
[[partitions]]
name = "gpu"
nodes = "a1,a2,b[1-4]"
default = true
"""

NODES = """\
[[nodes]]
names = "{names}"
agent = "{agent}"
address = "{address}"
port = "{port}"
cpus = 8
memory_mib = 4096

"""

_NODES = (("a1",), ("a2",), ("b1", "b2", "b3", "b4"))
"""Of each agent."""


class Stage:
    """Everything that runs, and how to reach it."""

    def __init__(self, directory: Path, plan: Plan, hosts: Hosts) -> None:
        self.directory = directory
        self.hosts = hosts
        self.plan = plan
        self.notes = directory / "notes"
        self.bin = directory / "bin"
        self.controllers: Controllers
        self.agents: list[AgentProcess] = []
        self.login: AgentProcess
        self.disk: SmallDisk
        self.agent_disk: SmallDisk

    # -- who is where
    def agent_host(self, number: int) -> int:
        """Return the host of an agent."""
        return self.plan.controllers + number

    @property
    def login_host(self) -> int:
        """The host of those who ask."""
        return self.plan.controllers + AGENTS + 1

    @property
    def controller_hosts(self) -> list[int]:
        """The hosts of all controllers."""
        return list(range(1, self.plan.controllers + 1))

    @property
    def socket(self) -> str:
        """The address where users ask."""
        return f"unix:{self.login.directory / 'spurd.sock'}"

    def member(self, number: int) -> ControllerProcess:
        """Return a controller by its number."""
        return self.controllers.members[number - 1]

    def blocking(self) -> BlockingClient:
        """Return an administrator's client; to be used on one of the hosts."""
        return self.controllers.blocking(deadline_s=BUILT_S)

    # -- clocks
    def set_clock(self, number: int, amount_ms: int) -> None:
        """Set how far a controller's clock is off, beside what it is off all the while."""
        off_ns = (self.plan.skews_ms[number - 1] + amount_ms) * 1_000_000
        content = off_ns.to_bytes(OFFSET_BYTES, "little", signed=True)
        with self._clock(number).open("r+b") as file:
            file.write(content)

    def _clock(self, number: int) -> Path:
        return self.directory / f"clock{number}"

    # -- processes
    def supervisors(self, agent: AgentProcess) -> list[int]:
        """Return the processes that supervise something on an agent's nodes."""
        found = []
        for lock in agent.spool.glob("*/lock"):
            with suppress(OSError):
                text = lock.read_text().strip()
                words = Path(f"/proc/{text}/cmdline").read_bytes() if text.isdigit() else b""
                if b"spur.agent.forker" in words:
                    found.append(int(text))
        return found

    # -- beginning and end
    def build(self) -> None:
        """Make directories, start controllers, configure, enrol agents and start these."""
        plan, hosts = self.plan, self.hosts
        self.notes.mkdir()
        self.notes.chmod(0o777)
        write_srun(self.bin)
        for number, skew_ms in enumerate(plan.skews_ms, 1):
            content = (skew_ms * 1_000_000).to_bytes(OFFSET_BYTES, "little", signed=True)
            self._clock(number).write_bytes(content)
        self.controllers = Controllers.create(
            self.directory / "controllers",
            plan.controllers,
            first_port=FIRST_PORT,
            hosts=[hosts.address(number) for number in self.controller_hosts],
            prefixes=[hosts.prefix(number) for number in self.controller_hosts],
            settings=f"tick_ms = {TICK_MS}\nsnapshot_entries = 400\n",
        )
        for number in self.controller_hosts:
            member = self.member(number)
            member.has_parent = True
            marks = (FIRST_MARK_MIB, SECOND_MARK_MIB) if number == plan.small_disk else (0, 0)
            with (member.directory / SETTINGS_FILE).open("a") as file:
                file.write(
                    f'clock_offset_file = "{self._clock(number)}"\n'
                    f"disk_first_mark_mib = {marks[0]}\ndisk_second_mark_mib = {marks[1]}\n"
                )
        member = self.member(plan.small_disk)
        on_disk = Controllers([member]).copy(self.disk.directory).members[0]
        self.controllers.members[plan.small_disk - 1] = on_disk
        self.controllers.start()
        with hosts.inside(self.login_host), self.blocking() as client:
            answer = client.ask(Reconfigure((ConfigFile(CONFIG_FILE, self._config()),)), Configured)
            if not isinstance(answer, Configured):
                raise Wrong(f"the configuration was refused: {answer}")
            self._enrol(client)
        self.start()

    def start(self) -> None:
        """Start whatever does not run."""
        self.controllers.start()
        for agent in (*self.agents, self.login):
            if agent.process is None or agent.process.poll() is not None:
                agent.start()

    def stop(self) -> list[int]:
        """End agents, then controllers; return the controllers' statuses."""
        for agent in (*self.agents, self.login):
            agent.kill()
        return [member.stop() for member in self.controllers.members]

    def clear(self) -> None:
        """Kill all that is left."""
        for agent in self.agents:
            agent.kill()
            self._kill_supervised(agent)
        if hasattr(self, "login"):
            self.login.kill()
        if hasattr(self, "controllers"):
            for member in self.controllers.members:
                member.kill()

    def keep_disks(self, kind: type[BaseException] | None, *_: object) -> None:
        """Copy what is on the small disks of a run that failed: they end with it."""
        if kind is None:
            return
        for disk in (self.disk, self.agent_disk):
            with suppress(FileNotFoundError):
                disk.clear()
            target = f"{disk.directory}-kept"
            subprocess.run(
                ["cp", "-a", "--sparse=always", str(disk.directory), target], check=False
            )

    def _kill_supervised(self, agent: AgentProcess) -> None:
        below = [pid for each in self.supervisors(agent) for pid in (each, *descendants(each))]
        for pid in below:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if not agent.spool.exists():
            return
        with suppress(OperatorFault), closing(Spool(agent.spool)) as spool:
            for found in spool.scan():
                kill_leftovers(found.name.job_id, found.name.node, str(_socket_of(agent)))

    def _config(self) -> str:
        nodes = "".join(
            NODES.format(
                names=names[0] if len(names) == 1 else "b[1-4]",
                agent=f"agent{number}",
                address=self.hosts.address(self.agent_host(number)),
                port=STREAM_PORT,
            )
            for number, names in enumerate(_NODES, 1)
        )
        return CONFIG.format(timeout_s=SLURMD_TIMEOUT_S, policy=self.plan.policy, nodes=nodes)

    def _enrol(self, client: BlockingClient) -> None:
        authority = Authority.open(self.member(1).directory / AUTHORITY_DIRECTORY)
        addresses = tuple(member.rpc_address for member in self.controllers.members)
        for number, names in enumerate(_NODES, 1):
            host = self.agent_host(number)
            is_small = number == self.plan.small_agent
            home = self.agent_disk.directory if is_small else self.directory
            directory = home / f"agent{number}"
            new = NewAgent(
                directory=directory,
                name=f"agent{number}",
                role="compute",
                controllers=addresses,
                nodes=names,
                address=f"{self.hosts.address(host)}:{STREAM_PORT}",
                settings={
                    "cpus": 8,
                    "memory_mib": 4096,
                    "attend_ms": 1000,
                    "disk_mark_mib": AGENT_MARK_MIB if is_small else 0,
                },
            )
            enrol(client, authority, new)
            self.agents.append(AgentProcess(directory, self.hosts.prefix(host)))
        directory = self.directory / "login"
        new = NewAgent(directory=directory, name="login", role="login", controllers=addresses)
        enrol(client, authority, new)
        self.login = AgentProcess(directory, self.hosts.prefix(self.login_host))


def _socket_of(agent: AgentProcess) -> Path:
    return agent.directory / "spurd.sock"


@contextmanager
def staged(directory: Path, plan: Plan) -> Iterator[Stage]:
    """Yield a running cluster; nothing of it runs afterwards. Takes root."""
    with ExitStack() as stack:
        hosts = stack.enter_context(Hosts(plan.controllers + AGENTS + 1))
        stage = Stage(directory, plan, hosts)
        stage.disk = stack.enter_context(small_disk(directory / "disk", SMALL_DISK_MIB))
        stage.agent_disk = stack.enter_context(
            small_disk(directory / "agent-disk", SMALL_AGENT_MIB)
        )
        stack.push(stage.keep_disks)
        stack.callback(time.sleep, 0.2)
        stack.callback(stage.clear)
        stage.build()
        yield stage
