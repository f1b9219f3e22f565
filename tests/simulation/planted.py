"""Faults planted on purpose: each a small mutation of the product, which must be found.

    with FAULTS["no-dedup"].planted():
        run_seed(...)        # some seed is at fault

`seeds` says where a fault was found; that moves when the product draws from chance in another
order, and the test then looks further. A fault that no seed of CI finds means that the simulation
is too tame; what chance meets too seldom has a directed script.

    python -m tests.simulation.planted [NAME ...]     where each is found now
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec

from spur.commands import controllers
from spur.commands import runs as run_commands
from spur.consensus import replica as replica_module
from spur.consensus import wal_reader
from spur.consensus.boxes import Role
from spur.consensus.clock import ClockJudge
from spur.consensus.core import Core
from spur.consensus.elections import Elections
from spur.consensus.faults import WalDamaged
from spur.consensus.following import Following
from spur.consensus.hardstate import HardState
from spur.consensus.leadership import Leadership
from spur.consensus.membership import Membership, MembershipLog, member_id_at
from spur.consensus.messages import Heartbeat, VoteReply
from spur.consensus.records import Torn, read_group
from spur.consensus.replica import Replica
from spur.consensus.replica_log import ReplicaLog
from spur.consensus.supply import Chunk, Supply
from spur.consensus.wal import Wal
from spur.controller import front as front_module
from spur.controller.front import Front
from spur.controller.queries import Queries
from spur.controller.waiting import Waiting
from spur.projections import requests
from spur.projections import runs as run_rows
from spur.projections.tables import Table
from spur.testing.replaced import replaced
from spur.testing.simulation.member import Violation
from spur.testing.simulation.run import run_seed
from spur.values.errors import Rejection
from tests.simulation import directed

__all__ = ["FAULTS", "SEEDS_MAX", "Fault"]

Plant = Callable[[], AbstractContextManager[None]]


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One planted fault."""

    what: str
    """What it is, in a sentence, and where it comes from."""
    seeds: tuple[int, ...]
    """Seeds that find it, tried first; none for what a script finds."""
    script: Callable[[], None] | None
    planted: Plant

    def found_by(self, seeds_max: int) -> str:
        """Return what finds it: its script, or a seed; empty when nothing does."""
        with self.planted():
            if self.script is not None:
                try:
                    self.script()
                except Violation as violation:
                    return f"{self.script.__name__}: {violation}"
                return ""
            for seed in (*self.seeds, *range(1, seeds_max + 1)):
                if fault := run_seed(seed).fault:
                    return f"seed {seed}: {fault}"
            return ""


FAULTS: dict[str, Fault] = {}

SEEDS_MAX = 300
"""Seeds that CI runs; each fault without a script is found by one of them."""


def fault(
    *seeds: int, script: Callable[[], None] | None = None
) -> Callable[[Callable[[], Iterator[None]]], Plant]:
    """Register a fault under its function's name; the docstring says what it is."""

    def register(plant: Callable[[], Iterator[None]]) -> Plant:
        planted = contextmanager(plant)
        name = plant.__name__.replace("_", "-")
        what = plant.__doc__ or ""
        FAULTS[name] = Fault(what=what, seeds=seeds, script=script, planted=planted)
        return planted

    return register


# -- votes and elections
@fault(script=directed.voter_restarted_between_candidates)
def vote_forgotten_at_restart() -> Iterator[None]:
    """A replica votes again in a term in which it voted before it was restarted (raftos 1)."""
    original = Core.__init__

    def init(self: Core, *, hard: HardState, **rest: Any) -> None:
        original(self, hard=HardState(hard.term, 0), **rest)

    with replaced(Core, __init__=init):
        yield


@fault(script=directed.candidates_with_repeated_votes)
def votes_counted_by_number() -> Iterator[None]:
    """Votes are counted as they come, whoever cast them and in whatever term (raftos 7)."""
    original = Core.step

    def step(self: Core, message: Any) -> None:
        if isinstance(message, VoteReply) and message.granted and self.role is Role.CANDIDATE:
            message = msgspec.structs.replace(message, term=self.term)
        original(self, message)

    def count(self: Elections, voter: int, *, granted: bool) -> None:
        self._ballot[len(self._ballot)] = granted
        if sum(self._ballot.values()) < len(self._log.memberships.voters) // 2 + 1:
            return
        if self.role is Role.PRE_CANDIDATE:
            self._campaign(transfer=False)
        else:
            self._take_lead()

    with replaced(Core, step=step), replaced(Elections, _count_vote=count):
        yield


@fault(1)
def vote_granted_to_a_shorter_log() -> Iterator[None]:
    """A vote goes to whoever asks first, also when entries are missing in its log."""
    with replaced(Elections, _is_fresh=lambda self, message: True):
        yield


