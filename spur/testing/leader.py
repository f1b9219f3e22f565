"""A leader as agents see one: it gives the orders that a test tells it to, and hears reports.

    with Leader(directory) as leader:
        leader.tell(order_for("n1", 5, script=b"..."))
        report = leader.wait_for(5, NodeShareState.ENDED)

It has a real RPC server on a Unix socket, in a thread, and keeps of the cluster's rules what an
agent can tell: sequences of reports, sessions, and which attempts are open.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Literal, TypeAlias

from spur.events.envelope import Actor
from spur.server.rpc import RpcServer
from spur.server.sessions import Respond
from spur.values.errors import InvariantBroken
from spur.values.states import NodeShareState
from spur.wire.agents import AttendOrders, KillOrder, LaunchOrder, Numbered, Order, Orders
from spur.wire.calls import Answered, Call, Refused, Reply
from spur.wire.cluster import ReplicaInfo, ShowReplica
from spur.wire.declare import Answer, Done
from spur.wire.nodes import RegisterNode
from spur.wire.registry import decode_request, encode_answer
from spur.wire.runs import ReportAnswered, ReportRun
from spur.wire.steps import ReportStep

__all__ = ["CLUSTER_ID", "Leader"]

CLUSTER_ID = bytes(range(16))
PATIENCE_S = 20.0

AnyReport: TypeAlias = ReportRun | ReportStep


class Leader:
    """Listens on `leader.sock` in a directory."""

    def __init__(self, directory: Path) -> None:
        self.address = f"unix:{directory / 'leader.sock'}"
        self.term = 1
        self.incarnation = 1
        self.reports: list[AnyReport] = []
        """Each number of each outbox once, in the order in which they came."""
        self.repeated = 0
        """Reports that came again."""
        self.registered: list[RegisterNode] = []
        self.sessions: list[bytes] = []
        self.calls: list[tuple[Call, Actor]] = []
        """What was passed on for users."""
        self.deaf = False
        """Reports are heard, and their answers get lost."""
        self.owed: list[Order] = []
        """What rows owe: told to every new session."""
        self._given: list[Numbered] = []
        self._answers: dict[tuple[str, bytes, int], AnyReport] = {}
        self._polls: list[tuple[AttendOrders, Call, Respond]] = []
        self._changed = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._server = RpcServer(
            cluster_id=CLUSTER_ID,
            replica=1,
            handler=self._handle,
            position=lambda: (self.incarnation, 10),
            report=lambda sentence: None,
        )

    def __enter__(self) -> Leader:
        self._thread.start()
        path = self.address.removeprefix("unix:")
        asyncio.run_coroutine_threadsafe(self._server.start_unix(path), self._loop).result()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._server.close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # -- for tests

    def tell(self, *told: Order, owed: bool = True) -> None:
        """Give orders; what is owed is told to each later session too, until it is reported."""
        with self._changed:
            if owed:
                self.owed += told
            for order in told:
                self._given.append(Numbered(len(self._given) + 1, 10, order))
        self._loop.call_soon_threadsafe(self._answer_polls)

    def wait_for(self, job_id: int, state: NodeShareState) -> AnyReport:
        """Return the job's first report of a state. Raises: TimeoutError."""

        def found() -> list[AnyReport]:
            wanted = (job_id, state)
            return [report for report in self.reports if (report.job_id, report.state) == wanted]

        self.wait_until(found)
        return found()[0]

    def wait_until(self, holds: Callable[[], object]) -> None:
        """Return once something holds of what was heard. Raises: TimeoutError."""
        with self._changed:
            if not self._changed.wait_for(lambda: bool(holds()), PATIENCE_S):
                raise TimeoutError(f"it did not come; reports: {self.reports}")

    def states_of(self, job_id: int) -> list[str]:
        """Return what was reported of a job, oldest first."""
        with self._changed:
            return [report.state.name for report in self.reports if report.job_id == job_id]

    # -- calls

    def _handle(self, call: Call, actor: Actor, respond: Respond) -> None:
        request = decode_request(call.request)
        with self._changed:
            if call.speaks_for is not None:
                self.calls.append((call, actor))
            match request:
                case AttendOrders():
                    self._attend(request, call, respond)
                case RegisterNode():
                    self.registered.append(request)
                    self._answer(call, respond, Done())
                case ReportRun() | ReportStep():
                    outcome = self._hear(request)
                    if not self.deaf:
                        self._answer(call, respond, ReportAnswered(outcome))
                case ShowReplica():
                    info = ReplicaInfo(1, True, 1, self.term, 10, 10, 10, 1, 0, 0, 0)
                    self._answer(call, respond, info)
                case _:
                    self._refuse(call, respond)
            self._changed.notify_all()

    def _attend(self, request: AttendOrders, call: Call, respond: Respond) -> None:
        if request.session not in self.sessions:
            self.sessions.append(request.session)
            first = len(self._given) + 1
            if not request.heard:
                self._given += [Numbered(first + n, 10, one) for n, one in enumerate(self.owed)]
        poll = (request, call, respond)
        self._polls.append(poll)
        self._answer_polls()
        self._loop.call_later(request.wait_ms / 1000, self._answer_none, poll)

    def _answer_polls(self) -> None:
        polls, self._polls = self._polls, []
        for request, call, respond in polls:
            new = tuple(one for one in self._given if one.number > request.heard)
            if new:
                self._answer(call, respond, Orders(self.incarnation, self.term, new, ()))
            else:
                self._polls.append((request, call, respond))

    def _answer_none(self, poll: tuple[AttendOrders, Call, Respond]) -> None:
        if poll in self._polls:
            self._polls.remove(poll)
            self._answer(poll[1], poll[2], Orders(self.incarnation, self.term, (), ()))

    def _hear(self, report: AnyReport) -> Literal["done", "already", "void"]:
        key = (report.node, report.outbox, report.number)
        before = self._answers.get(key)
        if before is not None:
            self.repeated += 1
            if (before.job_id, before.state) != (report.job_id, report.state):
                raise InvariantBroken(f"one number for {before} and {report}")
            return "already"
        self._answers[key] = report
        self.reports.append(report)
        name = (report.job_id, report.run, report.attempt)
        open_ones = [
            one
            for one in self.owed
            if isinstance(one, LaunchOrder | KillOrder)
            and (one.job_id, one.run, one.attempt) == name
        ]
        if report.state is not NodeShareState.LAUNCHED:
            self.owed = [one for one in self.owed if one not in open_ones]
        return "done" if open_ones else "void"

    def _answer(self, call: Call, respond: Respond, answer: Answer) -> None:
        outcome = Answered(encode_answer(answer))
        respond(Reply(number=call.number, incarnation=self.incarnation, index=10, outcome=outcome))

    def _refuse(self, call: Call, respond: Respond) -> None:
        outcome = Refused("unknown-job", "this leader answers nothing but agents")
        respond(Reply(number=call.number, incarnation=self.incarnation, index=10, outcome=outcome))
