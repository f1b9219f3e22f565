"""The dispatcher: who is told what, how often, and who fell silent; no socket and no clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from spur.controller.dispatcher import LOST_NS, RETRY_NS, SWEEP_NS, Dispatcher
from spur.events.envelope import Actor
from spur.testing.builders import ADMIN, SMALL_CONFIG
from spur.testing.hall import USER, Hall
from spur.values.arrays import TaskSet
from spur.values.ids import HostId, JobId, NodeName
from spur.values.states import JobState, NodeShareState, Reach
from spur.wire.agents import (
    AttendOrders,
    KillOrder,
    LaunchOrder,
    NodeHealth,
    Order,
    Orders,
    SignalOrder,
)
from spur.wire.cluster import AddHost, HostAdded
from spur.wire.jobs import CancelJob, SignalJob
from spur.wire.nodes import RegisterNode

SECOND_NS = 1_000_000_000


class Desk:
    """A hall whose nodes are served by agents, and the dispatcher of its leader."""

    def __init__(self) -> None:
        self.hall = Hall(SMALL_CONFIG.replace("[cluster]", "[cluster]\nslurmd_timeout_s = 30"))
        self.hosts: dict[str, HostId] = {}
        self.released = 0
        self.is_missing = False
        self.reading: list[Callable[[], None]] | None = None
        """Reads of attachments that are not done yet; None when they are done at once."""
        self.lost: list[tuple[NodeName, int]] = []
        self.dispatcher = Dispatcher(
            state=lambda: self.hall.state, read_blobs=self.read_blobs, mark_lost=self.mark_lost
        )
        for node in ("n1", "n2"):
            added = self.hall.cluster.ask(AddHost(node, "compute"), ADMIN)
            assert isinstance(added, HostAdded)
            self.hosts[node] = added.host_id
            self.register(node)
        self.dispatcher.leading(7)
        self.commit()

    def register(self, node: str) -> None:
        host = self.hosts[node]
        agent = Actor(uid=0, gid=0, host_id=host, host_role="compute", via="agent")
        request = RegisterNode(NodeName(node), b"boot2", 64, 512_000, "gfx942", 8)
        self.hall.cluster.ask(request, agent)

    def read_blobs(
        self, digests: Sequence[bytes], done: Callable[[Sequence[bytes | None]], None]
    ) -> None:
        def read() -> None:
            done([None if self.is_missing else each[:4] for each in digests])

        if self.reading is None:
            read()
        else:
            self.reading.append(read)

    def mark_lost(self, node: NodeName, silence_ns: int) -> None:
        self.lost.append((node, silence_ns))

    def release(self) -> None:
        """Release what the hall's entries came to since the last time."""
        effects = self.hall.cluster.effects
        for effect in effects[self.released :]:
            self.dispatcher.release(effect, self.hall.state.index)
        self.released = len(effects)

    def commit(self) -> None:
        self.release()
        self.dispatcher.committed(self.hall.state.index)

    def start(self, *nodes: str) -> JobId:
        shares = [self.hall.share(node) for node in nodes or ("n1",)]
        return self.hall.start(self.hall.submit(), *shares)

    def pass_time(self, seconds: float) -> None:
        for _ in range(int(seconds * 10)):
            self.dispatcher.on_tick(SWEEP_NS)


class Caller:
    """One agent process, and the answers it got."""

    def __init__(self, desk: Desk, node: str, session: bytes = b"s" * 16) -> None:
        self.desk = desk
        self.node = node
        self.session = session
        self.heard = 0
        self.answers: list[Orders | None] = []

    def ask(self, *, wait_ms: int = 5_000, takes: bool = True) -> list[Order] | None:
        """Ask for orders; return those that came at once, None while it waits."""
        before = len(self.answers)
        health = (NodeHealth(NodeName(self.node), 250, 1_000),)
        request = AttendOrders(self.session, self.heard, wait_ms, health)
        self.desk.dispatcher.attend(request, self.desk.hosts[self.node], self.answers.append)
        return self.newest(takes=takes) if len(self.answers) > before else None

    def newest(self, *, takes: bool = True) -> list[Order]:
        """Return the orders of the newest answer."""
        answer = self.answers[-1]
        assert answer is not None
        assert (answer.incarnation, answer.term) == (0, 7)
        if takes and answer.orders:
            self.heard = answer.orders[-1].number
        return [numbered.order for numbered in answer.orders]


@pytest.fixture
def desk() -> Desk:
    return Desk()


def names(orders: Sequence[Order] | None) -> list[tuple[str, int, int]]:
    """Return kind, job and attempt of orders."""
    return [(type(each).__name__, each.job_id, each.attempt) for each in orders or ()]