# -- the log and its commit index
@fault(6)
def truncation_on_a_short_append() -> Iterator[None]:
    """An append that ends before the log does cuts the rest off (raftos 2, pysyncobj)."""
    original = ReplicaLog.accept

    def accept(self: ReplicaLog, prev: int, entries: Any) -> None:
        original(self, prev, entries)
        end = max(prev + len(entries), self.commit)
        if end < self.tail.last:
            self._truncate(end + 1)

    with replaced(ReplicaLog, accept=accept):
        yield


@fault(script=directed.old_entry_on_a_majority)
def old_terms_counted() -> Iterator[None]:
    """An entry of an earlier term is committed by counting its replicas (raftos 3, Raft 5.4.2)."""

    def advance(self: Core, lead: Leadership) -> None:
        self._log.commit = max(self._log.commit, lead.committable(self._log.stable))

    with replaced(Core, _advance_commit=advance):
        yield


@fault(1)
def no_no_op() -> Iterator[None]:
    """A new leader appends no entry of its term, so what is left of old ones waits (raftos 3)."""

    original = Elections._take_lead

    def take_lead(self: Elections) -> None:
        with replaced(ReplicaLog, append=lambda *_: None):
            original(self)

    with replaced(Elections, _take_lead=take_lead):
        yield


@fault(5)
def half_is_a_majority() -> Iterator[None]:
    """Half of the voters, rounded down, may commit and confirm (raftos 5)."""
    original = Leadership.set_members

    def set_members(self: Leadership, *arguments: Any) -> None:
        original(self, *arguments)
        self._quorum = max(1, self._quorum - 1)

    with replaced(Leadership, set_members=set_members):
        yield


@fault(2)
def leader_not_counted() -> Iterator[None]:
    """The leader's own disk is not counted, so a cluster of one never commits (raftos 5)."""
    original = Leadership.committable

    def committable(self: Leadership, stable: int) -> int:
        return original(self, 0)

    with replaced(Leadership, committable=committable):
        yield


@fault(34)
def leader_counts_itself_early() -> Iterator[None]:
    """The leader counts its own entries before its disk has them."""
    original = Leadership.committable

    def committable(self: Leadership, stable: int) -> int:
        return original(self, self._tail.last)

    with replaced(Leadership, committable=committable):
        yield


@fault(1)
def commit_index_told_to_strangers() -> Iterator[None]:
    """Heartbeats carry the commit index to followers whose log is not known to reach it."""

    def on_heartbeat(self: Following, message: Heartbeat) -> None:
        self._log.commit_to(min(self._log.tail.last, message.commit))
        original(self, message)

    original = Following.on_heartbeat
    beat = Leadership.beat

    def beat_all(self: Leadership, commit: int) -> None:
        former = {peer: progress.match for peer, progress in self._peers.items()}
        for progress in self._peers.values():
            progress.match = max(progress.match, commit)
        beat(self, commit)
        for peer, progress in self._peers.items():
            progress.match = former[peer]

    with replaced(Following, on_heartbeat=on_heartbeat), replaced(Leadership, beat=beat_all):
        yield


@fault(1)
def applied_beyond_the_commit_index() -> Iterator[None]:
    """A follower applies what it has, not what is committed."""
    original = Replica._deliver

    def deliver(self: Replica) -> bool:
        core = self.core
        if core.is_leader or self._installing or core.last <= self._delivered:
            return original(self)
        batch = core.entries(self._delivered + 1, core.last)
        self._delivered = core.last
        self._unrecorded.extend(batch)
        self._machine.committed(batch)
        return False

    with replaced(Replica, _deliver=deliver):
        yield


# -- members
@fault(9)
def members_forgotten_at_restart() -> Iterator[None]:
    """A replica goes by the genesis membership after a restart, not by that of its ledger."""
    with replaced(Core, begin_with=lambda self, membership: None):
        yield


@fault(12)
def members_forgotten_by_a_snapshot() -> Iterator[None]:
    """Whoever takes a snapshot goes by the members that it knew before."""
    original = Core.installed

    def installed(self: Core, index: int, term: int, membership: Membership) -> None:
        original(self, index, term, self.members)

    with replaced(Core, installed=installed):
        yield


@fault(54)
def learners_counted() -> Iterator[None]:
    """What a learner acknowledges counts as if it had a vote."""
    original = Leadership.set_members

    def set_members(self: Leadership, membership: Membership, following: int) -> None:
        original(self, membership, following)
        self._voting = list(self._peers.values())

    with replaced(Leadership, set_members=set_members):
        yield


