"""Each kind of effect, and a leader that dies at each step of it: the next performs what rows owe.

    entry committed --> released --> given to the agent --> taken --> reported --> report answered

The state, the dispatchers of both leaders and the agent's machine are the real ones; what is
between them is done by hand, and a supervisor does at once what it is told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from enum import IntEnum

import pytest

from spur.agent.actions import (
    Action,
    Admit,
    Fork,
    Kill,
    Notify,
    Prepare,
    Signal,
    Steer,
    Sweep,
    TakeClaim,
)
from spur.agent.machine import Found, Machine, Outbox
from spur.agent.manifest import AttemptName, Manifest, Outcome, Site
from spur.agent.reports import request_of
from spur.controller.dispatcher import Dispatcher
from spur.controller.orders import ORDERS
from spur.events.envelope import Actor
from spur.projections.dispatch import KillRun, LaunchRun, NotifyRun, SignalRun, SteerRun
from spur.projections.mails import SendMail
from spur.projections.react import EFFECTS, Effect, resume
from spur.projections.stepdispatch import KillStep, LaunchStep, LetIn, SignalStep
from spur.testing.builders import ADMIN
from spur.testing.hall import STEP, USER, Hall
from spur.values.errors import Rejection
from spur.values.ids import JobId, NodeName
from spur.values.states import Reach
from spur.wire.agents import AttendOrders, NodeHealth, Orders
from spur.wire.cluster import AddHost, HostAdded
from spur.wire.declare import Attachment
from spur.wire.jobs import (
    CancelJob,
    JobChanges,
    NotifyJob,
    ResumeJob,
    SignalJob,
    SuspendJob,
    UpdateJob,
)
from spur.wire.nodes import RegisterNode
from spur.wire.runs import ReportAnswered
from spur.wire.steps import AdmitGuest, CancelStep
from spur.wire.steps import SignalStep as SendSignal

N1 = NodeName("n1")
BOOT = "boot"


class Step(IntEnum):
    """How far an effect came before the leader died."""

    COMMITTED = 0
    RELEASED = 1
    GIVEN = 2
    TAKEN = 3
    REPORTED = 4
    ANSWERED = 5


class World:
    """A cluster's state, the leader's dispatcher, and the agent of n1."""

    def __init__(self) -> None:
        self.hall = Hall()
        added = self.hall.cluster.ask(AddHost("n1", "compute"), ADMIN)
        assert isinstance(added, HostAdded)
        self.host = added.host_id
        self.agent = Actor(uid=0, gid=0, host_id=self.host, host_role="compute", via="agent")
        self.ask(RegisterNode(N1, b"boot", 64, 512_000, "gfx942", 8))
        self.acted: Counter[tuple[str, int, int | None]] = Counter()
        """What was done on the node: action, job, step."""
        self.machine = Machine(BOOT, {N1: Outbox(id=b"o" * 16)})
        self.manifests: dict[AttemptName, Manifest] = {}
        self.answers: list[Orders | None] = []
        self.term = 1
        self.heard = 0
        self.lead()

    def ask(self, request: object) -> object:
        outcome = self.hall.cluster.ask(request, self.agent)  # type: ignore[arg-type]  # any request
        assert not isinstance(outcome, Rejection), outcome
        return outcome

    # -- the leader
    def lead(self) -> None:
        """Let another controller lead, which knows the state and nothing else."""
        self.term += 1
        self.released = len(self.hall.cluster.effects)
        self.dispatcher = Dispatcher(
            state=lambda: self.hall.state,
            read_blobs=lambda digests, done: done([b"text"] * len(digests)),
            mark_lost=lambda node, silence_ns: None,
        )
        self.dispatcher.leading(self.term)
        self.dispatcher.committed(self.hall.state.index)

    def release(self) -> None:
        effects = self.hall.cluster.effects
        for effect in effects[self.released :]:
            self.dispatcher.release(effect, self.hall.state.index)
        self.released = len(effects)
        self.dispatcher.committed(self.hall.state.index)

    # -- the agent
    def attend(self) -> Orders | None:
        """Ask for orders; return those that came at once."""
        before = len(self.answers)
        health = (NodeHealth(N1, 0, 1),)
        request = AttendOrders(b"s" * 16, self.heard, 1000, health)
        self.dispatcher.attend(request, self.host, self.answers.append)
        return self.answers[-1] if len(self.answers) > before else None

    def take(self, orders: Orders) -> None:
        if orders.orders:
            self.heard = orders.orders[-1].number
        self.perform(self.machine.take(orders))

    def perform(self, actions: list[Action]) -> None:
        machine = self.machine
        for action in actions:
            match action:
                case Prepare():
                    self.count("launch", action.name)
                    site = Site("", "", "", "")
                    self.manifests[action.name] = Manifest(
                        BOOT, action.incarnation, action.term, action.index, action.order, site
                    )
                    self.perform(machine.prepared(action.name))
                case Fork():
                    self.perform(machine.forked(action.name))
                    self.perform(machine.claimed(action.name))
                case Kill():
                    self.count("kill", action.name)
                    outcome = Outcome(BOOT, False, 0, 15, False, 7)
                    manifest = self.manifests[action.name]
                    found = Found(action.name, manifest, b"run", outcome, False)
                    self.perform(machine.gone(found))
                case Signal():
                    self.count("signal", action.name)
                case Steer():
                    self.count("stop" if action.paused else "continue", action.name)
                case Notify():
                    self.count("notify", action.name)
                case Admit():
                    self.count("admit", action.name)
                case TakeClaim():
                    self.perform(machine.voided(action.name, won=True))
                case Sweep():
                    self.perform(machine.swept(action.name))

    def count(self, what: str, name: AttemptName) -> None:
        self.acted[what, name.job_id, name.step] += 1

    def report(self, *, is_answered: bool = True) -> None:
        """Send the next report, whose answer may be lost."""
        report = self.machine.next_report(N1)
        if report is None:
            return
        answer = self.ask(request_of(b"o" * 16, report, BOOT, 10))
        assert isinstance(answer, ReportAnswered)
        self.release()
        if is_answered:
            self.perform(self.machine.answered(N1, answer.outcome))

    def settle(self) -> None:
        """Let the agent attend and report until there is nothing left."""
        for _ in range(6):
            self.release()
            while (orders := self.attend()) is not None and orders.orders:
                self.take(orders)
            while self.machine.next_report(N1) is not None:
                self.report()


def started(world: World) -> JobId:
    """Start a job on n1, with room for a step."""
    return world.hall.start(world.hall.submit(), world.hall.share("n1", cpus=4))


def running(world: World) -> JobId:
    job_id = started(world)
    world.settle()
    return job_id


def with_step(world: World) -> JobId:
    job_id = running(world)
    world.hall.start_step(job_id, STEP)
    world.settle()
    return job_id


def launch_run(world: World) -> Callable[[], tuple[str, int, int | None]]:
    return lambda: ("launch", started(world), None)


def kill_run(world: World) -> Callable[[], tuple[str, int, int | None]]:
    job_id = running(world)

    def cause() -> tuple[str, int, int | None]:
        world.hall.cluster.ask(CancelJob(job_id, None), USER)
        return ("kill", job_id, None)

    return cause


def signal_run(world: World) -> Callable[[], tuple[str, int, int | None]]:
    job_id = running(world)

    def cause() -> tuple[str, int, int | None]:
        world.hall.cluster.ask(SignalJob(job_id, None, 10, Reach.SCRIPT), USER)
        return ("signal", job_id, None)

    return cause


def steer_run(world: World) -> Callable[[], tuple[str, int, int | None]]:
    job_id = running(world)

    def cause() -> tuple[str, int, int | None]:
        world.hall.cluster.ask(SuspendJob(job_id, None), ADMIN)
        return ("stop", job_id, None)

    return cause


def notify_run(world: World) -> Callable[[], tuple[str, int, int | None]]:
    job_id = running(world)

    def cause() -> tuple[str, int, int | None]:
        notice = (Attachment("notice", b"soon"),)
        world.hall.cluster.ask(NotifyJob(job_id, None, notice), USER)
        return ("notify", job_id, None)

    return cause


def launch_step(world: World) -> Callable[[], tuple[str, int, int | None]]:
    job_id = running(world)
    return lambda: ("launch", job_id, world.hall.start_step(job_id, STEP))


def kill_step(world: World) -> Callable[[], tuple[str, int, int | None]]:
    job_id = with_step(world)

    def cause() -> tuple[str, int, int | None]:
        world.hall.cluster.ask(CancelStep(job_id, 0), USER)
        return ("kill", job_id, 0)

    return cause


def signal_step(world: World) -> Callable[[], tuple[str, int, int | None]]:
    job_id = with_step(world)

    def cause() -> tuple[str, int, int | None]:
        world.hall.cluster.ask(SendSignal(job_id, 0, 10), USER)
        return ("signal", job_id, 0)

    return cause


def let_in(world: World) -> Callable[[], tuple[str, int, int | None]]:
    job_id = with_step(world)

    def cause() -> tuple[str, int, int | None]:
        world.hall.cluster.ask(AdmitGuest(job_id, 0, bytes(32)), USER)
        return ("admit", job_id, 0)

    return cause


STORIES: dict[type[Effect], Callable[[World], Callable[[], tuple[str, int, int | None]]]] = {
    LaunchRun: launch_run,
    KillRun: kill_run,
    SignalRun: signal_run,
    SteerRun: steer_run,
    NotifyRun: notify_run,
    LaunchStep: launch_step,
    KillStep: kill_step,
    SignalStep: signal_step,
    LetIn: let_in,
}


def test_every_kind_of_effect_has_a_story() -> None:
    """A kind is added, and nobody says what becomes of it when a leader dies.

    Mail goes to no agent.
    """
    assert set(STORIES) == set(ORDERS) == set(EFFECTS) - {SendMail}


@pytest.mark.parametrize("reached", Step)
@pytest.mark.parametrize("kind", STORIES, ids=lambda kind: kind.__name__)
def test_effect_is_performed_once_though_its_leader_died(kind: type[Effect], reached: Step) -> None:
    """The leader dies when an effect has come so far; another takes over.

    What a row owes is done exactly once, and no row owes it in the end. What none can owe is done
    at most once: when it was given to the agent already, or not at all.
    """
    world = World()
    cause = STORIES[kind](world)
    world.settle()
    act = cause()
    assert any(type(effect) is kind for effect in world.hall.cluster.effects[world.released :])
    orders = None
    if reached >= Step.RELEASED:
        world.release()
    if reached >= Step.GIVEN:
        orders = world.attend()
        assert orders is not None
        assert len(orders.orders) == 1
    if reached >= Step.TAKEN:
        assert orders is not None
        world.take(orders)
    if reached >= Step.REPORTED:
        world.report(is_answered=reached >= Step.ANSWERED)
    world.lead()
    world.settle()
    is_owed = bool(EFFECTS[kind].table)
    assert world.acted[act] == (1 if is_owed or reached >= Step.TAKEN else 0)
    # A third one repeats nothing.
    world.lead()
    world.settle()
    assert world.acted[act] <= 1
    assert max(world.acted.values()) == 1
    world.hall.cluster.ask(CancelJob(JobId(act[1]), None), USER)
    world.settle()
    assert resume(world.hall.state) == []


@pytest.mark.parametrize("kind", [LaunchRun, KillRun], ids=lambda kind: kind.__name__)
def test_leader_of_a_lower_term_changes_nothing(kind: type[Effect]) -> None:
    """A deposed leader, which does not know it yet, answers after the new one did."""
    world = World()
    act = STORIES[kind](world)()
    world.release()
    late = world.attend()
    assert late is not None
    world.lead()
    world.settle()
    assert world.acted[act] == 1
    acted = world.acted.copy()
    world.take(late)
    assert world.acted == acted


def test_what_is_suspended_before_it_was_launched_stops_once_it_was() -> None:
    """A job is suspended while its node has not heard of it; its step follows it."""
    world = World()
    job_id = started(world)
    world.hall.start_step(job_id, STEP)
    world.hall.cluster.ask(SuspendJob(job_id, None), ADMIN)
    world.settle()
    assert world.acted["launch", job_id, None] == 1
    assert world.acted["stop", job_id, None] == 1
    assert world.acted["stop", job_id, 0] == 1
    world.lead()
    world.settle()
    assert world.acted["stop", job_id, None] == 1


def test_only_the_newest_turn_counts_after_a_failover() -> None:
    """A job is suspended, resumed and given more time while its node's agent is away."""
    world = World()
    job_id = running(world)
    for request in (
        SuspendJob(job_id, None),
        ResumeJob(job_id, None),
        UpdateJob(job_id, None, JobChanges(time_limit_s=7200)),
    ):
        world.hall.cluster.ask(request, ADMIN)
    world.lead()
    world.settle()
    assert world.acted["stop", job_id, None] == 0
    assert world.acted["continue", job_id, None] == 1
