"""A real agent and real jobs through the death of the leader, at the moments that matter."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from spur.controller.authority import Authority
from spur.controller.birth import AUTHORITY_DIRECTORY
from spur.controller.clocks import OFFSET_BYTES
from spur.controller.enrol import NewAgent, enrol
from spur.controller.logtool import show_events
from spur.controller.settings import SETTINGS_FILE
from spur.testing.agentprocess import AgentProcess
from spur.testing.controllers import ControllerProcess, Controllers
from spur.testing.errands import info, until
from spur.testing.hall import SPEC, submission
from spur.values.config import ConfigFile
from spur.values.configfile import CONFIG_FILE
from spur.values.ids import JobId
from spur.values.jobspec import JobText, encode_text
from spur.values.states import JobState
from spur.wire.cluster import Configured, Reconfigure
from spur.wire.declare import Attachment, Done
from spur.wire.jobs import CancelJob, JobAccepted, JobFilter, JobPage, QueryJobs, page_views

TIMEOUT_S = 4

CONFIG = f"""\
[cluster]
name = "three"
slurmd_timeout_s = {TIMEOUT_S}
requeue_policy = "confirmed"

[[nodes]]
names = "n1"
cpus = 64
memory_mib = 512000

[[partitions]]
name = "gpu"
nodes = "n1"
default = true
"""


class Place:
    """Three controllers and the agent of n1."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.controllers = Controllers.create(
            directory, 3, first_port=25660, settings="tick_ms = 20\n"
        )
        for member in self.controllers.members:
            clock = self._clock(member)
            clock.write_bytes(bytes(OFFSET_BYTES))
            with (member.directory / SETTINGS_FILE).open("a") as file:
                file.write(f'clock_offset_file = "{clock}"\n')
        self.controllers.start()
        with self.controllers.blocking() as client:
            files = (ConfigFile(CONFIG_FILE, CONFIG),)
            assert isinstance(client.ask(Reconfigure(files), Configured), Configured)
            new = NewAgent(
                directory=directory / "agent",
                name="n1",
                role="compute",
                controllers=tuple(each.rpc_address for each in self.controllers.members),
                nodes=("n1",),
                settings={"cpus": 64, "memory_mib": 512_000, "attend_ms": 1000},
            )
            authority = self.controllers.members[0].directory / AUTHORITY_DIRECTORY
            enrol(client, Authority.open(authority), new)
        self.agent = AgentProcess(new.directory)
        self.agent.start()

    def _clock(self, member: ControllerProcess) -> Path:
        return self.directory / f"clock-{member.directory.name}"

    def set_clock(self, member: ControllerProcess, off_s: int) -> None:
        """Let a controller's clock be off, from now on."""
        content = (off_s * 1_000_000_000).to_bytes(OFFSET_BYTES, "little", signed=True)
        with self._clock(member).open("r+b") as file:
            file.write(content)

    def submit(self, lines: str, **asked: int) -> JobId:
        """Submit a script that notes its beginning and its end; `asked` is of its spec."""
        notes = self.directory / "notes"
        script = f"#!/bin/sh\necho b >> {notes}.$SLURM_JOB_ID\n{lines}\n"
        script += f"echo e >> {notes}.$SLURM_JOB_ID\n"
        text = JobText(os.fsencode(self.directory), (b"job",), b"", b"/dev/null", b"", b"")
        attachments = (
            Attachment("script", script.encode()),
            Attachment("environment", b"PATH=/usr/bin:/bin\0"),
            Attachment("text", encode_text(text)),
        )
        request = replace(submission(replace(SPEC, **asked)), attachments=attachments)
        with self.controllers.blocking() as client:
            accepted = client.ask(request, JobAccepted)
        assert isinstance(accepted, JobAccepted)
        return accepted.job_id

    def notes(self, job_id: int) -> str:
        path = self.directory / f"notes.{job_id}"
        return path.read_text().replace("\n", "") if path.exists() else ""

    def cancel(self, job_id: JobId) -> None:
        with self.controllers.blocking() as client:
            assert isinstance(client.ask(CancelJob(job_id, None), Done), Done)

    def stamps_s(self) -> list[float]:
        """Return the times of the log's entries."""
        rows = show_events(str(self.leader().directory))
        return [datetime.fromisoformat(row["time"]).timestamp() for row in rows]

    def state(self, job_id: JobId) -> JobState:
        with self.controllers.blocking() as client:
            page = client.ask(QueryJobs(JobFilter(job_ids=(job_id,)), JobId(0), 1), JobPage)
        assert isinstance(page, JobPage)
        return page_views(page)[0].state

    def leader(self) -> ControllerProcess:
        found: list[ControllerProcess] = []

        def is_there() -> bool:
            found[:] = [
                each
                for each in self.controllers.members
                if each.is_running and info(self.controllers, each).leads
            ]
            return len(found) == 1

        until("somebody leads", is_there)
        return found[0]

    def events(self, member: ControllerProcess, name: str) -> list[dict[str, Any]]:
        """Return the fields of all events of a kind in a controller's log."""
        rows = show_events(str(member.directory))
        return [row["fields"] | {"time": row["time"]} for row in rows if row["event"] == name]

    def close(self) -> None:
        self.agent.kill()
        self.controllers.stop()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Yield a cluster that the tests here share; each leaves three controllers that run."""
    made = Place(tmp_path_factory.mktemp("place"))
    try:
        first = made.submit("true")
        until("the node is there", lambda: made.state(first) is JobState.COMPLETED)
        yield made
    finally:
        made.close()


def test_report_is_held_until_there_is_a_leader(place: Place) -> None:
    """A job ends while the leader hangs, which is then killed: its end is told the next, once.

    It is dated by when it happened, though it was told later.
    """
    job_id = place.submit("until test -e go; do sleep 0.05; done")
    until("it runs", lambda: place.notes(job_id) == "b")
    leader = place.leader()
    leader.signal(signal.SIGSTOP)
    (place.directory / "go").touch()
    until("it ended", lambda: place.notes(job_id) == "be")
    ended_s = time.time()
    time.sleep(1.0)
    leader.kill()
    until("its end is known", lambda: place.state(job_id) is JobState.COMPLETED)
    leader.start()
    [end] = [e for e in place.events(place.leader(), "run.ended") if e["job_id"] == job_id]
    assert abs(end["end_ns"] / 1e9 - ended_s) < 0.9
    assert (end["exit_code"], end["unfenced"]) == (0, False)


def test_launch_is_told_by_the_next_leader(place: Place) -> None:
    """A start is committed while the node's agent is away; its leader dies before it comes back."""
    place.agent.kill()
    job_id = place.submit("true")
    until("it is started", lambda: place.state(job_id) is JobState.RUNNING)
    leader = place.leader()
    leader.kill()
    assert place.notes(job_id) == ""
    place.agent.start()
    until("it ran", lambda: place.state(job_id) is JobState.COMPLETED)
    leader.start()
    assert place.notes(job_id) == "be"