@fault(3)
def ids_used_again() -> Iterator[None]:
    """A controller that lost its disk is added again under the id that it had."""
    freed: list[int] = []
    without = Membership.without

    def removed(self: Membership, number: int) -> Membership:
        freed.append(number)
        return without(self, number)

    def first_free(index: int) -> int:
        return freed[-1] if freed else member_id_at(index)

    with (
        replaced(Membership, without=removed),
        replaced(controllers, member_id_at=first_free),
        replaced(MembershipLog, fault_of=lambda self, entry: ""),
    ):
        yield


@fault(30033)
def last_holder_removed() -> Iterator[None]:
    """A controller goes although nobody else holds the log's oldest entries yet."""
    with replaced(controllers, _refuse_history=lambda *_: None):
        yield


# -- the disk
@fault(8)
def acknowledged_before_the_sync() -> Iterator[None]:
    """What must wait for a sync is sent when the write begins."""

    def persist(self: Replica) -> None:
        lane = self._lanes["wal"]
        if lane.busy or lane.queue:
            return
        ready = self.core.ready()
        if ready is None:
            return
        self._outbox.extend(ready.after)
        if not ready.needs_sync:
            self.core.persisted(ready)
            return
        self._later(
            "wal",
            lambda: self.storage.wal.write_group(
                ready.hard, ready.first, ready.entries, ready.commit
            ),
            lambda _: self.core.persisted(ready),
        )

    with replaced(Replica, _persist=persist):
        yield


@fault(25)
def torn_group_taken_for_corruption() -> Iterator[None]:
    """A write that the power cut short stops the replica for good."""

    def read(name: str, image: bytes, offset: int, *rest: Any) -> Any:
        found = read_group(name, image, offset, *rest)
        if isinstance(found, Torn):
            raise WalDamaged(name, offset, "a group is torn")
        return found

    with replaced(wal_reader, read_group=read):
        yield


@fault(script=directed.flipped_bit_before_good_groups)
def corruption_taken_for_a_torn_group() -> Iterator[None]:
    """What does not match its CRC is cut off, with all good groups that follow it."""

    def read(name: str, image: bytes, offset: int, end: int, seed: int, number: int) -> Any:
        try:
            return read_group(name, image, offset, end, seed, number)
        except WalDamaged:
            return Torn(number, offset)

    with replaced(wal_reader, read_group=read):
        yield


@fault(script=directed.segments_recycled_after_a_vote)
def vote_lost_with_its_segment() -> Iterator[None]:
    """The vote is written once: a new segment does not repeat it, and the old one is recycled."""
    original = Wal.write_group

    def write_group(self: Wal, hard: HardState | None, *rest: Any) -> None:
        former = self._segments[-1].number
        original(self, hard, *rest)
        if self._segments[-1].number != former:
            self._hard = HardState(self._hard.term, 0)

    with replaced(Wal, write_group=write_group):
        yield


@fault(5)
def blobs_not_durable_with_their_entry() -> Iterator[None]:
    """The write-ahead log holds entries without their attachments."""
    original = Wal.write_group

    def write_group(self: Wal, hard: Any, first: int, entries: Sequence[Any], commit: int) -> None:
        bare = [
            msgspec.structs.replace(entry, blobs=tuple(b"" for _ in entry.blobs))
            for entry in entries
        ]
        original(self, hard, first, bare, commit)

    with replaced(Wal, write_group=write_group):
        yield


@fault(8)
def log_goes_on_after_an_install() -> Iterator[None]:
    """A snapshot becomes the state, and the write-ahead log still holds what it replaced."""

    def keep(self: Replica, index: int) -> None:
        self.storage.snapshots.installed()

    with replaced(Replica, _restart_wal=keep):
        yield


@fault(8)
def parts_for_peers_lost() -> Iterator[None]:
    """Nobody answers a member whose files are damaged."""
    with replaced(Replica, _answer=lambda self, part: None):
        yield


@fault(59)
def late_members_sent_old_snapshots() -> Iterator[None]:
    """A late member is sent a snapshot that brings it no further, again and again."""

    def lags(self: Replica, index: int) -> bool:
        return bool(self._snapshot_index and self._recorded - index > self.settings.snapshot_lag)

    with replaced(Replica, _lags=lags):
        yield


@fault(41)
def chunks_of_another_snapshot() -> Iterator[None]:
    """A member that takes one snapshot is sent chunks of a newer one, which it ignores."""
    original = Supply.chunk

    def chunk(self: Supply, index: int, number: int) -> Chunk | None:
        newest = self._stores.snapshots.latest()
        if newest is None or number > newest.chunk_count:
            return None
        return original(self, newest.index, number)

    with replaced(Supply, chunk=chunk):
        yield


@fault(179)
def blobs_of_coming_entries_erased() -> Iterator[None]:
    """A snapshot erases blobs of entries that were not in the ledger yet when it was written."""
    with replaced(replica_module, digests_of=lambda entry: []):
        yield


