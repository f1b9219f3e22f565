"""Orders over three controllers: the leader dies, and the next says again what is owed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from spur.client.blocking import BlockingClient
from spur.client.tls import TlsFiles, credentials_in
from spur.controller.birth import TLS_DIRECTORY
from spur.controller.main import main
from spur.testing.controllers import ControllerProcess, Controllers
from spur.testing.errands import info, until
from spur.testing.hall import SPEC, submission
from spur.values.config import ConfigFile
from spur.values.configfile import CONFIG_FILE
from spur.values.errors import SpurError
from spur.values.ids import JobId, NodeName
from spur.values.states import NodeShareState
from spur.wire.agents import AttendOrders, KillOrder, LaunchOrder, NodeHealth, Orders
from spur.wire.cluster import Configured, Reconfigure
from spur.wire.declare import Done
from spur.wire.jobs import CancelJob, JobAccepted
from spur.wire.nodes import ListNodes, NodeList, RegisterNode
from spur.wire.runs import ReportAnswered, ReportRun

CONFIG = """\
[cluster]
name = "three"
slurmd_timeout_s = 3

[[nodes]]
names = "n1"
cpus = 4
memory_mib = 4096

[[partitions]]
name = "gpu"
nodes = "n1"
default = true
"""

HEALTH = (NodeHealth(NodeName("n1"), 10, 20),)


class Three:
    """Three controllers, and the one agent played by hand."""

    def __init__(self, directory: Path) -> None:
        self.controllers = Controllers.create(directory, 3, first_port=23010)
        self.controllers.start()
        with self.controllers.blocking() as client:
            asked = Reconfigure((ConfigFile(CONFIG_FILE, CONFIG),))
            assert isinstance(client.ask(asked, Configured), Configured)
        host = str(self.leader().directory)
        words = ["issue", "--dir", host, "--host", "n1", "--role", "compute", "--node", "n1"]
        assert main([*words, "--out", str(directory / "n1")]) == 0
        self.credentials: TlsFiles = credentials_in(directory / "n1" / TLS_DIRECTORY)
        self.heard = 0
        self.reported = 0

    def agent(self) -> BlockingClient:
        addresses = [each.rpc_address for each in self.controllers.members]
        return BlockingClient(addresses, tls=self.credentials, deadline_s=30)

    def register(self, agent: BlockingClient) -> None:
        there = RegisterNode(NodeName("n1"), b"boot", 4, 4_096, "", 0)
        assert isinstance(agent.ask(there, Done), Done)

    def attend(self, agent: BlockingClient) -> Orders:
        """Ask until there is an order."""
        while True:
            orders = agent.ask(AttendOrders(b"s" * 16, self.heard, 500, HEALTH), Orders)
            assert isinstance(orders, Orders)
            if orders.orders:
                self.heard = orders.orders[-1].number
                return orders

    def report(self, agent: BlockingClient, job_id: JobId, state: NodeShareState) -> None:
        self.reported += 1
        said = ReportRun(
            NodeName("n1"), b"o" * 16, self.reported, job_id, 0, 1, state, 0, 0, False, 0
        )
        answered = agent.ask(said, ReportAnswered)
        assert isinstance(answered, ReportAnswered)
        assert answered.outcome == "done"

    def leader(self) -> ControllerProcess:
        [leader] = [each for each in self.controllers.members if info(self.controllers, each).leads]
        return leader

    def kill_leader(self) -> None:
        self.killed = self.leader()
        self.killed.kill()


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Three]:
    """Yield three running controllers that the tests here share."""
    three = Three(tmp_path_factory.mktemp("hosts"))
    yield three
    three.controllers.stop()


def submitted(three: Three) -> JobId:
    with three.controllers.blocking() as client:
        accepted = client.ask(submission(SPEC), JobAccepted)
    assert isinstance(accepted, JobAccepted)
    return accepted.job_id


def test_a_new_leader_repeats_what_is_owed_and_no_more(three: Three) -> None:
    """The leader is killed after it told of a launch that was heard but not yet answered."""
    with three.agent() as agent:
        three.register(agent)
        first, second = submitted(three), submitted(three)
        told: list[JobId] = []
        while len(told) < 2:
            orders = three.attend(agent)
            told += [numbered.order.job_id for numbered in orders.orders]
        assert sorted(told) == [first, second]
        three.report(agent, first, NodeShareState.LAUNCHED)
        heard = three.heard
        three.kill_leader()
        again = three.attend(agent)
        [numbered] = again.orders
        assert isinstance(numbered.order, LaunchOrder)
        assert (numbered.order.job_id, numbered.order.attempt) == (second, 1)
        assert numbered.number > heard
        assert again.term > orders.term
        three.report(agent, second, NodeShareState.LAUNCHED)
        with three.controllers.blocking() as client:
            assert isinstance(client.ask(CancelJob(first, None), Done), Done)
        [killed] = three.attend(agent).orders
        assert isinstance(killed.order, KillOrder)
        assert killed.order.job_id == first
        three.report(agent, first, NodeShareState.ENDED)
    three.killed.start()


def test_a_silent_node_is_lost_and_comes_back(three: Three) -> None:
    """A node's agent says nothing for SlurmdTimeout, three seconds here."""

    def state() -> str:
        with three.controllers.blocking() as client:
            answer = client.ask(ListNodes("n1", "", 1), NodeList)
        if not isinstance(answer, NodeList):
            raise SpurError(str(answer))
        return answer.nodes[0].state

    with three.agent() as agent:
        three.register(agent)
        agent.ask(AttendOrders(b"t" * 16, 0, 0, HEALTH), Orders)
        until("it is lost", lambda: "NOT_RESPONDING" in state(), patience_s=15)
        orders = agent.ask(AttendOrders(b"t" * 16, 0, 10_000, HEALTH), Orders)
        assert isinstance(orders, Orders)
        assert orders.register == ("n1",)
        three.register(agent)
        until("it is back", lambda: "NOT_RESPONDING" not in state())
