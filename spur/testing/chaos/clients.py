"""Those who write and read a few jobs all the while, and what each of them saw.

Each of these jobs waits for a far time, so nothing but its users changes it. It is known by a name
of its own: that it is there after its submission was acknowledged is a part of the history. Writes
go through the login agent; reads too, and to each controller, whether it leads or follows.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from spur.client.client import Client
from spur.client.faults import OutcomeUnknown, Unreachable
from spur.testing.hall import SPEC, submission
from spur.testing.live.load import FIRST, Wrong
from spur.testing.simulation.linearizability import UNKNOWN, Operation
from spur.values.errors import Rejection
from spur.values.ids import JobId
from spur.values.states import Hold, JobState
from spur.wire.declare import Answer, Done, Request
from spur.wire.jobs import (
    CancelJob,
    HoldJob,
    JobAccepted,
    JobChanges,
    JobFilter,
    JobPage,
    QueryJobs,
    ReleaseJob,
    UpdateJob,
    page_views,
)

__all__ = ["Clients", "waiting_job"]

OPERATIONS_MAX = 40
"""Of one job; then a new one is submitted, so that each history is short enough to be judged."""

AT_A_TIME = 2

PATIENCE_S = 5.0

PAUSE_S = 0.15

HEALED_S = 60.0
"""Within which a healed cluster must answer: on a busy machine a controller takes long to start."""

FAR_NS = 4_000_000_000_000_000_000

NICE_MAX = 10_000


def waiting_job(state: Hashable, action: Hashable) -> tuple[Hashable, Hashable]:
    """What such a job does: None is absent, else (nice, hold, is cancelled); action None reads."""
    if action is None:
        return state, state
    if action == "submit":
        return (0, Hold.NONE.value, False), "done" if state is None else "twice"
    match action, state:
        case _, None:
            return state, "absent"
        case _, (_, _, True):
            return state, "refused"
        case "cancel", (nice, hold, _):
            return (nice, hold, True), "done"
        case ("nice", value), (_, hold, _):
            return (value, hold, False), "done"
        case ("hold", value), (nice, _, _):
            return (nice, value, False), "done"
    raise ValueError(f"nothing of a job: {action}")


@dataclass
class _Waiting:
    name: str
    job_id: JobId | None = None
    operations: int = 0


@dataclass
class Clients:
    """All of them, and what they saw."""

    rng: random.Random
    history: list[Operation] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    longest_silence_s: float = 0.0
    """The longest time in which nobody was answered."""
    is_over: bool = False
    _in_use: list[_Waiting] = field(default_factory=list)
    _answered_s: float = field(default_factory=time.monotonic)
    _values: int = 0

    async def write(self, client: Client) -> None:
        """Submit, change, cancel and read until all is over."""
        while not self.is_over:
            if len(self._in_use) < AT_A_TIME:
                await self._submit(client)
            else:
                used = self.rng.choice(self._in_use)
                used.operations += 1
                is_last = used.operations >= OPERATIONS_MAX and used in self._in_use
                if is_last:
                    self._in_use.remove(used)
                await self._change(client, used, cancels=is_last)
            await self._pause()

    async def read(self, client: Client) -> None:
        """Read until all is over."""
        while not self.is_over:
            if self.names:
                await self.look(client, self.rng.choice(self.names[-2 * AT_A_TIME :]))
            await self._pause()

    async def finish(self, clients: Sequence[Client]) -> None:
        """Cancel what is left, and read each job once more at each of these clients.

        Raises: Wrong when that is not answered for long.
        """
        writer, *_ = clients
        end_s = time.monotonic() + HEALED_S
        for used in self._in_use:
            while not await self._change(writer, used, cancels=True):
                if time.monotonic() > end_s:
                    raise Wrong(f"a healed cluster does not answer a cancel of {used.name}")
        for name in self.names:
            for client in clients:
                while not await self.look(client, name):
                    if time.monotonic() > end_s:
                        raise Wrong(f"a healed cluster does not answer a read of {name}")

    async def look(self, client: Client, name: str) -> bool:
        """Read a job by its name and note what was seen; False when there was no answer."""
        request = QueryJobs(JobFilter(names=(name,)), FIRST, 10)
        return await self._operate(client, name, None, request, JobPage) is not None

    async def _submit(self, client: Client) -> None:
        made = _Waiting(f"waiting-{len(self.names) + 1}")
        self.names.append(made.name)
        self._in_use.append(made)
        request = submission(replace(SPEC, name=made.name, begin_ns=FAR_NS))
        answer = await self._operate(client, made.name, "submit", request, JobAccepted)
        if isinstance(answer, JobAccepted):
            made.job_id = answer.job_id
        else:
            self._in_use.remove(made)

    async def _change(self, client: Client, used: _Waiting, *, cancels: bool) -> bool:
        job_id, rng = used.job_id, self.rng
        if job_id is None:
            return await self.look(client, used.name)
        action: Hashable
        request: Request
        draw = rng.random()
        if cancels:
            action, request = "cancel", CancelJob(job_id, None)
        elif draw < 0.3:
            return await self.look(client, used.name)
        elif draw < 0.6:
            self._values += 1
            nice = self._values % NICE_MAX
            action, request = ("nice", nice), UpdateJob(job_id, None, JobChanges(nice=nice))
        elif draw < 0.8:
            action, request = ("hold", Hold.USER.value), HoldJob(job_id, None, Hold.USER)
        else:
            action, request = ("hold", Hold.NONE.value), ReleaseJob(job_id, None)
        return await self._operate(client, used.name, action, request, Done) is not None

    async def _operate(
        self, client: Client, key: str, action: Hashable, request: Request, expected: type[Answer]
    ) -> Answer | Rejection | None:
        """Ask and note it; None when the outcome is not known, or nobody took it."""
        called_s = time.monotonic()
        self.counts["asked"] += 1
        try:
            answer = await client.ask(request, expected, deadline_s=PATIENCE_S)
        except Unreachable:
            self.counts["not taken"] += 1
            return None
        except OutcomeUnknown:
            self.counts["unknown"] += 1
            if action is not None:
                self.history.append(Operation(called_s, UNKNOWN, key, action, None))
            return None
        now_s = time.monotonic()
        self.counts["answered"] += 1
        self.longest_silence_s = max(self.longest_silence_s, now_s - self._answered_s)
        self._answered_s = now_s
        if isinstance(answer, Rejection) and answer.code == "disk-low":
            return None
        self.history.append(Operation(called_s, now_s, key, action, _result(answer)))
        return answer

    async def _pause(self) -> None:
        await asyncio.sleep(self.rng.random() * PAUSE_S)


def _result(answer: Answer | Rejection) -> Hashable:
    """Return what the client saw, as `waiting_job` would say it. Raises: Wrong for a refusal."""
    if isinstance(answer, Rejection):
        if answer.code != "job-ended":
            raise Wrong(f"a request was refused: {answer.code}: {answer.text}")
        return "refused"
    if not isinstance(answer, JobPage):
        return "done"
    found = page_views(answer)
    if not found:
        return None
    if len(found) > 1:
        return "twice"
    [view] = found
    return (view.spec.nice, view.hold.value, view.state is JobState.CANCELLED)
