"""Several cores whose messages, writes and time move only when a script says so.

For the rare courses of events that random faults hardly ever hit: a test holds every message and
every sync in its hands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from spur.consensus.core import Core, CoreSettings, HardState
from spur.consensus.membership import Member, Membership
from spur.consensus.messages import Message
from spur.events.envelope import Entry, EntryKind
from spur.testing.simulation.core_node import CoreDisk, CoreNode, CoreSnapshot

__all__ = ["CoreScript", "EvenRng", "membership_of", "scripted_core"]

_ROUNDS_MAX = 10_000

M = TypeVar("M", bound=Message)


class EvenRng:
    """Randomness that is none: every election timeout is the shortest."""

    def randrange(self, stop: int, /) -> int:
        """Return 0."""
        return 0 * stop


def membership_of(voters: Sequence[int], learners: Sequence[int] = ()) -> Membership:
    """Return a membership of these replicas, each with a disk and addresses of its own."""
    return Membership(
        tuple(
            Member(number, b"disk-%d" % number, number in voters, f"h{number}:1", f"h{number}:2")
            for number in sorted([*voters, *learners])
        )
    )


def scripted_core(
    me: int = 1,
    *,
    membership: Membership | None = None,
    settings: CoreSettings | None = None,
    hard: HardState | None = None,
    entries: Sequence[Entry] = (),
    commit: int = 0,
) -> Core:
    """Return a core on its own, one of three voters unless told otherwise."""
    return Core(
        me=me,
        settings=settings or CoreSettings(),
        rng=EvenRng(),
        hard=hard or HardState(0, 0),
        membership=membership or membership_of((1, 2, 3)),
        base_index=0,
        base_term=0,
        entries=entries,
        commit=commit,
    )


class CoreScript:
    """A cluster in the hands of a test."""

    def __init__(
        self,
        voters: Sequence[int] = (1, 2, 3),
        *,
        learners: Sequence[int] = (),
        settings: CoreSettings | None = None,
    ) -> None:
        """Start the members; entry 1 of each log is the membership, committed."""
        self.settings = settings or CoreSettings()
        self.wire: list[Message] = []
        """What is under way, oldest first."""
        self.answers: list[tuple[int, int, int | None]] = []
        """Answers to read barriers: (replica, token, index)."""
        self.histories: dict[int, list[Entry]] = {}
        """What each replica took for committed since its start, behind any snapshot."""
        self.cut: set[int] = set()
        """Replicas that no message reaches or leaves."""
        self.nodes: dict[int, CoreNode] = {}
        self.snapshots: dict[tuple[int, bytes], CoreSnapshot] = {}
        genesis = membership_of(voters, learners)
        first = Entry(1, 0, int(EntryKind.MEMBERSHIP), genesis.encode())
        for number in sorted([*voters, *learners]):
            self.join(number, CoreDisk(membership=genesis, entries=[first], commit=1))

    def join(self, number: int, disk: CoreDisk | None = None) -> CoreNode:
        """Start a replica, with an empty disk unless one is given."""
        disk = disk or CoreDisk(membership=Membership(()))
        node = CoreNode(number, disk, self.settings, EvenRng(), self)
        self.nodes[number] = node
        self.restart(number)
        return node

    def core(self, number: int) -> Core:
        """Return the core of a replica."""
        return self.nodes[number].core

    # -- what nodes need around them

    def send(self, message: Message) -> None:
        """Put a message on the wire."""
        self.wire.append(message)

    def write(self, node: CoreNode) -> None:
        """Leave a write to the script."""

    def committed(self, node: CoreNode, entry: Entry) -> None:
        """Note a committed entry."""
        self.histories[node.me].append(entry)

    def restored(self, node: CoreNode, snapshot: CoreSnapshot) -> None:
        """Begin the history anew, behind a snapshot."""
        self.histories[node.me] = []

    def answered(self, node: CoreNode, token: int, index: int | None) -> None:
        """Note the answer to a barrier."""
        self.answers.append((node.me, token, index))

    def snapshot_of(self, index: int, chain: bytes) -> CoreSnapshot:
        """Return a snapshot taken by `snapshot`."""
        return self.snapshots[index, chain]

    # -- what a script does

    def tick(self, number: int, count: int = 1) -> None:
        """Let time pass on one replica."""
        for _ in range(count):
            self.nodes[number].tick()

    def sync(self, number: int) -> None:
        """Let everything that a replica is writing be durable."""
        node = self.nodes[number]
        while node.outstanding is not None or node.chunks:
            node.written()

    def sent(self, kind: type[M], *, to: int = 0, sender: int = 0) -> list[M]:
        """Return the messages of a kind that are under way, and leave them there."""
        return [
            message
            for message in self.wire
            if isinstance(message, kind) and to in (0, message.to) and sender in (0, message.sender)
        ]

    def drop(self, kind: type[Message], *, to: int = 0, sender: int = 0) -> int:
        """Lose the messages of a kind that are under way; return how many."""
        lost = self.sent(kind, to=to, sender=sender)
        self.wire = [message for message in self.wire if message not in lost]
        return len(lost)

    def deliver(self, message: Message) -> None:
        """Bring one message, which may be on the wire or kept from earlier."""
        if message in self.wire:
            self.wire.remove(message)
        if {message.sender, message.to} & self.cut or message.to not in self.nodes:
            return
        node = self.nodes[message.to]
        if node.is_up:
            node.take(message)

    def settle(self, unless: Callable[[Message], bool] = lambda _: False) -> None:
        """Deliver and sync until nothing moves; what `unless` tells of is lost."""
        for _ in range(_ROUNDS_MAX):
            moving, self.wire = self.wire, []
            for message in moving:
                if not unless(message):
                    self.deliver(message)
            for number, node in self.nodes.items():
                if node.is_up:
                    node.pump()
                    self.sync(number)
            if not self.wire:
                return
        raise AssertionError("the cluster does not come to rest")

    def elect(self, number: int) -> Core:
        """Let one replica win an election, in which nobody heard a leader of late."""
        for other in self.nodes:
            if other != number and other not in self.cut and self.nodes[other].is_up:
                self.core(other).step_down()
                self.forget_leader(other)
        self.tick(number, 2 * self.settings.election_ticks)
        self.settle()
        core = self.core(number)
        assert core.is_leader, f"replica {number} is {core.role.name}"
        return core

    def forget_leader(self, number: int) -> None:
        """Let a replica's election timeout pass without letting it campaign."""
        core = self.core(number)
        may, core.may_campaign = core.may_campaign, False
        self.tick(number, 2 * self.settings.election_ticks)
        core.may_campaign = may

    def propose(self, number: int, *bodies: bytes) -> list[Entry]:
        """Propose events at a leader."""
        taken = []
        for body in bodies:
            entry = self.core(number).propose(int(EntryKind.EVENTS), body)
            assert isinstance(entry, Entry), f"{body!r} was refused: {entry}"
            taken.append(entry)
        self.nodes[number].pump()
        return taken

    def beat(self, number: int) -> None:
        """Let a leader's heartbeat reach everyone, so that all know what is committed."""
        self.tick(number, self.settings.heartbeat_ticks)
        self.settle()

    def crash(self, number: int) -> None:
        """Stop a replica; what it had not synced is gone."""
        self.nodes[number].crash()

    def restart(self, number: int) -> None:
        """Start a replica, again or for the first time."""
        node = self.nodes[number]
        self.histories[number] = []
        node.start()
        node.pump()

    def snapshot(self, number: int, chunk_count: int = 3) -> CoreSnapshot:
        """Let a replica take a snapshot, forget the history before it and all of its memory."""
        node = self.nodes[number]
        taken = node.take_snapshot(chunk_count)
        assert taken is not None, "there is nothing to take a snapshot of"
        self.snapshots[taken.index, taken.chain] = taken
        node.trim(0)
        node.forget_history()
        return taken

    def logs(self) -> dict[int, list[tuple[int, int]]]:
        """Return (index, term) of the entries that each running replica has in memory."""
        return {
            number: [
                (entry.index, entry.term)
                for entry in node.core.entries(node.core.first, node.core.last)
            ]
            for number, node in self.nodes.items()
            if node.is_up
        }