def test_a_launch_comes_with_all_that_it_takes(desk: Desk) -> None:
    """An agent waits, and a job is placed on its node."""
    caller = Caller(desk, "n1")
    assert caller.ask() is None
    job_id = desk.start("n1", "n2")
    desk.commit()
    [order] = caller.newest()
    assert isinstance(order, LaunchOrder)
    assert (order.node, order.job_id, order.run, order.attempt) == ("n1", job_id, 0, 1)
    assert len(order.script) == len(order.environment) == len(order.text) == 4
    assert [share.node for share in order.shares] == ["n1", "n2"]
    assert order.node_cpus == (64, 64)
    assert order.block.gpus == 8
    assert (order.cluster_name, order.partition_nodes) == ("hall", "n[1-4]")
    assert (order.task, order.array_count) == (None, 0)
    assert (order.topology, order.topology_pattern) == ("n1", "node")
    started = desk.hall.state.runs[job_id].started
    assert started is not None
    assert order.start_ns == started.start_ns
    assert order.limit_ns == started.limit_ns


def test_a_launch_of_a_task_tells_of_its_array(desk: Desk) -> None:
    """A task of an array starts: its environment names the array."""
    caller = Caller(desk, "n1")
    array = desk.hall.submit(tasks=TaskSet(((2, 10, 4),)))
    desk.hall.start(array, desk.hall.share("n1"), task=6)
    desk.commit()
    [order] = caller.ask() or []
    assert isinstance(order, LaunchOrder)
    assert (order.array_id, order.task) == (array, 6)
    shape = (order.array_count, order.array_min, order.array_max, order.array_step)
    assert shape == (3, 2, 10, 4)


def test_an_agent_that_is_new_is_told_all_that_is_owed(desk: Desk) -> None:
    """An agent process is started again and knows nothing."""
    first = desk.start("n1")
    second = desk.start("n1")
    desk.hall.report("n1", second, NodeShareState.LAUNCHED)
    desk.hall.cluster.ask(CancelJob(second, None), USER)
    desk.start("n2")
    desk.commit()
    caller = Caller(desk, "n1")
    assert names(caller.ask()) == [("LaunchOrder", first, 1), ("KillOrder", second, 1)]
    assert caller.ask() is None
    again = Caller(desk, "n1", b"t" * 16)
    assert names(again.ask()) == [("LaunchOrder", first, 1), ("KillOrder", second, 1)]
    assert caller.newest() == []


def test_orders_come_again_until_they_are_heard(desk: Desk) -> None:
    """The connection breaks while an answer is on its way."""
    caller = Caller(desk, "n1")
    job_id = desk.start()
    desk.commit()
    assert names(caller.ask()) == [("LaunchOrder", job_id, 1)]
    second = desk.start()
    desk.commit()
    assert names(caller.ask(takes=False)) == [("LaunchOrder", second, 1)]
    third = desk.start()
    desk.commit()
    both = [("LaunchOrder", second, 1), ("LaunchOrder", third, 1)]
    assert names(caller.ask()) == both
    assert caller.ask() is None


def test_nothing_is_told_before_it_is_committed(desk: Desk) -> None:
    """A start is in the leader's log alone when an agent comes anew."""
    caller = Caller(desk, "n1")
    desk.start()
    assert caller.ask() is None
    desk.commit()
    assert [name for name, _, _ in names(caller.newest())] == ["LaunchOrder"]
    assert caller.ask() is None


def test_a_signal_is_told_once(desk: Desk) -> None:
    """A user sends a signal; the agent that was away does not get it late."""
    caller = Caller(desk, "n1")
    job_id = desk.start()
    desk.commit()
    caller.ask()
    caller.ask()
    desk.hall.cluster.ask(SignalJob(job_id, None, 10, Reach.ALL), USER)
    desk.commit()
    [order] = caller.newest()
    assert isinstance(order, SignalOrder)
    assert (order.signal, order.index) == (10, desk.hall.state.index)
    again = Caller(desk, "n1", b"t" * 16)
    assert names(again.ask()) == [("LaunchOrder", job_id, 1)]


def test_a_kill_says_how_it_will_be_recorded(desk: Desk) -> None:
    """A job is cancelled: its agent warns its processes in the right words."""
    caller = Caller(desk, "n1")
    job_id = desk.start()
    desk.commit()
    caller.ask()
    caller.ask()
    desk.hall.cluster.ask(CancelJob(job_id, None), USER)
    desk.commit()
    [order] = caller.newest()
    assert isinstance(order, KillOrder)
    assert (order.state, order.kill_wait_s) == (JobState.CANCELLED, 30)


def test_patience_ends(desk: Desk) -> None:
    """Nothing happens for as long as the agent wanted to wait."""
    caller = Caller(desk, "n1")
    assert caller.ask(wait_ms=2_000) is None
    desk.pass_time(1.9)
    assert caller.answers == []
    desk.pass_time(0.2)
    assert caller.newest() == []
    assert caller.ask(wait_ms=0) is None
    desk.pass_time(0.1)
    assert len(caller.answers) == 2


