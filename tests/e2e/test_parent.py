"""spurctld as an administrator runs it: the parent, its front, and what follows the log."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from spur.client.blocking import BlockingClient
from spur.client.tls import credentials_in
from spur.controller.birth import TLS_DIRECTORY
from spur.controller.main import main
from spur.testing.controllers import Controllers
from spur.testing.errands import configure, info, jobs, submit_many, until
from spur.testing.hall import SPEC, submission
from spur.testing.machine import ENVIRONMENT
from spur.values.errors import Rejection, SpurError
from spur.values.ids import JobId, NodeName
from spur.values.jobspec import decode_text
from spur.wire.agents import AttendOrders, LaunchOrder, NodeHealth, Orders
from spur.wire.cluster import ProcessInfo
from spur.wire.declare import Done
from spur.wire.jobs import JobAccepted
from spur.wire.nodes import ListNodes, NodeList, RegisterNode
from spur.wire.texts import JobScript, JobTexts, ReadScript, ReadTexts

FOLLOWERS = {"scheduler"}
"""What runs beside every front, as far as these tests kill it."""


class Service:
    """One controller as a service manager runs it."""

    def __init__(self, directory: Path, port: int) -> None:
        self.controllers = Controllers.create(directory, 1, first_port=port)
        [self.member] = self.controllers.members
        self.start()
        with self.controllers.blocking(self.member) as client:
            configure(client)

    def start(self) -> None:
        words = [sys.executable, "-m", "spur.controller.main", "run"]
        with (self.member.directory / "log").open("ab") as log:
            self.parent = subprocess.Popen(
                [*words, "--dir", str(self.member.directory)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def processes(self) -> dict[str, ProcessInfo]:
        """Return what runs now, by name."""
        return {each.name: each for each in info(self.controllers, self.member).processes}

    def pids(self) -> dict[str, int]:
        """Return the pids of the front and of what follows it, once all are there."""
        found: dict[str, int] = {}

        def all_are_there() -> bool:
            try:
                processes = self.processes()
            except SpurError:
                return False
            found.update({name: each.pid for name, each in processes.items() if each.pid})
            return {"front", *FOLLOWERS} <= set(found)

        until("front and followers run", all_are_there)
        return found

    def stop(self) -> int:
        self.parent.send_signal(signal.SIGTERM)
        return self.parent.wait(30)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Yield a running controller that the tests here share."""
    service = Service(tmp_path_factory.mktemp("service"), 23000)
    yield service
    if service.parent.poll() is None:
        service.stop()


def is_gone(pid: int) -> bool:
    """Whether a process ended; one that nobody waited for is gone as well."""
    try:
        return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_a_front_that_is_killed_comes_back(service: Service) -> None:
    """The front is killed twice under load: what it had accepted is there, and it goes on."""
    made: dict[str, int] = {}
    for _ in range(2):
        with service.controllers.blocking(service.member) as client:
            made |= submit_many(client, 10)
        before = service.pids()
        os.kill(before["front"], signal.SIGKILL)
        until("another front serves", lambda b=before: service.pids()["front"] != b["front"])  # type: ignore[misc]  # a lambda with a default
        for name in FOLLOWERS:
            assert is_gone(before[name]), f"the {name} outlived its front"
        with service.controllers.blocking(service.member) as client:
            made |= submit_many(client, 10)
            assert jobs(client) == made
    assert "the front was killed by signal 9; it is started again" in service.member.words()
    assert service.parent.poll() is None


@pytest.mark.parametrize("name", sorted(FOLLOWERS))
def test_a_follower_that_is_killed_comes_back_and_catches_up(service: Service, name: str) -> None:
    """A follower is killed, and more is written before it is back."""
    before = service.pids()
    os.kill(before[name], signal.SIGKILL)
    with service.controllers.blocking(service.member) as client:
        submit_many(client, 20)
    until("it is started again", lambda: service.pids()[name] != before[name])

    def has_caught_up() -> bool:
        found = service.processes()
        return found[name].reached == found["front"].reached > 0

    until("it has caught up", has_caught_up)
    assert service.pids()["front"] == before["front"]


def test_sigterm_ends_all_of_them(service: Service) -> None:
    """A service manager stops the controller, then starts it again."""
    before = service.pids()
    assert service.stop() == 0
    until("all are gone", lambda: all(is_gone(pid) for pid in before.values()))
    assert "Traceback" not in service.member.words()
    service.start()
    service.pids()


def test_a_parent_that_is_killed_takes_the_rest_with_it(service: Service) -> None:
    """Somebody kills the parent: nothing stays that would keep the directory."""
    before = service.pids()
    service.parent.kill()
    service.parent.wait()
    until("all are gone", lambda: all(is_gone(pid) for pid in before.values()))
    service.start()
    service.pids()


def test_a_front_that_refuses_to_start_is_not_started_again(
    service: Service, tmp_path: Path
) -> None:
    """Somebody starts a second controller on a directory that is in use."""
    words = [sys.executable, "-m", "spur.controller.main", "run", "--dir"]
    second = subprocess.run(
        [*words, str(service.member.directory)], capture_output=True, text=True, timeout=30
    )
    assert second.returncode == 78
    assert "started again" not in second.stderr


