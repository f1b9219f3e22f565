"""Clients of real controllers, and what each of them saw.

registers    held jobs whose nice value and hold are written and read; together one register each
submitters   jobs under unique names; an answered one exists once, any other at most once
seekers      look for a job that was acknowledged a moment ago, at whichever controller

A request that nobody took was not carried out; one whose outcome is unknown may have been, then or
later. A register serves for a while and is then replaced by a new one, so that histories stay short
enough to be judged.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

from msgspec.structs import replace

from spur.client.client import Client
from spur.client.faults import OutcomeUnknown, Unreachable
from spur.testing.builders import SMALL_CONFIG
from spur.testing.hall import SPEC, submission
from spur.testing.simulation.linearizability import UNKNOWN, Operation
from spur.values.config import ConfigFile
from spur.values.configfile import CONFIG_FILE
from spur.values.errors import Rejection, SpurError
from spur.values.ids import JobId
from spur.values.states import Hold
from spur.wire.cluster import Configured, Reconfigure
from spur.wire.declare import Answer, Done, Request
from spur.wire.jobs import (
    HoldJob,
    JobAccepted,
    JobChanges,
    JobFilter,
    JobPage,
    QueryJobs,
    ReleaseJob,
    SubmitJob,
    UpdateJob,
    page_views,
)

__all__ = ["FIRST_VALUES", "Load", "Wrong", "register"]

REGISTERS = 2
"""At any time."""

REGISTER_OPERATIONS = 60
"""After which a register is replaced."""

PATIENCE_S = 5.0
"""After which a client gives up, and the outcome is unknown."""

PAUSE_S = 0.1
"""The longest pause of a client between two requests."""

FIRST_VALUES = (0, Hold.USER.value)
"""Nice value and hold that a register begins with."""

FIRST = JobId(0)
"""A query's slice begins above this id."""


A = TypeVar("A", bound=Answer)


class Wrong(SpurError):
    """The cluster did what it must never do."""


def register(state: Hashable, action: Hashable) -> tuple[Hashable, Hashable]:
    """What a register does: ("nice", n) and ("hold", h) write, None reads both."""
    if action is None:
        return state, state
    match action, state:
        case ("nice", value), (_, hold):
            return (value, hold), "written"
        case ("hold", value), (nice, _):
            return (nice, value), "written"
    raise ValueError(f"no action of a register: {action}")


@dataclass
class _Register:
    job_id: JobId
    operations: int = 0