# -- time
@fault(38)
def own_clock_stamped() -> Iterator[None]:
    """A leader stamps its own clock, an hour ahead of everybody's."""

    def stamp(self: ClockJudge, previous_ns: int, wall_ns: int, mono_ns: int) -> int:
        return max(previous_ns + 1, wall_ns)

    with replaced(ClockJudge, stamp=stamp, is_fit_to_lead=lambda *_: True):
        yield


@fault(4)
def stamps_go_back() -> Iterator[None]:
    """A leader stamps the majority's clocks, though the last stamp was later."""
    original = ClockJudge.stamp

    def stamp(self: ClockJudge, previous_ns: int, wall_ns: int, mono_ns: int) -> int:
        original(self, previous_ns, wall_ns, mono_ns)
        return (self._base_ns or 0) + mono_ns

    with replaced(ClockJudge, stamp=stamp):
        yield


# -- the front
@fault(2)
def no_dedup() -> Iterator[None]:
    """A request that comes again is executed again."""
    with replaced(front_module, lookup=lambda *_: None):
        yield


@fault(3)
def ids_forgotten_too_early() -> Iterator[None]:
    """Request ids are evicted, and the floor below which nothing is executed does not rise."""
    with replaced(requests, raise_counter=lambda *_: None):
        yield


@fault(6)
def undo_forgets_an_index() -> Iterator[None]:
    """Taking an entry back restores the rows, and not the indexes over them."""

    def restore(self: Table[Any, Any], key: Any, row: Any) -> None:
        self._unsettled.setdefault(key, self.rows.get(key))
        if row is None:
            self.rows.pop(key, None)
        else:
            self.rows[key] = row

    with replaced(Table, restore=restore):
        yield


@fault(6)
def undo_skipped() -> Iterator[None]:
    """A leader that lost the lead keeps what it had applied and not committed."""
    original = Front.following

    def following(self: Front, leader: int) -> None:
        with replaced(front_module, undo_to=lambda state, index: None):
            original(self, leader)

    with replaced(Front, following=following):
        yield


@fault(1)
def answered_before_the_commit() -> Iterator[None]:
    """An answer leaves when its entry is appended."""
    with replaced(Waiting, answer_at=lambda self, index, respond, reply: respond(reply)):
        yield


@fault(1)
def effects_before_the_commit() -> Iterator[None]:
    """A run is launched when its start is appended."""
    original = Front._append

    def append(self: Front, *arguments: Any) -> Any:
        refused = original(self, *arguments)
        if refused is None:
            for effect in self._effects.pop(self.state.index, ()):
                self._services.release(effect, self.state.index)
        return refused

    with replaced(Front, _append=append):
        yield


@fault(script=directed.deposed_leader_asked)
def reads_without_a_barrier() -> Iterator[None]:
    """A leader answers queries without asking whether it still leads."""
    original = Queries.confirm

    def confirm(self: Queries) -> None:
        if not self._log().describe().leads:
            original(self)
            return
        asking, self._new = self._new, []
        for asked in asking:
            self._read(asked, 0)

    with replaced(Queries, confirm=confirm):
        yield


@fault(script=directed.deposed_leader_asked)
def rejections_without_a_barrier() -> Iterator[None]:
    """A leader refuses requests without asking whether it still leads."""

    def confirm(self: Front, asked: Any, outcome: Any) -> None:
        if isinstance(outcome, Rejection):
            reply = self.refused(asked.call, outcome)
        else:
            reply = self.reply(asked.call, outcome)
        self._waiting.answer_at(self.state.index, asked.respond, reply)

    with replaced(Front, _confirm=confirm):
        yield


@fault(1)
def debts_not_resumed() -> Iterator[None]:
    """A new leader performs what it decides itself, and nothing that its predecessor owed."""
    with replaced(front_module, resume=lambda state: []):
        yield


# -- runs
@fault(script=directed.old_report_of_a_requeued_job)
def old_report_frees_a_newer_run() -> Iterator[None]:
    """A report of an earlier run or attempt is taken for one of the present."""
    original = run_rows.reported_row

    def reported(run: Any, node: Any, event: Any) -> Any:
        present = msgspec.structs.replace(event, run=run.number, attempt=run.attempt)
        return original(run, node, present)

    with ExitStack() as stack:
        for module in (run_rows, run_commands):
            stack.enter_context(replaced(module, reported_row=reported))
        yield


def main(names: Sequence[str]) -> None:
    """Write where each fault is found, or that it is not."""
    for name in names or FAULTS:
        found = FAULTS[name].found_by(SEEDS_MAX)
        sys.stdout.write(f"{name}: {found or 'NOT FOUND'}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
