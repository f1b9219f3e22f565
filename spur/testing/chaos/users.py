"""Those who submit a run's jobs, cancel some and release others, through the login agent.

A request is asked again under its id until its outcome is known, however long that takes: as long
as anybody remembers it, it is carried out once.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

from msgspec.structs import replace

from spur.client.client import Client
from spur.client.faults import OutcomeUnknown, Unreachable
from spur.testing.chaos.plan import PlannedJob, Task
from spur.testing.chaos.scripts import script_of
from spur.testing.chaos.stage import Stage
from spur.testing.hall import ASK, SPEC
from spur.testing.live.load import Wrong
from spur.values.arrays import TaskSet
from spur.values.dependencies import Condition, Dependency, DependencyKind
from spur.values.errors import Rejection
from spur.values.ids import JobId
from spur.values.jobspec import JobText, encode_text
from spur.values.states import Hold
from spur.wire.calls import REQUEST_ID_SIZE
from spur.wire.declare import Answer, Attachment, Done, Request
from spur.wire.jobs import CancelJob, HoldJob, JobAccepted, ReleaseJob, SubmitJob

__all__ = ["Users", "persist"]

PATIENCE_S = 4.0
"""How long one try waits before the next begins."""

PERSISTENCE_S = 180.0
"""How long a request is asked again before the cluster counts as dead."""

PAUSE_S = 0.1

SOON = frozenset(("disk-low", "busy"))
"""Refusals that mean: not now."""

LATE = frozenset(("job-ended",))
"""Refusals of what comes too late, which is nobody's fault."""

A = TypeVar("A", bound=Answer)


async def persist(client: Client, request: Request, expected: type[A]) -> A | Rejection:
    """Ask until the outcome is known. Raises: Wrong when it is not known for long."""
    end_s = time.monotonic() + PERSISTENCE_S
    request_id, since = os.urandom(REQUEST_ID_SIZE), None
    while True:
        try:
            outcome = await client.ask(
                request, expected, request_id=request_id, since=since, deadline_s=PATIENCE_S
            )
        except OutcomeUnknown as unknown:
            since = unknown.since
            fault = str(unknown)
        except Unreachable as unreachable:
            fault = str(unreachable)
        else:
            if not isinstance(outcome, Rejection) or outcome.code not in SOON:
                return outcome
            fault = outcome.text
        if time.monotonic() > end_s:
            raise Wrong(f"{type(request).__name__} has no outcome for {PERSISTENCE_S:g} s: {fault}")
        await asyncio.sleep(PAUSE_S)


class Users:
    """What was submitted and accepted."""

    def __init__(self, stage: Stage, clients: Sequence[Client]) -> None:
        self.accepted: dict[str, JobId] = {}
        """Ids by name; of an array its own."""
        self.counts: Counter[str] = Counter()
        self.slowest_s = 0.0
        """The longest that a submission took until its outcome was known."""
        self._stage = stage
        self._clients = clients
        self._is_known = {job.name: asyncio.Event() for job in stage.plan.jobs}

    async def run(self) -> None:
        """Submit every job of the plan at its time. Raises: Wrong."""
        began_s = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            for number, job in enumerate(self._stage.plan.jobs):
                await asyncio.sleep(max(0.0, began_s + job.at_s - time.monotonic()))
                client = self._clients[number % len(self._clients)]
                tasks.create_task(self._one(client, job))

    async def _one(self, client: Client, job: PlannedJob) -> None:
        if job.after:
            await self._is_known[job.after].wait()
        called_s = time.monotonic()
        answer = await persist(client, self._submission(job), JobAccepted)
        self.slowest_s = max(self.slowest_s, time.monotonic() - called_s)
        if isinstance(answer, Rejection):
            raise Wrong(f"{job.name} was refused: {answer.code}: {answer.text}")
        self.accepted[job.name] = answer.job_id
        self.counts[job.task] += 1
        self._is_known[job.name].set()
        then: Request
        if job.task is Task.CANCELLED:
            then = CancelJob(answer.job_id, None)
        elif job.task is Task.HELD:
            then = ReleaseJob(answer.job_id, None)
        else:
            return
        await asyncio.sleep(job.then_s / 2)
        if job.task is Task.CANCELLED and job.members == 1 and job.then_s > 2:
            # A hold in between: of one that runs, it says what happens when it is put back.
            await self._do(client, HoldJob(answer.job_id, None, Hold.USER), "hold")
        await asyncio.sleep(job.then_s / 2)
        await self._do(client, then, type(then).__name__)

    async def _do(self, client: Client, request: Request, what: str) -> None:
        done = await persist(client, request, Done)
        if isinstance(done, Rejection) and done.code not in LATE:
            raise Wrong(f"{type(request).__name__} was refused: {done.code}: {done.text}")
        self.counts[what] += 1

    def _submission(self, job: PlannedJob) -> SubmitJob:
        stage = self._stage
        dependency = None
        if job.after:
            after = self.accepted[job.after]
            kind = DependencyKind.AFTER_OK if job.then_s < 1 else DependencyKind.AFTER_ANY
            dependency = Dependency(False, (Condition(kind, after, None, 0),))
        wide = job.task is Task.WIDE
        spec = replace(
            SPEC,
            name=job.name,
            ask=replace(ASK, nodes_min=2, tasks=2) if wide else ASK,
            requeue=job.requeue,
            dependency=dependency,
            kill_on_invalid_dependency=True if job.after else None,
        )
        text = JobText(
            working_directory=os.fsencode(stage.directory),
            argv=(b"job.sh",),
            stdin_path=b"",
            stdout_path=b"/dev/null",
            stderr_path=b"",
            comment=b"",
        )
        attachments = (
            Attachment("script", script_of(job, stage.notes, stage.bin)),
            Attachment("environment", b"PATH=/usr/bin:/bin\0"),
            Attachment("text", encode_text(text)),
        )
        tasks = TaskSet(((0, job.members - 1, 1),)) if job.task is Task.ARRAY else None
        return SubmitJob(spec, tasks, 0, job.task is Task.HELD, None, attachments)
