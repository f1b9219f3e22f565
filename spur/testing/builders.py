"""Builders: a cluster without a log of its own, for stories about its state.

    cluster = Cluster()
    cluster.ask(Reconfigure(...))
    cluster.record(NodeLost(...), actor=AGENT)
    assert replay(cluster.entries) ...

A `Cluster` goes the way of a leader (decide, encode, trial apply) without consensus: every entry
counts as committed at once unless `commits` is off. After each entry it checks the invariants,
that each effect is owed by a row, and it keeps the entries, so that a story ends as a log.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext

from spur.commands.decide import COMMANDS, Context, Decision, decide
from spur.consensus.genesis import GENESIS_TERM, Genesis
from spur.events.codec import encode_envelope
from spur.events.declare import Event
from spur.events.envelope import Actor, AttachmentRef, Entry, EntryKind, RequestMark
from spur.projections.apply import Applied, ApplyFailed, apply, follow
from spur.projections.invariants import check_invariants
from spur.projections.react import EFFECTS, Effect, resume, resume_node
from spur.projections.requests import StoredAnswer, lookup, next_part
from spur.projections.state import State, new_state
from spur.projections.undo import forget_undo
from spur.testing.seal import sealed
from spur.values.config import ConfigFile
from spur.values.errors import InvariantBroken, Rejection
from spur.values.ids import HostId
from spur.values.limits import LimitExceeded
from spur.wire.cluster import AddHost, HostAdded, Reconfigure
from spur.wire.declare import Answer, Request, encode_request
from spur.wire.registry import decode_answer, encode_answer

__all__ = [
    "ADMIN",
    "CLUSTER",
    "GENESIS",
    "SMALL_CONFIG",
    "Cluster",
    "actor",
    "check_effects",
    "newborn",
    "replay",
]

GENESIS = Genesis(
    cluster_id=b"cluster-of-tests", membership=b"members at birth", segment_entries=256
)
"""The birth of every cluster in a story; ledger segments are small, so that there are several."""

BIRTH_NS = 1_790_000_000_000_000_000
"""The stamp that a story begins at."""

SMALL_CONFIG = """\
[cluster]
name = "hall"

[[nodes]]
names = "n[1-4]"
cpus = 64
memory_mib = 512000
gpus = "gfx942:8"

[[partitions]]
name = "gpu"
nodes = "n[1-4]"
default = true
max_time_s = 86400

