"""Controllers as processes: stopped politely, frozen, and killed in any combination."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from spur.testing.controllers import ControllerProcess, Controllers
from spur.testing.errands import configure, info, jobs, submit_many, until
from spur.values.errors import SpurError
from spur.values.ids import JobId
from spur.wire.declare import Done
from spur.wire.jobs import (
    JobChanges,
    JobFilter,
    JobPage,
    QueryJobs,
    UpdateJob,
    page_views,
)

QUICK_S = 2.0
"""Within which a controller ends after SIGTERM; on a quiet machine it takes a tenth."""

ELECTION_S = 0.6
"""The longest election timeout at the default tick."""


@pytest.fixture(scope="module")
def controllers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controllers]:
    """Yield a running cluster of three that all tests here share."""
    cluster = Controllers.create(tmp_path_factory.mktemp("hosts"), 3, first_port=24040)
    cluster.start()
    with cluster.blocking() as client:
        configure(client)
    yield cluster
    cluster.stop()


def leader_of(controllers: Controllers) -> ControllerProcess:
    """Return the controller that leads."""
    found: list[ControllerProcess] = []

    def leads() -> bool:
        found[:] = [each for each in controllers.members if info(controllers, each).leads]
        return len(found) == 1

    until("one controller leads", leads)
    return found[0]


def test_sigterm_is_quick_and_clean(controllers: Controllers) -> None:
    """An administrator restarts one controller after the other, the leader too, under load."""
    with controllers.blocking() as client:
        made = jobs(client)
        for member in controllers.members:
            made |= submit_many(client, 5)
            began_s = time.monotonic()
            assert member.stop() == 0
            assert time.monotonic() - began_s < QUICK_S
            made |= submit_many(client, 5)
            member.start()
            until("it takes part", lambda member=member: info(controllers, member).leader > 0)  # type: ignore[misc]  # a lambda with a default
        assert jobs(client) == made
    for member in controllers.members:
        assert "Traceback" not in member.words()


def nice_of(page: object) -> int:
    """Return the nice value of the only job on a page."""
    assert isinstance(page, JobPage)
    [view] = page_views(page)
    return view.spec.nice


def test_frozen_leader_gives_no_stale_answer(controllers: Controllers) -> None:
    """The leader's machine stands still for longer than an election, then goes on.

    Meanwhile a value was changed elsewhere. Whoever asked the old leader hears the new value, and
    what was submitted to it exists at most once.
    """
    with controllers.blocking() as client:
        name, job_id = next(iter(submit_many(client, 1).items()))
        one = QueryJobs(JobFilter(job_ids=(JobId(job_id),)), JobId(0), 1)
        leader = leader_of(controllers)
        others = [each.rpc_address for each in controllers.members if each is not leader]
        answers: list[object] = []
        with (
            controllers.blocking(leader) as local,
            controllers.blocking_of([leader.socket, *others]) as second,
        ):
            assert nice_of(local.ask(one, JobPage)) == 0
            jobs(second)
            leader.signal(signal.SIGSTOP)
            readers = [
                threading.Thread(target=lambda: answers.append(local.ask(one, JobPage))),
                threading.Thread(target=lambda: answers.append(submit_many(second, 1))),
            ]
            for reader in readers:
                reader.start()
            time.sleep(2 * ELECTION_S)
            with controllers.blocking_of(others) as elsewhere:
                change = UpdateJob(JobId(job_id), None, JobChanges(nice=77))
                assert elsewhere.ask(change, Done) == Done()
                late = submit_many(elsewhere, 3)
            leader.signal(signal.SIGCONT)
            for reader in readers:
                reader.join(30)
        [page] = [answer for answer in answers if isinstance(answer, JobPage)]
        [made] = [answer for answer in answers if isinstance(answer, dict)]
        assert nice_of(page) == 77
        found = jobs(client)
        assert (late | made | {name: job_id}).items() <= found.items()
    until("it follows", lambda: info(controllers, leader).leader > 0)


def test_lone_survivor_decides_nothing_and_says_how_old_its_state_is(
    controllers: Controllers,
) -> None:
    """Two of three are killed: the third reads, with a warning, to those who ask for that."""
    with controllers.blocking() as client:
        made = jobs(client) | submit_many(client, 3)
    survivor = controllers.members[2]
    until("all is there", lambda: info(controllers, survivor).recorded >= client.position[1])
    for member in controllers.members[:2]:
        member.kill()
    try:
        warnings: list[str] = []
        until("it knows", lambda: info(controllers, survivor).leader == 0)
        everything = QueryJobs(JobFilter(), JobId(0), 1000)
        with controllers.blocking(survivor) as local:
            page = local.ask(everything, JobPage, warn=warnings.append)
            assert isinstance(page, JobPage)
            assert len(page_views(page)) == len(made)
            assert "no quorum of controllers answers: this is the state at entry" in warnings[0]
            with pytest.raises(SpurError, match="no quorum of controllers answers"):
                local.ask(everything, JobPage, deadline_s=0.5)
            with pytest.raises(SpurError, match="no leader is known"):
                local.ask(UpdateJob(JobId(1), None, JobChanges(name="x")), Done, deadline_s=0.5)
    finally:
        controllers.start()
    with controllers.blocking() as client:
        assert jobs(client) == made


def test_all_killed_at_once_come_back_with_everything(controllers: Controllers) -> None:
    """The power of the whole room fails, twice."""
    for _ in range(2):
        with controllers.blocking() as client:
            made = jobs(client) | submit_many(client, 10)
        for member in controllers.members:
            member.kill()
        controllers.start()
        with controllers.blocking() as client:
            assert jobs(client) == made


def test_snapshot_process_dies_with_its_parent_and_is_started_again(tmp_path: Path) -> None:
    """Somebody kills the helper that writes snapshots: it is started again.

    Then its parent dies, and leaves nobody behind.
    """
    cluster = Controllers.create(
        tmp_path, 1, first_port=24048, settings="tick_ms = 10\nsnapshot_entries = 100\n"
    )
    [member] = cluster.members
    cluster.start()
    try:
        with cluster.blocking() as client:
            configure(client)
            submit_many(client, 120)
            until("there is a snapshot", lambda: info(cluster, member).snapshot_index > 100)
            helper = snapshotter(cluster, member)
            helper.send(signal.SIGKILL)
            submit_many(client, 120)
            until("there is another", lambda: info(cluster, member).snapshot_index > 200)
        helper = snapshotter(cluster, member)
        member.signal(signal.SIGKILL)
        until("the helper is gone", lambda: not helper.is_there)
    finally:
        member.kill()


class Child:
    """A process that a controller started."""

    def __init__(self, pid: int) -> None:
        self._directory = Path(f"/proc/{pid}")
        self._pid = pid

    @property
    def is_there(self) -> bool:
        """Whether it runs."""
        try:
            state = (self._directory / "stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return False
        return state != "Z"

    def send(self, number: int) -> None:
        """Send it a signal."""
        os.kill(self._pid, number)


def snapshotter(cluster: Controllers, member: ControllerProcess) -> Child:
    """Return the process that writes snapshots for a controller."""
    processes = info(cluster, member).processes
    return Child(next(each.pid for each in processes if each.name == "snapshotter"))
