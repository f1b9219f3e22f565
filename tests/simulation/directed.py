"""Directed scripts: situations that chance meets too seldom, brought about on purpose.

Each script ends quietly where the product is right, and raises `Violation` where it is not.
"""

from __future__ import annotations

from random import Random
from typing import Any

from spur.consensus.boxes import Role
from spur.consensus.faults import WalDamaged
from spur.consensus.genesis import Genesis
from spur.consensus.hardstate import HardState
from spur.consensus.membership import Member, Membership
from spur.consensus.messages import Append, PreVote, Vote, VoteReply
from spur.consensus.wal import Wal, WalIdentity
from spur.events.envelope import Entry, EntryKind
from spur.testing.disk import SimDisk
from spur.testing.simulation.callers import ADMINISTRATOR, CLUSTER, Outcome, agent, user
from spur.testing.simulation.jobs import MAIN, submission
from spur.testing.simulation.member import SimMember, Violation
from spur.testing.simulation.script import Script
from spur.values.config import ConfigFile
from spur.values.configfile import CONFIG_FILE
from spur.values.ids import JobId, NodeName
from spur.values.states import Hold, JobState, NodeShareState
from spur.values.tres import NodeShare
from spur.wire.calls import Refused
from spur.wire.cluster import AddHost, HostAdded, Reconfigure
from spur.wire.declare import Answer
from spur.wire.jobs import (
    HoldJob,
    JobAccepted,
    JobChanges,
    JobFilter,
    JobPage,
    QueryJobs,
    UpdateJob,
    page_views,
)
from spur.wire.nodes import MarkNodeLost, RegisterNode
from spur.wire.runs import PlaceJobs, Placement, ReportAnswered, ReportRun

__all__ = [
    "candidates_with_repeated_votes",
    "deposed_leader_asked",
    "flipped_bit_before_good_groups",
    "old_entry_on_a_majority",
    "old_report_of_a_requeued_job",
    "segments_recycled_after_a_vote",
    "voter_restarted_between_candidates",
]

CONFIG = """
[cluster]
name = "scripted"

[[nodes]]
names = "n1"
cpus = 2
memory_mib = 4096

[[partitions]]
name = "main"
nodes = "n1"
default = true
"""

N1 = NodeName("n1")
MOMENT_S = 0.5


# -- elections
class _TwoCandidates:
    """Members 1 and 2 campaign in one term and do not hear each other; votes are held back."""

    def __init__(self, members: int) -> None:
        self.votes: dict[tuple[int, int], Vote] = {}
        """Requests for votes, by candidate and voter."""
        self.is_silent: set[int] = set()
        """Nothing that these send arrives."""
        self.repeats_votes = False
        script = self.script = Script(members=members)
        script.network.takes_away = self._takes
        script.wait(self._is_there)
        self.is_silent = {1, 2}

    def _takes(self, sender: int, message: Any) -> bool:
        if {sender, message.to} == {1, 2} or sender in self.is_silent:
            return True
        if isinstance(message, Vote):
            self.votes[sender, message.to] = message
            return True
        if isinstance(message, VoteReply) and self.repeats_votes:
            for _ in range(3):
                self.script.world.after(0.001, self.script.network.deliver, message)
            return True
        return isinstance(message, PreVote) and sender > 2

    def _is_there(self) -> bool:
        one, two = (self.script.member(number).replica.core for number in (1, 2))
        are_candidates = one.role is two.role is Role.CANDIDATE
        return are_candidates and one.term == two.term and (2, 3) in self.votes

    def ask(self, candidate: int, voter: int) -> None:
        self.script.network.deliver(self.votes[candidate, voter])

    def wait_for_lead(self, number: int) -> None:
        self.script.wait(lambda: self.script.member(number).replica.core.is_leader, limit_s=3.0)


def voter_restarted_between_candidates() -> None:
    """A voter makes one of two candidates leader, loses its power, and is asked by the other."""
    scene = _TwoCandidates(members=3)
    script, voter = scene.script, scene.script.member(3)
    scene.ask(1, 3)
    scene.wait_for_lead(1)
    voter.lose_power()
    voter.start()
    scene.ask(2, 3)
    script.world.pass_time(MOMENT_S)


