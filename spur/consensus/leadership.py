"""What a replica knows and does while it leads one term; all of it dies with the lead.

Appends are made when the shell takes messages, not when entries are proposed: whatever was
proposed in between travels together. Commitment counts what followers acknowledged as durable,
and the leader's own disk like any other; only entries of the leader's own term are counted
(Raft §5.4.2), those before them commit with them.

Losses show as silence. What was not answered for `resend_ticks` is asked again by an empty append
behind all that was sent: its acknowledgement is one of everything, its refusal tells where to go
on, and nothing is sent twice to a peer whose disk is merely slow. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from spur.consensus.boxes import CoreSettings, Outbox, Want, WantChunk
from spur.consensus.membership import Membership
from spur.consensus.messages import (
    Append,
    AppendReply,
    BarrierTell,
    Heartbeat,
    HeartbeatReply,
    SnapshotChunk,
    SnapshotReply,
    TimeoutNow,
)
from spur.consensus.progress import Progress, ProgressState
from spur.consensus.reads import ReadQuestion, ReadRounds
from spur.consensus.tail import Tail, entry_bytes
from spur.events.envelope import Entry
from spur.values.errors import PeerFault

__all__ = ["Leadership"]

_PROBE = ProgressState.PROBE
_REPLICATE = ProgressState.REPLICATE
_SNAPSHOT = ProgressState.SNAPSHOT
_LOST = ProgressState.LOST


class Leadership:
    """The lead of one term."""

    def __init__(
        self,
        *,
        me: int,
        term: int,
        tail: Tail,
        settings: CoreSettings,
        outbox: Outbox,
        membership: Membership,
    ) -> None:
        """Take the lead; the no-op of this term is to be the next entry."""
        self.me = me
        self.term = term
        self.noop_index = tail.last + 1
        self.transfer_to = 0
        """Whom the lead is being handed to; proposals rest meanwhile."""
        self._transfer_elapsed = 0
        self.reads = ReadRounds()
        self._tail = tail
        self._settings = settings
        self._outbox = outbox
        self._heartbeat_elapsed = 0
        self._peers: dict[int, Progress] = {}
        self._voting: list[Progress] = []
        self._i_vote = False
        self._quorum = 1
        self.set_members(membership, self.noop_index)

    # -- membership

    def set_members(self, membership: Membership, following: int) -> None:
        """Serve these members from now on; new ones are probed from `following` on."""
        former = self._peers
        self._peers = {
            peer: former.get(peer) or Progress(peer, following)
            for peer in membership.peers_of(self.me)
        }
        voters = membership.voters()
        self._voting = [self._peers[voter] for voter in voters if voter != self.me]
        self._i_vote = self.me in voters
        self._quorum = len(voters) // 2 + 1
        if self.transfer_to not in voters:
            self.transfer_to = 0

    @property
    def i_vote(self) -> bool:
        """This replica is a voter of the present membership."""
        return self._i_vote

    def match(self, peer: int) -> int:
        """Return up to where a peer is known to be durable, 0 for a stranger."""
        progress = self._peers.get(peer)
        return progress.match if progress is not None else 0

    def lost_peers(self) -> tuple[int, ...]:
        """Return the peers that lost what they had acknowledged."""
        return tuple(peer for peer, p in self._peers.items() if p.state is _LOST)

    # -- counting

    def committable(self, stable: int) -> int:
        """Return the highest index that a quorum holds, given what is durable here."""
        matches = [progress.match for progress in self._voting]
        if self._i_vote:
            matches.append(stable)
        matches.sort()
        return matches[-self._quorum] if len(matches) >= self._quorum else 0

    def has_quorum(self) -> bool:
        """Tell whether a quorum was heard since the last call."""
        count = int(self._i_vote) + sum(progress.active for progress in self._voting)
        for progress in self._peers.values():
            progress.active = False
        return count >= self._quorum

    # -- sending

    def collect(self, commit: int) -> None:
        """Put into the outbox what the windows allow: appends, wants, a round of barriers."""
        last = self._tail.last
        for progress in self._peers.values():
            if progress.next <= last:
                self._fill(progress, commit)
            if progress.chunk_due:
                progress.chunk_due = False
                want = WantChunk(progress.id, progress.snapshot_index, progress.chunk)
                self._outbox.wants.append(want)
        if self.reads.may_open and commit >= self.noop_index:
            self.reads.open(commit)
            self.beat(commit)
            self._close_round()

    def _fill(self, progress: Progress, commit: int) -> None:
        tail = self._tail
        settings = self._settings
        while progress.next <= tail.last and progress.may_append(
            settings.inflight_count_max, settings.inflight_bytes_max
        ):
            first = progress.next
            prev = first - 1
            if prev < tail.base:
                # Where the term at prev is not known, prev is asked for as well.
                progress.wanted = first if progress.knows_term_at(prev) else prev
                progress.waited_ticks = 0
                self._outbox.wants.append(Want(progress.id, progress.wanted))
                return
            last = tail.fit(first, settings.append_bytes_max)
            entries = tuple(tail.slice(first, last))
            self._append(progress, prev, tail.term_at(prev), entries, commit)
            progress.sent(last, tail.bytes_between(prev, last))

    def _append(
        self,
        progress: Progress,
        prev: int,
        prev_term: int,
        entries: tuple[Entry, ...],
        commit: int,
    ) -> None:
        self._outbox.now.append(
            Append(
                self.me, progress.id, self.term, prev, prev_term, commit, progress.match, entries
            )
        )

    def supply(self, peer: int, entries: Sequence[Entry], commit: int) -> None:
        """Send entries older than memory; an answer to a want that is no longer due is ignored."""
        progress = self._peers.get(peer)
        if progress is None or not entries or entries[0].index != progress.wanted:
            return
        progress.wanted = 0
        prev = progress.next - 1
        if entries[0].index == prev:
            progress.note_term(entries[0])
            entries = entries[1:]
        # A late acknowledgement may have moved the follower on; it is then asked for anew.
        if not entries or entries[0].index != progress.next or not progress.knows_term_at(prev):
            return
        chosen: list[Entry] = []
        size = 0
        for entry in entries:
            weight = entry_bytes(entry.body, entry.blobs)
            if chosen and size + weight > self._settings.append_bytes_max:
                break
            chosen.append(entry)
            size += weight
        prev_term = progress.known_term if prev else 0
        self._append(progress, prev, prev_term, tuple(chosen), commit)
        progress.sent(chosen[-1].index, size)
        progress.note_term(chosen[-1])

    def beat(self, commit: int) -> None:
        """Put a heartbeat to every member into the outbox."""
        self._heartbeat_elapsed = 0
        now = self._outbox.now
        number = self.reads.round
        for peer, progress in self._peers.items():
            known = min(progress.match, commit)
            now.append(Heartbeat(self.me, peer, self.term, known, number))

    def tick(self, commit: int) -> None:
        """Count one tick: heartbeats, and what was not answered for too long."""
        if self.transfer_to:
            self._transfer_elapsed += 1
            if self._transfer_elapsed >= self._settings.election_ticks:
                self.transfer_to = 0
        self._heartbeat_elapsed += 1
        if self._heartbeat_elapsed >= self._settings.heartbeat_ticks:
            self.beat(commit)
            self._hand_over()
        self._close_round()  # The membership may have come to need fewer.
        for progress in self._peers.values():
            if progress.has_waited(self._settings.resend_ticks):
                self._ask_again(progress, commit)

    def _ask_again(self, progress: Progress, commit: int) -> None:
        progress.waited_ticks = 0
        if progress.state is _SNAPSHOT:
            if progress.chunk < progress.chunk_count:
                progress.chunk_due = True
            else:
                # All chunks are there: it is installing them, or its answer was lost.
                index, term = progress.snapshot_index, progress.snapshot_term
                self._append(progress, index, term, (), commit)
            return
        if progress.wanted:
            progress.wanted = 0
            return
        prev = progress.next - 1
        if prev >= self._tail.base:
            self._append(progress, prev, self._tail.term_at(prev), (), commit)
        elif progress.knows_term_at(prev):
            self._append(progress, prev, progress.known_term if prev else 0, (), commit)
        else:
            # What it lacks has left memory meanwhile: the shell is asked for it.
            progress.probe(progress.next if progress.state is _PROBE else progress.match + 1)

    # -- answers

    def on_append_reply(self, reply: AppendReply) -> bool:
        """Take an answer to an append; tell whether the commit index may move.

        Raises: PeerFault when a peer acknowledges what does not exist.
        """
        progress = self._peers.get(reply.sender)
        if progress is None or progress.state is _LOST:
            return False
        progress.active = True
        if reply.refused:
            self._on_refusal(progress, reply)
            return False
        self._acknowledged(progress, reply.index)
        return True

    def _acknowledged(self, progress: Progress, index: int) -> None:
        if index > self._tail.last:
            raise PeerFault(
                f"replica {progress.id} acknowledged entry {index} in term {self.term}, "
                f"whose leader's last is {self._tail.last}; the answer was not taken"
            )
        progress.acknowledged(index)
        if self.transfer_to == progress.id:
            self._hand_over()

    def _on_refusal(self, progress: Progress, reply: AppendReply) -> None:
        if reply.lost:
            progress.lose()
            if self.transfer_to == progress.id:
                self.transfer_to = 0
        elif progress.state is _SNAPSHOT:
            if progress.chunk >= progress.chunk_count and reply.prev == progress.snapshot_index:
                progress.chunk = 0
                progress.chunk_due = True
        elif reply.prev > progress.match and (
            progress.state is _REPLICATE or reply.prev == progress.next - 1
        ):
            # The follower's entries up to the hint have at most the hint's term, so the logs can
            # agree at most where ours has no higher one: whole terms are skipped at a time.
            agreed = self._tail.last_at_most(reply.index, reply.hint_term)
            progress.probe(max(progress.match, min(agreed, reply.prev - 1)) + 1)

    def on_heartbeat_reply(self, reply: HeartbeatReply) -> None:
        """Take an answer to a heartbeat; it may confirm a round of read barriers."""
        progress = self._peers.get(reply.sender)
        if progress is None or progress.state is _LOST:
            return
        progress.active = True
        progress.round = max(progress.round, reply.round)
        self._close_round()

    # -- snapshots

    def supply_snapshot(
        self, peer: int, index: int, index_term: int, number: int, count: int, data: bytes
    ) -> None:
        """Send a chunk of a snapshot; one that is not the next to be sent is ignored."""
        progress = self._peers.get(peer)
        if progress is None:
            return
        if progress.state is _SNAPSHOT and progress.snapshot_index == index:
            if number != progress.chunk:
                return
        elif number == 0 and (progress.wanted or progress.state is _SNAPSHOT):
            progress.begin_snapshot(index, index_term, count)
        else:
            return
        progress.chunk_due = False
        progress.waited_ticks = 0
        self._outbox.now.append(
            SnapshotChunk(self.me, peer, self.term, index, index_term, number, count, data)
        )

    def on_snapshot_reply(self, reply: SnapshotReply) -> bool:
        """Take an answer to a chunk; tell whether the commit index may move."""
        progress = self._peers.get(reply.sender)
        if progress is None or progress.state is _LOST:
            return False
        progress.active = True
        if reply.done:
            self._acknowledged(progress, reply.index)
            return True
        if (
            progress.state is _SNAPSHOT
            and reply.index == progress.snapshot_index
            and (reply.next == 0 or progress.chunk < reply.next <= progress.chunk_count)
        ):
            progress.chunk = reply.next
            progress.chunk_due = reply.next < progress.chunk_count
            progress.waited_ticks = 0
        return False

    # -- handing the lead over

    def transfer(self, to: int) -> bool:
        """Begin to hand the lead to a voter; False when it can't be handed to that replica."""
        if to == self.me or not any(
            progress.id == to and progress.state is not _LOST for progress in self._voting
        ):
            return False
        self.transfer_to = to
        self._transfer_elapsed = 0
        self._hand_over()
        return True

    def _hand_over(self) -> None:
        # Said again with each heartbeat until the term rises: it may have been lost.
        to = self.transfer_to
        if to and self._peers[to].match == self._tail.last:
            self._outbox.now.append(TimeoutNow(self.me, to, self.term))

    # -- reads

    def answer_follower(self, question: ReadQuestion, commit: int) -> None:
        """Answer a follower's question, at once where its asking is confirmation enough.

        When it asked it followed this term, so it had not yet let another lead: for its own
        question that is worth what its answer to a heartbeat would be. With three voters that
        makes a quorum, and no round is needed.
        """
        asker = self._peers.get(question.asker)
        confirms = asker in self._voting and asker.state is not _LOST
        if commit >= self.noop_index and int(self._i_vote) + int(confirms) >= self._quorum:
            self._tell(question, commit)
        else:
            self.reads.ask(question)

    def _close_round(self) -> None:
        reads = self.reads
        if not reads.is_open:
            return
        count = int(self._i_vote) + sum(p.round >= reads.round for p in self._voting)
        if count >= self._quorum:
            for question in reads.close():
                self._tell(question, reads.index)

    def _tell(self, question: ReadQuestion, index: int) -> None:
        asker, token = question
        if asker:
            self._outbox.now.append(BarrierTell(self.me, asker, self.term, token, index))
        else:
            self._outbox.reads.append((token, index or None))

    def end(self) -> None:
        """Answer every open question with: not led here any more."""
        for question in self.reads.void():
            self._tell(question, 0)