@dataclass
class Load:
    """All clients of one run, and what they saw."""

    rng: random.Random
    history: list[Operation] = field(default_factory=list)
    acknowledged: dict[str, int] = field(default_factory=dict)
    """Ids by name of every submission that was answered."""
    asked_names: set[str] = field(default_factory=set)
    """Names of all submissions, answered or not."""
    counts: Counter[str] = field(default_factory=Counter)
    longest_silence_s: float = 0.0
    """The longest time in which nobody was answered."""
    registers: list[JobId] = field(default_factory=list)
    """Every register that was made, in order."""
    is_over: bool = False
    _in_use: list[_Register] = field(default_factory=list)
    _answered_s: float = field(default_factory=time.monotonic)
    _names: int = 0
    _values: int = 1

    # -- beginning
    async def begin(self, client: Client) -> None:
        """Configure the cluster and make the first registers."""
        files = (ConfigFile(CONFIG_FILE, SMALL_CONFIG),)
        answer = await client.ask(Reconfigure(files), Configured, deadline_s=30.0)
        if not isinstance(answer, Configured):
            raise Wrong(f"the configuration was refused: {answer}")
        for _ in range(REGISTERS):
            self._in_use.append(await self._make_register(client))
        self._answered_s = time.monotonic()

    async def use_registers(self, client: Client) -> None:
        """Read and write registers until the load is over."""
        while not self.is_over:
            place = self.rng.randrange(REGISTERS)
            used = self._in_use[place]
            used.operations += 1
            if used.operations == REGISTER_OPERATIONS:
                made = await self._make_register(client)
                self._in_use[place] = made
            else:
                await self._use(client, used.job_id)
                await self._pause()

    async def _make_register(self, client: Client) -> _Register:
        while True:
            try:
                name, job_id = await self._submit(client)
            except (OutcomeUnknown, Unreachable):
                await self._pause()
                continue
            self.acknowledged[name] = job_id
            self.registers.append(job_id)
            return _Register(job_id)

    async def _use(self, client: Client, job_id: JobId) -> None:
        rng = self.rng
        request: Request
        action: Hashable = None
        if rng.random() < 0.4:
            request = self.read_of(job_id)
        elif rng.random() < 0.6:
            self._values += 1
            action = ("nice", self._values)
            request = UpdateJob(job_id, None, JobChanges(nice=self._values))
        elif rng.random() < 0.5:
            action = ("hold", Hold.USER.value)
            request = HoldJob(job_id, None, Hold.USER)
        else:
            action = ("hold", Hold.NONE.value)
            request = ReleaseJob(job_id, None)
        await self.operate(client, job_id, action, request)

    async def operate(
        self, client: Client, job_id: JobId, action: Hashable, request: Request
    ) -> bool:
        """Ask something of a register and note it; False when its outcome is not known."""
        called_s = time.monotonic()
        expected: type[Answer] = JobPage if action is None else Done
        try:
            answer = await self._ask(client, request, expected)
        except Unreachable:
            return False
        except OutcomeUnknown:
            if action is not None:
                self.history.append(Operation(called_s, UNKNOWN, job_id, action, None))
            return False
        result: Hashable = "written"
        if isinstance(answer, JobPage):
            [view] = page_views(answer)
            result = (view.spec.nice, view.hold.value)
        self.history.append(Operation(called_s, time.monotonic(), job_id, action, result))
        return True

    def read_of(self, job_id: int) -> Request:
        """Return the request that reads a register, or looks for a job."""
        return QueryJobs(JobFilter(job_ids=(JobId(job_id),)), FIRST, 10)

    # -- submitters and seekers
    async def submit_jobs(self, client: Client) -> None:
        """Submit until the load is over."""
        while not self.is_over:
            with suppress(OutcomeUnknown, Unreachable):
                await self.submit_one(client)
            await self._pause()
            await self._pause()

    async def submit_one(self, client: Client) -> None:
        """Submit one job. Raises: OutcomeUnknown, Unreachable; Wrong for a refusal."""
        name, job_id = await self._submit(client)
        self.acknowledged[name] = job_id

    async def _submit(self, client: Client) -> tuple[str, JobId]:
        self._names += 1
        name = f"job-{self._names}"
        self.asked_names.add(name)
        request: SubmitJob = submission(replace(SPEC, name=name), hold=True)
        answer = await self._ask(client, request, JobAccepted)
        return name, answer.job_id

    async def seek_jobs(self, client: Client) -> None:
        """Look for what was acknowledged lately, until the load is over."""
        while not self.is_over:
            if self.acknowledged:
                lately = list(self.acknowledged)[-20:]
                await self._seek(client, self.rng.choice(lately))
            await self._pause()

    async def _seek(self, client: Client, name: str) -> None:
        expected = self.acknowledged[name]
        try:
            page = await self._ask(client, self.read_of(expected), JobPage)
        except (OutcomeUnknown, Unreachable):
            return
        found = [view.spec.name for view in page_views(page)]
        if found != [name]:
            raise Wrong(f"{name} was acknowledged as job {expected}, and a read found {found}")

    # -- inside
    async def _ask(self, client: Client, request: Request, expected: type[A]) -> A:
        """Ask once, with patience. Raises: OutcomeUnknown, Unreachable; Wrong for a refusal."""
        self.counts["asked"] += 1
        try:
            answer = await client.ask(request, expected, deadline_s=PATIENCE_S)
        except OutcomeUnknown:
            self.counts["unknown"] += 1
            raise
        except Unreachable:
            self.counts["not taken"] += 1
            raise
        if isinstance(answer, Rejection):
            raise Wrong(f"{type(request).__name__} was refused: {answer.code}: {answer.text}")
        self.counts["answered"] += 1
        now_s = time.monotonic()
        self.longest_silence_s = max(self.longest_silence_s, now_s - self._answered_s)
        self._answered_s = now_s
        return answer

    async def _pause(self) -> None:
        await asyncio.sleep(self.rng.random() * PAUSE_S)
