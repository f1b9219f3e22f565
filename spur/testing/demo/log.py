"""The second part: three real controllers, a leader that dies, and a byte that is changed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path
from typing import TypeVar

from rich.table import Table

from spur.client.client import Client
from spur.testing.builders import SMALL_CONFIG
from spur.testing.controllers import ControllerProcess, Controllers
from spur.testing.demo.narrator import Narrator
from spur.testing.hall import submission
from spur.values.arrays import TaskSet, format_tasks
from spur.values.config import ConfigFile
from spur.values.configfile import CONFIG_FILE
from spur.values.errors import Rejection, SpurError
from spur.values.ids import JobId
from spur.values.states import Hold
from spur.wire.cluster import Configured, Reconfigure, ReplicaInfo, ShowReplica
from spur.wire.declare import Answer
from spur.wire.jobs import (
    CancelJob,
    HoldJob,
    JobAccepted,
    JobFilter,
    JobPage,
    QueryJobs,
    ReleaseJob,
    decode_job_view,
)

__all__ = ["LogDemo", "show_log"]

A = TypeVar("A", bound=Answer)

FIRST_PORT = 21900
ARRAY_TASKS = 100_000
LEVEL_LOOKS = 600
"""How often a restarted controller is looked at before it counts as lost, 50 ms apart."""


class LogDemo:
    """The steps, in order."""

    def __init__(self, directory: Path, narrator: Narrator) -> None:
        self._tell = narrator
        self._directory = directory
        self._controllers = Controllers.create(directory, 3, first_port=FIRST_PORT)

    def run(self) -> None:
        """Show everything; the controllers are stopped at the end, whatever happens.

        Raises: SpurError when something is not as it should be.
        """
        try:
            asyncio.run(self._alive())
            self._controllers.stop()
            self._stopped()
        finally:
            self._controllers.stop()

    def _spur(self, *words: str) -> int:
        """Run a command of `spur` as a person would, and show what it prints."""
        self._tell.command(f"spur {' '.join(words)}")
        argv = [sys.executable, "-c", "from spur_cli.main import main; raise SystemExit(main())"]
        done = subprocess.run([*argv, *words], capture_output=True, text=True, check=False)
        self._tell.output(done.stdout + done.stderr)
        return done.returncode

    # -- while the controllers run
    async def _alive(self) -> None:
        controllers = self._controllers
        self._tell.step(
            "10. Three controllers",
            f"A cluster of three was made in {self._directory}: one genesis, one certificate\n"
            "authority, a directory each. No shared disk, no database, no shared secret.",
        )
        began = time.monotonic()
        controllers.start()
        leader = await controllers.leader()
        self._tell.note(
            f"{leader.directory.name} leads, {time.monotonic() - began:.1f} s after start"
        )
        async with controllers.client() as client:
            await self._submit(client)
            await self._lose_the_leader(client)
            await self._show_queue(client)
        await self._show_controllers()

    async def _submit(self, client: Client) -> None:
        self._tell.step(
            "11. Jobs are events",
            "A configuration is taken, then jobs. Each request is one entry of the log,\n"
            "answered once a majority has it on disk. So is an array of 100 000 tasks.",
        )
        text = SMALL_CONFIG.replace("[cluster]", "[cluster]\narray_size_max = 100_001")
        files = (ConfigFile(CONFIG_FILE, text),)
        _must(await client.ask(Reconfigure(files), Configured))
        for _ in range(3):
            answer = _must(await client.ask(submission(), JobAccepted))
            self._tell.note(f"Submitted batch job {answer.job_id}")
        tasks = TaskSet.of(range(ARRAY_TASKS))
        answer = _must(await client.ask(submission(tasks=tasks, throttle=5), JobAccepted))
        self._tell.note(f"Submitted batch job {answer.job_id} (array {format_tasks(tasks)}%5)")
        _must(await client.do(CancelJob(JobId(1), None)))
        _must(await client.do(HoldJob(JobId(2), None, Hold.USER)))
        self._tell.note("job 1 was cancelled, job 2 is held")

    async def _lose_the_leader(self, client: Client) -> None:
        self._tell.step(
            "12. The leader dies",
            "kill -9 of the controller that leads. The client asks on with the same\n"
            "request id until another one answers: nothing is lost or done twice.",
        )
        leader = await self._controllers.leader()
        began = time.monotonic()
        leader.kill()
        answer = _must(await client.ask(submission(), JobAccepted))
        took_s = time.monotonic() - began
        self._tell.note(f"killed {leader.directory.name}; batch job {answer.job_id} was accepted")
        self._tell.note(
            f"[bold]{took_s:.2f} s[/bold] from the kill to the next accepted submission"
        )
        _must(await client.do(ReleaseJob(JobId(2), None)))
        leader.start()
        await self._wait_until_level(leader)
        self._tell.note(f"{leader.directory.name} was started again and has caught up")

    async def _wait_until_level(self, late: ControllerProcess) -> None:
        others = [member for member in self._controllers.members if member is not late]
        goal = max([(await self._info(member)).commit for member in others])
        for _ in range(LEVEL_LOOKS):
            if (await self._info(late)).commit >= goal:
                return
            await asyncio.sleep(0.05)
        raise SpurError(f"{late.directory.name} did not catch up")

    async def _info(self, member: ControllerProcess) -> ReplicaInfo:
        async with self._controllers.local(member) as client:
            return _must(await client.ask(ShowReplica(), ReplicaInfo))

    async def _show_queue(self, client: Client) -> None:
        page = _must(await client.ask(QueryJobs(JobFilter(), JobId(0), 10), JobPage))
        table = Table(
            "job", "tasks", "name", "state", "hold", title="the queue, after the failover"
        )
        for row in map(decode_job_view, page.rows):
            tasks = format_tasks(row.tasks) if row.tasks is not None else ""
            table.add_row(str(row.job_id), tasks, row.spec.name, row.state, row.hold.name.lower())
        self._tell.show(table)

    async def _show_controllers(self) -> None:
        table = Table("controller", "pid", "leads", "term", "commit", title="the controllers")
        for member in self._controllers.members:
            info = await self._info(member)
            leads = "yes" if info.leads else ""
            cells = (member.directory.name, member.pid, leads, info.term, info.commit)
            table.add_row(*map(str, cells))
        self._tell.show(table)

    # -- on the stopped directories
    def _stopped(self) -> None:
        homes = [str(member.directory) for member in self._controllers.members]
        self._tell.step(
            "13. The ledger",
            "The controllers are stopped. What was committed lies in each directory: the\n"
            "same bytes on all three, each record chained to the one before by SHA-256.",
        )
        self._spur("log", "show", homes[0], "--tail", "6")
        for home in homes:
            if self._spur("log", "verify", home, "--replay"):
                raise SpurError("the ledger does not verify")
        self._tell.step(
            "14. One byte is changed",
            "Somebody edits the ledger of one controller behind our back.",
        )
        victim = Path(homes[2]) / "ledger" / "000000000001.raw"
        data = bytearray(victim.read_bytes())
        data[len(data) // 2] ^= 1
        victim.write_bytes(data)
        if not self._spur("log", "verify", homes[2]):
            raise SpurError("a changed byte was not noticed")
        self._tell.note("the changed record is named; a controller repairs it from its peers")


def _must(answer: A | Rejection) -> A:
    if isinstance(answer, Rejection):
        raise SpurError(f"a request was refused: {answer.text}")
    return answer


def show_log(directory: Path, narrator: Narrator) -> None:
    """Show what becomes of a log when a leader dies, and when somebody edits it.

    Raises: SpurError when something is not as it should be.
    """
    LogDemo(directory, narrator).run()
