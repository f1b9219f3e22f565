"""Agents beside real controllers: enrolment, registration, and commands that are passed on."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spur.agent.main import EXIT_REFUSED
from spur.client.blocking import BlockingClient
from spur.client.faults import Unreachable
from spur.controller.authority import Authority
from spur.controller.birth import AUTHORITY_DIRECTORY
from spur.controller.enrol import NewAgent, enrol
from spur.testing.agentprocess import AgentProcess
from spur.testing.controllers import Controllers
from spur.testing.errands import configure, jobs, submit_many
from spur.values.errors import Rejection
from spur.wire.cluster import AddHost, HostAdded
from spur.wire.nodes import ListNodes, NodeInfo, NodeList

FIRST_PORT = 23210
NOBODY = 65534
PATIENCE_S = 30.0

# Everything is imported before the user changes, who need not be able to read the sources.
CHILD = """
import os, sys
from spur.client.blocking import BlockingClient
from spur.testing.errands import jobs, submit_one
from spur.wire.cluster import AddHost, HostAdded
from spur.wire.jobs import JobAccepted

os.setgroups([])
os.setgid(int(sys.argv[2]))
os.setuid(int(sys.argv[2]))
with BlockingClient([f"unix:{sys.argv[1]}"], deadline_s=20.0) as client:
    for request, answer in (
        (submit_one("of-nobody"), JobAccepted),
        (AddHost("mine", "login"), HostAdded),
    ):
        outcome = client.ask(request, answer)
        print(getattr(outcome, "code", type(outcome).__name__))
    outcome = client.ask(submit_one("of-root"), JobAccepted, speaks_for=(0, 0))
    print(outcome.code, outcome.text, sep=": ")
"""


@pytest.fixture
def public() -> Iterator[Path]:
    """Yield a directory that every user can look into."""
    with tempfile.TemporaryDirectory(prefix="spur-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def controllers(tmp_path: Path) -> Iterator[Controllers]:
    """Yield a controller that runs, and is configured."""
    made = Controllers.create(tmp_path, 1, first_port=FIRST_PORT, settings="tick_ms = 15\n")
    made.start()
    try:
        with made.blocking() as client:
            configure(client)
        yield made
    finally:
        made.stop()


@pytest.fixture
def agents() -> Iterator[list[AgentProcess]]:
    """Yield a list of agents that are ended afterwards."""
    made: list[AgentProcess] = []
    yield made
    for agent in made:
        agent.kill()


def new_agent(
    controllers: Controllers, directory: Path, name: str, role: str, *nodes: str
) -> AgentProcess:
    """Enrol a host and return its agent, not started."""
    [member] = controllers.members
    new = NewAgent(
        directory=directory,
        name=name,
        role=role,
        controllers=(member.rpc_address,),
        nodes=nodes,
        settings={"cpus": 64, "memory_mib": 512_000, "gpu_kind": "gfx942", "gpus": 8},
    )
    with controllers.blocking() as client:
        enrol(client, Authority.open(member.directory / AUTHORITY_DIRECTORY), new)
    return AgentProcess(directory)


def becomes(holds: Callable[[], object], agent: AgentProcess) -> None:
    """Wait until something holds that other processes do."""
    until_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < until_s, agent.words()
        time.sleep(0.05)


def node(client: BlockingClient, name: str) -> NodeInfo:
    """Return a node's row."""
    shown = client.ask(ListNodes(name, "", 1), NodeList)
    assert isinstance(shown, NodeList)
    return shown.nodes[0]


def test_agent_registers_its_nodes_and_no_others(
    tmp_path: Path, controllers: Controllers, agents: list[AgentProcess]
) -> None:
    """A host serves its node; that it names another host's and an unknown one helps it nothing."""
    agent = new_agent(controllers, tmp_path / "a", "n1", "compute", "n1", "n2", "n9")
    agents.append(agent)
    agent.start()
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip().encode()
    with controllers.blocking() as client:
        becomes(lambda: node(client, "n1").boot_id == boot_id, agent)
        assert node(client, "n1").state == "IDLE"
        becomes(lambda: "registration of n2 is refused" in agent.words(), agent)
        becomes(lambda: "registration of n9 is refused" in agent.words(), agent)
        assert node(client, "n2").boot_id == b""
        member = controllers.members[0]
        member.kill()
        becomes(lambda: "no orders: " in agent.words(), agent)
        member.start()
        becomes(lambda: node(client, "n1").state == "IDLE", agent)
    assert agent.stop() == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root: becomes another user")
