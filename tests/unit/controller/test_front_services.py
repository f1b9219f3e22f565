"""What the front has others do: read attachments, answer from history, parse, attend agents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pytest
from msgspec.structs import replace

from spur.commands.decide import Attendance
from spur.controller.services import HistoryDone, OrdersDone
from spur.controller.statistics import Counter
from spur.events.declare import Event
from spur.projections.dispatch import LaunchRun
from spur.projections.react import Effect
from spur.projections.state import State
from spur.testing.builders import ADMIN, SMALL_CONFIG, actor
from spur.testing.desk import Desk, furnished
from spur.testing.hall import placement, submission
from spur.values.config import ConfigFile
from spur.values.configfile import CONFIG_FILE
from spur.values.ids import HostId, JobId, NodeName
from spur.values.tres import NodeShare
from spur.wire.agents import AttendOrders, Orders
from spur.wire.calls import Answered, Refused, Reply
from spur.wire.cluster import Configured, ProcessInfo, Reconfigure, ReplicaInfo, ShowReplica
from spur.wire.declare import Request
from spur.wire.history import QueryRecords, RecordFilter
from spur.wire.jobs import StartView
from spur.wire.nodes import ListNodes, NodeList, RegisterNode
from spur.wire.runs import PlaceJobs
from spur.wire.statistics import ResetStatistics, ShowStatistics, Statistics
from spur.wire.texts import JobScript, ReadScript

USER = actor(1001)
ATTEND = AttendOrders(b"s" * 16, 0, 1_000, ())
RECORDS = QueryRecords(RecordFilter(), JobId(0), 10)
CONFIG = Reconfigure((ConfigFile(CONFIG_FILE, SMALL_CONFIG.replace("hall", "barn")),))


class Room:
    """Services that do nothing until the test does it."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.counter = Counter()
        self.released: list[tuple[Effect, int]] = []
        self.attending: list[tuple[HostId, OrdersDone]] = []
        self.reading: list[tuple[Sequence[bytes], Callable[[Sequence[bytes | None]], None]]] = []
        self.asked: list[tuple[Request, int, HistoryDone]] = []
        self.heard_of: list[HostId] = []
        self.work: list[tuple[Callable[[], Any], Callable[[Any], None]]] = []
        self.is_late = False
        """Work waits until the test does it."""

    def leading(self, term: int) -> None:
        self.told.append(f"leads {term}")

    def following(self) -> None:
        self.told.append("follows")

    def committed(self, index: int) -> None:
        pass

    def release(self, effect: Effect, index: int) -> None:
        self.released.append((effect, index))

    def attend(self, request: AttendOrders, host_id: HostId, done: OrdersDone) -> None:
        self.attending.append((host_id, done))

    def heard(self, host_id: HostId) -> None:
        self.heard_of.append(host_id)

    def attendances(self) -> Mapping[NodeName, Attendance]:
        return MappingProxyType({NodeName("n1"): Attendance(500, 2_000)})

    def timed(
        self, request: Request, uid: int, respond: Callable[[Reply], None]
    ) -> Callable[[Reply], None]:
        return self.counter.timed(request, uid, respond)

    def decided(self, events: Sequence[Event]) -> None:
        self.counter.decided(events)

    def statistics(self, *, anew: bool) -> Statistics:
        if anew:
            self.counter.reset()
        return self.counter.told(State(), 1)

    def certificate(self) -> tuple[bytes, int]:
        """Have none."""
        return b"", 0

    def starts(self) -> Mapping[JobId, StartView]:
        return MappingProxyType({})

    def processes(self) -> tuple[ProcessInfo, ...]:
        return (ProcessInfo("front", 7, 3, 1),)

    def compute(self, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        if self.is_late:
            self.work.append((work, done))
        else:
            done(work())

    def read_blobs(
        self, digests: Sequence[bytes], done: Callable[[Sequence[bytes | None]], None]
    ) -> None:
        self.reading.append((digests, done))

    def ask_history(self, request: Request, at_least: int, done: HistoryDone) -> None:
        self.asked.append((request, at_least, done))


@pytest.fixture
def room() -> Room:
    return Room()


@pytest.fixture
def desk(room: Room) -> Desk:
    return furnished(room)


def agent_of(desk: Desk) -> Any:
    [host_id] = desk.front.state.hosts.rows
    return actor(0, host_role="compute", host_id=host_id, via="agent")


def test_leading_is_told_before_what_rows_owe(desk: Desk, room: Room) -> None:
    """A leader is elected whose state owes a launch; and loses the lead again."""
    assert room.told == ["leads 1"]
    desk.put(submission(), USER)
    desk.turn()
    share = NodeShare(NodeName("n1"), 4, 1_000, 0, b"\x0f", False)
    cluster = actor(0, host_role="cluster", via="scheduler")
    desk.put(PlaceJobs(desk.front.commit, b"p" * 32, (placement(JobId(1), share),)), cluster)
    desk.turn()
    [(effect, index)] = room.released
    assert isinstance(effect, LaunchRun)
    assert index == desk.front.commit
    desk.front.following(2)
    assert room.told[-1] == "follows"


def test_an_agent_is_answered_by_the_dispatcher(desk: Desk, room: Room) -> None:
    """An agent asks for orders and waits; its answer rests on what is committed."""
    desk.put(ATTEND, agent_of(desk))
    [(host_id, done)] = room.attending
    assert desk.replies == []
    assert host_id == agent_of(desk).host_id
    done(Orders(0, 1, (), (NodeName("n1"),)))
    assert desk.answer() == Orders(0, 1, (), (NodeName("n1"),))
    assert desk.replies[-1].index == desk.front.commit


def test_an_agent_that_registers_is_there(desk: Desk, room: Room) -> None:
    """An agent that was silent for long comes back: it registers before it asks for orders.

    Jobs start on its node at once, and it must not be taken for lost a second time meanwhile.
    """
    room.heard_of.clear()
    desk.put(RegisterNode(NodeName("n1"), b"boot", 64, 512_000, "gfx942", 8), agent_of(desk))
    desk.put(submission(), USER)
    desk.turn()
    assert room.heard_of == [agent_of(desk).host_id]


def test_who_waits_for_orders_is_sent_to_the_leader(desk: Desk, room: Room) -> None:
    """The lead is lost while an agent waits; another one comes after that."""
    desk.put(ATTEND, agent_of(desk))
    room.attending[0][1](None)
    assert desk.refusal().code == "not-leader"
    desk.front.following(2)
    desk.put(ATTEND, agent_of(desk))
    assert desk.refusal().code == "not-leader"
    assert len(room.attending) == 1


@pytest.mark.parametrize(
    "who", [USER, actor(0, host_role="compute", host_id=999, via="agent")], ids=["user", "unknown"]
)
def test_only_listed_hosts_take_orders(desk: Desk, room: Room, who: Any) -> None:
    """A user, and a host whose certificate was taken back, ask for orders."""
    desk.put(ATTEND, who)
    assert desk.refusal().code == "not-permitted"
    assert room.attending == []


def test_a_script_is_read_before_it_is_shown(desk: Desk, room: Room) -> None:
    """A user looks at the script of a job that is not even committed."""
    desk.put(submission(), USER)
    desk.put(ReadScript(JobId(1)), USER)
    desk.turn()
    [(digests, done)] = room.reading
    assert len(digests) == 1
    assert len(desk.replies) == 1
    done([b"#!/bin/sh"])
    assert desk.answer() == JobScript(b"#!/bin/sh", is_erased=False)
    assert desk.replies[-1].index == desk.front.commit


def test_history_is_asked_narrowed_and_behind_a_barrier(desk: Desk, room: Room) -> None:
    """A user asks for records where others' jobs are private; the projector answers."""
    desk.put(submission(), USER)
    desk.put(RECORDS, USER)
    assert room.asked == []
    desk.turn()
    [(request, at_least, done)] = room.asked
    assert request == RECORDS
    assert at_least == desk.front.commit
    done(Answered(b"rows"), "the read model is at entry 3")
    reply = desk.replies[-1]
    assert (reply.outcome, reply.index) == (Answered(b"rows"), at_least)
    assert reply.warning == "the read model is at entry 3"


def test_history_that_may_not_be_asked_reaches_no_projector(desk: Desk, room: Room) -> None:
    """Somebody asks for a million records in one answer."""
    desk.put(replace(RECORDS, limit=1_000_000), USER)
    desk.turn()
    assert desk.refusal().code == "invalid-value"
    assert room.asked == []


def test_a_projector_that_is_behind_says_so(desk: Desk, room: Room) -> None:
    """The projector is just being started again."""
    desk.put(RECORDS, ADMIN)
    desk.turn()
    room.asked[0][2](Refused("history-behind", "the projector is not there"), "")
    assert desk.refusal().code == "history-behind"


def test_files_are_read_beside_the_loop(desk: Desk, room: Room) -> None:
    """A large slurm.conf is handed in: others are served while it is read."""
    room.is_late = True
    desk.put(CONFIG)
    desk.put(submission(), USER)
    desk.turn()
    assert [type(reply.outcome) for reply in desk.replies] == [Answered]
    [(work, done)] = room.work
    done(work())
    desk.turn()
    answer = desk.answer()
    assert isinstance(answer, Configured)
    assert answer.changes == 1


def test_files_that_were_read_when_the_lead_was_lost_change_nothing(desk: Desk, room: Room) -> None:
    """The lead is lost while a slurm.conf is read."""
    room.is_late = True
    desk.put(CONFIG)
    desk.front.following(2)
    [(work, done)] = room.work
    done(work())
    assert desk.refusal().code == "not-leader"


def test_nobody_has_files_read_who_may_not_hand_them_in(desk: Desk, room: Room) -> None:
    """An ordinary user hands in eight megabytes of nonsense."""
    room.is_late = True
    desk.put(CONFIG, USER)
    desk.turn()
    assert desk.refusal().code == "not-permitted"
    assert room.work == []


def test_rows_of_nodes_show_what_agents_said(desk: Desk) -> None:
    """An administrator looks at a node's load."""
    desk.put(ListNodes("n[1-2]", "", 10))
    desk.turn()
    answer = desk.answer()
    assert isinstance(answer, NodeList)
    shown = [(each.load_milli, each.free_memory_mib) for each in answer.nodes]
    assert shown == [(500, 2_000), (None, None)]


def test_a_controller_names_its_processes(desk: Desk) -> None:
    """An administrator looks for what runs."""
    desk.log.describe = lambda: ReplicaInfo(1, True, 1, 1, 9, 9, 9, 1, 0, 0, 0)  # type: ignore[method-assign]  # the log in memory has nothing to say
    desk.put(ShowReplica())
    answer = desk.answer()
    assert isinstance(answer, ReplicaInfo)
    assert answer.processes == (ProcessInfo("front", 7, 3, 1),)


def test_what_a_member_cannot_read_is_not_written(desk: Desk) -> None:
    """The cluster is still at the version of an older release that knows none of the events."""
    state = desk.front.state
    state.cluster.put(1, replace(state.cluster[1], version=0))
    desk.put(submission(), USER)
    desk.turn()
    refusal = desk.refusal()
    assert refusal.code == "wrong-state"
    assert refusal.hint == "bring every controller to this release"
    assert not state.jobs.rows


def test_requests_and_jobs_are_counted(desk: Desk, room: Room) -> None:
    """An administrator asks who keeps the controller busy, and sets the counts to zero."""
    desk.put(submission(), USER)
    desk.put(submission(), USER)
    desk.turn()
    desk.put(ShowStatistics(), USER)
    told = desk.answer()
    assert isinstance(told, Statistics)
    assert (told.submitted, told.started, told.failed) == (2, 0, 0)
    counts = {row.name: row.count for row in told.requests}
    assert counts["job.submit"] == 2
    assert {row.uid: row.count for row in told.users}[USER.uid] == 2
    desk.put(ResetStatistics(), ADMIN)
    told = desk.answer()
    assert isinstance(told, Statistics)
    assert (told.submitted, told.requests) == (0, ())


def test_a_user_does_not_set_counts_to_zero(desk: Desk, room: Room) -> None:
    """Somebody who is no operator calls sdiag -r."""
    desk.put(ResetStatistics(), USER)
    desk.turn()
    assert desk.refusal().code == "not-permitted"
