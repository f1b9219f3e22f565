"""What a node reports: each report is written down, sent until it is answered, then the next.

Source: LOG-CONTRACT 7.6.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from typing import Protocol

from spur.agent.actions import Action
from spur.agent.host import boot_clock_ns
from spur.agent.machine import Machine, Outbox, Report
from spur.client.client import Client
from spur.server.once import Once
from spur.values.errors import Rejection, SpurError
from spur.values.ids import NodeName
from spur.values.states import NodeShareState
from spur.wire.declare import Request
from spur.wire.runs import ReportAnswered, ReportRun
from spur.wire.steps import ReportStep

__all__ = ["Disk", "Reporter", "age_ns", "request_of"]

SEND_S = 2.0
"""How long one report is tried before its age is counted anew."""

PAUSE_S = 0.2
"""Between two tries."""

REFUSED_PAUSE_S = 5.0
"""After a refusal, which time or an operator must lift."""

REFUSED_SOURCE = "reports of {}"


class Disk(Protocol):
    """Runs what blocks, in a thread."""

    async def __call__(self, work: Callable[[], None]) -> None:
        """Return when the work is done. Raises: what it raises."""


class Reporter:
    """Sends the reports of one node."""

    def __init__(
        self,
        node: NodeName,
        machine: Machine,
        *,
        client: Client,
        keep: Callable[[NodeName, bytes, Report], None],
        disk: Disk,
        perform: Callable[[list[Action]], None],
        once: Once,
    ) -> None:
        """Prepare; `keep` writes a report into the outbox on disk."""
        self._node = node
        self._machine = machine
        self._client = client
        self._keep = keep
        self._disk = disk
        self._perform = perform
        self._once = once
        self._wanted = asyncio.Event()
        self._wanted.set()

    def wake(self) -> None:
        """There may be something to report."""
        self._wanted.set()

    async def run(self) -> None:
        """Report for as long as the agent lives."""
        outbox = self._machine.outboxes[self._node]
        kept = outbox.number
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            while (report := self._machine.next_report(self._node)) is not None:
                if report.number > kept:
                    await self._write_down(outbox, report)
                    kept = report.number
                outcome = await self._send(outbox.id, report)
                self._perform(self._machine.answered(self._node, outcome))

    async def _write_down(self, outbox: Outbox, report: Report) -> None:
        source = f"outbox of {self._node}"
        while True:
            try:
                await self._disk(lambda: self._keep(self._node, outbox.id, report))
            except OSError as error:
                self._once.report(source, f"{source} can't be written: {error}; it is tried again")
                await asyncio.sleep(PAUSE_S)
            else:
                self._once.forget(source)
                return

    async def _send(self, outbox_id: bytes, report: Report) -> str:
        """Return done, already or void."""
        source = REFUSED_SOURCE.format(self._node)
        while True:
            request = request_of(outbox_id, report, self._machine.boot_id, boot_clock_ns())
            try:
                answer = await self._client.ask(request, ReportAnswered, deadline_s=SEND_S)
            except SpurError as fault:
                self._once.report(source, f"{source} are not taken: {fault}; it is tried again")
                await asyncio.sleep(PAUSE_S)
                continue
            if not isinstance(answer, Rejection):
                self._once.forget(source)
                return answer.outcome
            self._once.report(source, f"{source} are refused: {answer.text}")
            await asyncio.sleep(REFUSED_PAUSE_S)


def request_of(outbox_id: bytes, report: Report, boot_id: str, now_boot_ns: int) -> Request:
    """Return a report as it is sent now; a step whose supervisor was lost died by SIGKILL."""
    name = report.name
    if name.step is not None:
        is_lost = report.state is NodeShareState.DEAD
        return ReportStep(
            node=name.node,
            outbox=outbox_id,
            number=report.number,
            job_id=name.job_id,
            run=name.run,
            attempt=name.attempt,
            step_id=name.step,
            state=NodeShareState.ENDED if is_lost else report.state,
            exit_code=report.exit_code,
            signal=signal.SIGKILL if is_lost else report.signal,
            out_of_memory=report.out_of_memory,
            age_ns=age_ns(report, boot_id, now_boot_ns),
        )
    return ReportRun(
        node=name.node,
        outbox=outbox_id,
        number=report.number,
        job_id=name.job_id,
        run=name.run,
        attempt=name.attempt,
        state=report.state,
        exit_code=report.exit_code,
        signal=report.signal,
        out_of_memory=report.out_of_memory,
        age_ns=age_ns(report, boot_id, now_boot_ns),
    )


def age_ns(report: Report, boot_id: str, now_boot_ns: int) -> int:
    """Return how long ago the last process ended, as far as this boot's clock can tell.

    What ended in an earlier boot is at least as old as this one. Source: LOG-CONTRACT 4.3.
    """
    if report.state is not NodeShareState.ENDED or not report.ended_boot_ns:
        return 0
    if report.boot_id != boot_id:
        return now_boot_ns
    return max(0, now_boot_ns - report.ended_boot_ns)
