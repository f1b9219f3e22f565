"""The read model of a real controller: behind a barrier, through kills, and made anew."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from spur.client.blocking import BlockingClient
from spur.controller.projector import MODEL_FILE
from spur.store.engine import remove_database
from spur.testing.controllers import ControllerProcess, Controllers
from spur.testing.errands import info, submit, until
from spur.testing.past import Past
from spur.values.ids import JobId
from spur.wire.declare import Done
from spur.wire.history import (
    JobRecord,
    QueryRecords,
    ReadStory,
    RecordFilter,
    RecordPage,
    StoryPage,
    decode_job_record,
)
from spur.wire.jobs import CancelJob

CODE = "import sys; from spur_cli.main import main; sys.exit(main())"


def records(client: BlockingClient) -> dict[str, JobRecord]:
    """Return every record, by the job's name."""
    page = client.ask(QueryRecords(RecordFilter(all_runs=True), JobId(0), 1000), RecordPage)
    assert isinstance(page, RecordPage), page
    assert page.next is None
    return {job.spec.name: job for job in map(decode_job_record, page.rows)}


def story(client: BlockingClient, job_id: int) -> list[str]:
    """Return the events of a job by their names."""
    page = client.ask(ReadStory(JobId(job_id), 0, 100), StoryPage)
    assert isinstance(page, StoryPage), page
    return [line.event for line in page.lines]


def projector(controllers: Controllers, member: ControllerProcess) -> int:
    """Return the process id of the projector; 0 while it is down."""
    [row] = [row for row in info(controllers, member).processes if row.name == "projector"]
    return row.pid


def test_records_are_as_new_as_the_answer_before(lone_past: Past, tmp_path: Path) -> None:
    """A user submits, asks sacct at once, cancels, and asks again; the projector is killed."""
    past = lone_past.copy(tmp_path)
    controllers, [member] = past.controllers, past.controllers.members
    controllers.start()
    try:
        with controllers.blocking() as client:
            for killed in (False, True):
                if killed:
                    pid = projector(controllers, member)
                    os.kill(pid, signal.SIGKILL)
                    until(
                        "the projector is there again",
                        lambda gone=pid: projector(controllers, member) not in (0, gone),  # type: ignore[misc]  # a lambda with a default
                    )
                name, job_id = submit(client)
                assert records(client)[name].runs[0].state == "PENDING"
                assert isinstance(client.ask(CancelJob(JobId(job_id), None), Done), Done)
                run = records(client)[name].runs[0]
                assert (run.state, run.killed_by) == ("CANCELLED", 0)
                assert story(client, job_id) == ["job.submitted", "run.ended"]
            assert {job: row.job_id for job, row in records(client).items()}.items() >= set(
                past.jobs.items()
            )
    finally:
        controllers.stop()


@pytest.mark.parametrize("loss", ["dropped", "of another history"])
def test_a_lost_model_is_made_anew_from_the_log(lone_past: Past, tmp_path: Path, loss: str) -> None:
    """Someone removes the file to save room, or puts that of another cluster there."""
    past = lone_past.copy(tmp_path)
    controllers, [member] = past.controllers, past.controllers.members
    path = member.directory / MODEL_FILE
    controllers.start()
    with controllers.blocking() as client:
        wanted = records(client)
        controllers.stop()
        if loss == "dropped":
            remove_database(path)
        else:
            subprocess.run(
                [
                    sys.executable,
                    "-c",
                    "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]);"
                    " c.execute(\"UPDATE cursor SET chain = x'00'\");"
                    " c.execute('DELETE FROM job_events'); c.commit()",
                    str(path),
                ],
                check=True,
            )
        controllers.start()
        try:
            assert records(client) == wanted
            assert story(client, wanted[min(past.jobs)].job_id)[0] == "job.submitted"
        finally:
            controllers.stop()


def test_commands_show_records_and_stories(lone_past: Past, tmp_path: Path) -> None:
    """A person at the controller looks at a job that was cancelled, and at one that never was."""
    past = lone_past.copy(tmp_path)
    controllers, [member] = past.controllers, past.controllers.members
    controllers.start()
    try:
        with controllers.blocking() as client:
            name, job_id = submit(client)
            client.ask(CancelJob(JobId(job_id), None), Done)
        environment = {**os.environ, "SPUR_SOCKET": str(member.directory / "spurctld.sock")}

        def spur(*words: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [sys.executable, "-c", CODE, *words],
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )

        shown = spur("sacct", "-nPX", "-j", str(job_id), "-o", "jobid,jobname,state")
        assert shown.stdout == f"{job_id}|{name}|CANCELLED by 0\n"
        told = spur("story", str(job_id))
        first, submitted, ended = told.stdout.splitlines()
        assert first.split() == ["TIME", "INDEX", "EVENT", "WHO", "WHAT", "HAPPENED"]
        assert "job.submitted" in submitted
        assert f"'{name}' was submitted to gpu" in submitted
        assert "recorded as CANCELLED" in ended
        unknown = spur("story", "4000000")
        assert (unknown.returncode, unknown.stdout) == (1, "")
        assert "no job 4000000 is known" in unknown.stderr
        wrong = spur("story", "4x")
        assert wrong.returncode == 2
        assert "'4x' is no job id" in wrong.stderr
    finally:
        controllers.stop()