def candidates_with_repeated_votes() -> None:
    """One of two candidates has one vote of four others, which the network delivers three times."""
    scene = _TwoCandidates(members=5)
    scene.repeats_votes = True
    scene.ask(2, 4)
    scene.ask(2, 5)
    scene.wait_for_lead(2)
    scene.ask(1, 3)
    scene.script.world.pass_time(MOMENT_S)


# -- an entry of an old term
class _OneCandidate:
    """Only one member may campaign, and its appends carry entries up to an index alone."""

    def __init__(self, script: Script) -> None:
        self.candidate = 0
        self.last = 0
        self._script = script
        script.network.takes_away = self._takes

    def _takes(self, sender: int, message: Any) -> bool:
        if isinstance(message, PreVote | Vote):
            return sender != self.candidate
        if isinstance(message, Append) and message.entries:
            return message.entries[-1].index > self.last
        return False

    def elect(self, member: SimMember) -> None:
        """Let a member lead, with all that it has and its no-op durable on its own disk."""
        self.candidate = member.me
        core = member.replica.core
        self._script.wait(lambda: core.is_leader and core.stable == core.last)


def old_entry_on_a_majority() -> None:
    """An entry of an old term reaches a majority late, and its leader's power fails.

    Another member, which has not heard of it and has a newer term, leads next: the situation of
    figure 8 of the Raft paper.
    """
    script = Script(members=3, tiny_batches=True)
    script.ask(Reconfigure((ConfigFile(CONFIG_FILE, CONFIG),)), ADMINISTRATOR)
    first = script.leader()
    second, third = (member for member in script.members if member is not first)
    core = first.replica.core
    script.wait(lambda: all(each.replica.core.stable == core.last for each in script.members))
    scene = _OneCandidate(script)
    scene.last = core.last
    script.call(first.me, submission("old"), user(1000))
    script.wait(lambda: core.stable == scene.last + 1)
    first.lose_power()
    scene.elect(third)
    third.lose_power()
    first.start()
    scene.elect(first)
    scene.last += 1
    script.wait(lambda: second.replica.core.stable == scene.last)
    script.world.pass_time(MOMENT_S)
    first.lose_power()
    third.start()
    scene.elect(third)
    scene.last += 100
    script.wait(lambda: third.replica.core.no_op_committed)


# -- a leader that was deposed and does not know it
def _configured(members: int) -> Script:
    script = Script(members=members)
    script.ask(Reconfigure((ConfigFile(CONFIG_FILE, CONFIG),)), ADMINISTRATOR)
    return script


def _submitted(script: Script, name: str) -> JobId:
    answer = script.ask(submission(name), user(1000))
    if not isinstance(answer, JobAccepted):
        raise Violation(f"{name} was answered with {answer}")
    return answer.job_id


def _depose(script: Script) -> SimMember:
    """Let another member lead while the present leader, whose ticks are slow, is cut off."""
    old = script.leader()
    old.tick_s *= 100
    everybody = [member.me for member in script.members]
    script.network.cut_sides({old.me}, everybody, one_way=False)
    others = [member for member in script.members if member is not old]
    script.wait(lambda: any(member.replica.core.no_op_committed for member in others))
    return old


def _heard(script: Script, outcomes: list[Outcome]) -> Outcome:
    script.world.pass_time(MOMENT_S)
    return outcomes[0] if outcomes else None


def deposed_leader_asked() -> None:
    """Two people ask a leader that was cut off for what its successor has changed since."""
    script = _configured(members=3)
    job_id = _submitted(script, "before")
    old = _depose(script)
    script.ask(UpdateJob(job_id, None, JobChanges(priority=7)), ADMINISTRATOR)
    newer = _submitted(script, "after")
    query = QueryJobs(JobFilter(job_ids=(job_id,)), JobId(0), 10)
    page = _heard(script, script.call(old.me, query, ADMINISTRATOR))
    if isinstance(page, JobPage) and page_views(page)[0].priority != 7:
        raise Violation("a deposed leader answered with what was true before")
    hold = script.call(old.me, HoldJob(newer, None, Hold.ADMIN), ADMINISTRATOR)
    refused = _heard(script, hold)
    if isinstance(refused, Refused):
        raise Violation(f"a deposed leader refused: {refused.text}")


