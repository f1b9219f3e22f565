"""Queries: answered from the state once a barrier shows that it is the newest there is.

    ask --> one barrier a turn for all new queries --> the state is as new --> answer at commit

Without any leader the committed state must do, and the answer says so. Queries about history go on
to the read model with the index that the barrier gave. Source: LOG-CONTRACT 1.8, 3.3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from msgspec.structs import replace

from spur.commands.decide import Context, Decision
from spur.commands.history import HISTORY, narrow
from spur.consensus.port import TimedLog
from spur.controller.judging import judge
from spur.controller.services import Services
from spur.controller.waiting import Asked, Waiting
from spur.events.envelope import Actor
from spur.projections.state import State
from spur.values.errors import InvariantBroken, Rejection
from spur.values.ids import HostId
from spur.wire.agents import AttendOrders, Orders
from spur.wire.calls import Answered, Call, Refused, Reply
from spur.wire.declare import Answer
from spur.wire.registry import encode_answer
from spur.wire.statistics import ResetStatistics, ShowStatistics

__all__ = ["Answers", "Queries"]


class Answers(Protocol):
    """What queries need of the front: its state, and how it words a reply."""

    @property
    def state(self) -> State: ...

    def reply(self, call: Call, outcome: Answered | Refused) -> Reply: ...

    def reply_now(self, call: Call, outcome: Answered | Refused) -> Reply: ...

    def refused(self, call: Call, rejection: Rejection) -> Reply: ...

    def not_here(self, call: Call) -> Reply: ...

    def ask_again(self, call: Call, why: str) -> Reply: ...


class Queries:
    """What is asked and changes nothing."""

    def __init__(
        self,
        front: Answers,
        log: Callable[[], TimedLog],
        *,
        services: Services,
        waiting: Waiting,
    ) -> None:
        self._front = front
        self._log = log
        self._services = services
        self._waiting = waiting
        self._new: list[Asked] = []

    def ask(self, asked: Asked) -> None:
        """Take a query; the next turn asks the barrier for it."""
        self._new.append(asked)

    def answer_local(self, asked: Asked) -> None:
        """Answer what rests on this replica alone, not on entries that may never be committed."""
        log = self._log()
        authority, until_ns = self._services.certificate()
        replica = replace(
            log.describe(),
            processes=self._services.processes(),
            authority=authority,
            certified_until_ns=until_ns,
        )
        context = replace(
            self._reading(asked.actor), replica=replica, controllers=log.controllers()
        )
        reply = self._reply_of(asked, judge(self._front.state, asked.request, context))
        asked.respond(replace(reply, index=self._waiting.commit))

    def answer_agent(self, asked: Asked) -> None:
        """Let the dispatcher answer an agent, if it is one."""
        request, call, front = asked.request, asked.call, self._front
        decision = judge(front.state, request, self._reading(asked.actor))
        if isinstance(decision, Rejection):
            refused = Refused(decision.code, decision.text, decision.hint)
            asked.respond(front.reply_now(call, refused))
        elif isinstance(request, AttendOrders):

            def done(orders: Orders | None) -> None:
                if orders is None:
                    asked.respond(front.not_here(call))
                else:
                    asked.respond(front.reply_now(call, Answered(encode_answer(orders))))

            self._services.attend(request, HostId(asked.actor.host_id), done)
        elif isinstance(request, ShowStatistics | ResetStatistics):
            counted = self._services.statistics(anew=isinstance(request, ResetStatistics))
            answer = decision.answer if counted is None else counted
            asked.respond(front.reply_now(call, Answered(encode_answer(answer))))
        else:
            raise InvariantBroken(f"{type(request).__name__} is soft, and nobody serves it")

    def confirm(self) -> None:
        """Ask a barrier for the new queries; without any leader the old state must do."""
        if not self._new:
            return
        asking, self._new = self._new, []
        if self._waiting.ask_barrier([partial(self._read, asked) for asked in asking]):
            return
        if self._log().leader:
            for asked in asking:
                self._read(asked, None)
        else:
            for asked in asking:
                self._read_unconfirmed(asked)

    # -- inside
    def _read(self, asked: Asked, barrier: int | None) -> None:
        """Compute a query's answer once the state is as new as the barrier."""
        if barrier is None:
            asked.respond(self._front.not_here(asked.call))
        elif barrier > self._front.state.index:
            self._waiting.call_at(barrier, lambda: self._read(asked, barrier))
        else:
            self._answer(asked, barrier)

    def _read_unconfirmed(self, asked: Asked) -> None:
        """Answer from the committed state, and say that no quorum stands behind it.

        A client is never shown less than it has seen.
        """
        call, state = asked.call, self._front.state
        if (call.incarnation, call.at_least) > (state.cluster[1].incarnation, state.index):
            text = f"this controller stands at entry {state.index}, and no leader is known"
            asked.respond(self._front.refused(call, Rejection("not-leader", text)))
            return
        age_s = self._log().silence_ns() / 1e9
        warning = (
            f"no quorum of controllers answers: this is the state at entry {state.index},"
            f" {age_s:.0f} s after a leader was last heard"
        )
        self._answer(asked, self._waiting.commit, warning)

    def _answer(self, asked: Asked, at_least: int, warning: str = "") -> None:
        """Answer a query from the state as it is, with what else it takes."""
        if type(asked.request) in HISTORY:
            self._ask_history(asked, at_least, warning)
            return
        decision = self._judge(asked)
        if isinstance(decision, Rejection) or decision.finish is None:
            reply = replace(self._reply_of(asked, decision), warning=warning)
            self._waiting.answer_at(self._front.state.index, asked.respond, reply)
        else:
            self._finish_later(asked, decision, decision.finish, warning)

    def _finish_later(
        self,
        asked: Asked,
        decision: Decision,
        finish: Callable[[Sequence[bytes | None]], Answer],
        warning: str,
    ) -> None:
        """Answer a query when the attachments that it shows are read."""
        front, waiting = self._front, self._waiting
        index, lost_leads = front.state.index, waiting.lost_leads
        is_committed = index <= waiting.commit

        def done(contents: Sequence[bytes | None]) -> None:
            if not is_committed and lost_leads != waiting.lost_leads:
                asked.respond(front.ask_again(asked.call, "leadership was lost"))
                return
            answered = Answered(encode_answer(finish(contents)))
            reply = replace(front.reply(asked.call, answered), index=index, warning=warning)
            waiting.answer_at(index, asked.respond, reply)

        self._services.read_blobs(decision.blobs, done)

    def _ask_history(self, asked: Asked, at_least: int, warning: str) -> None:
        """Hand what its caller may see of the history to the read model."""
        front = self._front
        narrowed = narrow(front.state, asked.request, self._reading(asked.actor))
        if isinstance(narrowed, Rejection):
            refused = front.refused(asked.call, narrowed)
            self._waiting.answer_at(front.state.index, asked.respond, refused)
            return

        def done(outcome: Answered | Refused, late: str) -> None:
            reply = front.reply(asked.call, outcome)
            asked.respond(replace(reply, index=at_least, warning=warning or late))

        self._services.ask_history(narrowed, at_least, done)

    def _judge(self, asked: Asked) -> Decision | Rejection:
        return judge(self._front.state, asked.request, self._reading(asked.actor))

    def _reading(self, actor: Actor) -> Context:
        state = self._front.state
        return Context(
            now_ns=state.time_ns,
            index=state.index,
            actor=actor,
            agents=self._services.attendances(),
            starts=self._services.starts(),
        )

    def _reply_of(self, asked: Asked, decision: Decision | Rejection) -> Reply:
        if isinstance(decision, Rejection):
            return self._front.refused(asked.call, decision)
        return self._front.reply(asked.call, Answered(encode_answer(decision.answer)))
