"""A deterministic simulation of several cores: one seed is one run, and every step is checked.

Faults: messages lost, repeated, delayed, reordered; full, one-way and pair-wise cuts; crashes that
lose what was not synced, also right after a vote, an append or an acknowledgement; slow disks;
tiny batches and windows; clocks that jump, so that several campaign at once; new leaders that are
given work and cut off at once; logs trimmed, histories forgotten, snapshots; leads handed over,
clocks judged unfit; members added, promoted, removed and replaced; changes of members that no core
may take. Each run draws which of these it has, so that some do one thing over and over (swarm
testing).

Checked at every step: one leader and one vote a term; a durable term never falls; what is committed
never changes and is on every later leader; a read barrier is never behind what was committed when
it was asked. Checked at the end, when all is healed: every member has the same history, and a last
proposal and a last read are answered.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from spur.consensus.core import CoreSettings, HardState, Role
from spur.consensus.membership import Member, Membership, member_id_at
from spur.consensus.messages import Append, AppendReply, Message, SnapshotChunk, VoteReply
from spur.consensus.port import Refusal
from spur.events.envelope import Entry, EntryKind
from spur.testing.simulation.core_node import CoreDisk, CoreNode, CoreSnapshot, chain_after

__all__ = ["STORM", "CoreSimulation", "SimulationFailed", "Weather", "draw_weather"]

_EVENTS = int(EntryKind.EVENTS)
_MEMBERSHIP = int(EntryKind.MEMBERSHIP)

CALM_TICKS_MAX = 3000.0
"""So long after it was healed a cluster must have converged; nearly all need a tenth of it."""

LAST_BODY = b"last"
LAST_TOKEN = 1 << 40

MEMBERS_MAX = 7
"""A run adds no more members than this, the removed ones included."""


_STROKES = (
    "crash_one",
    "crash_some",
    "cut_sides",
    "cut_pair",
    "mend",
    "housekeeping",
    "politics",
    "jump_clocks",
    "change_members",
)


class SimulationFailed(AssertionError):
    """A run broke what must always hold."""


@dataclass(frozen=True, kw_only=True)
class Weather:
    """How hard one run is; drawn from its seed."""

    replicas: int
    loss: float
    repeats: float
    delay_ticks: float
    sync_ticks: float
    pace_ticks: float
    """Between two strokes of fate."""
    spite: float
    """How likely a crash is right after a vote; appends and acknowledgements scaled down."""
    haste: float
    """How likely a new leader is given work at once, and then, half as likely, cut off."""
    away_ticks: float
    """How long a crashed replica stays away."""
    strokes: tuple[str, ...]
    """What fate does in this run."""
    settings: CoreSettings


STORM = Weather(
    replicas=3,
    loss=0.01,
    repeats=0.05,
    delay_ticks=8.0,
    sync_ticks=1.0,
    pace_ticks=3.0,
    spite=0.2,
    haste=1.0,
    away_ticks=5.0,
    strokes=("mend", "cut_pair", "cut_sides", "jump_clocks", "crash_one"),
    settings=CoreSettings(append_bytes_max=1, inflight_count_max=1),
)
"""One election after the other, with tiny batches: what forgets a vote, or counts an entry of an
earlier term, is found here ten times as soon as in mixed weather."""


def draw_weather(rng: random.Random) -> Weather:
    """Return the weather of one run: one in six is a storm, half of the rest has tiny batches."""
    if rng.random() < 1 / 6:
        return replace(STORM, replicas=rng.choice((3, 5)), away_ticks=rng.choice((1.0, 20.0)))
    tiny = rng.random() < 0.5
    return Weather(
        replicas=rng.choice((1, 2, 3, 3, 3, 5)),
        loss=rng.choice((0.0, 0.01, 0.1)),
        repeats=rng.choice((0.0, 0.05, 0.2)),
        delay_ticks=rng.choice((0.3, 2.0, 8.0)),
        sync_ticks=rng.choice((0.1, 1.0, 5.0)),
        pace_ticks=rng.choice((6.0, 20.0, 80.0)),
        spite=rng.choice((0.0, 0.02, 0.2)),
        haste=rng.choice((0.0, 0.5, 1.0)),
        away_ticks=rng.choice((1.0, 20.0, 60.0)),
        strokes=tuple(stroke for stroke in _STROKES if rng.random() < 0.5) or _STROKES,
        settings=CoreSettings(
            append_bytes_max=1 if tiny else 400,
            inflight_count_max=rng.choice((1, 3, 64)),
            inflight_bytes_max=rng.choice((1, 600, 512 * 1024)),
            uncommitted_bytes_max=rng.choice((500, 64 << 20)),
        ),
    )


class CoreSimulation:
    """One run."""

    def __init__(
        self,
        seed: int,
        *,
        weather: Weather | None = None,
        ticks: float = 600.0,
        node_type: type[CoreNode] = CoreNode,
    ) -> None:
        """Prepare the run of a seed, in the weather that the seed draws unless it is given."""
        self.rng = random.Random(seed)
        drawn = draw_weather(self.rng)
        self.weather = weather or drawn
        self.ticks = ticks
        self.time = 0.0
        self.steps = 0
        self.elections = 0
        self.installs = 0
        self.changes = 0
        self.reads = 0
        self.nodes: dict[int, CoreNode] = {}
        self.committed_entries: list[Entry] = []
        """What is committed: entry i + 1 at i, as the first replica that said so had it."""
        self._node_type = node_type
        self._commit_terms: list[int] = []
        """The terms in which those were found to be committed, or later ones."""
        self._chains = [b""]
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._queued = 0
        self._cut: set[tuple[int, int]] = set()
        self._leaders: dict[int, int] = {}
        self._votes: dict[tuple[int, int], int] = {}
        self._hard: dict[int, HardState] = {}
        self._snapshots: dict[tuple[int, bytes], CoreSnapshot] = {}
        self._asked: dict[tuple[int, int], int] = {}
        self._proposed = 0
        self._tokens = 0
        self._calm = False
        self._is_over = False
        self._last_reads: set[int] = set()
        genesis = Membership(
            tuple(_member(number, voter=True) for number in range(1, self.weather.replicas + 1))
        )
        first = Entry(1, 0, _MEMBERSHIP, genesis.encode())
        for number in genesis.voters():
            disk = CoreDisk(membership=genesis, entries=[first], commit=1)
            self._add_node(number, disk)

    # -- time

    def after(self, ticks: float, happen: Callable[[], None]) -> None:
        """Let something happen later."""
        self._queued += 1
        heapq.heappush(self._queue, (self.time + ticks, self._queued, happen))

    def run(self) -> None:
        """Run to the end.

        Raises: SimulationFailed, or whatever the cores raise.
        """
        rng = self.rng
        self.after(5.0 * rng.random(), self._work)
        self.after(self.weather.pace_ticks * rng.random(), self._strike)
        self.after(self.ticks, self._heal)
        while self._queue and not self._is_over:
            self.time, _, happen = heapq.heappop(self._queue)
            self.steps += 1
            happen()

    # -- what nodes need around them

    def send(self, message: Message) -> None:
        """Carry a message as the weather has it."""
        rng, weather = self.rng, self.weather
        sender, to = message.sender, message.to
        if isinstance(message, VoteReply) and message.granted:
            first = self._votes.setdefault((sender, message.term), to)
            self._require(
                first == to,
                f"replica {sender} votes for {first} and {to} in term {message.term}",
            )
        if not self._calm:
            self._spite(message)
        if (sender, to) in self._cut or to not in self.nodes or rng.random() < weather.loss:
            return
        for _ in range(2 if rng.random() < weather.repeats else 1):
            delay = 0.05 + rng.random() ** 3 * weather.delay_ticks
            self.after(delay, lambda: self._arrive(message))

    def _arrive(self, message: Message) -> None:
        node = self.nodes[message.to]
        if node.is_up:
            node.take(message)
            self._look(node)

    def _spite(self, message: Message) -> None:
        """Crash the sender exactly where it hurts."""
        spite = self.weather.spite
        if not spite or self.rng.random() >= spite:
            return
        hurts = 0.0
        match message:
            case VoteReply(granted=True):
                hurts = 1.0
            case Append() if message.entries:
                hurts = 0.2
            case AppendReply() | SnapshotChunk():
                hurts = 0.1
            case _:
                return
        if self.rng.random() < hurts:
            node = self.nodes[message.sender]
            self.after(self.rng.choice((0.0, 2.0 * self.rng.random())), lambda: self._crash(node))

    def committed(self, node: CoreNode, entry: Entry) -> None:
        """Compare a committed entry with what all others have there."""
        known = self.committed_entries
        if entry.index <= len(known):
            self._require(
                known[entry.index - 1] == entry,
                f"replica {node.me} commits {entry}, but {known[entry.index - 1]} was committed",
            )
            return
        self._require(
            entry.index == len(known) + 1, f"replica {node.me} commits {entry} out of order"
        )
        known.append(entry)
        self._commit_terms.append(node.core.term)
        self._chains.append(chain_after(self._chains[-1], entry))

    def restored(self, node: CoreNode, snapshot: CoreSnapshot) -> None:
        """Compare an installed snapshot with the committed history."""
        self.installs += 1
        self._require(
            self._chains[snapshot.index] == snapshot.chain,
            f"replica {node.me} installed a snapshot of another history at {snapshot.index}",
        )

    def snapshot_of(self, index: int, chain: bytes) -> CoreSnapshot:
        """Return the snapshot of this index and history."""
        return self._snapshots[index, chain]

    def answered(self, node: CoreNode, token: int, index: int | None) -> None:
        """Check that a barrier covers everything that was committed when it was asked."""
        floor = self._asked.pop((node.me, token))
        if index is None:
            return
        self.reads += 1
        if token == LAST_TOKEN:
            self._last_reads.add(node.me)
        self._require(
            index >= floor,
            f"replica {node.me} was told to read at {index}, but {floor} was committed before",
        )

    # -- checks

    def _require(self, holds: bool, story: str) -> None:
        if not holds:
            raise SimulationFailed(f"at {self.time:.2f} ticks: {story}")

    def _look(self, node: CoreNode) -> None:
        core = node.core
        if core.role is Role.LEADER:
            first = self._leaders.setdefault(core.term, node.me)
            self._require(
                first == node.me, f"two leaders in term {core.term}: {first} and {node.me}"
            )
            if self._hard.get(-core.term) is None:
                self._hard[-core.term] = HardState(core.term, node.me)
                self.elections += 1
                self._check_complete(node)
                self._hurry(node)
        hard, former = node.disk.hard, self._hard.get(node.me, HardState(0, 0))
        if hard != former:
            self._require(
                hard.term > former.term or (hard.term == former.term and former.vote == 0),
                f"replica {node.me} had {former} on its disk and now has {hard}",
            )
            self._hard[node.me] = hard

    def _check_complete(self, node: CoreNode) -> None:
        """Raft's leader completeness: a leader has all that was committed in earlier terms.

        One whose last vote came late may lead a term beside a later one, whose entries it lacks.
        """
        core = node.core
        for entry in self.committed_entries[core.first - 1 :]:
            self._require(
                self._commit_terms[entry.index - 1] >= core.term
                or (entry.index <= core.last and core.entry(entry.index) == entry),
                f"replica {node.me} leads term {core.term} without the committed {entry}",
            )

    def check_matching(self) -> None:
        """Raft's log matching: same index and term, same entry and everything before it."""
        seen: dict[tuple[int, int], tuple[Entry, int]] = {}
        for node in self.nodes.values():
            if not node.is_up:
                continue
            core = node.core
            before = None
            for entry in core.entries(core.first, core.last):
                former = before.term if before is not None else -1
                name = (entry.index, entry.term)
                other, other_former = seen.setdefault(name, (entry, former))
                known = -1 not in (other_former, former)
                self._require(
                    other == entry and (not known or other_former == former),
                    f"logs differ at {name}: {other} and {entry} on replica {node.me}",
                )
                before = entry
            self._check_membership(node)

    def _check_membership(self, node: CoreNode) -> None:
        """The membership in force is the newest in the log."""
        core = node.core
        log = self.committed_entries[: core.first - 1] + core.entries(core.first, core.last)
        found = [entry for entry in log if entry.kind == _MEMBERSHIP]
        expected = Membership.decode(found[-1].body) if found else Membership(())
        self._require(
            core.members == expected,
            f"replica {node.me} goes by {core.members}, its log says {expected}",
        )

    def _unsettled(self) -> str:
        """Return what a healed cluster still lacks, or an empty string."""
        leaders = [node for node in self.nodes.values() if node.core.is_leader]
        if not leaders:
            return "nobody leads"
        leader = max(leaders, key=lambda node: node.core.term)
        core = leader.core
        if not any(entry.body == LAST_BODY for entry in self.committed_entries):
            return "the last proposal is not committed"
        if core.commit < core.last:
            return f"leader {leader.me} committed {core.commit} of {core.last} entries"
        for member in core.members.members:
            node = self.nodes[member.id]
            if node.disk.recorded < len(self.committed_entries):
                return f"replica {node.me} has {node.applied} of {len(self.committed_entries)}"
            if node.me not in self._last_reads:
                return f"replica {node.me} got no last read"
        return ""

    def _check_end(self) -> None:
        self.check_matching()
        for node in self.nodes.values():
            self._require(
                node.disk.chain == self._chains[node.disk.recorded],
                f"the ledger of replica {node.me} is another history",
            )
            core = node.core
            self._require(not core.lost, f"replica {node.me} says that it lost entries")
            self._require(not core.lost_peers, f"replica {node.me} takes peers for lost")

    # -- nodes

    def _add_node(self, number: int, disk: CoreDisk) -> None:
        # Clocks and disks differ, and a leader's windows are its own.
        node = self._node_type(number, disk, self.weather.settings, self.rng, self)
        self.nodes[number] = node
        self._start(node)

    def _start(self, node: CoreNode) -> None:
        if node.is_up:
            return
        node.start()
        life = node.life
        self.after(self.rng.random(), lambda: self._tick(node, life))

    def _tick(self, node: CoreNode, life: int) -> None:
        if node.life == life:
            node.tick()
            self._look(node)
            self.after(1.0, lambda: self._tick(node, life))

    def write(self, node: CoreNode) -> None:
        """Let a write take its time; a crash meanwhile loses it."""
        life = node.life

        def done() -> None:
            if node.life == life:
                node.written()
                self._look(node)

        self.after(0.02 + self.rng.random() * self.weather.sync_ticks, done)

    def _crash(self, node: CoreNode) -> None:
        if node.is_up and not self._calm:
            node.crash()
            rng = self.rng
            away = rng.random() * rng.choice((1.0, self.weather.away_ticks))
            self.after(0.2 + away, lambda: self._start(node))

    def _live(self) -> list[CoreNode]:
        return [node for node in self.nodes.values() if node.is_up]

    # -- work

    def _work(self) -> None:
        rng = self.rng
        live = self._live()
        if live:
            node = rng.choice(live)
            for _ in range(rng.choice((1, 1, 1, 5))):
                self._proposed += 1
                node.core.propose(_EVENTS, b"%d" % self._proposed)
            if rng.random() < 0.5:
                self._read(rng.choice(live))
            for other in live:
                # A leader that was deposed without knowing it is the one to be tempted.
                if other.core.is_leader and rng.random() < 0.5:
                    self._read(other)
            node.pump()
            self._look(node)
        if not self._calm:
            self.after(0.1 + 8.0 * rng.random() ** 2, self._work)

    def _read(self, node: CoreNode, token: int = 0) -> None:
        if not token:
            self._tokens += 1
            token = self._tokens
        # Taken before the question: what is committed at that moment has to be seen.
        self._asked[node.me, token] = len(self.committed_entries)
        if not node.core.barrier(token):
            del self._asked[node.me, token]
        node.pump()

    # -- fate

    def _strike(self) -> None:
        if self._calm:
            return
        rng, weather = self.rng, self.weather
        strokes: dict[str, Callable[[], None]] = {
            "crash_one": self._crash_one,
            "crash_some": self._crash_some,
            "cut_sides": self._cut_sides,
            "cut_pair": self._cut_pair,
            "mend": self._mend,
            "housekeeping": self._housekeeping,
            "politics": self._politics,
            "jump_clocks": self._jump_clocks,
            "change_members": self._change_members,
        }
        strokes[rng.choice(weather.strokes)]()
        self.after(weather.pace_ticks * (0.2 + rng.random()), self._strike)

    def _crash_one(self) -> None:
        self._crash(self.rng.choice(list(self.nodes.values())))

    def _crash_some(self) -> None:
        for node in self.nodes.values():
            if self.rng.random() < 0.4:
                self._crash(node)

    def _cut_sides(self) -> None:
        rng = self.rng
        numbers = list(self.nodes)
        side = set(rng.sample(numbers, rng.randrange(1, len(numbers) + 1)))
        self._cut = {(a, b) for a in numbers for b in numbers if (a in side) != (b in side)}
        if rng.random() < 0.3:
            self._cut = {pair for pair in sorted(self._cut) if rng.random() < 0.5}

    def _cut_pair(self) -> None:
        numbers = list(self.nodes)
        one, other = self.rng.choice(numbers), self.rng.choice(numbers)
        self._cut = {(one, other), (other, one)}

    def _mend(self) -> None:
        self._cut = set()

    def _housekeeping(self) -> None:
        rng = self.rng
        self.check_matching()
        for node in self._live():
            if rng.random() < 0.5:
                snapshot = node.take_snapshot(rng.randrange(1, 5))
                if snapshot is not None:
                    # Replicas may cut the same state into different chunks.
                    snapshot = self._snapshots.setdefault(
                        (snapshot.index, snapshot.chain), snapshot
                    )
                    node.disk.snapshot = snapshot
            if rng.random() < 0.5:
                node.trim(rng.choice((0, 0, 3, 30)))
            if rng.random() < 0.3:
                node.forget_history()

    def _jump_clocks(self) -> None:
        """Let long time pass at once: nobody is heard any more, and several campaign together."""
        rng = self.rng
        for node in self._live():
            if rng.random() < 0.6:
                for _ in range(rng.randrange(10, 40)):
                    node.core.tick()
                node.pump()
                self._look(node)

    def _politics(self) -> None:
        rng = self.rng
        for node in self._live():
            if node.core.is_leader and rng.random() < 0.7:
                node.core.transfer(rng.choice(node.core.members.voters()))
            elif rng.random() < 0.1:
                node.core.step_down()
            node.core.may_campaign = rng.random() < 0.8
            node.pump()
            self._look(node)

    def _change_members(self) -> None:
        leaders = [node for node in self._live() if node.core.is_leader]
        if not leaders:
            return
        leader = self.rng.choice(leaders)
        if self._change_members_at(leader):
            if self.rng.random() < 0.4:
                self._cut_off(leader)
            leader.pump()
            self._look(leader)

    def _change_members_at(self, leader: CoreNode) -> bool:
        """Ask a leader for a change of members, right or wrong; tell whether it took it."""
        core = leader.core
        wrong = self.rng.random() < 0.3
        make = self._wrongly_changed if wrong else self._changed
        former, following = core.members, make(core.members, core.last + 1)
        if following is None:
            return False
        taken = core.propose(_MEMBERSHIP, following.encode())
        if isinstance(taken, Refusal):
            return False
        self.changes += 1
        for member in following.members:
            if member.id not in self.nodes:
                self._add_node(member.id, CoreDisk(membership=Membership(())))
            elif wrong and former.member(member.id) is None:
                self._empty(self.nodes[member.id])
        return True

    def _wrongly_changed(self, former: Membership, index: int) -> Membership | None:
        """Return a change that a careless operator may ask for: two voters, or an id once more."""
        rng = self.rng
        new = member_id_at(index)
        gone = [number for number in self.nodes if not (former.member(number) or number == new)]
        if gone and rng.random() < 0.5:
            members = [*former.members, _member(rng.choice(gone), voter=True)]
        elif rng.random() < 0.5:
            learners = [member for member in former.members if not member.voter]
            members = [_member(member.id, voter=True) for member in former.members]
            if len(learners) < 2:
                return None
        else:
            voters = former.voters()
            away = rng.sample(voters, min(2, len(voters) - 1))
            members = [member for member in former.members if member.id not in away]
        return Membership(tuple(sorted(members, key=lambda member: member.id)))

    def _empty(self, node: CoreNode) -> None:
        """Give a replica an empty disk under its old id, as somebody may who knows no better."""
        node.crash()
        node.disk = CoreDisk(membership=Membership(()))
        self._start(node)

    def _cut_off(self, node: CoreNode) -> None:
        self._cut = {
            pair
            for other in self.nodes
            for pair in ((node.me, other), (other, node.me))
            if other != node.me
        }

    def _hurry(self, leader: CoreNode) -> None:
        """Give a new leader work before anything else happens, and cut it off."""
        rng, haste = self.rng, self.weather.haste
        if self._calm or rng.random() >= haste:
            return
        if "change_members" in self.weather.strokes and rng.random() < 0.5:
            self._change_members_at(leader)
        for _ in range(rng.randrange(1, 4)):
            self._proposed += 1
            leader.core.propose(_EVENTS, b"%d" % self._proposed)
        if rng.random() < haste / 2:
            self._cut_off(leader)
            self.after(20.0 * rng.random(), self._mend)

    def _changed(self, former: Membership, index: int) -> Membership | None:
        rng = self.rng
        members = list(former.members)
        choice = rng.randrange(3)
        if choice == 0 and len(self.nodes) < MEMBERS_MAX:
            members.append(_member(member_id_at(index), voter=rng.random() < 0.2))
        elif choice == 1:
            at = rng.randrange(len(members))
            members[at] = _member(members[at].id, voter=not members[at].voter)
        elif choice == 2 and len(members) > 1:
            del members[rng.randrange(len(members))]
        following = Membership(tuple(sorted(members, key=lambda member: member.id)))
        return following if following.voters() and following != former else None

    # -- the end

    def _heal(self) -> None:
        self._calm = True
        self._cut = set()
        weather = self.weather
        self.weather = replace(
            weather,
            loss=0.0,
            delay_ticks=min(weather.delay_ticks, 2.0),
            sync_ticks=min(weather.sync_ticks, 1.0),
        )
        for node in self.nodes.values():
            self._start(node)
            node.core.may_campaign = True
        self._settle()

    def _settle(self) -> None:
        """Ask for the last things, again and again, as a client would, until all is well."""
        done = any(entry.body == LAST_BODY for entry in self.committed_entries)
        for node in self.nodes.values():
            if node.core.is_leader and not done:
                node.core.propose(_EVENTS, LAST_BODY)
            if node.me not in self._last_reads and (node.me, LAST_TOKEN) not in self._asked:
                self._read(node, LAST_TOKEN)
            node.pump()
        lack = self._unsettled()
        if not lack:
            self._check_end()
            self._is_over = True
            return
        self._require(self.time < self.ticks + CALM_TICKS_MAX, f"long after all was healed, {lack}")
        self.after(20.0, self._settle)


def _member(number: int, *, voter: bool) -> Member:
    return Member(number, b"disk-%d" % number, voter, f"h{number}:1", f"h{number}:2")
