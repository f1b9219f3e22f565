"""Disks that are full or fail: nothing acknowledged is lost, and what stops says why."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from spur.client.blocking import BlockingClient
from spur.client.faults import OutcomeUnknown, Unreachable
from spur.testing.builders import SMALL_CONFIG
from spur.testing.controllers import ControllerProcess, Controllers
from spur.testing.errands import (
    configure,
    info,
    jobs,
    submit,
    submit_many,
    submit_one,
    until,
)
from spur.testing.failing_sync import FailingSync
from spur.testing.small_disk import SmallDisk, small_disk
from spur.values.config import ConfigFile
from spur.values.configfile import CONFIG_FILE
from spur.values.errors import Rejection, SpurError
from spur.values.ids import JobId
from spur.wire.cluster import Configured, Reconfigure
from spur.wire.declare import Done
from spur.wire.jobs import CancelJob, JobAccepted

DISK_FAILED = 74
SUBMISSIONS_MAX = 2000

is_root = pytest.mark.skipif(os.geteuid() != 0, reason="takes root: mounts a small file system")
has_compiler = pytest.mark.skipif(
    not FailingSync.is_possible(), reason="takes a C compiler: replaces fsync"
)

MARKS = """\
tick_ms = 15
disk_first_mark_mib = 60
disk_second_mark_mib = 30
"""

NO_MARKS = """\
tick_ms = 15
disk_first_mark_mib = 0
disk_second_mark_mib = 0
"""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """Yield a file system of 150 MiB; a controller at rest takes about 35."""
    with small_disk(tmp_path / "disk", 150) as made:
        yield made


def said(member: ControllerProcess, sentence: str) -> None:
    """Wait until a controller has said something."""
    until(sentence, lambda: sentence in member.words())


@is_root
def test_first_mark_refuses_what_is_new_and_lets_the_old_end(disk: SmallDisk) -> None:
    """Little room is left: users cannot submit, and can still cancel and look."""
    controllers = Controllers.create(disk.directory, 1, first_port=24030, settings=MARKS)
    [member] = controllers.members
    controllers.start()
    try:
        with controllers.blocking() as client:
            configure(client)
            made = submit_many(client, 5)
            disk.fill(45)
            said(member, "MiB are free on the disk: below 60 nothing new is taken from users")
            refused = client.ask(submit_one("late"), JobAccepted)
            assert isinstance(refused, Rejection)
            assert refused.code == "disk-low"
            files = (ConfigFile(CONFIG_FILE, SMALL_CONFIG.replace("64", "32")),)
            unchanged = client.ask(Reconfigure(files), Configured)
            assert isinstance(unchanged, Rejection)
            assert unchanged.code == "disk-low"
            assert client.do(CancelJob(JobId(max(made.values())), None)) == Done()
            assert jobs(client) == made
            disk.clear()
            said(member, "everything is taken again")
            made |= submit_many(client, 2)
            assert jobs(client) == made
    finally:
        assert member.stop() == 0


@is_root
def test_second_mark_stops_acknowledging(disk: SmallDisk) -> None:
    """Almost nothing is left: a lone controller answers nothing until there is room."""
    controllers = Controllers.create(disk.directory, 1, first_port=24030, settings=MARKS)
    [member] = controllers.members
    controllers.start()
    try:
        with controllers.blocking() as client:
            configure(client)
            made = submit_many(client, 5)
            disk.fill(20)
            said(member, "MiB are free on the disk: below 30 this controller acknowledges nothing")
            until("it gives up the lead", lambda: not info(controllers, member).leads)
            cancel = CancelJob(JobId(max(made.values())), None)
            with pytest.raises(Unreachable, match="does not lead"):
                client.ask(cancel, Done, deadline_s=1.0)
            disk.clear()
            assert client.ask(cancel, Done) == Done()
            assert jobs(client) == made
    finally:
        assert member.stop() == 0


@is_root
def test_lead_leaves_the_controller_whose_disk_is_nearly_full(
    disk: SmallDisk, tmp_path: Path
) -> None:
    """One of three has no room: the others serve, and it follows again when it has some."""
    controllers = Controllers.create(tmp_path / "hosts", 3, first_port=24030, settings=MARKS)
    member = moved(controllers, 0, disk.directory)
    controllers.start()
    try:
        with controllers.blocking() as client:
            configure(client)
            made = submit_many(client, 5)
            disk.fill(20)
            said(member, "this controller acknowledges nothing")
            until("another leads", lambda: info(controllers, member).leader in (2, 3))
            made |= submit_many(client, 5)
            assert jobs(client) == made
            last = client.position[1]
            assert not info(controllers, member).leads
            disk.clear()
            until("it follows", lambda: info(controllers, member).commit >= last)
    finally:
        controllers.stop()


def moved(controllers: Controllers, number: int, directory: Path) -> ControllerProcess:
    """Move a controller's directory; return the controller."""
    member = controllers.members[number]
    found = Controllers([member]).copy(directory).members[0]
    controllers.members[number] = found
    return found