def test_commands_of_a_login_host_are_passed_on(
    tmp_path: Path, public: Path, controllers: Controllers, agents: list[AgentProcess]
) -> None:
    """An ordinary user of a login host submits; it is theirs, and they are no administrator."""
    agent = new_agent(controllers, tmp_path / "a", "login1", "login")
    agents.append(agent)
    with (agent.directory / "spurd.toml").open("a") as file:
        file.write(f'socket = "{public / "spurd.sock"}"\n')
    agent.start()
    socket = public / "spurd.sock"
    becomes(socket.exists, agent)
    run = subprocess.run(
        [sys.executable, "-c", CHILD, str(socket), str(NOBODY)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.splitlines() == [
        "JobAccepted",
        "not-permitted",
        f"not-permitted: user {NOBODY} speaks for user 0; only root of this host and whoever runs"
        " this daemon speak for others; nothing was done",
    ]
    with BlockingClient([f"unix:{socket}"], deadline_s=20.0) as client:
        assert set(jobs(client)) == {"of-nobody"}
        refused = client.ask(AddHost("mine", "login"), HostAdded)
        assert isinstance(refused, Rejection)
        assert refused.code == "not-permitted"


def test_commands_wait_for_a_controller_and_say_when_there_is_none(
    tmp_path: Path, controllers: Controllers, agents: list[AgentProcess]
) -> None:
    """The controller goes away and comes back under a host whose commands are passed on."""
    agent = new_agent(controllers, tmp_path / "a", "admin1", "admin")
    agents.append(agent)
    agent.start()
    socket = agent.directory / "spurd.sock"
    becomes(socket.exists, agent)
    [member] = controllers.members
    with BlockingClient([f"unix:{socket}"], deadline_s=20.0) as client:
        submitted = submit_many(client, 3)
        member.kill()
        with (
            BlockingClient([f"unix:{socket}"], deadline_s=4.0) as late,
            pytest.raises(Unreachable, match="nothing was done"),
        ):
            jobs(late)
        member.start()
        submitted |= submit_many(client, 3)
        assert jobs(client) == submitted
        added = client.ask(AddHost("more", "login"), HostAdded)
        assert isinstance(added, HostAdded)


def test_agent_with_a_foreign_certificate_is_told_so(
    tmp_path: Path, controllers: Controllers, agents: list[AgentProcess]
) -> None:
    """An agent's directory was carried to a host of another cluster: it serves nothing."""
    other = Controllers.create(tmp_path / "other", 1, first_port=FIRST_PORT + 10)
    other.start()
    try:
        with other.blocking() as client:
            configure(client)
        agent = new_agent(other, tmp_path / "a", "n1", "compute", "n1")
    finally:
        other.stop()
    agents.append(agent)
    settings = agent.directory / "spurd.toml"
    text = settings.read_text().replace(
        other.members[0].rpc_address, controllers.members[0].rpc_address
    )
    settings.write_text(text)
    agent.start()
    becomes(lambda: "was not issued by this cluster's authority" in agent.words(), agent)
    with controllers.blocking() as client:
        assert node(client, "n1").boot_id == b""


def test_agent_refuses_to_start_on_what_it_cannot_use(tmp_path: Path) -> None:
    """Settings are missing or wrong, or another agent has the directory."""
    agent = AgentProcess(tmp_path / "a")
    agent.directory.mkdir()
    agent.start()
    assert agent.process is not None
    assert agent.process.wait(PATIENCE_S) == EXIT_REFUSED
    assert "holds no agent" in agent.words()
    agent.configure(f'cluster_id = "{bytes(16).hex()}"\ncontrollers = []\n')
    agent.start()
    assert agent.process.wait(PATIENCE_S) == EXIT_REFUSED
    assert "controllers names none" in agent.words()
    agent.configure(
        f'cluster_id = "{bytes(16).hex()}"\ncontrollers = ["unix:/nowhere"]\nnodes = ["n1"]\n'
    )
    first = AgentProcess(agent.directory)
    first.start()
    try:
        becomes(lambda: (first.spool / "outbox.n1").exists(), first)
        agent.start()
        assert agent.process.wait(PATIENCE_S) == EXIT_REFUSED
        assert "another agent runs on this directory" in agent.words()
    finally:
        first.kill()
