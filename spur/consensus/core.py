"""The Raft core: inputs go in, boxes come out; no clock, disk, network or randomness of its own.

    tick()  step(message)  propose(...)  barrier(token)  persisted(ready)  ...
        --> take_messages()   may leave at once, also while a Ready is outstanding
        --> ready()           what must become durable; its `after` messages leave once it is
        --> take_reads()  take_wants()  take_chunks()

The same inputs give the same outputs. Time is a count of ticks. Votes, vote requests and
acknowledgements wait in `after` for the state that they rest on; a leader's appends leave at once
and it counts itself only when its own disk has them. A log is cut only at a proven conflict, and a
conflict at or below the commit index stops the replica.

This file is the door. Who leads is decided in elections.py; what a leader does is in leadership.py,
what a follower does with its leader's log in following.py; the log itself is in replica_log.py.
Source: Raft thesis §3, §4.2.3, §6.4, §9.6, §10.2.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from spur.consensus.boxes import (
    CoreSettings,
    Outbox,
    Ready,
    Rng,
    Role,
    Want,
    WantChunk,
)
from spur.consensus.elections import Elections
from spur.consensus.following import Following
from spur.consensus.hardstate import HardState
from spur.consensus.leadership import Leadership
from spur.consensus.membership import Member, Membership, member_id_at
from spur.consensus.messages import (
    Append,
    AppendReply,
    BarrierAsk,
    BarrierTell,
    Heartbeat,
    HeartbeatReply,
    Message,
    PreVote,
    PreVoteReply,
    ReplicaId,
    SnapshotChunk,
    SnapshotReply,
    TimeoutNow,
    Vote,
    VoteReply,
)
from spur.consensus.port import Refusal
from spur.consensus.reads import ForwardedReads, ReadQuestion
from spur.consensus.replica_log import ReplicaLog
from spur.consensus.tail import entry_bytes
from spur.events.envelope import Entry, EntryKind
from spur.values.errors import InvariantBroken, PeerFault

__all__ = [
    "Core",
    "CoreSettings",
    "HardState",
    "Ready",
    "Refusal",
    "Rng",
    "Role",
    "Want",
    "WantChunk",
]

_MEMBERSHIP = int(EntryKind.MEMBERSHIP)
_NUMBER_BITS = 62


class Core:
    """One replica's part in the agreement on the log."""

    def __init__(
        self,
        *,
        me: ReplicaId,
        settings: CoreSettings,
        rng: Rng,
        hard: HardState,
        membership: Membership,
        base_index: int,
        base_term: int,
        entries: Sequence[Entry],
        commit: int,
    ) -> None:
        """Start as a follower with what is durable.

        `base_index` and `base_term` are the last entry that is not held in memory, `membership` is
        the one in force there; `entries` follow it.

        Raises: InvariantBroken when committed entries are missing.
        """
        self.me = me
        self._settings = settings
        self._outbox = Outbox()
        self._log = ReplicaLog(base_index, base_term, membership, entries, commit)
        self._following = Following(me=me, term=hard.term, log=self._log, outbox=self._outbox)
        self._forwarded = ForwardedReads(rng.randrange(1 << _NUMBER_BITS))
        self._elections = Elections(
            me=me,
            hard=hard,
            settings=settings,
            rng=rng,
            log=self._log,
            following=self._following,
            forwarded=self._forwarded,
            outbox=self._outbox,
        )
        self._outstanding: Ready | None = None
        self._generation = 0

    # -- what it is

    @property
    def role(self) -> Role:
        """What this replica is in its term."""
        return self._elections.role

    @property
    def term(self) -> int:
        """The term, durable or not."""
        return self._elections.term

    @property
    def vote(self) -> ReplicaId:
        """Whom this replica votes for in its term, 0 for nobody (yet)."""
        return self._elections.vote

    @property
    def leader(self) -> ReplicaId:
        """The leader as far as known, 0 for none."""
        return self._elections.leader

    @property
    def may_campaign(self) -> bool:
        """Cleared by the shell while this replica must not come to lead (its clock is off)."""
        return self._elections.may_campaign

    @may_campaign.setter
    def may_campaign(self, may: bool) -> None:
        self._elections.may_campaign = may

    @property
    def sync_ticks(self) -> int:
        """Set by the shell: the longest that a sync took lately; elections wait for two."""
        return self._elections.sync_ticks

    @sync_ticks.setter
    def sync_ticks(self, ticks: int) -> None:
        self._elections.sync_ticks = ticks

    @property
    def commit(self) -> int:
        """The commit index; on a leader it may be ahead of what is durable here."""
        return self._log.commit

    @property
    def stable(self) -> int:
        """The last index of this log that is durable here."""
        return self._log.stable

    @property
    def last(self) -> int:
        """The last index of the log, durable or not."""
        return self._log.tail.last

    @property
    def last_term(self) -> int:
        """The term of the last entry."""
        return self._log.tail.last_term

    @property
    def first(self) -> int:
        """The first index held in memory, one past the last when none is."""
        return self._log.tail.first

    @property
    def members(self) -> Membership:
        """The membership in force: the newest in the log, committed or not."""
        return self._log.memberships.current

    @property
    def in_touch(self) -> tuple[Member, ...]:
        """Whom to speak with: the committed members, and those of changes under way."""
        return self._log.memberships.in_touch(self._log.commit)

    @property
    def knows_of_itself(self) -> bool:
        """The log here is long enough to tell of this replica's addition."""
        return self.me <= member_id_at(self._log.memberships.index)

    @property
    def may_change_members(self) -> bool:
        """This replica leads, and the last change of members is committed."""
        return self.no_op_committed and self._log.memberships.index <= self._log.commit

    @property
    def was_removed(self) -> bool:
        """A committed change left this replica out: it takes no part any more."""
        memberships = self._log.memberships
        return (
            self.knows_of_itself
            and memberships.index <= self._log.commit
            and memberships.current.member(self.me) is None
        )

    def begin_with(self, membership: Membership) -> None:
        """Learn, before anything else happens, what was in force at the base of the log."""
        former = self.members
        self._log.memberships.begin_with(membership)
        if self.members != former:
            self._elections.begin()

    @property
    def is_leader(self) -> bool:
        """This replica leads."""
        return self._elections.lead is not None

    @property
    def bytes_in_memory(self) -> int:
        """What the entries held in memory weigh."""
        return self._log.tail.bytes_held

    def index_by_bytes(self, bytes_max: int) -> int:
        """Return the lowest index behind which entries in memory weigh at most `bytes_max`."""
        return self._log.tail.index_by_bytes(bytes_max)

    @property
    def no_op_committed(self) -> bool:
        """This replica leads, and the no-op of its term is committed."""
        lead = self._elections.lead
        return lead is not None and self._log.commit >= lead.noop_index

    @property
    def transferring_to(self) -> ReplicaId:
        """Whom the lead is being handed to, 0 for nobody."""
        return self._elections.lead.transfer_to if self._elections.lead is not None else 0

    @property
    def lost(self) -> bool:
        """This replica lost entries that it had acknowledged to the leader of this term.

        It neither votes, campaigns nor acknowledges; it has to be removed and added anew.
        """
        return self._following.lost

    @property
    def lost_peers(self) -> tuple[ReplicaId, ...]:
        """On a leader, the peers that lost entries which they had acknowledged to it.

        Nothing but heartbeats is sent to them, and they are not counted.
        """
        return self._elections.lead.lost_peers() if self._elections.lead is not None else ()

    @property
    def installing(self) -> int:
        """The index of the snapshot that is wholly received and not yet the state, or 0."""
        return self._following.installing

    def match(self, peer: ReplicaId) -> int:
        """Return up to where a replica is known to be durable; of peers only a leader knows."""
        if peer == self.me:
            return self._log.stable
        return self._elections.lead.match(peer) if self._elections.lead is not None else 0

    def entry(self, index: int) -> Entry:
        """Return an entry held in memory."""
        return self._log.tail.entry(index)

    def entries(self, first: int, last: int) -> list[Entry]:
        """Return entries held in memory, both ends included."""
        return self._log.tail.slice(first, last)

    # -- inputs

    def tick(self) -> None:
        """Let one tick pass."""
        elections = self._elections
        elections.tick()
        if elections.lead is not None:
            elections.lead.tick(self._log.commit)
        elif self._forwarded.has_waited(self._settings.resend_ticks):
            self._ask_leader(self._forwarded.number)

    def propose(self, kind: int, body: bytes, blobs: tuple[bytes, ...] = ()) -> Entry | Refusal:
        """Append an entry to the leader's log and return it, or the reason why it was not."""
        lead = self._elections.lead
        if lead is None:
            return Refusal("not-leader", self.leader)
        log = self._log
        tail = log.tail
        settings = self._settings
        size = entry_bytes(body, blobs)
        if size > settings.entry_bytes_max:
            return Refusal("too-large", self.me)
        if lead.transfer_to:
            return Refusal("transferring", self.me)
        waiting = tail.bytes_between(log.commit, tail.last)
        if waiting and waiting + size > settings.uncommitted_bytes_max:
            return Refusal("busy", self.me)
        entry = Entry(tail.last + 1, self.term, kind, body, blobs)
        if kind == _MEMBERSHIP:
            if self.membership_fault(entry):
                return Refusal("wrong-membership", self.me)
            log.append(entry, size)
            log.memberships.note((entry,))
            lead.set_members(self.members, entry.index)
        else:
            log.append(entry, size)
        return entry

    def membership_fault(self, entry: Entry) -> str:
        """Return why a membership entry can't be the next one, or an empty string."""
        memberships = self._log.memberships
        if not self.no_op_committed:
            return "no entry of this leader's term is committed yet"
        if memberships.index > self._log.commit:
            return "the last change of members is not committed yet"
        return memberships.fault_of(entry)

    def persisted(self, ready: Ready) -> None:
        """Take note that all of the outstanding Ready is durable.

        Raises: InvariantBroken when it is another one.
        """
        if not ready.needs_sync:
            return
        if ready is not self._outstanding:
            raise InvariantBroken("a Ready was called durable that is not the outstanding one")
        self._outstanding = None
        self._log.written(ready.entries, self._generation)
        elections = self._elections
        if elections.lead is not None:
            self._advance_commit(elections.lead)
        elif ready.hard is not None:
            elections.vote_written(ready.hard)

    def step(self, message: Message) -> None:
        """Take a message of a peer.

        Raises: PeerFault for what no correct peer sends. InvariantBroken when this replica's log
        and the cluster's contradict each other.
        """
        if message.to != self.me:
            raise PeerFault(f"a message to replica {message.to} came to replica {self.me}")
        elections = self._elections
        if message.term > elections.term:
            if not elections.meet_higher_term(message):
                return
        elif message.term < elections.term:
            elections.answer_lower_term(message)
            return
        lead = elections.lead
        match message:
            case AppendReply():
                if lead is not None and lead.on_append_reply(message):
                    self._advance_commit(lead)
            case Append():
                elections.hear_leader(message.sender)
                self._following.on_append(message)
            case Heartbeat():
                elections.hear_leader(message.sender)
                self._following.on_heartbeat(message)
            case HeartbeatReply():
                if lead is not None:
                    lead.on_heartbeat_reply(message)
            case SnapshotChunk():
                elections.hear_leader(message.sender)
                self._following.on_chunk(message)
            case SnapshotReply():
                if lead is not None and lead.on_snapshot_reply(message):
                    self._advance_commit(lead)
            case BarrierAsk():
                self._on_barrier_ask(message)
            case BarrierTell():
                self._on_barrier_tell(message)
            case PreVote():
                elections.on_pre_vote(message)
            case Vote():
                elections.on_vote(message)
            case PreVoteReply() | VoteReply():
                elections.on_reply(message)
            case TimeoutNow():
                elections.hear_leader(message.sender)
                elections.take_over()
            case _:
                assert_never(message)

    def barrier(self, token: int) -> bool:
        """Ask for the index that a linearizable read must have seen; False without a leader.

        The answer comes through `take_reads`. A leader answers once a quorum has confirmed, after
        the question, that it leads, and its no-op is committed. A follower asks its leader.
        """
        if self._elections.lead is not None:
            self._elections.lead.reads.ask(ReadQuestion(0, token))
        elif self.leader:
            self._forwarded.ask(token)
        else:
            return False
        return True

    def transfer(self, to: ReplicaId) -> bool:
        """Begin to hand the lead to a voter; False when that can't be.

        Proposals are refused as busy until the lead has moved or an election timeout has passed.
        """
        return self._elections.lead is not None and self._elections.lead.transfer(to)

    def step_down(self) -> None:
        """Stop leading or campaigning; the term stays."""
        self._elections.step_down()

    def supply(self, peer: ReplicaId, entries: Sequence[Entry]) -> None:
        """Answer a `Want`: entries from its index on, as many as are at hand."""
        if self._elections.lead is not None:
            self._elections.lead.supply(peer, entries, self._log.commit)

    def supply_snapshot(
        self,
        peer: ReplicaId,
        manifest_index: int,
        manifest_term: int,
        chunk_number: int,
        chunk_count: int,
        data: bytes,
    ) -> None:
        """Answer a `WantChunk`, or a `Want` by the manifest: chunk 0 of a snapshot."""
        if self._elections.lead is not None:
            self._elections.lead.supply_snapshot(
                peer, manifest_index, manifest_term, chunk_number, chunk_count, data
            )

    def chunk_written(self, peer: ReplicaId, snapshot_index: int, chunk_number: int) -> None:
        """Take note that a received chunk is durable, so that the next may come.

        Once the last has come, the snapshot is to become the state, told by `installed` or
        `install_failed`; from its coming until then this replica leaves its log alone.
        """
        self._following.chunk_written(peer, snapshot_index, chunk_number)

    def installed(self, index: int, term: int, membership: Membership) -> None:
        """Take note that a snapshot became the state, and that the log goes on behind it.

        Both must be durable: the snapshot, and the restart of the log on disk behind it. Between
        that restart and this call no Ready may be taken.

        Raises: InvariantBroken when it was not to be installed.
        """
        self._following.installed(index, term, membership)

    def install_failed(self, index: int) -> None:
        """Take note that a complete snapshot could not be installed; it will be sent again."""
        self._following.install_failed(index)

    def trim(self, index: int) -> None:
        """Forget the entries up to `index`, as far as they are committed and durable here."""
        self._log.trim(index)

    # -- outputs

    def take_messages(self) -> list[Message]:
        """Return what may leave at once."""
        self._collect()
        outbox = self._outbox
        messages, outbox.now = outbox.now, []
        return messages

    def ready(self) -> Ready | None:
        """Return what must become durable; None for nothing, or while a Ready is outstanding.

        One that needs no sync is not outstanding: its messages may leave at once.
        """
        outbox = self._outbox
        log = self._log
        if self._outstanding is not None or not (
            log.unwritten <= log.tail.last or outbox.after or self._elections.is_dirty
        ):
            return None
        ready = Ready(
            HardState(self.term, self.vote) if self._elections.is_dirty else None,
            log.unwritten,
            log.take_unwritten(),
            log.commit,
            tuple(outbox.after),
        )
        self._generation = log.generation
        outbox.after = []
        self._elections.is_dirty = False
        if ready.needs_sync:
            self._outstanding = ready
        return ready

    def take_reads(self) -> list[tuple[int, int | None]]:
        """Return answered barriers: (token, index), or (token, None) to be asked again."""
        self._collect()
        outbox = self._outbox
        reads, outbox.reads = outbox.reads, []
        return reads

    def take_wants(self) -> list[Want | WantChunk]:
        """Return what the shell is to supply for peers that are far behind."""
        self._collect()
        outbox = self._outbox
        wants, outbox.wants = outbox.wants, []
        return wants

    def take_chunks(self) -> list[SnapshotChunk]:
        """Return received chunks, to be made durable in order and told to `chunk_written`."""
        outbox = self._outbox
        chunks, outbox.chunks = outbox.chunks, []
        return chunks

    def _collect(self) -> None:
        if self._elections.lead is not None:
            self._elections.lead.collect(self._log.commit)
        elif self._forwarded.may_open:
            self._ask_leader(self._forwarded.open())

    # -- what only a leader does

    def _advance_commit(self, lead: Leadership) -> None:
        log = self._log
        index = lead.committable(log.stable)
        if index > log.commit and index >= lead.noop_index:
            log.commit = index
            if not lead.i_vote and log.memberships.index <= index:
                self._elections.step_down()  # Its own removal is committed.

    # -- read barriers

    def _ask_leader(self, number: int) -> None:
        self._outbox.now.append(BarrierAsk(self.me, self.leader, self.term, number))

    def _on_barrier_ask(self, message: BarrierAsk) -> None:
        asker, number = message.sender, message.number
        if self._elections.lead is not None:
            question = ReadQuestion(asker, number)
            self._elections.lead.answer_follower(question, self._log.commit)
        else:
            self._outbox.now.append(BarrierTell(self.me, asker, self.term, number, 0))

    def _on_barrier_tell(self, message: BarrierTell) -> None:
        tokens = self._forwarded.close(message.number)
        self._outbox.reads.extend((token, message.index or None) for token in tokens)
        self._following.learn_commit(message.index)
