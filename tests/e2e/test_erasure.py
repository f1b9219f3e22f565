"""A purged job's script leaves the blobs of a controller, and its history stays whole."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from spur.client.client import Client
from spur.testing.builders import SMALL_CONFIG
from spur.testing.controllers import Controllers
from spur.testing.hall import submission
from spur.values.config import ConfigFile
from spur.values.configfile import CONFIG_FILE
from spur.values.ids import JobId
from spur.wire.cluster import Configured, Reconfigure, ReplicaInfo, ShowReplica
from spur.wire.declare import Attachment, Done
from spur.wire.jobs import CancelJob, JobAccepted, SubmitJob

SECRET = b"export TOKEN=hunter2"

PATIENCE_S = 30.0


@pytest.fixture
def controllers(tmp_path: Path) -> Iterator[Controllers]:
    """Yield a running controller that writes a snapshot every hundred entries."""
    cluster = Controllers.create(tmp_path, 1, first_port=21580, settings="snapshot_entries = 100\n")
    cluster.start()
    yield cluster
    cluster.stop()


def with_secret() -> SubmitJob:
    job = submission(hold=True)
    script = Attachment("script", b"#!/bin/sh\n" + SECRET + b"\n")
    return msgspec.structs.replace(job, attachments=(script, *job.attachments[1:]))


async def submit_and_cancel(client: Client, request: SubmitJob) -> JobId:
    answer = await client.ask(request, JobAccepted)
    assert isinstance(answer, JobAccepted)
    assert isinstance(await client.ask(CancelJob(answer.job_id, None), Done), Done)
    return answer.job_id


def holds_secret(directory: Path) -> bool:
    return any(SECRET in path.read_bytes() for path in (directory / "blobs").iterdir())


def test_purged_jobs_script_is_erased(controllers: Controllers) -> None:
    """A user's script held a token; the job ended and was purged, and other work went on."""
    directory = controllers.members[0].directory
    config = SMALL_CONFIG.replace("[cluster]\n", "[cluster]\nmin_job_age_s = 1\n")

    async def story() -> JobId:
        async with controllers.client() as client:
            files = (ConfigFile(CONFIG_FILE, config),)
            assert isinstance(await client.ask(Reconfigure(files), Configured), Configured)
            purged = await submit_and_cancel(client, with_secret())
            end_s = asyncio.get_running_loop().time() + PATIENCE_S
            while not holds_secret(directory):  # it goes there from the log, soon
                assert asyncio.get_running_loop().time() < end_s, "the script was never stored"
                await asyncio.sleep(0.01)
            while holds_secret(directory):
                assert asyncio.get_running_loop().time() < end_s, "the secret is still there"
                await submit_and_cancel(client, submission(hold=True))
            return purged

    purged = asyncio.run(story())
    code = "import sys; from spur_cli.main import main; sys.exit(main())"
    run = subprocess.run(
        [sys.executable, "-c", code, "log", "export", str(directory)],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = [json.loads(line) for line in run.stdout.splitlines()]
    (row,) = (
        row
        for row in rows
        for event in row.get("events", ())
        if event["type"] == "job.submitted" and event["fields"]["job_id"] == purged
    )
    assert {ref["content"] for ref in row["attachments"]} == {"(erased)"}


async def erased_to(client: Client) -> int:
    info = await client.ask(ShowReplica(), ReplicaInfo)
    assert isinstance(info, ReplicaInfo)
    return info.erased_to


def test_controller_says_up_to_where_erasure_is_done(controllers: Controllers) -> None:
    """Somebody must be told that a token is gone: from blobs, write-ahead log and snapshots."""
    directory = controllers.members[0].directory
    config = SMALL_CONFIG.replace("[cluster]\n", "[cluster]\nmin_job_age_s = 1\n")

    async def submit_until_purged() -> int:
        """Return the index of the last entry before two more, which a start copies."""
        async with controllers.client() as client:
            files = (ConfigFile(CONFIG_FILE, config),)
            assert isinstance(await client.ask(Reconfigure(files), Configured), Configured)
            await submit_and_cancel(client, with_secret())
            assert await erased_to(client) == 0
            await asyncio.sleep(1.5)
            info = await client.ask(ShowReplica(), ReplicaInfo)
            await submit_and_cancel(client, submission(hold=True))
            assert isinstance(info, ReplicaInfo)
            return info.commit

    async def go_on(index: int) -> None:
        async with controllers.client() as client:
            end_s = asyncio.get_running_loop().time() + PATIENCE_S
            while await erased_to(client) < index:
                assert asyncio.get_running_loop().time() < end_s, "it never says so"
                await submit_and_cancel(client, submission(hold=True))

    index = asyncio.run(submit_until_purged())
    # Its start begins a new segment of the write-ahead log, so the former one can go.
    controllers.stop()
    controllers.start()
    asyncio.run(go_on(index))
    left = [path for path in directory.rglob("*") if path.is_file() and SECRET in path.read_bytes()]
    assert not left