def test_the_parent_is_small(service: Service) -> None:
    """A hundred megabytes for a process that waits would be a waste."""
    status = Path(f"/proc/{service.parent.pid}/smaps_rollup").read_text()
    private_kib = sum(
        int(line.split()[1]) for line in status.splitlines() if line.startswith("Private_")
    )
    assert private_kib < 12 << 10


def test_an_agent_takes_orders_and_reports_health(service: Service, tmp_path: Path) -> None:
    """A host of two nodes is enrolled, attends, and is told to launch what was submitted."""
    directory = service.member.directory
    words = ["issue", "--dir", str(directory), "--host", "n1", "--role", "compute"]
    assert main([*words, "--node", "n1", "--out", str(tmp_path / "n1")]) == 0
    credentials = credentials_in(tmp_path / "n1" / TLS_DIRECTORY)
    health = (NodeHealth(NodeName("n1"), 1_250, 3_000),)
    address = [service.member.rpc_address]
    with (
        BlockingClient(address, tls=credentials, deadline_s=20) as agent,
        service.controllers.blocking(service.member) as client,
    ):
        first = agent.ask(AttendOrders(b"s" * 16, 0, 1_000, health), Orders)
        assert isinstance(first, Orders)
        assert first.register == ("n1",)
        there = RegisterNode(NodeName("n1"), b"boot", 64, 512_000, "gfx942", 8)
        assert isinstance(agent.ask(there, Done), Done)
        accepted = client.ask(submission(SPEC), JobAccepted)
        assert isinstance(accepted, JobAccepted)
        job_id = accepted.job_id
        told = agent.ask(AttendOrders(b"s" * 16, 0, 10_000, health), Orders)
        assert isinstance(told, Orders)
        [numbered] = told.orders
        order = numbered.order
        assert isinstance(order, LaunchOrder)
        assert (order.node, order.job_id, order.attempt) == ("n1", job_id, 1)
        assert (order.script, order.environment) == (b"#!/bin/sh\ntrue\n", b"PATH=/bin\0")
        assert decode_text(order.text).working_directory == b"/home/ada"
        nodes = client.ask(ListNodes("n[1-2]", "", 10), NodeList)
        assert isinstance(nodes, NodeList)
        shown = [(each.name, each.load_milli, each.free_memory_mib) for each in nodes.nodes]
        assert shown == [("n1", 1_250, 3_000), ("n2", None, None)]
        check_texts(client, job_id)
        stranger = service.controllers.blocking(service.member)
        with stranger:
            refused = stranger.ask(AttendOrders(b"s" * 16, 0, 0, health), Orders)
        assert isinstance(refused, Rejection)
        assert refused.code == "not-permitted"


def check_texts(client: BlockingClient, job_id: JobId) -> None:
    """Read back what was handed in with a job."""
    script = client.ask(ReadScript(job_id), JobScript)
    assert script == JobScript(b"#!/bin/sh\ntrue\n", is_erased=False)
    texts = client.ask(ReadTexts((job_id, JobId(99_999))), JobTexts)
    assert isinstance(texts, JobTexts)
    [text] = texts.texts
    assert (text.job_id, texts.seen) == (job_id, 2)
    assert decode_text(text.content).argv == (b"train.sh", b"--epochs", b"3")


def test_nothing_is_imported_from_where_it_was_started(tmp_path: Path) -> None:
    """An administrator starts it in /tmp, where a user has put a package of a likely name."""
    trap = tmp_path / "trap"
    trap.mkdir()
    sprung = tmp_path / "sprung"
    for name in ("msgspec", "logging", "spur", "sqlalchemy", "cryptography"):
        (trap / f"{name}.py").write_text(f"open({str(sprung)!r}, 'a').write({name!r})")
    controllers = Controllers.create(tmp_path, 1, first_port=23020)
    [member] = controllers.members
    command = [sys.executable, "-P", "-m", "spur.controller.main", "run"]
    with (member.directory / "log").open("ab") as log:
        parent = subprocess.Popen(
            [*command, "--dir", str(member.directory)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=trap,
            env=ENVIRONMENT,
        )
    try:

        def names() -> set[str]:
            return {each.name for each in info(controllers, member).processes if each.pid}

        until("all of it runs", lambda: names() >= {"front", "projector", *FOLLOWERS})
        assert not sprung.exists(), sprung.read_text()
    finally:
        parent.terminate()
        parent.wait()


def test_front_does_not_outlive_a_parent_that_ended_first(tmp_path: Path) -> None:
    """The parent is killed in the moment in which it starts a front: that serves nobody.

    It would hold the directory, and the next parent could start none.
    """
    [member] = Controllers.create(tmp_path, 1, first_port=25680).members
    words = [sys.executable, "-m", "spur.controller.frontmain", str(member.directory)]
    gone = subprocess.Popen(["true"])
    gone.wait()
    front = subprocess.run([*words, "--parent", str(gone.pid)], timeout=30, check=False)
    assert front.returncode == -signal.SIGKILL
