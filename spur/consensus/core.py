"""The Raft core: inputs go in, boxes come out; no clock, disk, network or randomness of its own.

    tick()  step(message)  propose(...)  barrier(token)  persisted(ready)  ...
        --> take_messages()   may leave at once, also while a Ready is outstanding
        --> ready()           what must become durable; its `after` messages leave once it is
        --> take_reads()  take_wants()  take_chunks()

The same inputs give the same outputs. Time is a count of ticks. Votes, vote requests and
acknowledgements wait in `after` for the state that they rest on; a leader's appends leave at once
and it counts itself only when its own disk has them. A log is cut only at a proven conflict, and a
conflict at or below the commit index stops the replica.

This file has the roles, terms and elections. What a leader does is in leadership.py, what a
follower does with its leader's log in following.py.
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
from spur.consensus.following import Following
from spur.consensus.hardstate import HardState
from spur.consensus.leadership import Leadership
from spur.consensus.membership import Membership
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
_NOOP = int(EntryKind.NOOP)
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
        self.role = Role.FOLLOWER
        self.term = hard.term
        self.vote = hard.vote
        self.leader: ReplicaId = 0
        self.may_campaign = True
        """Cleared by the shell while this replica must not come to lead (its clock is off)."""
        self._settings = settings
        self._rng = rng
        self._outbox = Outbox()
        self._log = ReplicaLog(base_index, base_term, membership, entries, commit)
        self._following = Following(me=me, term=hard.term, log=self._log, outbox=self._outbox)
        self._lead: Leadership | None = None
        self._ballot: dict[ReplicaId, bool] = {}
        self._forwarded = ForwardedReads(rng.randrange(1 << _NUMBER_BITS))
        self._hard_dirty = False
        self._outstanding: Ready | None = None
        self._generation = 0
        self._elapsed = 0
        self._timeout = 0
        self._reset_timer()

    # -- what it is

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
    def is_leader(self) -> bool:
        """This replica leads."""
        return self._lead is not None

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
        return self._lead is not None and self._log.commit >= self._lead.noop_index

    @property
    def transferring_to(self) -> ReplicaId:
        """Whom the lead is being handed to, 0 for nobody."""
        return self._lead.transfer_to if self._lead is not None else 0

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
        return self._lead.lost_peers() if self._lead is not None else ()

    @property
    def installing(self) -> int:
        """The index of the snapshot that is wholly received and not yet the state, or 0."""
        return self._following.installing

    def match(self, peer: ReplicaId) -> int:
        """Return up to where a replica is known to be durable; of peers only a leader knows."""
        if peer == self.me:
            return self._log.stable
        return self._lead.match(peer) if self._lead is not None else 0

    def entry(self, index: int) -> Entry:
        """Return an entry held in memory."""
        return self._log.tail.entry(index)

    def entries(self, first: int, last: int) -> list[Entry]:
        """Return entries held in memory, both ends included."""
        return self._log.tail.slice(first, last)

    # -- inputs

    def tick(self) -> None:
        """Let one tick pass."""
        self._elapsed += 1
        lead = self._lead
        if lead is not None:
            if self._elapsed >= self._settings.election_ticks:
                self._elapsed = 0
                if not lead.has_quorum():
                    self._follow(self.term, 0)
                    return
            lead.tick(self._log.commit)
        elif self._elapsed >= self._timeout and not self._awaits_own_vote():
            self._follow(self.term, 0)
            self._campaign_softly()
        elif self._forwarded.has_waited(self._settings.resend_ticks):
            self._ask_leader(self._forwarded.number)

    def propose(self, kind: int, body: bytes, blobs: tuple[bytes, ...] = ()) -> Entry | Refusal:
        """Append an entry to the leader's log and return it, or the reason why it was not."""
        lead = self._lead
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
        if self._lead is not None:
            self._advance_commit(self._lead)
        elif self.role is Role.CANDIDATE and ready.hard == HardState(self.term, self.me):
            self._count_vote(self.me, granted=True)

    def step(self, message: Message) -> None:
        """Take a message of a peer.

        Raises: PeerFault for what no correct peer sends. InvariantBroken when this replica's log
        and the cluster's contradict each other.
        """
        if message.to != self.me:
            raise PeerFault(f"a message to replica {message.to} came to replica {self.me}")
        if message.term > self.term:
            if not self._meet_higher_term(message):
                return
        elif message.term < self.term:
            self._answer_lower_term(message)
            return
        lead = self._lead
        match message:
            case AppendReply():
                if lead is not None and lead.on_append_reply(message):
                    self._advance_commit(lead)
            case Append():
                self._hear_leader(message.sender)
                self._following.on_append(message)
            case Heartbeat():
                self._hear_leader(message.sender)
                self._following.on_heartbeat(message)
            case HeartbeatReply():
                if lead is not None:
                    lead.on_heartbeat_reply(message)
            case SnapshotChunk():
                self._hear_leader(message.sender)
                self._following.on_chunk(message)
            case SnapshotReply():
                if lead is not None and lead.on_snapshot_reply(message):
                    self._advance_commit(lead)
            case BarrierAsk():
                self._on_barrier_ask(message)
            case BarrierTell():
                self._on_barrier_tell(message)
            case PreVote():
                self._on_pre_vote(message)
            case PreVoteReply():
                if self.role is Role.PRE_CANDIDATE:
                    self._count_vote(message.sender, granted=message.granted)
            case Vote():
                self._on_vote(message)
            case VoteReply():
                if self.role is Role.CANDIDATE:
                    self._count_vote(message.sender, granted=message.granted)
            case TimeoutNow():
                self._hear_leader(message.sender)
                if self._can_campaign():
                    self._campaign(transfer=True)
            case _:
                assert_never(message)

    def barrier(self, token: int) -> bool:
        """Ask for the index that a linearizable read must have seen; False without a leader.

        The answer comes through `take_reads`. A leader answers once a quorum has confirmed, after
        the question, that it leads, and its no-op is committed. A follower asks its leader.
        """
        if self._lead is not None:
            self._lead.reads.ask(ReadQuestion(0, token))
        elif self.leader:
            self._forwarded.ask(token)
        else:
            return False
        return True

    def transfer(self, to: ReplicaId) -> bool:
        """Begin to hand the lead to a voter; False when that can't be.

        Proposals are refused as busy until the lead has moved or an election timeout has passed.
        """
        return self._lead is not None and self._lead.transfer(to)

    def step_down(self) -> None:
        """Stop leading or campaigning; the term stays."""
        if self.role is not Role.FOLLOWER:
            self._follow(self.term, 0)

    def supply(self, peer: ReplicaId, entries: Sequence[Entry]) -> None:
        """Answer a `Want`: entries from its index on, as many as are at hand."""
        if self._lead is not None:
            self._lead.supply(peer, entries, self._log.commit)

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
        if self._lead is not None:
            self._lead.supply_snapshot(
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
            log.unwritten <= log.tail.last or outbox.after or self._hard_dirty
        ):
            return None
        ready = Ready(
            HardState(self.term, self.vote) if self._hard_dirty else None,
            log.unwritten,
            log.take_unwritten(),
            log.commit,
            tuple(outbox.after),
        )
        self._generation = log.generation
        outbox.after = []
        self._hard_dirty = False
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
        if self._lead is not None:
            self._lead.collect(self._log.commit)
        elif self._forwarded.may_open:
            self._ask_leader(self._forwarded.open())

    # -- roles and terms

    def _reset_timer(self) -> None:
        self._elapsed = 0
        election = self._settings.election_ticks
        # A single voter has nobody to wait for.
        alone = self._log.memberships.voters == (self.me,)
        self._timeout = 1 if alone else election + self._rng.randrange(election)

    def _follow(self, term: int, leader: ReplicaId) -> None:
        if term > self.term:
            self.term = term
            self.vote = 0
            self._hard_dirty = True
        if self._lead is not None:
            self._lead.end()
            self._lead = None
        self._outbox.reads.extend((token, None) for token in self._forwarded.void())
        self._following.enter(term)
        self.role = Role.FOLLOWER
        self.leader = leader
        self._ballot = {}
        self._reset_timer()

    def _meet_higher_term(self, message: Message) -> bool:
        """Follow a higher term; False when the message is not to be heard at all."""
        leader = 0
        match message:
            case PreVote() | Vote():
                handed_over = isinstance(message, Vote) and message.transfer
                hears_one = self.leader != 0 and self._elapsed < self._settings.election_ticks
                if hears_one and not handed_over:
                    return False
                if isinstance(message, PreVote):
                    return True  # Nobody is in the term that it asks about.
            case PreVoteReply() if message.granted:
                return message.term == self.term + 1
            case Append() | Heartbeat() | SnapshotChunk() | TimeoutNow():
                leader = message.sender
            case _:
                pass
        self._follow(message.term, leader)
        return True

    def _answer_lower_term(self, message: Message) -> None:
        """Tell the term to a sender that would otherwise go on in its own."""
        after = self._outbox.after
        match message:
            case Append() | Heartbeat() | SnapshotChunk():
                after.append(AppendReply(self.me, message.sender, self.term, 0, 0, refused=True))
            case PreVote():
                after.append(PreVoteReply(self.me, message.sender, self.term, granted=False))
            case Vote():
                after.append(VoteReply(self.me, message.sender, self.term, granted=False))
            case _:
                pass

    def _hear_leader(self, sender: ReplicaId) -> None:
        if self.leader not in (0, sender):
            raise InvariantBroken(
                f"two leaders in term {self.term}: replicas {self.leader} and {sender}"
            )
        if self.leader != sender or self.role is not Role.FOLLOWER:
            self._follow(self.term, sender)
        self._elapsed = 0

    # -- elections

    def _can_campaign(self) -> bool:
        return (
            self.may_campaign
            and self._log.memberships.may_lead(self.me, self._log.commit)
            and not self.installing
            and not self.lost
        )

    def _campaign_softly(self) -> None:
        """Ask who would vote for this replica, before anyone's term is raised."""
        if not self._can_campaign():
            return
        self.role = Role.PRE_CANDIDATE
        tail = self._log.tail
        for voter in self._log.memberships.voters:
            if voter != self.me:
                self._outbox.now.append(
                    PreVote(self.me, voter, self.term + 1, tail.last, tail.last_term)
                )
        self._count_vote(self.me, granted=True)

    def _awaits_own_vote(self) -> bool:
        # Its candidacy has not even begun: on a disk that is slower than an election, another
        # one would void the vote that is being written, again and again.
        return self.role is Role.CANDIDATE and self.me not in self._ballot

    def _campaign(self, *, transfer: bool) -> None:
        self._follow(self.term + 1, 0)
        self.role = Role.CANDIDATE
        self.vote = self.me
        tail = self._log.tail
        # The others are asked, and the own vote is counted, once that vote is durable.
        for voter in self._log.memberships.voters:
            if voter != self.me:
                self._outbox.after.append(
                    Vote(self.me, voter, self.term, tail.last, tail.last_term, transfer)
                )

    def _count_vote(self, voter: ReplicaId, *, granted: bool) -> None:
        # By voter, so that a vote that comes twice counts once; only of the membership in force.
        self._ballot[voter] = granted
        voters = self._log.memberships.voters
        quorum = len(voters) // 2 + 1
        votes = [self._ballot[voter] for voter in voters if voter in self._ballot]
        if sum(votes) >= quorum:
            if not self._can_campaign():
                self._follow(self.term, 0)
            elif self.role is Role.PRE_CANDIDATE:
                self._campaign(transfer=False)
            else:
                self._take_lead()
        elif len(votes) - sum(votes) >= quorum:
            self._follow(self.term, 0)

    def _on_pre_vote(self, message: PreVote) -> None:
        granted = message.term > self.term and not self.lost and self._is_fresh(message)
        term = message.term if granted else self.term
        self._outbox.now.append(PreVoteReply(self.me, message.sender, term, granted))

    def _on_vote(self, message: Vote) -> None:
        # A candidate asks those whom its log makes voters, and that log may be ahead of this one:
        # a learner just promoted may not know it yet, and its vote may be the one that is needed.
        free = self.vote == 0 and self.leader == 0
        granted = (
            (free or self.vote == message.sender) and not self.lost and self._is_fresh(message)
        )
        if granted:
            if self.vote != message.sender:
                self.vote = message.sender
                self._hard_dirty = True
            self._elapsed = 0
        self._outbox.after.append(VoteReply(self.me, message.sender, self.term, granted))

    def _is_fresh(self, message: Vote | PreVote) -> bool:
        tail = self._log.tail
        return (message.last_term, message.last) >= (tail.last_term, tail.last)

    def _take_lead(self) -> None:
        log = self._log
        self.role = Role.LEADER
        self.leader = self.me
        self._elapsed = 0
        self._lead = Leadership(
            me=self.me,
            term=self.term,
            tail=log.tail,
            settings=self._settings,
            outbox=self._outbox,
            membership=self.members,
        )
        # Entries of earlier terms commit with this one, and only so.
        log.append(Entry(log.tail.last + 1, self.term, _NOOP, b""), entry_bytes(b"", ()))
        self._lead.beat(log.commit)

    # -- what only a leader does

    def _advance_commit(self, lead: Leadership) -> None:
        log = self._log
        index = lead.committable(log.stable)
        if index > log.commit and index >= lead.noop_index:
            log.commit = index
            if not lead.i_vote and log.memberships.index <= index:
                self._follow(self.term, 0)  # Its own removal is committed.

    # -- read barriers

    def _ask_leader(self, number: int) -> None:
        self._outbox.now.append(BarrierAsk(self.me, self.leader, self.term, number))

    def _on_barrier_ask(self, message: BarrierAsk) -> None:
        asker, number = message.sender, message.number
        if self._lead is not None:
            self._lead.reads.ask(ReadQuestion(asker, number))
        else:
            self._outbox.now.append(BarrierTell(self.me, asker, self.term, number, 0))

    def _on_barrier_tell(self, message: BarrierTell) -> None:
        tokens = self._forwarded.close(message.number)
        self._outbox.reads.extend((token, message.index or None) for token in tokens)
        self._following.learn_commit(message.index)