[[partitions]]
name = "debug"
nodes = "n1"
max_time_s = 600
"""
"""Four nodes of eight GPUs in two partitions."""


def actor(
    uid: int, *, host_role: str = "controller", host_id: int = 0, via: str = "socket"
) -> Actor:
    """Return a user as a host vouches for it; a controller, unless told otherwise."""
    return Actor(uid=uid, gid=uid, host_id=host_id, host_role=host_role, via=via)


ADMIN = actor(0)
"""Root on a controller."""

CLUSTER = Actor(uid=0, gid=0, host_id=0, host_role="cluster", via="clock")
"""The cluster asking something of itself."""


def newborn() -> State:
    """Return the state before entry 1."""
    return new_state(
        GENESIS.encoded, cluster_id=GENESIS.cluster_id, incarnation=GENESIS.incarnation
    )


def replay(entries: Iterable[Entry]) -> State:
    """Return the state that these entries make of a newborn one, all of them committed."""
    state = newborn()
    follow(state, entries)
    return state


def check_effects(before: Sequence[Effect], applied: Applied, after: Sequence[Effect]) -> None:
    """Compare what rows owed before and after an entry with what was released and recorded.

    Raises: InvariantBroken when an effect is released that no row owes, when a row owes one that
    was not released, or when a debt vanished without one of the events that clear it.
    """
    for effect in applied.effects:
        if EFFECTS[type(effect)].table and effect not in after:
            raise InvariantBroken(f"{effect} was released, and no row owes it")
    for effect in after:
        if effect not in before and effect not in applied.effects:
            raise InvariantBroken(f"{effect} is owed from now on, and was not released")
    kinds = {type(event) for event in applied.events}
    for effect in before:
        if effect not in after and kinds.isdisjoint(EFFECTS[type(effect)].cleared_by):
            raise InvariantBroken(f"{effect} is not owed any more, and no event cleared it")


def _check_owed_by_node(state: State, owed: Sequence[Effect]) -> None:
    """Compare what is owed in all with what is owed to each node.

    Raises: InvariantBroken when an agent that comes anew would be told less, or more.
    """
    nodes = sorted({effect.node for effect in owed})  # type: ignore[attr-defined]  # each has one
    by_node = [effect for node in nodes for effect in resume_node(state, node)]
    if len(by_node) != len(owed) or any(effect not in owed for effect in by_node):
        raise InvariantBroken(f"{by_node} is owed to nodes, and {owed} in all")


class Cluster:
    """A state, the entries that made it, and a clock that moves by hand."""

    def __init__(
        self, *, checked: bool = True, commits: bool = True, is_sealed: bool = False
    ) -> None:
        """Begin with the membership of genesis.

        `checked` off leaves the invariants alone, for stories of thousands of entries. With
        `is_sealed`, deciding and applying happen under the seal of `seal.py`.
        """
        self.state = newborn()
        self.now_ns = BIRTH_NS
        self.entries: list[Entry] = []
        self.effects: list[Effect] = []
        """Every effect released so far."""
        self._checked = checked
        self._seal: Callable[[], AbstractContextManager[None]] = (
            sealed if is_sealed else nullcontext
        )
        self._owed: list[Effect] = []
        self._commits = commits
        self._asked = 0
        self.append(EntryKind.MEMBERSHIP, GENESIS.membership, term=GENESIS_TERM)

    # -- the log
    def append(self, kind: EntryKind, body: bytes, *, term: int | None = None) -> Applied:
        """Append an entry as it is, and apply it."""
        state = self.state
        entry = Entry(state.index + 1, term or max(state.term, 1), kind, body)
        with self._seal():
            applied = apply(state, entry)
        self.entries.append(entry)
        if self._commits:
            forget_undo(state, entry.index)
        if self._checked:
            check_invariants(state)
            owed = resume(state)
            check_effects(self._owed, applied, owed)
            _check_owed_by_node(state, owed)
            self._owed = owed
        self.effects.extend(applied.effects)
        return applied

    def stamp(self) -> int:
        """Return the stamp of the next entry; time moves by a microsecond."""
        self.now_ns = max(self.now_ns, self.state.time_ns) + 1_000
        return self.now_ns

    def pass_seconds(self, seconds: float) -> None:
        """Let time go by."""
        self.now_ns += int(seconds * 1_000_000_000)

    # -- asking
    def ask(
        self,
        request: Request,
        actor: Actor = ADMIN,
        *,
        request_id: bytes | None = None,
        since: int | None = None,
    ) -> Answer | Rejection:
        """Ask as a client would, all parts of it; return the answer or the refusal."""
        state = self.state
        data = encode_request(request)
        digest = hashlib.sha256(data).digest()
        principal = f"uid:{actor.uid}"
        if not COMMANDS[type(request)].remembered:
            request_id = b""
        elif request_id is None:
            self._asked += 1
            request_id = self._asked.to_bytes(16, "big")
        resume_after = 0
        while True:
            known = lookup(
                state, principal, request_id, digest, state.index if since is None else since
            )
            if isinstance(known, StoredAnswer):
                return decode_answer(known.answer)
            if isinstance(known, Rejection):
                return known
            part = next_part(state, principal, request_id)
            context = Context(
                now_ns=self.stamp(),
                index=state.index + 1,
                actor=actor,
                attachments=_references(request),
                part=part,
                resume_after=resume_after,
            )
            with self._seal():
                decision = decide(state, request, context)
            if isinstance(decision, Rejection):
                return decision
            if not decision.events and not decision.more and part == 1:
                return decision.answer
            mark = RequestMark(
                principal=principal,
                id=request_id,
                since=state.index,
                hash=digest,
                answer=b"" if decision.more else encode_answer(decision.answer),
                part=part,
                parts=0 if decision.more else part,
            )
            refused = self._append_decision(request, decision, context, mark)
            if refused is not None:
                return refused
            if not decision.more:
                return decision.answer
            resume_after = decision.resume_after

    def _append_decision(
        self, request: Request, decision: Decision, context: Context, mark: RequestMark
    ) -> Rejection | None:
        """Append what a request came to; None when it is in the log."""
        try:
            body = encode_envelope(
                time_ns=context.now_ns,
                command=COMMANDS[type(request)].name,
                request=mark,
                actor=context.actor,
                events=decision.events,
                attachments=context.attachments,
                cluster_version=self.state.cluster[1].version,
            )
            self.append(EntryKind.EVENTS, body)
        except LimitExceeded as error:
            return Rejection("limit-exceeded", f"{error}; nothing was changed")
        except ApplyFailed as error:
            if error.limit is None:
                raise
            return Rejection("limit-exceeded", f"{error.limit}; nothing was changed")
        return None

    def record(
        self,
        *events: Event,
        actor: Actor = CLUSTER,
        attachments: tuple[AttachmentRef, ...] = (),
    ) -> Applied:
        """Append an entry with these events, whoever may have decided them."""
        body = encode_envelope(
            time_ns=self.stamp(),
            command="story",
            request=RequestMark("cluster", b"", self.state.index, bytes(32), b"", 1, 1),
            actor=actor,
            events=events,
            attachments=attachments,
            cluster_version=self.state.cluster[1].version,
        )
        return self.append(EntryKind.EVENTS, body)

    # -- beginnings
    def configure(self, text: str = SMALL_CONFIG) -> None:
        """Take a configuration. Raises: ValueError when it is refused."""
        outcome = self.ask(Reconfigure((ConfigFile("spur.toml", text),)))
        if isinstance(outcome, Rejection):
            raise ValueError(outcome.text)

    def add_host(self, name: str, role: str) -> HostId:
        """Add a host; return its id. Raises: ValueError when it is refused."""
        outcome = self.ask(AddHost(name, role))
        if not isinstance(outcome, HostAdded):
            raise ValueError(str(outcome))
        return outcome.host_id


def _references(request: Request) -> tuple[AttachmentRef, ...]:
    """Return references to the request's attachments, with sixteen zeros for random bytes."""
    return tuple(
        AttachmentRef(
            attachment.name,
            len(attachment.content),
            hashlib.sha256(bytes(16) + attachment.content).digest(),
        )
        for attachment in getattr(request, "attachments", ())
    )
