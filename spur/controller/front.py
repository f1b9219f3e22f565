"""The front: judges requests against the state, and answers when the log has committed.

    submit --> lookup (seen before?) --> decide --> encode --> trial apply --> propose
                                                                  |
    answer <-- commit of that index <-----------------------------+

Nothing leaves before the entries it saw are committed. Answers of commands wait for their own
entry. Rejections, repeated answers and queries wait for the last entry that was applied when they
were computed, and for a barrier that shows this replica still led at that time.

Queries are answered in `queries.py`; what waits for a commit or a barrier is in `waiting.py`. The
front has no clock, socket or thread of its own; the shell calls it from one loop.
Source: LOG-CONTRACT 3.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from msgspec.structs import replace

from spur.commands.decide import COMMANDS, Context, Decision
from spur.commands.history import HISTORY
from spur.commands.permissions import refuse
from spur.consensus.clock import ClockStep
from spur.consensus.faults import SnapshotDamaged
from spur.consensus.port import Refusal, SnapshotSource, TimedLog
from spur.controller.attachments import Noise, blobs_of
from spur.controller.judging import judge
from spur.controller.queries import Queries
from spur.controller.services import Services
from spur.controller.waiting import Asked, Respond, Waiting
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
from spur.values.members import ByWhom
from spur.wire.calls import Answered, Call, Refused, Reply
from spur.wire.cluster import AcceptClock, Checkpoint, Tick
from spur.wire.controllers import PromoteController
from spur.wire.declare import Request, encode_request
from spur.wire.nodes import MarkNodeLost
from spur.wire.registry import UnreadableRequest, decode_request, encode_answer

__all__ = ["CHECKPOINT_ENTRIES", "Front", "principal_of"]

CLUSTER = Actor(uid=0, gid=0, host_id=0, host_role="cluster", via="clock")
"""The actor of what the cluster asks of itself."""

CHECKPOINT_ENTRIES = 65_536
"""Entries between two digests in the log. Source: LOG-CONTRACT 5.8."""

SETTLE_ROWS = 500
"""Rows brought into the running digest at a tick; about two milliseconds."""

WAITING_MAX = 10_000
"""Requests held while a new leader is not ready to decide; more are told to ask again."""


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
        self._held: deque[Asked] = deque()
        """Until this leader is ready to decide."""
        self._parts: deque[Asked] = deque()
        self._handing: list[Asked] = []
        """Until another controller leads, which is to be asked then."""
        self._waiting = Waiting(lambda: self._log)
        self._queries = Queries(self, lambda: self._log, services=services, waiting=self._waiting)

    @property
    def commit(self) -> int:
        """The last entry known to be committed."""
        return self._waiting.commit

    # -- requests
    def submit(self, call: Call, actor: Actor, respond: Respond) -> None:
        """Take a request; `respond` is called once, now or later."""
        try:
            request = decode_request(call.request)
        except UnreadableRequest as error:
            respond(self.reply_now(call, Refused("invalid-value", str(error))))
            return
        asked = Asked(call, actor, self._services.timed(request, actor.uid, respond), request)
        if type(request) in HISTORY:
            self._queries.ask(asked)
            return
        row = COMMANDS[type(request)]
        if row.local:
            self._queries.answer_local(asked)
        elif row.reads:
            self._queries.ask(asked)
        elif row.prepare is None or not self._leads or refuse(self.state, row.permission, actor):
            self._admit(asked)
        else:
            work = partial(row.prepare, request)
            self._services.compute(work, lambda made: self._admit(replace(asked, prepared=made)))

    def _admit(self, asked: Asked) -> None:
        """Take a request where and when it can be judged."""
        if not self._leads:
            asked.respond(self.not_here(asked.call))
        elif self._is_ready:
            self._take(asked)
        elif len(self._held) >= WAITING_MAX:
            why = "too many requests wait for the new leader"
            asked.respond(self.ask_again(asked.call, why))
        else:
            self._held.append(asked)

    def _take(self, asked: Asked) -> None:
        if asked.actor.via == "agent":
            self._services.heard(HostId(asked.actor.host_id))
        if COMMANDS[type(asked.request)].soft:
            self._queries.answer_agent(asked)
        else:
            self._execute(asked)

    def _execute(self, asked: Asked) -> None:
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
            self._held.append(asked)
            self._is_ready = False
            return
        part = next_part(state, principal, request_id)
        refs, blobs = blobs_of(asked.request, self._noise)
        context = Context(
            now_ns=now_ns,
            index=state.index + 1,
            actor=asked.actor,
            attachments=refs,
            part=part,
            disk_is_low=self.disk_is_low,
            resume_after=asked.resume_after,
            prepared=asked.prepared,
            controllers=self._log.controllers() if command.about_controllers else None,
        )
        decision = judge(state, asked.request, context)
        if isinstance(decision, Rejection):
            self._confirm(asked, decision)
        elif decision.hands_over:
            self._hand_over(asked, decision.successor)
        elif decision.members is not None:
            self._change_members(asked, decision, context)
        else:
            mark = RequestMark(
                principal=principal,
                id=request_id,
                since=call.since,
                hash=digest,
                answer=b"" if decision.more else encode_answer(decision.answer),
                part=part,
                parts=0 if decision.more else part,
            )
            self._log_events(asked, decision, context, mark, blobs)

    def _log_events(
        self,
        asked: Asked,
        decision: Decision,
        context: Context,
        mark: RequestMark,
        blobs: tuple[bytes, ...],
    ) -> None:
        """Put the events of a decision into the log, if it has any, and answer."""
        if not decision.events and not decision.more and mark.part == 1:
            self._confirm(asked, Answered(mark.answer))
            return
        command = COMMANDS[type(asked.request)]
        refused = self._append(decision, mark, context, command.name, blobs)
        if refused is not None:
            self._confirm(asked, refused)
        elif decision.more:
            self._parts.append(replace(asked, resume_after=decision.resume_after))
        else:
            self._answer(asked, mark.answer)

    def _answer(self, asked: Asked, answer: bytes) -> None:
        """Answer when the entry that was appended last is committed."""
        reply = self.reply(asked.call, Answered(answer))
        self._waiting.answer_at(self.state.index, asked.respond, reply)

    def _change_members(self, asked: Asked, decision: Decision, context: Context) -> None:
        """Put the members of a decision into the log: an entry of its own kind."""
        state, actor = self.state, context.actor
        if decision.members is None:
            raise InvariantBroken("a change of members was decided that names none")
        who = ByWhom(context.now_ns, actor.uid, actor.host_id, actor.host_role)
        body = decision.members.encode(who)
        entry = Entry(state.index + 1, self._log.term, EntryKind.MEMBERSHIP, body)
        apply(state, entry)
        refused = self._propose(entry)
        if refused is None:
            self._answer(asked, encode_answer(decision.answer))
        else:
            self._confirm(asked, refused)

    def _hand_over(self, asked: Asked, successor: int) -> None:
        """Let another controller lead, to which the caller is sent then."""
        if self._log.hand_over(successor):
            self._handing.append(asked)
        else:
            why = "no other voter could lead now; nothing was changed"
            self._confirm(asked, Rejection("busy", why, "ask again when all of them are level"))

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
        refused = self._propose(entry)
        if refused is None:
            self._services.decided(decision.events)
            if applied.effects:
                self._effects[entry.index] = applied.effects
        return refused

    def _propose(self, entry: Entry) -> Rejection | None:
        """Append an entry that is applied for trial; undo it when the log does not take it."""
        proposed = self._log.propose(entry.kind, entry.body, entry.blobs)
        if isinstance(proposed, Refusal):
            undo_to(self.state, entry.index - 1)
            return Rejection(
                "busy" if proposed.code == "busy" else "ask-again",
                f"the log does not take the entry now ({proposed.code}); nothing was changed",
            )
        if proposed.index != entry.index or proposed.term != entry.term:
            raise InvariantBroken(
                f"entry {entry.index} of term {entry.term} was applied, and"
                f" {proposed.index} of {proposed.term} appended"
            )
        return None

    # -- answers
    def reply(self, call: Call, outcome: Answered | Refused) -> Reply:
        """Return a reply that rests on the state as it is; it waits until that is committed."""
        state = self.state
        return Reply(call.number, state.cluster[1].incarnation, state.index, outcome)

    def reply_now(self, call: Call, outcome: Answered | Refused) -> Reply:
        """Return a reply that rests on no entry, so that it may leave at once."""
        return Reply(call.number, self.state.cluster[1].incarnation, self.commit, outcome)

    def refused(self, call: Call, rejection: Rejection) -> Reply:
        """Return a refusal that rests on the state as it is."""
        return self.reply(call, Refused(rejection.code, rejection.text, rejection.hint))

    def not_here(self, call: Call) -> Reply:
        """Return that another controller is to be asked."""
        leader = self._address_of(self._log.leader)
        text = f"the leader is {leader}" if leader else "no leader is known"
        return self.reply_now(
            call, Refused("not-leader", f"this controller does not lead; {text}", "", leader)
        )

    def ask_again(self, call: Call, why: str) -> Reply:
        """Return that nobody knows what came of it."""
        return self.reply_now(call, Refused("ask-again", f"{why}; ask with the same request id"))

    def _confirm(self, asked: Asked, outcome: Answered | Rejection) -> None:
        """Answer once a barrier shows that this replica led when the outcome was computed."""
        if isinstance(outcome, Rejection):
            reply = self.refused(asked.call, outcome)
        else:
            reply = self.reply(asked.call, outcome)
        index = self.state.index

        def confirmed(barrier: int | None) -> None:
            if barrier is None:
                asked.respond(self.ask_again(asked.call, "leadership was lost"))
            else:
                self._waiting.answer_at(index, asked.respond, reply)

        self._waiting.confirm(confirmed)

    # -- the turn
    def before_turn(self) -> None:
        """Go on with what the last turn left, and ask one barrier for all new readers."""
        if self._leads and not self._is_ready and self._ready_at <= self.commit:
            self._become_ready()
        for _ in range(len(self._parts)):
            self._execute(self._parts.popleft())
        self._waiting.confirm_all()
        self._queries.confirm()

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
        self._look_after_members()
        if state.index - state.checkpoint_index >= CHECKPOINT_ENTRIES:
            self._ask_itself(Checkpoint())
        due_ns = next_due_ns(state)
        if due_ns is not None and due_ns <= now_ns:
            self._ask_itself(Tick())

    def _look_after_members(self) -> None:
        """Promote who is level; give up to hand the lead over when nobody takes it."""
        learner = self._log.level_learner()
        if learner:
            self._ask_itself(PromoteController(str(learner)))
        if self._handing and not self._log.is_handing_over:
            handing, self._handing = self._handing, []
            why = "the lead could not be handed over; nothing was changed"
            for asked in handing:
                self._confirm(asked, Rejection("busy", why))

    def _ask_itself(self, request: Request) -> None:
        call = Call(0, b"", self.commit, 0, 0, None, encode_request(request))
        self._execute(Asked(call, CLUSTER, _nobody, request))

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
        held, self._held = self._held, deque()
        for asked in held:
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
        self._waiting.commit = loaded.index

    def committed(self, entries: Sequence[Entry]) -> None:
        """Follow the log; release effects and answers of what is committed."""
        state = self.state
        unknown = [entry for entry in entries if entry.index > state.index]
        if unknown:
            follow(state, unknown)
        for entry in entries:
            index = self._waiting.commit = entry.index
            for effect in self._effects.pop(index, ()):
                self._services.release(effect, index)
            self._waiting.committed(index)
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
        self._services.following()
        self._effects.clear()
        self._waiting.lost()
        for asked in (*self._held, *self._parts, *self._handing):
            asked.respond(self.not_here(asked.call))
        self._held.clear()
        self._handing.clear()
        self._parts.clear()

    def barrier_passed(self, token: int, index: int | None) -> None:
        """Let the readers of one barrier go on."""
        self._waiting.barrier_passed(token, index)


def _nobody(reply: Reply) -> None:
    """Take the answer to what the cluster asked of itself."""


def principal_of(actor: Actor) -> str:
    """Return whose request ids these are: a user's, or a host's own."""
    return f"host:{actor.host_id}" if actor.via == "agent" else f"uid:{actor.uid}"
