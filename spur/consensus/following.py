"""What a replica does with its leader's log: appends, heartbeats, and snapshots coming in. Pure.

It outlives terms: a snapshot that is complete is installed whoever leads by then.
"""

from __future__ import annotations

from spur.consensus.boxes import Outbox
from spur.consensus.membership import Membership
from spur.consensus.messages import (
    Append,
    AppendReply,
    Heartbeat,
    HeartbeatReply,
    SnapshotChunk,
    SnapshotReply,
)
from spur.consensus.receipt import ChunkVerdict, Receipt
from spur.consensus.replica_log import ReplicaLog
from spur.values.errors import InvariantBroken

__all__ = ["Following"]


class Following:
    """The follower's half of replication."""

    __slots__ = ("_log", "_me", "_outbox", "_receipt", "_verified", "lost", "term")

    def __init__(self, *, me: int, term: int, log: ReplicaLog, outbox: Outbox) -> None:
        self.term = term
        self.lost = False
        """Entries that were acknowledged are not here any more."""
        self._me = me
        self._log = log
        self._outbox = outbox
        self._receipt: Receipt | None = None
        self._verified = log.commit
        """Up to here this log is known to be the present leader's."""

    def enter(self, term: int) -> None:
        """Follow anew, in this term."""
        self._verified = self._log.commit
        self.term = term
        receipt = self._receipt
        if receipt is not None and receipt.term != term and not receipt.complete:
            self._receipt = None

    @property
    def installing(self) -> int:
        """The index of the snapshot that is complete and not yet the state, or 0."""
        receipt = self._receipt
        return receipt.index if receipt is not None and receipt.complete else 0

    # -- appends

    def on_append(self, message: Append) -> None:
        """Take an append of the leader.

        Raises: InvariantBroken when it contradicts what is committed. PeerFault when its entries
        don't follow each other.
        """
        if self.installing:
            return
        log = self._log
        tail = log.tail
        prev = message.prev
        if message.acked > tail.last:
            self.lost = True
        if prev < log.commit:
            log.check_committed(prev, message.prev_term, message.entries)
            self._acknowledge(message, log.commit)
        elif tail.holds(prev, message.prev_term):
            log.accept(prev, message.entries)
            index = prev + len(message.entries)
            self._verified = max(self._verified, index)
            log.commit_to(min(message.commit, index))
            self._acknowledge(message, index)
        else:
            log.check_committed(prev, message.prev_term, ())
            self._refuse(message)

    def _acknowledge(self, message: Append, index: int) -> None:
        if self.lost:
            self._refuse(message)
            return
        reply = AppendReply(self._me, message.sender, self.term, message.prev, index)
        # Acknowledgements are cumulative: of several that leave together, the highest is enough.
        after = self._outbox.after
        if after:
            former = after[-1]
            if (
                type(former) is AppendReply
                and not former.refused
                and former.to == reply.to
                and former.term == reply.term
                and former.index <= index
            ):
                after[-1] = reply
                return
        after.append(reply)

    def _refuse(self, message: Append) -> None:
        log = self._log
        tail = log.tail
        prev = message.prev
        if log.commit < prev <= message.acked:
            self.lost = True
        # The leader's entry there has prev_term, so the logs agree at most where ours is not of a
        # higher term: whole terms are skipped at a time.
        hint = max(log.commit, tail.last_at_most(min(prev, tail.last), message.prev_term))
        self._outbox.after.append(
            AppendReply(
                self._me,
                message.sender,
                self.term,
                prev,
                hint,
                refused=True,
                hint_term=tail.term_at(hint),
                lost=self.lost,
            )
        )

    def on_heartbeat(self, message: Heartbeat) -> None:
        """Take a heartbeat of the leader."""
        log = self._log
        if not self.installing:
            if message.commit > log.tail.last:
                self.lost = True
            else:
                log.commit_to(message.commit)
        self._outbox.now.append(HeartbeatReply(self._me, message.sender, self.term, message.round))

    def learn_commit(self, index: int) -> None:
        """Take the leader's commit index, as far as the logs are known to agree."""
        self._log.commit_to(min(index, self._verified))

    # -- snapshots

    def on_chunk(self, message: SnapshotChunk) -> None:
        """Take a chunk of the leader's snapshot."""
        if self.installing or self.lost:
            return
        log = self._log
        index = message.index
        if index <= log.commit or log.tail.holds(index, message.index_term):
            log.commit_to(index)
            self._receipt = None
            self._answer(message.sender, index, 0, done=True)
            return
        receipt = self._receipt
        if receipt is None or not receipt.fits(message):
            if message.number:
                self._answer(message.sender, index, 0)
                return
            receipt = self._receipt = Receipt(message)
        verdict = receipt.take(message.number)
        if verdict is ChunkVerdict.WRITE:
            self._outbox.chunks.append(message)
        elif verdict is ChunkVerdict.ANSWER:
            self._answer(message.sender, index, receipt.written)

    def _answer(self, to: int, index: int, number: int, *, done: bool = False) -> None:
        self._outbox.after.append(SnapshotReply(self._me, to, self.term, index, number, done))

    def chunk_written(self, peer: int, index: int, number: int) -> None:
        """Take note that a chunk is durable."""
        receipt = self._receipt
        if receipt is not None and receipt.awaits(peer, index, number):
            receipt.written += 1
            if receipt.term == self.term:
                self._answer(peer, index, receipt.written)

    def installed(self, index: int, term: int, membership: Membership) -> None:
        """Take note that the complete snapshot became the state."""
        receipt = self._receipt
        if receipt is None or self.installing != index or receipt.index_term != term:
            raise InvariantBroken(f"snapshot ({index}, term {term}) was not to be installed")
        self._receipt = None
        self._log.restart(index, term, membership)
        self._verified = index
        if receipt.term == self.term:
            self._answer(receipt.sender, index, 0, done=True)

    def install_failed(self, index: int) -> None:
        """Take note that the complete snapshot could not become the state."""
        if self.installing == index:
            self._receipt = None
