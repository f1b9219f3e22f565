"""Who leads: the term, vote and role of one replica, and the timer that changes them. Pure.

Pre-vote, check-quorum and stickiness belong together. A replica asks before it raises a term, so
one that was cut off disturbs nobody; a leader that hears no quorum steps down; and while a leader
is heard, candidates are not. Source: Raft thesis §3.4, §4.2.3, §9.6.
"""

from __future__ import annotations

from spur.consensus.boxes import CoreSettings, Outbox, Rng, Role
from spur.consensus.following import Following
from spur.consensus.hardstate import HardState
from spur.consensus.leadership import Leadership
from spur.consensus.messages import (
    Append,
    AppendReply,
    Heartbeat,
    Message,
    PreVote,
    PreVoteReply,
    ReplicaId,
    SnapshotChunk,
    TimeoutNow,
    Vote,
    VoteReply,
)
from spur.consensus.reads import ForwardedReads
from spur.consensus.replica_log import ReplicaLog
from spur.consensus.tail import entry_bytes
from spur.events.envelope import Entry, EntryKind
from spur.values.errors import InvariantBroken

__all__ = ["Elections"]

_NOOP = int(EntryKind.NOOP)


class Elections:
    """The role of one replica."""

    def __init__(
        self,
        *,
        me: ReplicaId,
        hard: HardState,
        settings: CoreSettings,
        rng: Rng,
        log: ReplicaLog,
        following: Following,
        forwarded: ForwardedReads,
        outbox: Outbox,
    ) -> None:
        """Start as a follower of nobody."""
        self.term = hard.term
        self.vote: ReplicaId = hard.vote
        self.role = Role.FOLLOWER
        self.leader: ReplicaId = 0
        self.lead: Leadership | None = None
        """What this replica does as a leader; None while it is not."""
        self.may_campaign = True
        self.sync_ticks = 0
        """How long a sync of a disk like this one may take: an election needs two, one after the
        other, and a timeout below that would end it before it is decided."""
        self.is_dirty = False
        """Term or vote must become durable."""
        self._me = me
        self._settings = settings
        self._rng = rng
        self._log = log
        self._following = following
        self._forwarded = forwarded
        self._outbox = outbox
        self._ballot: dict[ReplicaId, bool] = {}
        self._elapsed = 0
        self._timeout = 0
        self._reset_timer()

    # -- time

    def tick(self) -> None:
        """Count one tick: a leader looks for its quorum, the others for a leader."""
        self._elapsed += 1
        if self.lead is not None:
            if self._elapsed >= self._settings.election_ticks:
                self._elapsed = 0
                if not self.lead.has_quorum():
                    self.follow(self.term, 0)
        elif self._elapsed >= self._timeout and not self._awaits_own_vote():
            self.follow(self.term, 0)
            self._campaign_softly()

    def begin(self) -> None:
        """Time the first election by the membership that is known now."""
        self._reset_timer()

    def _reset_timer(self) -> None:
        self._elapsed = 0
        election = max(self._settings.election_ticks, 2 * self.sync_ticks)
        # A single voter has nobody to wait for.
        alone = self._log.memberships.voters == (self._me,)
        self._timeout = 1 if alone else election + self._rng.randrange(election)

    # -- terms

    def follow(self, term: int, leader: ReplicaId) -> None:
        """Follow a leader, or nobody yet, in a term that is not below the present one."""
        if term > self.term:
            self.term = term
            self.vote = 0
            self.is_dirty = True
        if self.lead is not None:
            self.lead.end()
            self.lead = None
        self._outbox.reads.extend((token, None) for token in self._forwarded.void())
        self._following.enter(term)
        self.role = Role.FOLLOWER
        self.leader = leader
        self._ballot = {}
        self._reset_timer()

    def meet_higher_term(self, message: Message) -> bool:
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
        self.follow(message.term, leader)
        return True

    def answer_lower_term(self, message: Message) -> None:
        """Tell the term to a sender that would otherwise go on in its own."""
        after = self._outbox.after
        match message:
            case Append() | Heartbeat() | SnapshotChunk():
                after.append(AppendReply(self._me, message.sender, self.term, 0, 0, refused=True))
            case PreVote():
                after.append(PreVoteReply(self._me, message.sender, self.term, granted=False))
            case Vote():
                after.append(VoteReply(self._me, message.sender, self.term, granted=False))
            case _:
                pass

    def hear_leader(self, sender: ReplicaId) -> None:
        """Follow the sender, which leads the present term.

        Raises: InvariantBroken when another does.
        """
        if self.leader not in (0, sender):
            raise InvariantBroken(
                f"two leaders in term {self.term}: replicas {self.leader} and {sender}"
            )
        if self.leader != sender or self.role is not Role.FOLLOWER:
            self.follow(self.term, sender)
        self._elapsed = 0

    def step_down(self) -> None:
        """Stop leading or campaigning; the term stays."""
        if self.role is not Role.FOLLOWER:
            self.follow(self.term, 0)

    # -- elections

    def _can_campaign(self) -> bool:
        return (
            self.may_campaign
            and self._log.memberships.may_lead(self._me, self._log.commit)
            and not self._following.installing
            and not self._following.lost
        )

    def _campaign_softly(self) -> None:
        """Ask who would vote for this replica, before anyone's term is raised."""
        if not self._can_campaign():
            return
        self.role = Role.PRE_CANDIDATE
        tail = self._log.tail
        for voter in self._log.memberships.voters:
            if voter != self._me:
                self._outbox.now.append(
                    PreVote(self._me, voter, self.term + 1, tail.last, tail.last_term)
                )
        self._count_vote(self._me, granted=True)

    def _awaits_own_vote(self) -> bool:
        # Its candidacy has not even begun: on a disk that is slower than an election, another
        # one would void the vote that is being written, again and again.
        return self.role is Role.CANDIDATE and self._me not in self._ballot

    def _campaign(self, *, transfer: bool) -> None:
        self.follow(self.term + 1, 0)
        self.role = Role.CANDIDATE
        self.vote = self._me
        tail = self._log.tail
        # The others are asked, and the own vote is counted, once that vote is durable.
        for voter in self._log.memberships.voters:
            if voter != self._me:
                self._outbox.after.append(
                    Vote(self._me, voter, self.term, tail.last, tail.last_term, transfer)
                )

    def _count_vote(self, voter: ReplicaId, *, granted: bool) -> None:
        # By voter, so that a vote that comes twice counts once; only of the membership in force.
        self._ballot[voter] = granted
        voters = self._log.memberships.voters
        quorum = len(voters) // 2 + 1
        votes = [self._ballot[voter] for voter in voters if voter in self._ballot]
        if sum(votes) >= quorum:
            if not self._can_campaign():
                self.follow(self.term, 0)
            elif self.role is Role.PRE_CANDIDATE:
                self._campaign(transfer=False)
            else:
                self._take_lead()
        elif len(votes) - sum(votes) >= quorum:
            self.follow(self.term, 0)

    def take_over(self) -> None:
        """Campaign at once, as the leader asks; its followers will hear of it."""
        if self._can_campaign():
            self._campaign(transfer=True)

    def vote_written(self, hard: HardState) -> None:
        """Count the own vote, now that it is durable."""
        if self.role is Role.CANDIDATE and hard == HardState(self.term, self._me):
            self._count_vote(self._me, granted=True)

    def on_reply(self, message: PreVoteReply | VoteReply) -> None:
        """Count a vote, or the promise of one."""
        awaited = Role.CANDIDATE if isinstance(message, VoteReply) else Role.PRE_CANDIDATE
        if self.role is awaited:
            self._count_vote(message.sender, granted=message.granted)

    def on_pre_vote(self, message: PreVote) -> None:
        """Say whether a vote would be given; this promises nothing."""
        granted = message.term > self.term and not self._following.lost and self._is_fresh(message)
        term = message.term if granted else self.term
        self._outbox.now.append(PreVoteReply(self._me, message.sender, term, granted))

    def on_vote(self, message: Vote) -> None:
        """Vote, or refuse to."""
        # A candidate asks those whom its log makes voters, and that log may be ahead of this one:
        # a learner just promoted may not know it yet, and its vote may be the one that is needed.
        free = self.vote == 0 and self.leader == 0
        granted = (
            (free or self.vote == message.sender)
            and not self._following.lost
            and self._is_fresh(message)
        )
        if granted:
            if self.vote != message.sender:
                self.vote = message.sender
                self.is_dirty = True
            self._elapsed = 0
        self._outbox.after.append(VoteReply(self._me, message.sender, self.term, granted))

    def _is_fresh(self, message: Vote | PreVote) -> bool:
        tail = self._log.tail
        return (message.last_term, message.last) >= (tail.last_term, tail.last)

    def _take_lead(self) -> None:
        log = self._log
        self.role = Role.LEADER
        self.leader = self._me
        self._elapsed = 0
        self.lead = Leadership(
            me=self._me,
            term=self.term,
            tail=log.tail,
            settings=self._settings,
            outbox=self._outbox,
            membership=log.memberships.current,
        )
        # Entries of earlier terms commit with this one, and only so.
        log.append(Entry(log.tail.last + 1, self.term, _NOOP, b""), entry_bytes(b"", ()))
        self.lead.beat(log.commit)
