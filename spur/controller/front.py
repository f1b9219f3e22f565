"""The front: judges requests against the state, and answers when the log has committed.

    submit --> lookup (seen before?) --> decide --> encode --> trial apply --> propose
                                                                  |
    answer <-- commit of that index <-----------------------------+

Nothing leaves before the entries it saw are committed. Answers of commands wait for their own
entry. Rejections, repeated answers and queries wait for the last entry that was applied when they
were computed, and for a barrier that shows this replica still led at that time.

The front has no clock, socket or thread of its own; the shell calls it from one loop.
Source: LOG-CONTRACT 3.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from spur.commands.decide import COMMANDS, Context, Decision, decide
from spur.commands.history import HISTORY, narrow
from spur.commands.permissions import refuse
from spur.consensus.clock import ClockStep
from spur.consensus.faults import SnapshotDamaged
from spur.consensus.port import Refusal, SnapshotSource, TimedLog
from spur.controller.attachments import Noise, blobs_of
from spur.controller.services import Services
from spur.events.codec import NotYetWritable, encode_envelope
from spur.events.envelope import Actor, Entry, EntryKind, RequestMark
from spur.projections.apply import ApplyFailed, apply, follow
from spur.projections.digest import settle
from spur.projections.due import next_due_ns
from spur.projections.react import Effect, resume
from spur.projections.requests import StoredAnswer, lookup, next_part
from spur.projections.snapshot import UnreadableSnapshot, load
from spur.projections.state import State
from spur.projections.undo import forget_undo, undo_to
from spur.values.errors import InvariantBroken, Rejection
from spur.values.ids import HostId, NodeName
from spur.values.limits import LimitExceeded
from spur.wire.agents import AttendOrders, Orders
from spur.wire.calls import Answered, Call, Refused, Reply
from spur.wire.cluster import AcceptClock, Checkpoint, ReplicaInfo, Tick
from spur.wire.declare import Answer, Request, encode_request
from spur.wire.nodes import MarkNodeLost
from spur.wire.registry import UnreadableRequest, decode_request, encode_answer

__all__ = ["CHECKPOINT_ENTRIES", "Front", "Respond", "principal_of"]

Respond = Callable[[Reply], None]

CLUSTER = Actor(uid=0, gid=0, host_id=0, host_role="cluster", via="clock")
"""The actor of what the cluster asks of itself."""

CHECKPOINT_ENTRIES = 65_536
"""Entries between two digests in the log. Source: LOG-CONTRACT 5.8."""

SETTLE_ROWS = 500
"""Rows brought into the running digest at a tick; about two milliseconds."""

WAITING_MAX = 10_000
"""Requests held while a new leader is not ready to decide; more are told to ask again."""


class _Asked(msgspec.Struct, frozen=True, gc=False):
    """A request on its way, and how to answer it."""

    call: Call
    actor: Actor
    respond: Respond
    request: Request
    resume_after: int = 0
    """Where the next part of a divisible command goes on."""
    prepared: Any = None
    """What needed no state and was done beside the loop."""


class Front:
    """Decides on the leader, follows elsewhere. Implements `Machine`."""

    def __init__(
        self,
        state: State,
        log: TimedLog,
        *,
        noise: Noise,
        address_of: Callable[[int], str],
        services: Services,
    ) -> None:
        self.state = state
        self.commit = 0
        """The last entry known to be committed."""
        self.disk_is_low = False
        """Set by the shell at the first disk mark: submits and reconfigurations are refused."""
        self._log = log
        self._noise = noise
        self._address_of = address_of
        self._services = services
        self._leads = False
        self._ready_at = 0
        self._is_ready = False
        self._effects: dict[int, tuple[Effect, ...]] = {}
        self._answers: dict[int, list[tuple[Respond, Reply]]] = {}
        self._waiting: deque[_Asked] = deque()
        self._parts: deque[_Asked] = deque()
        self._queries: list[_Asked] = []
        self._unconfirmed: list[Callable[[int | None], None]] = []
        self._barriers: dict[int, list[Callable[[int | None], None]]] = {}
        self._at_commit: dict[int, list[Callable[[], None]]] = {}
        self._token = 0
        self._lost_leads = 0
        """How often leadership was lost; what was computed before rests on nothing since."""

    # -- requests
    def submit(self, call: Call, actor: Actor, respond: Respond) -> None:
        """Take a request; `respond` is called once, now or later."""
        try:
            request = decode_request(call.request)
        except UnreadableRequest as error:
            respond(self._reply_now(call, Refused("invalid-value", str(error))))
            return
        asked = _Asked(call, actor, respond, request)
        if type(request) in HISTORY:
            self._queries.append(asked)
            return
        row = COMMANDS[type(request)]
        if row.local:
            # It rests on this replica alone, not on entries that may never be committed.
            replica = replace(self._log.describe(), processes=self._services.processes())
            reply = self._reply_of(asked, self._judge_query(asked, replica))
            respond(replace(reply, index=self.commit))
        elif row.reads:
            self._queries.append(asked)
        elif row.prepare is None or not self._leads or refuse(self.state, row.permission, actor):
            self._admit(asked)
        else:
            work = partial(row.prepare, request)
            self._services.compute(work, lambda made: self._admit(replace(asked, prepared=made)))

    def _admit(self, asked: _Asked) -> None:
        """Take a request where and when it can be judged."""
        if not self._leads:
            asked.respond(self._not_here(asked.call))
        elif self._is_ready:
            self._take(asked)
        elif len(self._waiting) >= WAITING_MAX:
            why = "too many requests wait for the new leader"
            asked.respond(self._ask_again(asked.call, why))
        else:
            self._waiting.append(asked)

    def _take(self, asked: _Asked) -> None:
        if asked.actor.via == "agent":
            self._services.heard(HostId(asked.actor.host_id))
        if COMMANDS[type(asked.request)].soft:
            self._serve_soft(asked)
        else:
            self._execute(asked)

    def _execute(self, asked: _Asked) -> None:
        """Judge one part of a request and propose what it comes to."""
        call, state = asked.call, self.state
        command = COMMANDS[type(asked.request)]
        principal = principal_of(asked.actor)
        digest = hashlib.sha256(call.request).digest()
        # What carries a number of its own, or comes from the cluster itself, is not remembered.
        request_id = call.request_id if command.remembered else b""
        known = lookup(state, principal, request_id, digest, call.since) if request_id else None
        if known is not None:
            first = Answered(known.answer) if isinstance(known, StoredAnswer) else known
            self._confirm(asked, first)
            return
        try:
            now_ns = self._stamp(asked.request)
        except ClockStep as step:
            self._confirm(asked, Rejection("clock-step", str(step)))
            return
        if now_ns is None:
            self._waiting.append(asked)
            self._is_ready = False
            return
        part = next_part(state, principal, request_id)
        refs, blobs = blobs_of(asked.request, self._noise) if part == 1 else ((), ())
        context = Context(
            now_ns=now_ns,
            index=state.index + 1,
            actor=asked.actor,
            attachments=refs,
            part=part,
            disk_is_low=self.disk_is_low,
            resume_after=asked.resume_after,
            prepared=asked.prepared,
        )
        decision = decide(state, asked.request, context)
        if isinstance(decision, Rejection):
            self._confirm(asked, decision)
            return
        answer = encode_answer(decision.answer)
        if not decision.events and not decision.more and part == 1:
            self._confirm(asked, Answered(answer))
            return
        mark = RequestMark(
            principal=principal,
            id=request_id,
            since=call.since,
            hash=digest,
            answer=b"" if decision.more else answer,
            part=part,
            parts=0 if decision.more else part,
        )
        refused = self._append(decision, mark, context, command.name, blobs)
        if refused is not None:
            self._confirm(asked, refused)
        elif decision.more:
            self._parts.append(replace(asked, resume_after=decision.resume_after))
        else:
            self._answer_at(state.index, asked.respond, self._reply(call, Answered(answer)))

    def _stamp(self, request: Request) -> int | None:
        try:
            return self._log.stamp(self.state.time_ns)
        except ClockStep:
            if not isinstance(request, AcceptClock):
                raise
            self._log.accept_clock()
            return self._log.stamp(self.state.time_ns)

    def _append(
        self,
        decision: Decision,
        mark: RequestMark,
        context: Context,
        command: str,
        blobs: tuple[bytes, ...],
    ) -> Rejection | None:
        """Encode, apply for trial, propose; None when the entry is in the log."""
        state = self.state
        try:
            body = encode_envelope(
                time_ns=context.now_ns,
                command=command,
                request=mark,
                actor=context.actor,
                events=decision.events,
                attachments=context.attachments,
                cluster_version=state.cluster[1].version,
            )
            entry = Entry(state.index + 1, self._log.term, EntryKind.EVENTS, body, blobs)
            applied = apply(state, entry)
        except LimitExceeded as error:
            return Rejection("limit-exceeded", f"{error}; nothing was changed")
        except NotYetWritable as error:
            why = f"a controller may not be able to read it yet: {error}; nothing was changed"
            return Rejection("wrong-state", why, "bring every controller to this release")
        except ApplyFailed as error:
            if error.limit is not None:
                return Rejection("limit-exceeded", f"{error.limit}; nothing was changed")
            return Rejection("fault", f"{error}; nothing was changed")
        proposed = self._log.propose(EntryKind.EVENTS, body, blobs)
        if isinstance(proposed, Refusal):
            undo_to(state, entry.index - 1)
            return Rejection(
                "busy" if proposed.code == "busy" else "ask-again",
                f"the log does not take the entry now ({proposed.code}); nothing was changed",
            )
        if proposed.index != entry.index or proposed.term != entry.term:
            raise InvariantBroken(
                f"entry {entry.index} of term {entry.term} was applied, and"
                f" {proposed.index} of {proposed.term} appended"
            )
        if applied.effects:
            self._effects[entry.index] = applied.effects
        return None

    # -- answers
    def _reply(self, call: Call, outcome: Answered | Refused) -> Reply:
        """Return a reply that rests on the state as it is; it waits until that is committed."""
        state = self.state
        return Reply(call.number, state.cluster[1].incarnation, state.index, outcome)

    def _reply_now(self, call: Call, outcome: Answered | Refused) -> Reply:
        """Return a reply that rests on no entry, so that it may leave at once."""
        return Reply(call.number, self.state.cluster[1].incarnation, self.commit, outcome)

    def _refused(self, call: Call, rejection: Rejection) -> Reply:
        return self._reply(call, Refused(rejection.code, rejection.text, rejection.hint))

    def _not_here(self, call: Call) -> Reply:
        leader = self._address_of(self._log.leader)
        text = f"the leader is {leader}" if leader else "no leader is known"
        return self._reply_now(
            call, Refused("not-leader", f"this controller does not lead; {text}", "", leader)
        )

    def _ask_again(self, call: Call, why: str) -> Reply:
        return self._reply_now(call, Refused("ask-again", f"{why}; ask with the same request id"))

    def _answer_at(self, index: int, respond: Respond, reply: Reply) -> None:
        if index <= self.commit:
            respond(reply)
        else:
            self._answers.setdefault(index, []).append((respond, reply))

    def _confirm(self, asked: _Asked, outcome: Answered | Rejection) -> None:
        """Answer once a barrier shows that this replica led when the outcome was computed."""
        if isinstance(outcome, Rejection):
            reply = self._refused(asked.call, outcome)
        else:
            reply = self._reply(asked.call, outcome)
        index = self.state.index

        def confirmed(barrier: int | None) -> None:
            if barrier is None:
                asked.respond(self._ask_again(asked.call, "leadership was lost"))
            else:
                self._answer_at(index, asked.respond, reply)

        self._unconfirmed.append(confirmed)

    def _read(self, asked: _Asked, barrier: int | None) -> None:
        """Compute a query's answer once the state is as new as the barrier."""
        if barrier is None:
            asked.respond(self._not_here(asked.call))
        elif barrier > self.state.index:
            self._at_commit.setdefault(barrier, []).append(lambda: self._read(asked, barrier))
        else:
            self._answer_query(asked, barrier)

    def _answer_query(self, asked: _Asked, at_least: int, warning: str = "") -> None:
        """Answer a query from the state as it is, with what else it takes."""
        if type(asked.request) in HISTORY:
            self._ask_history(asked, at_least, warning)
            return
        decision = self._judge_query(asked)
        if isinstance(decision, Rejection) or decision.finish is None:
            reply = replace(self._reply_of(asked, decision), warning=warning)
            self._answer_at(self.state.index, asked.respond, reply)
        else:
            self._finish_later(asked, decision, decision.finish, warning)

    def _finish_later(
        self,
        asked: _Asked,
        decision: Decision,
        finish: Callable[[Sequence[bytes | None]], Answer],
        warning: str,
    ) -> None:
        """Answer a query when the attachments that it shows are read."""
        index, lost_leads = self.state.index, self._lost_leads
        is_committed = index <= self.commit

        def done(contents: Sequence[bytes | None]) -> None:
            if not is_committed and lost_leads != self._lost_leads:
                asked.respond(self._ask_again(asked.call, "leadership was lost"))
                return
            answered = Answered(encode_answer(finish(contents)))
            reply = replace(self._reply(asked.call, answered), index=index, warning=warning)
            self._answer_at(index, asked.respond, reply)

        self._services.read_blobs(decision.blobs, done)

    def _ask_history(self, asked: _Asked, at_least: int, warning: str) -> None:
        """Hand what its caller may see of the history to the read model."""
        narrowed = narrow(self.state, asked.request, self._reading(asked))
        if isinstance(narrowed, Rejection):
            self._answer_at(self.state.index, asked.respond, self._refused(asked.call, narrowed))
            return

        def done(outcome: Answered | Refused, late: str) -> None:
            reply = replace(
                self._reply(asked.call, outcome), index=at_least, warning=warning or late
            )
            asked.respond(reply)

        self._services.ask_history(narrowed, at_least, done)

    def _serve_soft(self, asked: _Asked) -> None:
        """Let the dispatcher answer an agent, if it is one."""
        request, call = asked.request, asked.call
        decision = decide(self.state, request, self._reading(asked))
        if isinstance(decision, Rejection):
            refused = Refused(decision.code, decision.text, decision.hint)
            asked.respond(self._reply_now(call, refused))
        elif isinstance(request, AttendOrders):

            def done(orders: Orders | None) -> None:
                if orders is None:
                    asked.respond(self._not_here(call))
                else:
                    asked.respond(self._reply_now(call, Answered(encode_answer(orders))))

            self._services.attend(request, HostId(asked.actor.host_id), done)
        else:
            raise InvariantBroken(f"{type(request).__name__} is soft, and nobody serves it")

    def _judge_query(
        self, asked: _Asked, replica: ReplicaInfo | None = None
    ) -> Decision | Rejection:
        return decide(self.state, asked.request, self._reading(asked, replica))

    def _reading(self, asked: _Asked, replica: ReplicaInfo | None = None) -> Context:
        state = self.state
        return Context(
            now_ns=state.time_ns,
            index=state.index,
            actor=asked.actor,
            replica=replica,
            agents=self._services.attendances(),
        )

    def _reply_of(self, asked: _Asked, decision: Decision | Rejection) -> Reply:
        if isinstance(decision, Rejection):
            return self._refused(asked.call, decision)
        return self._reply(asked.call, Answered(encode_answer(decision.answer)))

    def _read_unconfirmed(self, asked: _Asked) -> None:
        """Answer from the committed state, and say that no quorum stands behind it.

        A client is never shown less than it has seen. Source: LOG-CONTRACT 1.8.
        """
        call, state = asked.call, self.state
        if (call.incarnation, call.at_least) > (state.cluster[1].incarnation, state.index):
            text = f"this controller stands at entry {state.index}, and no leader is known"
            asked.respond(self._refused(call, Rejection("not-leader", text)))
            return
        age_s = self._log.silence_ns() / 1e9
        warning = (
            f"no quorum of controllers answers: this is the state at entry {self.state.index},"
            f" {age_s:.0f} s after a leader was last heard"
        )
        self._answer_query(asked, self.commit, warning)

    # -- the turn
    def before_turn(self) -> None:
        """Go on with what the last turn left, and ask one barrier for all new readers."""
        if self._leads and not self._is_ready and self._ready_at <= self.commit:
            self._become_ready()
        for _ in range(len(self._parts)):
            self._execute(self._parts.popleft())
        if self._unconfirmed:
            asking, self._unconfirmed = self._unconfirmed, []
            self._token += 1
            if self._log.barrier(self._token):
                self._barriers[self._token] = asking
            else:
                for confirm in asking:
                    confirm(None)
        if self._queries:
            self._confirm_queries()

    def _confirm_queries(self) -> None:
        """Ask a barrier for the new queries; without any leader the old state must do."""
        asking, self._queries = self._queries, []
        self._token += 1
        if self._log.barrier(self._token):
            self._barriers[self._token] = [partial(self._read, asked) for asked in asking]
        elif self._log.leader:
            for asked in asking:
                self._read(asked, None)
        else:
            for asked in asking:
                self._read_unconfirmed(asked)

    def on_tick(self) -> None:
        """Let the clock's command and the checkpoint run when they are due."""
        settle(self.state, SETTLE_ROWS)
        if not (self._leads and self._is_ready):
            return
        state = self.state
        try:
            now_ns = self._log.stamp(state.time_ns)
        except ClockStep:
            return
        if now_ns is None:
            return
        if state.index - state.checkpoint_index >= CHECKPOINT_ENTRIES:
            self._ask_itself(Checkpoint())
        due_ns = next_due_ns(state)
        if due_ns is not None and due_ns <= now_ns:
            self._ask_itself(Tick())

    def _ask_itself(self, request: Request) -> None:
        call = Call(0, b"", self.commit, 0, 0, None, encode_request(request))
        self._execute(_Asked(call, CLUSTER, _nobody, request))

    def mark_lost(self, node: NodeName, silence_ns: int) -> None:
        """Take a node as cut off whose agent has been silent for so long."""
        if not (self._leads and self._is_ready):
            return
        try:
            now_ns = self._log.stamp(self.state.time_ns)
        except ClockStep:
            return
        if now_ns is not None:
            self._ask_itself(MarkNodeLost(node, now_ns - silence_ns))

    def _become_ready(self) -> None:
        """The no-op is committed: perform what rows owe, then take the requests that wait."""
        try:
            if self._log.stamp(self.state.time_ns) is None:
                return
        except ClockStep:
            pass
        if not self._is_ready:
            self._is_ready = True
            self._services.leading(self._log.term)
            for effect in resume(self.state):
                self._services.release(effect, self.commit)
        waiting, self._waiting = self._waiting, deque()
        for asked in waiting:
            self._take(asked)

    # -- Machine
    def load(self, snapshot: SnapshotSource) -> State:
        """Read the state of a snapshot; may block. Raises: SnapshotDamaged."""
        try:
            return load(snapshot.chunks())
        except UnreadableSnapshot as error:
            raise SnapshotDamaged(snapshot.index, "tables", str(error)) from error

    def restored(self, loaded: State) -> None:
        """Begin from the state of a snapshot."""
        self.state = loaded
        self.commit = loaded.index

    def committed(self, entries: Sequence[Entry]) -> None:
        """Follow the log; release effects and answers of what is committed."""
        state = self.state
        unknown = [entry for entry in entries if entry.index > state.index]
        if unknown:
            follow(state, unknown)
        for entry in entries:
            index = self.commit = entry.index
            for effect in self._effects.pop(index, ()):
                self._services.release(effect, index)
            for respond, reply in self._answers.pop(index, ()):
                respond(reply)
            for resumed in self._at_commit.pop(index, ()):
                resumed()
        forget_undo(state, self.commit)
        self._services.committed(self.commit)

    def leading(self, term: int) -> None:
        """Stand on the last entry of the log; nothing is decided before the no-op commits."""
        state = self.state
        for entry in self._log.entries(state.index + 1, self._log.last):
            apply(state, entry, effects=False)
        self._leads, self._is_ready = True, False
        self._ready_at = self._log.last

    def following(self, leader: int) -> None:
        """Undo what is not committed; whoever waits for it must ask again."""
        undo_to(self.state, self.commit)
        self._leads = self._is_ready = False
        self._lost_leads += 1
        self._services.following()
        self._effects.clear()
        answers, self._answers = self._answers, {}
        for waiting in answers.values():
            for respond, reply in waiting:
                outcome = Refused("ask-again", "leadership was lost; ask with the same request id")
                respond(replace(reply, index=self.commit, outcome=outcome))
        for asked in (*self._waiting, *self._parts):
            asked.respond(self._not_here(asked.call))
        self._waiting.clear()
        self._parts.clear()

    def barrier_passed(self, token: int, index: int | None) -> None:
        """Let the readers of one barrier go on."""
        for confirm in self._barriers.pop(token, ()):
            confirm(index)


def _nobody(reply: Reply) -> None:
    """Take the answer to what the cluster asked of itself."""


def principal_of(actor: Actor) -> str:
    """Return whose request ids these are: a user's, or a host's own."""
    return f"host:{actor.host_id}" if actor.via == "agent" else f"uid:{actor.uid}"
