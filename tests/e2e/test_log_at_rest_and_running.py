"""`spur log` on the directories of real controllers, while they run and after they were stopped."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spur.testing.builders import SMALL_CONFIG
from spur.testing.controllers import Controllers
from spur.testing.hall import submission
from spur.values.config import ConfigFile
from spur.values.configfile import CONFIG_FILE
from spur.wire.cluster import Configured, Reconfigure
from spur.wire.jobs import JobAccepted


def spur_log(verb: str, directory: Path, *options: str) -> list[dict[str, Any]]:
    """Run `spur log` and return the objects it wrote."""
    code = "import sys; from spur_cli.main import main; sys.exit(main())"
    run = subprocess.run(
        [sys.executable, "-c", code, "log", verb, str(directory), *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "")
    if verb in ("verify", "head"):
        return [json.loads(run.stdout)]
    return [json.loads(line) for line in run.stdout.splitlines()]


@pytest.fixture
def controllers(tmp_path: Path) -> Iterator[Controllers]:
    """Yield a running cluster of three that has its configuration."""
    cluster = Controllers.create(tmp_path, 3, first_port=21560)
    cluster.start()
    yield cluster
    cluster.stop()


async def submit(controllers: Controllers, count: int, *, configure: bool = False) -> None:
    async with controllers.client() as client:
        if configure:
            files = (ConfigFile(CONFIG_FILE, SMALL_CONFIG),)
            assert isinstance(await client.ask(Reconfigure(files), Configured), Configured)
        for _ in range(count):
            answer = await client.ask(submission(hold=True), JobAccepted)
            assert isinstance(answer, JobAccepted)


def test_log_is_read_beside_running_controllers(controllers: Controllers) -> None:
    """An auditor reads the logs of three controllers that go on working; all tell the same."""

    async def story() -> None:
        await submit(controllers, 5, configure=True)
        going_on = asyncio.create_task(submit(controllers, 60))
        for member in controllers.members:
            (report,) = await asyncio.to_thread(
                spur_log, "verify", member.directory, "--replay", "--json"
            )
            assert (report["first"], report["missing"]) == (1, [])
        await going_on

    asyncio.run(story())
    # A follower learns of a commit with the next heartbeat: compare what all of them have by now.
    heads = [spur_log("head", member.directory, "--json")[0] for member in controllers.members]
    common = min(head["index"] for head in heads)
    assert common > 5
    exports = [
        spur_log("export", member.directory, "--last", str(common))
        for member in controllers.members
    ]
    assert exports[0] == exports[1] == exports[2]
    contents = {ref["content"] for row in exports[0] for ref in row.get("attachments", ())}
    assert contents == {"(redacted)"}


def test_log_of_a_stopped_controller_lists_every_job(tmp_path: Path) -> None:
    """A controller of its own is stopped; its log holds every job that was accepted."""
    cluster = Controllers.create(tmp_path, 1, first_port=21570)
    cluster.start()
    try:
        asyncio.run(submit(cluster, 7, configure=True))
    finally:
        cluster.stop()
    directory = cluster.members[0].directory
    rows = spur_log("show", directory, "--json")
    assert rows[0]["command"] == "membership"
    assert sum(row["command"] == "job.submit" for row in rows) == 7
    (report,) = spur_log("verify", directory, "--replay", "--json")
    assert report["index"] == rows[-1]["index"]
    assert (report["attachments"], report["attachments_missing"]) == (21, 0)
