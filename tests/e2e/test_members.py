"""Real controllers that come and go: grown, shrunk, replaced, and refused where it would harm."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from spur.agent.whereabouts import CONTROLLERS_FILE
from spur.client.blocking import BlockingClient
from spur.client.client import Client
from spur.client.faults import OutcomeUnknown, Unreachable
from spur.client.tls import credentials_in
from spur.controller.authority import Authority
from spur.controller.birth import AUTHORITY_DIRECTORY, TLS_DIRECTORY
from spur.controller.enrol import NewAgent, enrol
from spur.controller.parent import EXIT_REFUSED
from spur.testing.agentprocess import AgentProcess
from spur.testing.builders import SMALL_CONFIG
from spur.testing.controllers import ControllerProcess, Controllers
from spur.testing.hall import submission
from spur.values.config import ConfigFile
from spur.values.configfile import CONFIG_FILE
from spur.values.errors import Rejection, SpurError
from spur.values.ids import JobId
from spur.wire.cluster import Configured, Reconfigure
from spur.wire.controllers import (
    ControllerInfo,
    ControllerList,
    RemoveController,
    ShowControllers,
)
from spur.wire.declare import Done
from spur.wire.jobs import JobAccepted, JobFilter, JobPage, QueryJobs, page_views

PORT = 25300
PATIENCE_S = 30.0
SETTINGS = "snapshot_entries = 100\n"


class House:
    """A running cluster, and what is asked of it."""

    def __init__(self, directory: Path, count: int) -> None:
        self.directory = directory
        self.controllers = Controllers.create(directory, count, first_port=PORT, settings=SETTINGS)
        self.controllers.start()
        self.next_port = PORT + 2 * count
        self.agents: list[AgentProcess] = []
        with self.controllers.blocking() as client:
            answer = client.ask(Reconfigure((ConfigFile(CONFIG_FILE, SMALL_CONFIG),)), Configured)
        assert isinstance(answer, Configured)

    def member(self, name: str) -> ControllerProcess:
        """Return the controller of this name."""
        (found,) = (each for each in self.controllers.members if each.directory.name == name)
        return found

    def add(self, name: str) -> ControllerProcess:
        """Add a controller, start it, and wait until it votes."""
        member = self.controllers.add(self.directory / name, first_port=self.next_port)
        self.next_port += 2
        self.wait(lambda: self.info(name).voter)
        return member

    def agent(self, name: str) -> AgentProcess:
        """Let a login host join, and start its agent."""
        first = self.controllers.members[0]
        new = NewAgent(
            directory=self.directory / name,
            name=name,
            role="login",
            controllers=(first.rpc_address,),
        )
        with self.controllers.blocking() as client:
            enrol(client, Authority.open(first.directory / AUTHORITY_DIRECTORY), new)
        self.agents.append(AgentProcess(new.directory))
        self.agents[-1].start()
        return self.agents[-1]

    def remove(self, name: str, *, gives_up_history: bool = False) -> Done | Rejection:
        """Ask for a controller's removal."""
        number = str(self.info(name).node_id)
        with self.controllers.blocking() as client:
            return client.ask(RemoveController(number, gives_up_history), Done)

    def rows(self) -> dict[str, ControllerInfo]:
        """Return what the leader knows of the controllers, by name."""
        leader = asyncio.run(self.controllers.leader())
        with self.controllers.blocking(leader) as client:
            answer = client.ask(ShowControllers(), ControllerList)
        assert isinstance(answer, ControllerList)
        return {info.name: info for info in answer.controllers}

    def info(self, name: str) -> ControllerInfo:
        """Return what the leader knows of one."""
        return self.rows()[name]

    def wait(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds."""
        end_s = time.monotonic() + PATIENCE_S
        while True:
            with suppress(SpurError):
                if holds():
                    return
            assert time.monotonic() < end_s, "it did not come to be in time"
            time.sleep(0.05)

    def submit(self, count: int) -> None:
        """Submit held jobs."""
        with self.controllers.blocking() as client:
            for _ in range(count):
                assert isinstance(client.ask(submission(hold=True), JobAccepted), JobAccepted)

    def jobs(self) -> int:
        """Return how many jobs there are."""
        with self.controllers.blocking() as client:
            page = client.ask(QueryJobs(JobFilter(), JobId(0), 5_000), JobPage)
        assert isinstance(page, JobPage)
        return len(page_views(page))


@pytest.fixture
def founded(tmp_path: Path) -> Iterator[Callable[[int], House]]:
    """Yield what founds a cluster of so many controllers."""
    houses: list[House] = []

    def found(count: int) -> House:
        houses.append(House(tmp_path / "hosts", count))
        return houses[-1]

    yield found
    for house in houses:
        for agent in house.agents:
            agent.stop()
        house.controllers.stop()


class Submitter:
    """Submits jobs all the while, from a thread of its own."""

    def __init__(self, house: House) -> None:
        self.accepted: list[int] = []
        self.unknown = 0
        self._house = house
        self._stops = False

    async def run(self, work: Callable[[], None]) -> None:
        """Submit until the work is done."""
        submitting = asyncio.create_task(self._submit())
        try:
            await asyncio.to_thread(work)
        finally:
            self._stops = True
            await submitting

    async def _submit(self) -> None:
        members = self._house.controllers
        while not self._stops:
            # As an agent that is told where the controllers are now.
            async with members.client() as client:
                await self._some(client)

    async def _some(self, client: Client) -> None:
        for _ in range(20):
            await asyncio.sleep(0.02)
            try:
                answer = await client.ask(submission(hold=True), JobAccepted, deadline_s=10.0)
            except Unreachable:
                # Nobody lets it in with the certificate of a controller that was removed.
                return
            except OutcomeUnknown:
                # The same, after a controller that is gone had taken the request.
                self.unknown += 1
                return
            if isinstance(answer, Rejection):
                # It had been let in before.
                assert "was removed from this cluster" in answer.text
                return
            self.accepted.append(answer.job_id)


@pytest.mark.timeout(300)
def test_cluster_grows_to_five_and_shrinks_to_one(founded: Callable[[int], House]) -> None:
    """Somebody submits all the while; no answered job is lost, though the founder goes as well."""
    house = founded(1)
    submitter = Submitter(house)

    def change() -> None:
        for name in ("c2", "c3", "c4", "c5"):
            house.add(name)
        rows = house.rows()
        assert [info.voter for info in rows.values()] == [True] * 5
        assert len({info.node_id for info in rows.values()}) == 5
        house.wait(lambda: all(info.history_from == 1 for info in house.rows().values()))
        for name in ("c1", "c3", "c5", "c2"):
            gone = house.member(name)
            assert house.remove(name) == Done()
            house.controllers.members.remove(gone)
            assert gone.wait() == EXIT_REFUSED
            assert "was removed from the cluster, so it stops" in gone.words()

    asyncio.run(submitter.run(change))
    assert list(house.rows()) == ["c4"]
    assert len(submitter.accepted) > 50
    accepted = len(set(submitter.accepted))
    assert accepted == len(submitter.accepted)
    assert accepted <= house.jobs() <= accepted + submitter.unknown


def test_new_controller_gets_the_authority_and_the_history(
    founded: Callable[[int], House],
) -> None:
    """It can issue certificates itself then, and hold the log alone."""
    house = founded(1)
    house.submit(150)
    house.wait(lambda: house.member("c1").words().count("snapshot") >= 0)
    new = house.add("c2")
    key = new.directory / AUTHORITY_DIRECTORY / "authority.key"
    house.wait(key.exists)
    first = house.member("c1").directory / AUTHORITY_DIRECTORY / "authority.key"
    assert key.read_bytes() == first.read_bytes()
    assert key.stat().st_mode & 0o777 == 0o600
    house.wait(lambda: house.info("c2").history_from == 1 and house.info("c2").has_authority)
    assert house.info("c2").lag == 0
    house.controllers.members.reverse()
    assert house.remove("c1") == Done()
    assert house.jobs() == 150


def test_controller_that_alone_has_the_authority_is_not_removed(
    founded: Callable[[int], House],
) -> None:
    """Two of three lost the key, one by damage; the third is down, and somebody removes it."""
    house = founded(3)
    keyless, damaged, last = house.controllers.members
    for each in house.controllers.members:
        each.stop()
    shutil.rmtree(keyless.directory / AUTHORITY_DIRECTORY)
    key = damaged.directory / AUTHORITY_DIRECTORY / "authority.key"
    key.write_bytes(key.read_bytes()[:40])
    keyless.start()
    damaged.start()
    house.wait(lambda: house.info("c2").heard_ms >= 0)
    refused = house.remove("c3")
    assert isinstance(refused, Rejection)
    assert refused.code == "last-authority"
    assert "no authority can be read here" in damaged.words()
    last.start()
    house.wait(lambda: all(info.has_authority for info in house.rows().values()))
    assert key.read_bytes() == (last.directory / AUTHORITY_DIRECTORY / "authority.key").read_bytes()
    assert house.remove("c3") == Done()


def test_agent_finds_the_controllers_that_took_the_place_of_all_it_knew(
    founded: Callable[[int], House],
) -> None:
    """Its settings name one controller, which is replaced; then the agent is started again."""
    house = founded(1)
    first = house.member("c1")
    agent = house.agent("login1")
    house.add("c2")
    house.wait(lambda: house.info("c2").has_authority and house.info("c2").history_from == 1)
    kept = agent.directory / CONTROLLERS_FILE
    house.wait(lambda: kept.exists() and house.info("c2").rpc_address in kept.read_text())
    house.controllers.members.reverse()
    assert house.remove("c1") == Done()
    house.controllers.members.remove(first)
    assert first.wait() == EXIT_REFUSED
    house.wait(lambda: first.rpc_address not in kept.read_text())
    agent.stop()
    agent.start()

    def answers() -> bool:
        socket = f"unix:{agent.directory / 'spurd.sock'}"
        with BlockingClient([socket], deadline_s=2.0) as client:
            return isinstance(client.ask(submission(hold=True), JobAccepted), JobAccepted)

    house.wait(answers)
    assert house.jobs() == 1


def test_dead_controller_is_replaced(founded: Callable[[int], House]) -> None:
    """The disk of one of three is lost: it is removed, and its host is added anew."""
    house = founded(3)
    house.submit(20)
    lost = house.member("c3")
    lost.kill()
    shutil.rmtree(lost.directory)
    house.controllers.members.remove(lost)
    house.wait(lambda: house.info("c3").heard_ms > 5_000)
    refused = house.remove("c2")
    assert isinstance(refused, Rejection)
    assert "only 1 of 2 voters would answer" in refused.text
    former = house.info("c3")
    assert house.remove("c3") == Done()
    house.add("c3")
    now = house.info("c3")
    assert now.node_id != former.node_id
    assert now.disk_id != former.disk_id
    house.submit(5)
    assert house.jobs() == 25


def test_emptied_controller_is_refused_under_its_old_name(
    founded: Callable[[int], House],
) -> None:
    """Its write-ahead log was deleted, and the process is started again as if nothing had been."""
    house = founded(3)
    wiped = house.member("c3")
    wiped.stop()
    shutil.rmtree(wiped.directory / "wal")
    wiped.start()
    assert wiped.wait() == EXIT_REFUSED
    last = wiped.words().splitlines()[-1]
    assert "without it this replica can't know how it voted, so it does not start" in last
    assert "remove this controller and add it again" in last


def test_added_controller_whose_log_was_deleted_is_refused(
    founded: Callable[[int], House],
) -> None:
    """The same of one that was no founder: nothing but its log knew its disk."""
    house = founded(1)
    new = house.add("c2")
    new.stop()
    shutil.rmtree(new.directory / "wal")
    new.start()
    assert new.wait() == EXIT_REFUSED
    assert "remove this controller and add it again" in new.words().splitlines()[-1]


def test_learner_without_a_process_changes_nothing(founded: Callable[[int], House]) -> None:
    """A controller is added and never started: the others go on, and it never votes."""
    house = founded(1)
    new = house.controllers.add(house.directory / "c2", first_port=house.next_port)
    new.kill()
    house.controllers.members.remove(new)
    house.submit(10)
    info = house.info("c2")
    assert (info.voter, info.leads) == (False, False)
    assert house.remove("c2") == Done()
    assert house.jobs() == 10


def test_stopping_leader_hands_over_first(founded: Callable[[int], House]) -> None:
    """A controller that leads is stopped for maintenance."""
    house = founded(3)
    leader = asyncio.run(house.controllers.leader())
    house.wait(lambda: all(info.heard_ms >= 0 for info in house.rows().values()))
    assert leader.stop() == 0
    assert "the lead was handed over" in leader.words()
    began_s = time.monotonic()
    house.submit(1)
    assert time.monotonic() - began_s < PATIENCE_S / 10


def test_removed_controller_may_administer_nothing(founded: Callable[[int], House]) -> None:
    """Its certificate is still valid, and somebody has a copy of it."""
    house = founded(1)
    new = house.add("c2")
    files = credentials_in(new.directory / TLS_DIRECTORY)
    assert house.remove("c2") == Done()
    house.controllers.members.remove(new)
    new.kill()

    async def ask() -> None:
        address = house.member("c1").rpc_address
        async with Client([address], tls=files, deadline_s=2.0) as client:
            await client.ask(ShowControllers(), ControllerList)

    with pytest.raises(SpurError):
        asyncio.run(ask())
    assert "is not a member of this cluster" in house.member("c1").words()
