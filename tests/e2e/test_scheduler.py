"""The scheduler beside a real controller: jobs start, others say why not, and it may be killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from spur.client.blocking import BlockingClient
from spur.client.tls import credentials_in
from spur.controller.birth import TLS_DIRECTORY
from spur.controller.main import main
from spur.testing.controllers import Controllers
from spur.testing.errands import info, until
from spur.testing.hall import SPEC, submission
from spur.values.config import ConfigFile
from spur.values.configfile import CONFIG_FILE
from spur.values.ids import JobId, NodeName, PartitionName
from spur.values.states import JobState, NodeAction, NodeShareState, Reason
from spur.values.tres import cpu_set
from spur.wire.cluster import Configured, Reconfigure
from spur.wire.declare import Done
from spur.wire.jobs import JobAccepted, JobFilter, JobPage, JobView, QueryJobs, page_views
from spur.wire.nodes import RegisterNode, UpdateNodes
from spur.wire.runs import ReportAnswered, ReportRun

CONFIG = """\
[cluster]
name = "real"

[[nodes]]
names = "n[1-2]"
cpus = 2
memory_mib = 4096
agent = "h1"

[[partitions]]
name = "main"
nodes = "n[1-2]"
default = true
"""


SPUR = "import sys; from spur_cli.main import main; sys.exit(main())"


class Real:
    """One controller with its scheduler, and an agent played by hand."""

    def __init__(self, directory: Path) -> None:
        self.controllers = Controllers.create(directory, 1, first_port=23100)
        self.controllers.start()
        [member] = self.controllers.members
        with self.client() as client:
            asked = Reconfigure((ConfigFile(CONFIG_FILE, CONFIG),))
            assert isinstance(client.ask(asked, Configured), Configured)
        words = ["issue", "--dir", str(member.directory), "--host", "h1", "--role", "compute"]
        words += ["--node", "n1", "--node", "n2", "--out", str(directory / "h1")]
        assert main(words) == 0
        self._agent = credentials_in(directory / "h1" / TLS_DIRECTORY)
        self._reports = {"n1": 0, "n2": 0}
        with self.agent() as agent:
            for node in self._reports:
                there = RegisterNode(NodeName(node), b"boot", 2, 4096, "", 0)
                assert isinstance(agent.ask(there, Done), Done)

    def client(self) -> BlockingClient:
        return self.controllers.blocking(self.controllers.members[0])

    def agent(self) -> BlockingClient:
        return BlockingClient([self.controllers.members[0].rpc_address], tls=self._agent)

    def submit(self, client: BlockingClient, *, tasks: int = 1) -> JobId:
        ask = replace(SPEC.ask, tasks=tasks)
        spec = replace(SPEC, partitions=(PartitionName("main"),), ask=ask)
        accepted = client.ask(submission(spec), JobAccepted)
        assert isinstance(accepted, JobAccepted)
        return accepted.job_id

    def job(self, client: BlockingClient, job_id: JobId) -> JobView:
        page = client.ask(QueryJobs(JobFilter(job_ids=(job_id,)), JobId(0), 10), JobPage)
        assert isinstance(page, JobPage)
        view = page_views(page)[0]
        shown = {group.shape: group.reason for group in page.reasons}
        if view.state is JobState.PENDING and view.reason is Reason.NONE:
            return replace(view, reason=shown.get(view.shape, Reason.NONE))
        return view

    def runs(self, client: BlockingClient, job_id: JobId) -> bool:
        return self.job(client, job_id).state is JobState.RUNNING

    def end(self, view: JobView) -> None:
        with self.agent() as agent:
            for share in view.shares:
                self._reports[share.node] += 1
                number = self._reports[share.node]
                ended = NodeShareState.ENDED
                report = ReportRun(
                    share.node, b"o" * 16, number, view.job_id, 0, 1, ended, 0, 0, False, 0
                )
                assert isinstance(agent.ask(report, ReportAnswered), ReportAnswered)

    def scheduler(self) -> int:
        processes = info(self.controllers, self.controllers.members[0]).processes
        return next((each.pid for each in processes if each.name == "scheduler"), 0)


@pytest.fixture
def real(tmp_path: Path) -> Iterator[Real]:
    """Yield a cluster of two nodes with two CPUs each."""
    made = Real(tmp_path)
    yield made
    made.controllers.stop()


def test_jobs_start_as_nodes_come_free(real: Real) -> None:
    """Four CPUs are there; a job takes three, and one that wants two waits for it."""
    with real.client() as client:
        first, second = real.submit(client, tasks=3), real.submit(client, tasks=2)
        until("the first runs", lambda: real.runs(client, first))
        view = real.job(client, first)
        assert [(share.node, share.cpu_set) for share in view.shares] == [
            ("n1", cpu_set(0b11)),
            ("n2", cpu_set(0b1)),
        ]
        until(
            "the second says why it waits",
            lambda: real.job(client, second).reason is Reason.RESOURCES,
        )
        [member] = real.controllers.members
        words = [sys.executable, "-c", SPUR, "why", str(second), "--parsable"]
        why = subprocess.run(
            [*words, "--socket", member.socket.removeprefix("unix:")],
            capture_output=True,
            text=True,
            check=False,
        )
        assert f"job {second} is PENDING: Resources" in why.stderr, why.stderr
        line = next(line for line in why.stdout.splitlines() if "room now" in line)
        assert line == "main|room now|2 tasks on 1 nodes|room for 1 on 1 nodes|Resources"
        unknown = subprocess.run(
            [*words[:3], "why", "99", "--socket", member.socket.removeprefix("unix:")],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (unknown.returncode, "there is no job 99" in unknown.stderr) == (1, True)
        assert "hint: `spur story 99` tells" in unknown.stderr
        real.end(view)
        until("the second runs", lambda: real.runs(client, second))


def test_a_killed_scheduler_is_followed_by_another(real: Real) -> None:
    """The scheduler gets kill -9: jobs wait for a moment, and start."""
    with real.client() as client:
        until("the scheduler is there", lambda: real.scheduler() > 0)
        killed = real.scheduler()
        os.kill(killed, signal.SIGKILL)
        job_id = real.submit(client)
        until("the job runs", lambda: real.runs(client, job_id))
        assert real.scheduler() not in (0, killed)


def test_a_node_that_is_asked_for_and_out_of_use_is_named(real: Real) -> None:
    """A job names both nodes, and one is drained: squeue says which, as Slurm does."""
    with real.client() as client:
        drain = UpdateNodes("n2", NodeAction.DRAIN, "broken disk")
        assert isinstance(client.ask(drain, Done), Done)
        ask = replace(SPEC.ask, nodes_required="n[1-2]", nodes_min=2, tasks=2)
        spec = replace(SPEC, partitions=(PartitionName("main"),), ask=ask)
        accepted = client.ask(submission(spec), JobAccepted)
        assert isinstance(accepted, JobAccepted)
        wanted = Reason.REQ_NODE_NOT_AVAIL
        until("it says why", lambda: real.job(client, accepted.job_id).reason is wanted)
    [member] = real.controllers.members
    shown = subprocess.run(
        [sys.executable, "-c", SPUR, "squeue", "-h", "-o", "%t|%r|%R"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "SPUR_SOCKET": member.socket.removeprefix("unix:")},
    )
    reason = "ReqNodeNotAvail, UnavailableNodes:n2"
    assert shown.stdout == f"PD|{reason}|({reason})\n"
