"""The simulation of the core finds what it is there to find: faults planted one at a time.

Each is a mistake that a published Raft made, or one that is easily made. A fault that no seed
finds would mean that the simulation looks away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pytest

from spur.consensus.core import Core, HardState, Ready
from spur.consensus.elections import Elections
from spur.consensus.following import Following
from spur.consensus.leadership import Leadership
from spur.consensus.membership import Membership, MembershipLog, voters_changed
from spur.consensus.messages import Append, Vote
from spur.consensus.progress import Progress
from spur.consensus.reads import ReadQuestion
from spur.consensus.replica_log import ReplicaLog
from spur.events.envelope import Entry, EntryKind
from spur.testing.simulation.core_cluster import STORM, CoreSimulation, SimulationFailed, Weather
from spur.testing.simulation.core_node import CoreNode
from spur.values.errors import InvariantBroken, PeerFault

SEEDS_MAX = 400


@dataclass(frozen=True)
class Fault:
    """A planted mistake."""

    name: str
    plant: Callable[[pytest.MonkeyPatch], None] = lambda _: None
    node_type: type[CoreNode] = field(default=CoreNode, kw_only=True)
    weather: Weather | None = None
    found_by: int = 0
    """A seed that found it when this was written, tried first to save time."""


class ForgetsVotes(CoreNode):
    """Writes the term and not the vote."""

    def synced(self, ready: Ready) -> None:
        super().synced(ready)
        self.disk.hard = HardState(self.disk.hard.term, 0)


class AcknowledgesEarly(CoreNode):
    """Sends what should wait for the disk."""

    def prepared(self, ready: Ready) -> None:
        self._send(ready.after)


def counts_entries_of_earlier_terms(patch: pytest.MonkeyPatch) -> None:
    def advance(core: Core, lead: Leadership) -> None:
        core._log.commit_to(lead.committable(core._log.stable))

    patch.setattr(Core, "_advance_commit", advance)


def counts_itself_before_its_disk(patch: pytest.MonkeyPatch) -> None:
    honest = Leadership.committable
    patch.setattr(Leadership, "committable", lambda lead, stable: honest(lead, lead._tail.last))


def counts_votes_by_number(patch: pytest.MonkeyPatch) -> None:
    honest = Elections._count_vote

    def count(elections: Elections, voter: int, *, granted: bool) -> None:
        voters = elections._log.memberships.voters
        if voter in elections._ballot and granted:
            voter = next((one for one in voters if one not in elections._ballot), voter)
        honest(elections, voter, granted=granted)

    patch.setattr(Elections, "_count_vote", count)


def takes_half_for_a_quorum(patch: pytest.MonkeyPatch) -> None:
    honest = Leadership.set_members

    def set_members(lead: Leadership, membership: Membership, following: int) -> None:
        honest(lead, membership, following)
        lead._quorum = max(1, len(membership.voters()) // 2)

    patch.setattr(Leadership, "set_members", set_members)


def cuts_the_log_behind_a_short_append(patch: pytest.MonkeyPatch) -> None:
    honest = ReplicaLog.accept

    def accept(log: ReplicaLog, prev: int, entries: tuple[Entry, ...]) -> None:
        honest(log, prev, entries)
        end = prev + len(entries)
        if end < log.tail.last:
            log.commit = min(log.commit, end)
            log._truncate(end + 1)

    patch.setattr(ReplicaLog, "accept", accept)


def commits_what_it_did_not_compare(patch: pytest.MonkeyPatch) -> None:
    honest = Following.on_append

    def on_append(following: Following, message: Append) -> None:
        honest(following, message)
        if not following.installing:
            following._log.commit_to(min(message.commit, following._log.tail.last))

    patch.setattr(Following, "on_append", on_append)


def leads_without_a_no_op(patch: pytest.MonkeyPatch) -> None:
    honest = Elections._take_lead

    def take_lead(elections: Elections) -> None:
        honest(elections)
        elections._log._truncate(elections._log.tail.last)

    patch.setattr(Elections, "_take_lead", take_lead)


def answers_reads_without_asking_the_others(patch: pytest.MonkeyPatch) -> None:
    def close(lead: Leadership) -> None:
        for question in lead.reads.close():
            lead._tell(question, lead.reads.index)

    patch.setattr(Leadership, "_close_round", close)


def takes_any_followers_question_for_enough(patch: pytest.MonkeyPatch) -> None:
    def answer(lead: Leadership, question: ReadQuestion, commit: int) -> None:
        lead._tell(question, commit) if commit >= lead.noop_index else lead.reads.ask(question)

    patch.setattr(Leadership, "answer_follower", answer)


def answers_reads_before_its_no_op(patch: pytest.MonkeyPatch) -> None:
    honest = Leadership.collect

    def collect(lead: Leadership, commit: int) -> None:
        noop, lead.noop_index = lead.noop_index, 0
        honest(lead, commit)
        lead.noop_index = noop

    patch.setattr(Leadership, "collect", collect)


def keeps_a_truncated_membership(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MembershipLog, "truncate", lambda *_: None)


def changes_members_while_a_change_is_open(patch: pytest.MonkeyPatch) -> None:
    def membership_fault(core: Core, entry: Entry) -> str:
        if not core.no_op_committed:
            return "no entry of this leader's term is committed yet"
        return core._log.memberships.fault_of(entry)

    patch.setattr(Core, "membership_fault", membership_fault)


def looks_away_from_memberships(patch: pytest.MonkeyPatch) -> None:
    """Faults of membership have to be found by what they do, not by a look at it."""
    patch.setattr(CoreSimulation, "_check_membership", lambda *_: None)


def changes_members_at_commit(patch: pytest.MonkeyPatch) -> None:
    looks_away_from_memberships(patch)
    honest, advance, commit_to = MembershipLog.note, Core._advance_commit, ReplicaLog.commit_to
    waiting: dict[int, list[Entry]] = {}

    def note(log: MembershipLog, entries: Sequence[Entry]) -> bool:
        found = [entry for entry in entries if entry.kind == EntryKind.MEMBERSHIP]
        held = waiting.setdefault(id(log), [])
        for entry in found:
            held[:] = [other for other in held if other.index < entry.index]
            held.append(entry)
        return bool(found)

    def act(log: ReplicaLog) -> None:
        held = waiting.setdefault(id(log.memberships), [])
        while held and held[0].index <= log.commit:
            honest(log.memberships, (held.pop(0),))

    def committed(log: ReplicaLog, index: int) -> None:
        commit_to(log, index)
        act(log)

    def advanced(core: Core, lead: Leadership) -> None:
        advance(core, lead)
        act(core._log)
        lead.set_members(core.members, core.last + 1)

    patch.setattr(MembershipLog, "note", note)
    patch.setattr(ReplicaLog, "commit_to", committed)
    patch.setattr(Core, "_advance_commit", advanced)


def changes_two_voters_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("spur.consensus.membership.voters_changed", lambda *_: 0)


def uses_an_id_again(patch: pytest.MonkeyPatch) -> None:
    def fault_of(log: MembershipLog, entry: Entry) -> str:
        following = Membership.decode(entry.body)
        return "two voters" if voters_changed(log.current, following) > 1 else ""

    patch.setattr(MembershipLog, "fault_of", fault_of)


def changes_members_before_its_no_op(patch: pytest.MonkeyPatch) -> None:
    def membership_fault(core: Core, entry: Entry) -> str:
        memberships = core._log.memberships
        if memberships.index > core._log.commit:
            return "the last change of members is not committed yet"
        return memberships.fault_of(entry)

    patch.setattr(Core, "membership_fault", membership_fault)


def counts_learners(patch: pytest.MonkeyPatch) -> None:
    honest = Leadership.set_members

    def set_members(lead: Leadership, membership: Membership, following: int) -> None:
        honest(lead, membership, following)
        lead._voting = list(lead._peers.values())

    patch.setattr(Leadership, "set_members", set_members)


def counts_votes_of_learners(patch: pytest.MonkeyPatch) -> None:
    looks_away_from_memberships(patch)
    honest = Elections._count_vote

    def count(elections: Elections, voter: int, *, granted: bool) -> None:
        memberships = elections._log.memberships
        kept = memberships.voters
        others = [member.id for member in memberships.current.members if not member.voter]
        if voter in others:
            # One learner stands in for one voter that was not heard.
            silent = [one for one in kept if one not in elections._ballot]
            voter = silent[0] if silent else voter
        honest(elections, voter, granted=granted)

    def campaign(elections: Elections, *, transfer: bool) -> None:
        asked(elections, transfer=transfer)
        tail = elections._log.tail
        for member in elections._log.memberships.current.members:
            if not member.voter:
                elections._outbox.after.append(
                    Vote(elections._me, member.id, elections.term, tail.last, tail.last_term)
                )

    asked = Elections._campaign
    patch.setattr(Elections, "_count_vote", count)
    patch.setattr(Elections, "_campaign", campaign)


def still_counts_removed_voters(patch: pytest.MonkeyPatch) -> None:
    honest = Leadership.set_members
    gone: dict[int, dict[int, Progress]] = {}

    def set_members(lead: Leadership, membership: Membership, following: int) -> None:
        former = dict(lead._peers)
        honest(lead, membership, following)
        kept = gone.setdefault(id(lead), {})
        kept |= {peer: progress for peer, progress in former.items() if peer not in lead._peers}
        lead._voting.extend(kept.values())

    patch.setattr(Leadership, "set_members", set_members)


def keeps_its_log_over_an_installed_snapshot(patch: pytest.MonkeyPatch) -> None:
    honest = ReplicaLog.restart

    def restart(log: ReplicaLog, index: int, term: int, membership: Membership) -> None:
        kept = log.tail.slice(index + 1, log.tail.last)
        honest(log, index, term, membership)
        log.tail.extend(kept)

    patch.setattr(ReplicaLog, "restart", restart)


def never_asks_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Leadership, "_ask_again", lambda *_: None)


CROWD = replace(STORM, replicas=5, repeats=0.5)
CHANGES = replace(
    STORM, strokes=("change_members", "mend", "jump_clocks"), spite=0.0, delay_ticks=2.0
)
SIDES = replace(
    STORM,
    replicas=5,
    loss=0.0,
    repeats=0.0,
    delay_ticks=0.3,
    sync_ticks=0.1,
    pace_ticks=40.0,
    spite=0.0,
    haste=0.0,
    strokes=("cut_sides", "mend"),
)
FOURS = replace(CHANGES, replicas=4, pace_ticks=8.0)
LEARNERS = replace(
    STORM,
    strokes=("change_members", "change_members", "crash_one", "mend", "cut_sides", "jump_clocks"),
    spite=0.02,
    delay_ticks=2.0,
    pace_ticks=8.0,
)
TRIMS = replace(
    STORM,
    strokes=("housekeeping", "mend", "cut_sides", "jump_clocks"),
    spite=0.0,
    delay_ticks=2.0,
    pace_ticks=8.0,
)
CUTS = replace(
    STORM,
    strokes=("cut_sides", "cut_pair", "mend"),
    spite=0.0,
    delay_ticks=2.0,
    pace_ticks=20.0,
    sync_ticks=0.1,
)

FAULTS = (
    Fault("forgets votes", node_type=ForgetsVotes, weather=STORM, found_by=14),
    Fault("acknowledges before its disk has it", node_type=AcknowledgesEarly, found_by=3),
    Fault(
        "counts entries of earlier terms",
        counts_entries_of_earlier_terms,
        weather=STORM,
        found_by=9,
    ),
    Fault("counts itself before its disk has it", counts_itself_before_its_disk, found_by=22),
    Fault("counts votes by number", counts_votes_by_number, weather=CROWD, found_by=3),
    Fault("takes half for a quorum", takes_half_for_a_quorum, found_by=1),
    Fault("cuts the log behind a short append", cuts_the_log_behind_a_short_append),
    Fault("commits what it did not compare", commits_what_it_did_not_compare, found_by=4),
    Fault("leads without a no-op", leads_without_a_no_op, found_by=11),
    Fault(
        "answers reads without asking",
        answers_reads_without_asking_the_others,
        weather=CUTS,
        found_by=20,
    ),
    Fault(
        "takes any follower's question for enough",
        takes_any_followers_question_for_enough,
        weather=SIDES,
    ),
    Fault("answers reads before its no-op", answers_reads_before_its_no_op),
    Fault("keeps a truncated membership", keeps_a_truncated_membership, found_by=38),
    Fault(
        "changes members while a change is open",
        changes_members_while_a_change_is_open,
        weather=CHANGES,
        found_by=5,
    ),
    Fault("changes members at commit", changes_members_at_commit, weather=CHANGES, found_by=3),
    Fault("changes two voters at once", changes_two_voters_at_once, weather=CHANGES, found_by=1),
    Fault("uses an id again", uses_an_id_again, weather=CHANGES),
    Fault(
        "changes members before its no-op",
        changes_members_before_its_no_op,
        weather=FOURS,
        found_by=504,
    ),
    Fault("counts learners", counts_learners, weather=LEARNERS, found_by=4),
    Fault("counts votes of learners", counts_votes_of_learners, weather=LEARNERS, found_by=92),
    Fault(
        "still counts removed voters", still_counts_removed_voters, weather=LEARNERS, found_by=23
    ),
    Fault(
        "keeps its log over a snapshot",
        keeps_its_log_over_an_installed_snapshot,
        weather=TRIMS,
        found_by=3,
    ),
    Fault("never asks again", never_asks_again),
)


def seeds(fault: Fault) -> Iterator[int]:
    yield fault.found_by
    yield from range(SEEDS_MAX)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.replace(" ", "-"))
def test_planted_fault_is_found(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody breaks the core in one place; the simulation must say so within its seeds."""
    fault.plant(monkeypatch)
    for seed in seeds(fault):
        simulation = CoreSimulation(seed, weather=fault.weather, node_type=fault.node_type)
        try:
            simulation.run()
        except (SimulationFailed, InvariantBroken, PeerFault):
            return
    pytest.fail(f"no seed below {SEEDS_MAX} found a core that {fault.name}")