# -- runs
def old_report_of_a_requeued_job() -> None:
    """A node is given up, its job starts again there, and then tells how the former run ended."""
    script = _configured(members=1)
    added = script.ask(AddHost("n1", "compute"), ADMINISTRATOR)
    if not isinstance(added, HostAdded):
        raise Violation(f"the host was answered with {added}")
    n1 = agent(added.host_id)
    register = RegisterNode(N1, bytes(16), 2, 4096, "", 0)
    script.ask(register, n1)
    job_id = _submitted(script, "twice")
    _place(script, job_id, run=0)
    script.ask(MarkNodeLost(N1, 0), CLUSTER)
    script.wait(lambda: script.leader().front.state.runs[job_id].number == 1)
    script.ask(register, n1)
    _place(script, job_id, run=1)
    report = ReportRun(
        node=N1,
        outbox=bytes(16),
        number=1,
        job_id=job_id,
        run=0,
        attempt=1,
        state=NodeShareState.ENDED,
        exit_code=0,
        signal=0,
        out_of_memory=False,
        age_ns=0,
    )
    answer = script.ask(report, n1)
    query = QueryJobs(JobFilter(job_ids=(job_id,)), JobId(0), 10)
    page = script.ask(query, ADMINISTRATOR)
    row = page_views(page)[0] if isinstance(page, JobPage) else None
    is_void = isinstance(answer, ReportAnswered) and answer.outcome == "void"
    if row is None or row.state is not JobState.RUNNING or not is_void:
        raise Violation(f"the report of run 0 was answered with {answer}, and run 1 is {row}")


def _place(script: Script, job_id: JobId, *, run: int) -> Answer:
    placement = Placement(
        job_id=job_id,
        run=run,
        task=None,
        partition=MAIN,
        shares=(NodeShare(N1, 1, 64, 0, b"\1", False),),
        factors=(),
        refused=(),
        why_these="the only node",
    )
    return script.ask(PlaceJobs(0, b"", (placement,)), CLUSTER)


# -- the write-ahead log alone
MEMBER = Member(1, bytes(16), True, "h1:1", "h1:2")
GENESIS = Genesis(cluster_id=bytes(16), membership=Membership((MEMBER,)).encode())
IDENTITY = WalIdentity(
    cluster_id=GENESIS.cluster_id, incarnation=GENESIS.incarnation, node_id=1, disk_id=bytes(16)
)
SEGMENT_BYTES = 16 << 10
WORD = b"acknowledged"
BODY = WORD * 20


def _written(disk: SimDisk, hard: HardState, last: int) -> Wal:
    """Write groups of one entry each, up to `last`, the first of them with a hard state."""
    Wal.create(disk, IDENTITY, GENESIS, segment_bytes=SEGMENT_BYTES)
    wal, _ = Wal.open(disk, IDENTITY, segment_bytes=SEGMENT_BYTES)
    for index in range(2, last + 1):
        entry = Entry(index, hard.term, EntryKind.EVENTS, BODY)
        wal.write_group(hard if index == 2 else None, index, [entry], index - 1)
    return wal


def segments_recycled_after_a_vote() -> None:
    """A vote is followed by so many entries that its segment is recycled; then the power fails."""
    disk, hard = SimDisk(), HardState(2, 3)
    wal = _written(disk, hard, 100)
    wal.recycle(100)
    disk.crash(Random(1))
    _, found = Wal.open(disk, IDENTITY, segment_bytes=SEGMENT_BYTES)
    if found.hard != hard:
        raise Violation(f"the vote was {hard}, and after the restart it is {found.hard}")


def flipped_bit_before_good_groups() -> None:
    """A bit flips in the middle of what was acknowledged, and the replica starts again."""
    disk, last = SimDisk(), 12
    _written(disk, HardState(2, 1), last)
    name = f"wal/{max(name for name in disk.names('wal') if name.endswith('.wal'))}"
    file = disk.open(name)
    image = file.read_at(0, file.size())
    file.close()
    words = [at for at in range(len(image)) if image.startswith(WORD, at)]
    disk.flip(name, words[len(words) // 2])
    disk.end_process()
    try:
        _, found = Wal.open(disk, IDENTITY, segment_bytes=SEGMENT_BYTES)
    except WalDamaged:
        return
    raise Violation(
        f"{last} entries were acknowledged, and after the restart {found.last} are there"
    )
