"""What must hold in every run, checked as it goes and at its end.

one leader a term          no two members lead the same term
committed for ever         an index means the same entry on every member, now and later
equal states               members at one index have one digest
effects after commit       what a leader performs rests on an entry it knows to be committed
acknowledged, never lost   every answered request is in the log, once
invariants                 the named ones, on committed states
"""

from __future__ import annotations

from collections.abc import Sequence

from spur.events.codec import decode_envelope
from spur.events.envelope import Entry, EntryKind
from spur.events.runs import JobStarted
from spur.projections.digest import state_digest
from spur.projections.dispatch import KillRun, LaunchRun, SignalRun
from spur.projections.invariants import check_invariants
from spur.projections.react import Effect
from spur.testing.simulation.member import SimMember, Violation, Watcher

__all__ = ["Checks", "Violation"]

DIGEST_EVERY = 16
"""Members compare their digests at indexes that are multiples of this, when they stand there."""


class Checks(Watcher):
    """Watches all members of a run."""

    def __init__(self) -> None:
        self.committed_by_index: dict[int, tuple[int, int, bytes]] = {}
        self.finished: dict[bytes, list[int]] = {}
        """Indexes at which each request id was finished."""
        self._leaders: dict[int, int] = {}
        self._digests: dict[int, tuple[int, bytes]] = {}
        self._started: dict[int, set[tuple[int, int, int]]] = {}
        self._known: dict[int, int] = {}

    # -- Watcher
    def leads(self, member: SimMember, term: int) -> None:
        first = self._leaders.setdefault(term, member.me)
        if first != member.me:
            raise Violation(f"term {term} has two leaders: {first} and {member.me}")

    def learnt(self, member: SimMember, entries: Sequence[Entry]) -> None:
        started = self._started.setdefault(member.me, set())
        for entry in entries:
            found = (entry.term, entry.kind, entry.body)
            first = self.committed_by_index.setdefault(entry.index, found)
            if first != found:
                raise Violation(
                    f"index {entry.index} was committed twice: term {first[0]} and then"
                    f" term {entry.term} on member {member.me}"
                )
            if entry.kind == EntryKind.EVENTS:
                self._note(entry, started, is_new=entry.index > self._known.get(0, 0))
            self._known[0] = max(self._known.get(0, 0), entry.index)

    def _note(self, entry: Entry, started: set[tuple[int, int, int]], *, is_new: bool) -> None:
        envelope, events = decode_envelope(entry.body, entry.index)
        for event in events:
            if isinstance(event, JobStarted):
                started.add((event.job_id, event.run, event.attempt))
        request = envelope.request
        if is_new and request.id and request.parts:
            self.finished.setdefault(request.id, []).append(entry.index)

    def committed(self, member: SimMember, entries: Sequence[Entry]) -> None:
        state = member.front.state
        if state.index == member.front.commit and state.index % DIGEST_EVERY == 0:
            self._compare(member)
            check_invariants(state)

    def released(self, member: SimMember, effect: Effect) -> None:
        if not isinstance(effect, LaunchRun | KillRun | SignalRun):
            return
        name = (effect.job_id, effect.run, effect.attempt)
        if name not in self._started.get(member.me, set()):
            raise Violation(f"member {member.me} performed {effect} before its start was committed")

    def stopped(self, member: SimMember, error: BaseException) -> None:
        raise Violation(f"member {member.me} stopped: {type(error).__name__}: {error}") from error

    # -- at the end
    def _compare(self, member: SimMember) -> None:
        state = member.front.state
        digest = state_digest(state)
        first = self._digests.setdefault(state.index, (member.me, digest))
        if first[1] != digest:
            raise Violation(
                f"members {first[0]} and {member.me} differ in their state at {state.index}"
            )

    def converged(self, members: Sequence[SimMember]) -> None:
        """Check that healed members stand at one index with one state."""
        ends = {(member.replica.core.commit, member.front.state.index) for member in members}
        if len(ends) != 1 or any(commit != index for commit, index in ends):
            raise Violation(f"members did not converge: (commit, state) is {sorted(ends)}")
        for member in members:
            self._compare(member)
            check_invariants(member.front.state)

    def acknowledged(self, request_id: bytes, what: str) -> None:
        """Check that an answered request is in the log, once."""
        places = self.finished.get(request_id, [])
        if len(places) != 1:
            raise Violation(f"{what} was acknowledged and is in the log {len(places)} times")
