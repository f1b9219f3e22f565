"""Our own core and write-ahead log, on simulated disks, with messages delivered by hand.

The scripts take everything that the transport may do: lose, delay, repeat, reorder.
"""

from __future__ import annotations

import random

from spur.consensus.core import Core, CoreSettings
from spur.consensus.genesis import Genesis
from spur.consensus.membership import Member, Membership
from spur.consensus.messages import Append, Message, PreVote, PreVoteReply, Vote, VoteReply
from spur.consensus.records import WalIdentity
from spur.consensus.wal import Wal
from spur.events.envelope import EntryKind
from spur.testing.disk import SimDisk
from tests.contract.log.situations import Acknowledged

__all__ = ["SpurSituations"]

A, B, C = 1, 2, 3
_NAMES = {A: "A", B: "B", C: "C"}
_CLUSTER = b"situation-cluster"[:16]
_TICKS_MAX = 20
"""An election times out after ten to twenty ticks."""


def _disk_id(number: int) -> bytes:
    return b"disk-%011d" % number


class _Node:
    """One core with its disk; what it must make durable is durable at once."""

    def __init__(self, number: int, genesis: Genesis, membership: Membership) -> None:
        self.number = number
        self.disk = SimDisk()
        self.core: Core
        self._membership = membership
        self._identity = WalIdentity(
            cluster_id=_CLUSTER, incarnation=0, node_id=number, disk_id=_disk_id(number)
        )
        Wal.create(self.disk, self._identity, genesis)
        self.start()

    def start(self) -> None:
        """Start on what the disk holds."""
        self._wal, found = Wal.open(self.disk, self._identity)
        self.core = Core(
            me=self.number,
            settings=CoreSettings(),
            rng=random.Random(self.number),
            hard=found.hard,
            membership=self._membership,
            base_index=found.first - 1,
            base_term=0,
            entries=found.entries,
            commit=found.commit,
        )

    def lose_power(self) -> None:
        """Lose everything that was not synced, and start again."""
        self.disk.crash(random.Random(0))
        self.start()

    def take(self) -> list[Message]:
        """Return what the node sends, having made durable what that rests on."""
        messages = self.core.take_messages()
        while (ready := self.core.ready()) is not None:
            if ready.needs_sync:
                self._wal.write_group(ready.hard, ready.first, ready.entries, ready.commit)
            self.core.persisted(ready)
            messages += [*ready.after, *self.core.take_messages()]
        return messages

    def data(self) -> tuple[str, ...]:
        """Return the committed entries that clients appended."""
        entries = self.core.entries(self.core.first, self.core.commit)
        return tuple(entry.body.decode() for entry in entries if entry.kind == EntryKind.EVENTS)


class _Wire:
    """Three nodes and what is under way between them."""

    def __init__(self) -> None:
        members = tuple(
            Member(number, _disk_id(number), True, f"h{number}:1", f"h{number}:2")
            for number in (A, B, C)
        )
        membership = Membership(members)
        genesis = Genesis(cluster_id=_CLUSTER, membership=membership.encode())
        self.nodes = {number: _Node(number, genesis, membership) for number in (A, B, C)}
        self.under_way: list[Message] = []

    def gather(self) -> None:
        """Put what the nodes have to send on the wire."""
        for node in self.nodes.values():
            self.under_way += node.take()

    def take(self, sender: int, to: int, kind: type[Message]) -> list[Message]:
        """Take messages of one kind and direction off the wire."""
        self.gather()
        taken = [
            message
            for message in self.under_way
            if (message.sender, message.to) == (sender, to) and isinstance(message, kind)
        ]
        self.under_way = [message for message in self.under_way if message not in taken]
        return taken

    def deliver(self, *messages: Message) -> None:
        """Hand messages over, in this order."""
        for message in messages:
            self.nodes[message.to].core.step(message)

    def pass_on(self, *pair: int) -> None:
        """Deliver everything between the named nodes until they are silent; lose the rest."""
        self.gather()
        while self.under_way:
            batch, self.under_way = self.under_way, []
            self.deliver(*(m for m in batch if m.sender in pair and m.to in pair))
            self.gather()

    def campaign(self, candidate: int, voter: int) -> None:
        """Let one node's timer run out, and carry its soft question to one voter and back."""
        for _ in range(_TICKS_MAX):
            self.nodes[candidate].core.tick()
            asked = self.take(candidate, voter, PreVote)
            if asked:
                self.deliver(*asked)
                self.deliver(*self.take(voter, candidate, PreVoteReply))
                return
        raise AssertionError(f"{_NAMES[candidate]} never campaigned")

    def elect(self, candidate: int, voter: int) -> None:
        """Carry a vote request and its answer."""
        self.deliver(*self.take(candidate, voter, Vote))
        self.deliver(*self.take(voter, candidate, VoteReply))


class SpurSituations:
    """Implements `Situations`."""

    def voter_restarted(self) -> dict[int, tuple[str, ...]]:
        wire = _Wire()
        wire.campaign(A, C)
        wire.campaign(B, C)
        wire.elect(A, C)
        wire.nodes[C].lose_power()
        wire.elect(B, C)
        found: dict[int, tuple[str, ...]] = {}
        for number in (A, B):
            core = wire.nodes[number].core
            if core.is_leader:
                found[core.term] = (*found.get(core.term, ()), _NAMES[number])
        return found

    def append_repeated_late(self) -> Acknowledged:
        wire = _Wire()
        wire.campaign(A, B)
        wire.elect(A, B)
        wire.pass_on(A, B)
        leader = wire.nodes[A].core
        late: list[Message] = []
        for number in range(1, 6):
            leader.propose(EntryKind.EVENTS, f"e{number}".encode())
            wire.gather()
            if number == 1:
                late = [m for m in wire.under_way if isinstance(m, Append) and m.to == B]
            wire.pass_on(A, B)
        acknowledged = wire.nodes[A].data()
        wire.deliver(*late)
        wire.gather()
        wire.under_way.clear()
        for _ in range(2 * _TICKS_MAX):
            for number in (B, C):
                wire.nodes[number].core.tick()
            wire.pass_on(B, C)
        kept = wire.nodes[B].data()
        assert kept == wire.nodes[C].data(), "B and C do not agree"
        return Acknowledged(acknowledged=acknowledged, kept=kept)