def test_launches_are_repeated_and_done_once(place: Place) -> None:
    """Jobs come in while leaders are killed, each at another moment of a launch and its report."""
    submitted: list[JobId] = []
    for kill in range(4):
        submitted += [place.submit("sleep 0.2") for _ in range(5)]
        time.sleep(0.05 * kill)
        leader = place.leader()
        leader.kill()
        submitted += [place.submit("sleep 0.2") for _ in range(3)]
        leader.start()
    for job_id in submitted:
        until(f"job {job_id} ended", lambda j=job_id: place.state(j) is JobState.COMPLETED)  # type: ignore[misc]  # a lambda with a default
    assert {job_id: place.notes(job_id) for job_id in submitted} == dict.fromkeys(submitted, "be")
    ends = [each["job_id"] for each in place.events(place.leader(), "run.ended")]
    assert sorted(job_id for job_id in ends if job_id in submitted) == sorted(submitted)


def test_new_leader_gives_the_node_its_whole_time(place: Place) -> None:
    """A node is silent for most of its time when the leader dies: the next begins to count anew."""
    os.kill(place.agent.pid, signal.SIGSTOP)
    try:
        time.sleep(TIMEOUT_S * 0.6)
        leader = place.leader()
        killed_s = time.time()
        leader.kill()
        place.leader()
        until("it is lost", lambda: bool(place.events(place.leader(), "node.lost")))
        assert time.time() - killed_s >= TIMEOUT_S
    finally:
        os.kill(place.agent.pid, signal.SIGCONT)
        leader.start()


@pytest.mark.parametrize("off_s", [3600, -3600], ids=["ahead", "behind"])
def test_leader_whose_clock_is_an_hour_off_leads_no_more(place: Place, off_s: int) -> None:
    """Its clock is set while one job runs, and another is to begin in half an hour.

    Nothing falls due for it, and what is stamped goes on with the time of the others. A clock that
    is ahead does not come to lead either when one of the two others dies.
    """
    began_s = time.time()
    running = place.submit("sleep 600", time_limit_s=120)
    waiting = place.submit("true", begin_ns=int((began_s + 1800) * 1e9))
    until("it runs", lambda: place.notes(running) == "b")
    wrong = place.leader()
    place.set_clock(wrong, off_s)
    try:
        until("another one leads", lambda: place.leader() is not wrong)
        if off_s > 0:
            place.leader().kill()
        after = place.submit("true")
        until("it ran", lambda: place.state(after) is JobState.COMPLETED)
        time.sleep(1.0)
        assert place.leader() is not wrong
        assert place.state(running) is JobState.RUNNING
        assert place.state(waiting) is JobState.PENDING
        assert abs(place.stamps_s()[-1] - time.time()) < 2
    finally:
        place.set_clock(wrong, 0)
        place.controllers.start()
        for job_id in (running, waiting):
            place.cancel(job_id)
    until("it ended", lambda: place.state(running) is JobState.CANCELLED)