def test_an_agent_that_asks_twice_gets_its_first_answer(desk: Desk) -> None:
    """A client gave up waiting and asked again on another connection."""
    caller = Caller(desk, "n1")
    caller.ask()
    assert caller.ask() == []
    desk.start()
    desk.commit()
    assert len(caller.answers) == 2


def test_a_missing_attachment_holds_up_its_job_alone(desk: Desk) -> None:
    """The leader fetches a script from a peer; the node's other orders go out meanwhile."""
    caller = Caller(desk, "n1")
    killed = desk.start()
    desk.commit()
    caller.ask()
    waiting = desk.start()
    desk.hall.cluster.ask(CancelJob(killed, None), USER)
    desk.commit()
    desk.is_missing = True
    assert names(caller.ask()) == [("KillOrder", killed, 1)]
    desk.is_missing = False
    assert caller.ask() is None
    desk.pass_time(RETRY_NS / SECOND_NS + 0.1)
    assert names(caller.newest()) == [("LaunchOrder", waiting, 1)]


def test_a_launch_whose_attachments_are_lost_is_told_to_fail(desk: Desk) -> None:
    """A script was damaged on every controller: its job does not wait for ever, nor do others."""
    caller = Caller(desk, "n1")
    assert caller.ask() is None
    desk.is_missing = True
    lost = desk.start()
    desk.commit()
    for _ in range(int(LOST_NS / SECOND_NS / 5) - 1):
        desk.pass_time(5)
        assert not any(answer and answer.orders for answer in caller.answers)
        caller.ask()
    desk.pass_time(5.1)
    [order] = caller.newest()
    assert isinstance(order, LaunchOrder)
    assert (order.job_id, order.script) == (lost, b"")
    assert order.why_not == "nobody can read its script, environment, text any more"


def test_an_answer_that_is_being_made_when_the_agent_asks_again_goes_nowhere(desk: Desk) -> None:
    """Attachments are still being read when the agent, started anew, asks with a new session."""
    desk.reading = []
    job_id = desk.start()
    desk.commit()
    old, new = Caller(desk, "n1"), Caller(desk, "n1", b"t" * 16)
    assert old.ask() is None
    assert new.ask() is None
    assert old.newest() == []
    for read in desk.reading:
        read()
    assert names(new.newest()) == [("LaunchOrder", job_id, 1)]
    assert len(old.answers) == 1


def test_waiting_agents_are_sent_to_the_new_leader(desk: Desk) -> None:
    """Leadership is lost while agents wait."""
    caller = Caller(desk, "n1")
    caller.ask()
    desk.dispatcher.following()
    assert caller.answers == [None]


def test_a_lost_or_unknown_node_is_to_be_registered(desk: Desk) -> None:
    """A node was declared lost while its agent was merely slow: it hears so at once."""
    caller = Caller(desk, "n1")
    assert caller.ask() is None
    desk.hall.lose("n1")
    assert caller.ask() == []
    answer = caller.answers[-1]
    assert answer is not None
    assert answer.register == ("n1",)
    assert caller.ask() is None
    desk.pass_time(6)
    assert caller.newest() == []
    desk.register("n1")
    desk.commit()
    assert caller.ask() is None


def test_health_is_known_while_the_agent_attends(desk: Desk) -> None:
    """An administrator looks at a node's load."""
    Caller(desk, "n1").ask()
    assert desk.dispatcher.health[NodeName("n1")].load_milli == 250
    assert "n2" not in desk.dispatcher.health


def test_a_silent_agent_loses_its_nodes_and_no_other(desk: Desk) -> None:
    """A node is switched off; SlurmdTimeout is thirty seconds."""
    Caller(desk, "n1").ask()
    for _ in range(29):
        desk.pass_time(1)
        desk.dispatcher.heard(desk.hosts["n1"])
    assert desk.lost == []
    desk.pass_time(2)
    assert {node for node, _ in desk.lost} == {"n2"}
    silence_ns = desk.lost[0][1]
    assert 30 * SECOND_NS <= silence_ns <= 32 * SECOND_NS


def test_a_new_leader_gives_every_node_the_whole_time(desk: Desk) -> None:
    """A leader takes over twenty seconds after a node was heard last."""
    desk.pass_time(20)
    desk.dispatcher.following()
    desk.pass_time(20)
    desk.dispatcher.leading(7)
    desk.pass_time(29)
    assert desk.lost == []
    desk.pass_time(2)
    assert {node for node, _ in desk.lost} == {"n1", "n2"}


def test_a_controller_that_was_stopped_blames_no_agent(desk: Desk) -> None:
    """The controller's machine sleeps for an hour."""
    desk.dispatcher.on_tick(3_600 * SECOND_NS)
    desk.pass_time(5)
    assert desk.lost == []
