"""Who may do what over the Unix socket: the kernel says who is calling, and nothing else counts."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from spur.controller.logtool import export
from spur.testing.controllers import Controllers
from spur.testing.errands import configure, jobs, submit_many

NOBODY = 65534

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="takes root: becomes another user")

# Everything is imported before the user changes, who need not be able to read the sources.
CHILD = """
import os, sys
from spur.client.blocking import BlockingClient
from spur.testing.builders import SMALL_CONFIG
from spur.testing.errands import submit_one
from spur.values.config import ConfigFile
from spur.values.ids import JobId
from spur.values.states import Hold
from spur.wire.cluster import Configured, Reconfigure
from spur.wire.declare import Done
from spur.wire.jobs import CancelJob, HoldJob, JobAccepted, JobChanges, UpdateJob

socket, uid, theirs = sys.argv[1], int(sys.argv[2]), JobId(int(sys.argv[3]))
os.setgroups([])
os.setgid(uid)
os.setuid(uid)
with BlockingClient([f"unix:{socket}"], deadline_s=20.0) as client:
    mine = client.ask(submit_one("of-nobody"), JobAccepted)
    print(type(mine).__name__)
    for request, answer in (
        (UpdateJob(mine.job_id, None, JobChanges(nice=-5)), Done),
        (CancelJob(mine.job_id, None), Done),
        (CancelJob(theirs, None), Done),
        (HoldJob(theirs, None, Hold.USER), Done),
        (Reconfigure((ConfigFile("spur.toml", SMALL_CONFIG),)), Configured),
    ):
        outcome = client.ask(request, answer)
        print(getattr(outcome, "code", type(outcome).__name__))
    outcome = client.ask(CancelJob(theirs, None), Done, speaks_for=(0, 0))
    print(outcome.code, outcome.text, sep=": ")
"""


@pytest.fixture
def public() -> Iterator[Path]:
    """Yield a directory that every user can look into."""
    with tempfile.TemporaryDirectory(prefix="spur-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_ordinary_user_may_submit_and_not_reconfigure(tmp_path: Path, public: Path) -> None:
    """A user of the controller's host tries what only administrators may, and what is not theirs.

    Root's job stays, and the log names the user that the kernel named.
    """
    socket = public / "spurctld.sock"
    controllers = Controllers.create(
        tmp_path, 1, first_port=24050, settings=f'tick_ms = 15\nsocket = "{socket}"\n'
    )
    [member] = controllers.members
    controllers.start()
    try:
        with controllers.blocking() as client:
            configure(client)
            roots = submit_many(client, 1)
            run = subprocess.run(
                [sys.executable, "-c", CHILD, str(socket), str(NOBODY), str(*roots.values())],
                capture_output=True,
                text=True,
                check=False,
            )
            assert (run.returncode, run.stderr) == (0, "")
            assert run.stdout.splitlines() == [
                "JobAccepted",
                "not-permitted",
                "Done",
                "not-owner",
                "not-owner",
                "not-permitted",
                f"not-permitted: user {NOBODY} speaks for user 0; only root of this host and"
                " whoever runs this daemon speak for others; nothing was done",
            ]
            assert set(jobs(client)) == {*roots, "of-nobody"}
    finally:
        assert member.stop() == 0
    actors = [
        (row["command"], row["actor"]["uid"], row["actor"]["via"])
        for row in export(str(member.directory))
        if row.get("actor")
    ]
    assert ("job.submit", NOBODY, "socket") in actors
    assert ("cluster.reconfigure", NOBODY, "socket") not in actors


def test_private_directory_keeps_other_users_out(tmp_path: Path) -> None:
    """The keys and attachments of a controller can be read by its owner alone."""
    controllers = Controllers.create(tmp_path, 1, first_port=24050, settings="tick_ms = 15\n")
    [member] = controllers.members
    controllers.start()
    try:
        with controllers.blocking() as client:
            configure(client)
            submit_many(client, 3)
    finally:
        member.stop()
    open_to_others = [
        path
        for path in (member.directory, *member.directory.rglob("*"))
        if path.name not in ("log", "spurctld.toml") and path.stat().st_mode & 0o077
    ]
    assert [path for path in open_to_others if not path.is_dir()] == []
    assert member.directory.stat().st_mode & 0o077 == 0