@pytest.fixture
def three_disks(tmp_path: Path) -> Iterator[list[SmallDisk]]:
    """Yield three file systems of 150 MiB."""
    with ExitStack() as stack:
        names = [tmp_path / f"disk{number}" for number in (1, 2, 3)]
        yield [stack.enter_context(small_disk(name, 150)) for name in names]


@is_root
@pytest.mark.parametrize("full", [2, 3])
def test_full_disks_of_a_majority_stop_all_and_lose_nothing(
    three_disks: list[SmallDisk], tmp_path: Path, full: int
) -> None:
    """Two of three, or all, have no room: nothing is acknowledged, and it goes on afterwards."""
    controllers = Controllers.create(tmp_path / "hosts", 3, first_port=24030, settings=MARKS)
    for number, disk in enumerate(three_disks):
        moved(controllers, number, disk.directory)
    controllers.start()
    try:
        with controllers.blocking() as client:
            configure(client)
            made = submit_many(client, 5)
        for disk in three_disks[:full]:
            disk.fill(20)
        for member in controllers.members[:full]:
            said(member, "this controller acknowledges nothing")
        with (
            controllers.blocking(deadline_s=2.0) as client,
            pytest.raises((Unreachable, OutcomeUnknown)),
        ):
            client.ask(submit_one("late"), JobAccepted)
        for disk in three_disks[:full]:
            disk.clear()
        with controllers.blocking() as client:
            made |= submit_many(client, 5)
            found = jobs(client)
        assert made.items() <= found.items()
        assert len(found) <= len(made) + 1
    finally:
        controllers.stop()


def submit_until_it_ends(client: BlockingClient) -> dict[str, int]:
    """Submit until nothing is answered any more; return what was acknowledged."""
    made: dict[str, int] = {}
    with suppress(OutcomeUnknown, Unreachable):
        while len(made) < SUBMISSIONS_MAX:
            name, job_id = submit(client)
            made[name] = job_id
    assert len(made) < SUBMISSIONS_MAX, "the disk that should fail does not"
    return made


@is_root
def test_full_disk_ends_the_controller_and_loses_nothing(disk: SmallDisk) -> None:
    """Both marks are switched off and the disk is full: it ends, and goes on when there is room."""
    controllers = Controllers.create(disk.directory, 1, first_port=24030, settings=NO_MARKS)
    [member] = controllers.members
    controllers.start()
    with controllers.blocking() as client:
        configure(client)
        made = submit_many(client, 5)
    disk.fill(0)
    with controllers.blocking(deadline_s=3.0) as client:
        made |= submit_until_it_ends(client)
    assert member.wait() == DISK_FAILED
    sentence = member.words().splitlines()[-1]
    assert "the disk refused to " in sentence
    assert sentence.endswith(": No space left on device")
    disk.clear()
    controllers.start()
    with controllers.blocking() as client:
        found = jobs(client)
    assert member.stop() == 0
    assert made.items() <= found.items()
    assert len(found) <= len(made) + 1


@has_compiler
@pytest.mark.parametrize("count", [1, 3])
def test_failing_sync_ends_the_controller_and_loses_nothing(tmp_path: Path, count: int) -> None:
    """A disk reports that it could not write: what it holds is in doubt, so the process ends.

    With three, the others go on, and the one comes back when its disk was replaced by a good one.
    """
    failing = FailingSync(tmp_path)
    controllers = Controllers.create(
        tmp_path / "hosts", count, first_port=24030, settings="tick_ms = 15\n"
    )
    member = controllers.members[0]
    member.environment = failing.environment
    controllers.start()
    try:
        with controllers.blocking() as client:
            configure(client)
            made = submit_many(client, 5)
        failing.begin()
        with controllers.blocking(deadline_s=3.0 if count == 1 else 30.0) as client:
            made |= submit_until_it_ends(client) if count == 1 else submit_many(client, 5)
        assert member.wait() == DISK_FAILED
        sentence = member.words().splitlines()[-1]
        assert "the disk refused to sync " in sentence
        assert sentence.endswith(": Input/output error")
        failing.end()
        controllers.start()
        with controllers.blocking() as client:
            found = jobs(client)
            last = client.position[1]
        assert made.items() <= found.items()
        assert len(found) <= len(made) + 1
        until("it has all of it", lambda: info(controllers, member).commit >= last)
    finally:
        controllers.stop()


@has_compiler
def test_controller_does_not_start_on_a_disk_that_fails(tmp_path: Path) -> None:
    """It is started again on the same disk: it ends again, and says so again."""
    failing = FailingSync(tmp_path)
    controllers = Controllers.create(tmp_path / "hosts", 1, first_port=24030)
    [member] = controllers.members
    member.environment = failing.environment
    failing.begin()
    member.start()
    assert member.wait() == DISK_FAILED
    [line] = member.words().splitlines()
    assert "the disk refused to sync" in line
    with pytest.raises(SpurError), controllers.blocking(deadline_s=0.2) as client:
        jobs(client)
