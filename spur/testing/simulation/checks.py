"""What must hold in every run, checked as it goes.

    one leader a term          no two members lead the same term
    committed for ever         an index means the same entry on every member, now and later
    equal states               members at one index have one chain and one digest
    invariants                 the named ones, on committed states
    nothing leaves early       answers and effects rest on entries that are committed
    acknowledged, never lost   every answered request is in the log, once; refusals are true
    one run, one life          what is recorded as ended has no process
    stamps                     rise, and keep to the clocks of a majority

The judge of a run sees all members at once; it needs no more than what they told it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from spur.consensus.membership import Membership, voters_changed
from spur.events.codec import decode_envelope
from spur.events.declare import Event
from spur.events.envelope import Entry, EntryKind
from spur.events.jobs import JobPurged, JobSubmitted
from spur.events.runs import JobRelaunched, JobStarted, RunEnded, RunStopped
from spur.events.steps import StepEnded, StepStarted
from spur.projections.digest import state_digest
from spur.projections.dispatch import KillRun, LaunchRun
from spur.projections.invariants import check_invariants
from spur.projections.react import Effect
from spur.testing.simulation.agents import Agent
from spur.testing.simulation.clocks import ClockBound
from spur.testing.simulation.member import SimMember, Violation, Watcher
from spur.testing.simulation.world import World
from spur.values.errors import InvariantBroken
from spur.values.ids import JobId
from spur.wire.calls import Refused, Reply

__all__ = ["Checks"]

DIGEST_EVERY = 8
"""Members compare their digests at indexes that are multiples of this, when they stand there."""


class Checks(Watcher):
    """Watches all members of a run. Every check raises `Violation`."""

    def __init__(self, world: World, clocks: ClockBound) -> None:
        self.world = world
        self.committed_by_index: dict[int, tuple[int, int, bytes]] = {}
        """Term, kind and body of every entry that some member knew to be committed."""
        self.last = 0
        """The highest of them."""
        self.members = Membership(())
        """As committed last."""
        self.agents: Sequence[Agent] = ()
        self.on_effect: Callable[[SimMember, Effect], None] = _not_carried
        self._clocks = clocks
        self._leaders: dict[int, int] = {}
        self._chains: dict[int, tuple[int, bytes]] = {}
        self._digests: dict[int, tuple[int, bytes]] = {}
        self._finished: dict[bytes, list[int]] = {}
        self._names: dict[str, list[JobId]] = {}
        self._owed: dict[tuple[type[Effect], int, int], int] = {}
        """At which entry an effect came to be owed: by its kind, job and run."""
        self._settled: set[JobId] = set()
        self._steps_begun: dict[JobId, set[tuple[JobId, int]]] = {}
        """Of a job's present attempt."""
        self._steps_ended: set[tuple[JobId, int]] = set()
        """Jobs that ended, were to end, or are gone: "job-ended" may be true of them."""
        self._purged: set[JobId] = set()
        self._stamp_ns = 0

    # -- Watcher
    def leads(self, member: SimMember, term: int) -> None:
        self.world.tell(member.me, "leads term", term)
        self.world.counts["leaders"] += 1
        first = self._leaders.setdefault(term, member.me)
        if first != member.me:
            raise Violation(f"term {term} has two leaders: {first} and {member.me}")

    def learnt(self, member: SimMember, entries: Sequence[Entry]) -> None:
        for entry in entries:
            found = (entry.term, entry.kind, entry.body)
            first = self.committed_by_index.setdefault(entry.index, found)
            if first != found:
                raise Violation(
                    f"index {entry.index} was committed twice: term {first[0]} and then"
                    f" term {entry.term} on member {member.me}"
                )
            if entry.index > self.last:
                if entry.index != self.last + 1:
                    raise Violation(f"entry {entry.index} was committed after {self.last}")
                self.last = entry.index
                self.world.tell(member.me, "knows to be committed:", entry.index, entry.term)
                if entry.kind == EntryKind.EVENTS:
                    self._note(entry)
                elif entry.kind == EntryKind.MEMBERSHIP:
                    self._note_members(Membership.decode(entry.body))

    def committed(self, member: SimMember, entries: Sequence[Entry]) -> None:
        state = member.front.state
        if state.index != member.front.commit:
            return
        if entries[-1].index == state.index and entries[-1].term != state.term:
            raise Violation(f"member {member.me} has another entry at {state.index} in its state")
        self._compare(member, state.index % DIGEST_EVERY == 0)

    def restored(self, member: SimMember) -> None:
        index = member.front.state.index
        self.world.tell(member.me, "has the snapshot at", index)
        if member.is_up:
            self.world.counts["snapshots installed"] += 1
        if index > self.last:
            raise Violation(f"a snapshot holds entry {index}, and {self.last} is committed")
        self._compare(member, digest_too=True)

    def released(self, member: SimMember, effect: Effect) -> None:
        if isinstance(effect, LaunchRun | KillRun):
            owed_at = self._owed.get((type(effect), effect.job_id, effect.attempt), 1 << 62)
            if owed_at > member.front.commit:
                raise Violation(f"member {member.me} performed {effect} before it was committed")
        self.on_effect(member, effect)

    def replied(self, member: SimMember, reply: Reply) -> None:
        if reply.index > self.last:
            raise Violation(
                f"member {member.me} answered with index {reply.index}, and only {self.last} is"
                f" committed: {reply.outcome}"
            )

    def left(self, member: SimMember) -> None:
        self.world.counts["removed members that learnt of it"] += 1
        if self.members.member(member.me) is not None:
            raise Violation(f"member {member.me} takes itself for removed, and is not")

    def stopped(self, member: SimMember, error: BaseException) -> None:
        raise Violation(f"member {member.me} stopped: {type(error).__name__}: {error}") from error

    # -- what entries say
    def _note_members(self, following: Membership) -> None:
        if self.members.members and voters_changed(self.members, following) > 1:
            raise Violation(f"two voters changed at once: {self.members} and {following}")
        self.members = following

    def _note(self, entry: Entry) -> None:
        envelope, events = decode_envelope(entry.body, entry.index)
        self._check_stamp(entry.index, envelope.time_ns)
        for event in events:
            self.world.counts[type(event).__name__] += 1
            self._note_event(entry.index, event)
        request = envelope.request
        if request.id and request.parts:
            self._finished.setdefault(request.id, []).append(entry.index)

    def _note_event(self, index: int, event: Event) -> None:
        if isinstance(event, JobSubmitted):
            self._names.setdefault(event.spec.name, []).append(event.job_id)
        elif isinstance(event, JobStarted | JobRelaunched):
            self._owed[LaunchRun, event.job_id, event.attempt] = index
            # The next attempt ends the steps of the last.
            self._steps_ended |= self._steps_begun.pop(event.job_id, set())
        elif isinstance(event, RunStopped):
            self._settled.add(event.job_id)
            for kind, job_id, attempt in list(self._owed):
                if kind is LaunchRun and job_id == event.job_id:
                    self._owed.setdefault((KillRun, job_id, attempt), index)
        elif isinstance(event, RunEnded):
            self._settled.add(event.job_id)
            if not event.unfenced:
                self._check_dead(event)
        elif isinstance(event, StepStarted):
            self._steps_begun.setdefault(event.job_id, set()).add((event.job_id, event.step_id))
        elif isinstance(event, StepEnded):
            self._steps_ended.add((event.job_id, event.step_id))
        elif isinstance(event, JobPurged):
            self._settled.add(event.job_id)
            self._purged.add(event.job_id)

    def _check_stamp(self, index: int, time_ns: int) -> None:
        if time_ns <= self._stamp_ns:
            raise Violation(f"the stamp of entry {index} does not rise above the one before")
        self._stamp_ns = time_ns
        limit_ns = self._clocks.latest_ns()
        if time_ns > limit_ns:
            raise Violation(
                f"the stamp of entry {index} is {(time_ns - limit_ns) / 1e9:.1f} s beyond what the"
                " clocks of any majority allow"
            )

    def _check_dead(self, event: RunEnded) -> None:
        for agent in self.agents:
            for job_id, run, attempt in agent.alive:
                if (job_id, run) == (event.job_id, event.run):
                    raise Violation(
                        f"run {run} of job {job_id} is recorded as ended, and its attempt"
                        f" {attempt} lives on node {agent.node}"
                    )

    # -- what members hold
    def _compare(self, member: SimMember, digest_too: bool) -> None:
        state = member.front.state
        first = self._chains.setdefault(state.index, (member.me, state.chain))
        if first[1] != state.chain:
            raise Violation(
                f"members {first[0]} and {member.me} differ in their chain at {state.index}"
            )
        if not digest_too:
            return
        digest = state_digest(state)
        first = self._digests.setdefault(state.index, (member.me, digest))
        if first[1] != digest:
            raise Violation(
                f"members {first[0]} and {member.me} differ in their state at {state.index}"
            )
        try:
            check_invariants(state)
        except InvariantBroken as broken:
            raise Violation(f"member {member.me}: {broken}") from broken

    def converged(self, members: Sequence[SimMember]) -> None:
        """Check that healed members stand at one index with one state."""
        ends = {(member.replica.core.commit, member.front.state.index) for member in members}
        if len(ends) != 1 or any(commit != index for commit, index in ends):
            raise Violation(f"members did not converge: (commit, state) is {sorted(ends)}")
        for member in members:
            self._compare(member, digest_too=True)

    # -- what callers heard
    def acknowledged(self, request_id: bytes, name: str, job_id: JobId) -> None:
        """Check that an answered submission is in the log, once."""
        places = self._finished.get(request_id, [])
        if len(places) != 1:
            raise Violation(f"{name} was acknowledged and is in the log {len(places)} times")
        if self._names.get(name) != [job_id]:
            raise Violation(
                f"{name} was accepted as job {job_id}; there is {self._names.get(name)}"
            )

    def submitted_once(self) -> None:
        """Check that no submission, whatever its caller heard, came to two jobs."""
        for name, job_ids in self._names.items():
            if len(job_ids) > 1:
                raise Violation(f"{name} was submitted once and is jobs {job_ids}")

    def refused(self, job_id: JobId, outcome: Refused, allowed: Collection[str]) -> None:
        """Check that a refusal about a job that exists was true."""
        code = outcome.code
        if code == "unknown-job" and job_id in self._purged:
            return
        if code not in allowed:
            raise Violation(f"job {job_id} exists and was refused: {code}: {outcome.text}")
        if code == "job-ended" and job_id not in self._settled:
            raise Violation(f"job {job_id} never ended and was refused: {outcome.text}")

    def step_refused(
        self, job_id: JobId, step_id: int, outcome: Refused, allowed: Collection[str]
    ) -> None:
        """Check that a refusal about a step that exists was true: it may end before its job."""
        if outcome.code != "job-ended" or (job_id, step_id) not in self._steps_ended:
            self.refused(job_id, outcome, allowed)


def _not_carried(member: SimMember, effect: Effect) -> None:
    """Let an effect go to nobody."""
