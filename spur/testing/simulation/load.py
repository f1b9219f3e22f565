"""What the clients of a run do, and what they saw.

registers    held jobs whose priority is written and read: a linearizable register each
submitters   jobs under unique names; an answered one exists once, any other at most once
scheduler    places what waits, on a view that may be old
agents       run what is launched and report it
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from spur.events.envelope import Actor
from spur.projections.react import Effect
from spur.testing.simulation.agents import Agent
from spur.testing.simulation.callers import (
    ADMINISTRATOR,
    SCHEDULER,
    Caller,
    Outcome,
    user,
)
from spur.testing.simulation.checks import Checks, Violation
from spur.testing.simulation.linearizability import UNKNOWN, Operation, is_linearizable
from spur.testing.simulation.member import SimMember
from spur.testing.simulation.world import World
from spur.values.config import ConfigFile
from spur.values.configfile import CONFIG_FILE
from spur.values.ids import JobId, NodeName, PartitionName
from spur.values.jobspec import JobSpec, ResourceAsk, Sharing
from spur.values.states import Hold, JobState
from spur.values.tres import NodeShare, Per
from spur.wire.calls import Refused
from spur.wire.cluster import AcceptClock, Reconfigure
from spur.wire.declare import Answer, Attachment, Request
from spur.wire.jobs import (
    CancelJob,
    JobAccepted,
    JobChanges,
    JobFilter,
    JobPage,
    JobView,
    QueryJobs,
    SubmitJob,
    UpdateJob,
    decode_job_view,
)
from spur.wire.runs import PlaceJobs, Placement

__all__ = ["Load"]

NODES = (NodeName("n1"), NodeName("n2"))
MAIN = PartitionName("main")

CONFIG = """
[cluster]
name = "simulated"
min_job_age_s = 86400

[[nodes]]
names = "n[1-2]"
cpus = 2
memory_mib = 4096

[[partitions]]
name = "main"
nodes = "n[1-2]"
default = true
"""

REGISTERS = 2
SUBMITTERS = 2
WRITERS = 4
PATIENCE_S = 6.0
UID = 1000
FIRST = JobId(0)
"""A query's slice begins above this id."""


def _spec(name: str) -> JobSpec:
    """Return a job of one CPU."""
    ask = ResourceAsk(
        nodes_min=1,
        nodes_max=0,
        tasks=1,
        tasks_per_node=0,
        cpus_per_task=1,
        memory_mib=64,
        memory_per=Per.NODE,
        gres=(),
        features="",
        nodes_required="",
        nodes_excluded="",
        sharing=Sharing.PARTITION,
        licenses="",
        reservation="",
    )
    return JobSpec(
        name=name,
        partitions=(MAIN,),
        account="",
        qos="",
        ask=ask,
        time_limit_s=3600,
        begin_ns=0,
        nice=0,
        requeue=True,
        batch=True,
    )


def _submission(name: str, *, hold: bool, priority: int | None) -> SubmitJob:
    """Return a batch job's submission."""
    return SubmitJob(
        spec=_spec(name),
        tasks=None,
        throttle=0,
        hold=hold,
        priority=priority,
        attachments=(Attachment("script", b"#!/bin/sh\ntrue\n"),),
    )


def _register(state: Hashable, action: Hashable) -> tuple[Hashable, Hashable]:
    """What a register does: an int is written, None reads."""
    return (state, state) if action is None else (action, "written")


class Load:
    """All clients of one run."""

    def __init__(self, world: World, members: Sequence[SimMember], checks: Checks) -> None:
        self.world = world
        self.members = members
        self.checks = checks
        self.history: list[Operation] = []
        self.acknowledged: dict[str, bytes] = {}
        """Request id by name of every submission that was answered."""
        self.submitted: set[str] = set()
        self.is_stopped = False
        self.asked = 0
        self.answered = 0
        self._registers: list[JobId] = []
        self._agents = {node: Agent(world, self._caller(ADMINISTRATOR), node) for node in NODES}
        self._value = 0
        self._name = 0
        self._person_is_busy = False

    def _caller(self, actor: Actor) -> Caller:
        caller = Caller(self.world, self.members, actor)
        caller.on_clock_step = self._accept_clock
        return caller

    def _accept_clock(self) -> None:
        """A person looks at the alarm and vouches for the clock, one at a time."""
        if self._person_is_busy:
            return
        self._person_is_busy = True

        def done(outcome: Outcome) -> None:
            self._person_is_busy = False

        person = Caller(self.world, self.members, ADMINISTRATOR)
        person.ask(AcceptClock(), done, patience_s=PATIENCE_S)

    def performed(self, effect: Effect) -> None:
        """Let the agents do what a leader tells them."""
        agent = self._agents.get(getattr(effect, "node", NodeName("")))
        if agent is not None:
            self.world.after(0.001 + 0.02 * self.world.rng.random(), agent.perform, effect)

    def start(self) -> None:
        """Configure the cluster, make the registers, then let everybody begin."""
        admin = self._caller(ADMINISTRATOR)

        def configured(outcome: Outcome) -> None:
            self._must(outcome, "the configuration")
            self._make_register(admin)

        admin.ask(Reconfigure((ConfigFile(CONFIG_FILE, CONFIG),)), configured, patience_s=UNKNOWN)

    def _make_register(self, admin: Caller) -> None:
        name = f"register-{len(self._registers)}"

        def made(outcome: Outcome) -> None:
            self._must(outcome, name)
            assert isinstance(outcome, JobAccepted)
            self._registers.append(outcome.job_id)
            if len(self._registers) < REGISTERS:
                self._make_register(admin)
            else:
                self._begin()

        admin.ask(_submission(name, hold=True, priority=1), made, patience_s=UNKNOWN)

    def _begin(self) -> None:
        for _ in range(WRITERS):
            self.world.after(
                self.world.rng.random(), self._use_register, self._caller(ADMINISTRATOR)
            )
        for _ in range(SUBMITTERS):
            self.world.after(self.world.rng.random(), self._submit, self._caller(user(UID)))
        self.world.after(0.5, self._schedule, self._caller(SCHEDULER))

    def _must(self, outcome: Outcome, what: str) -> None:
        if not isinstance(outcome, Answer):
            raise Violation(f"{what} was not accepted: {outcome}")

    # -- registers
    def _use_register(self, caller: Caller) -> None:
        if self.is_stopped:
            return
        rng = self.world.rng
        job_id = rng.choice(self._registers)
        called = self.world.now_s
        request: Request
        if rng.random() < 0.5:
            self._value += 1
            action: Hashable = self._value + 1
            changes = JobChanges(priority=self._value + 1)
            request = UpdateJob(job_id=job_id, tasks=None, changes=changes)
        else:
            action = None
            request = QueryJobs(JobFilter(job_ids=(job_id,)), FIRST, 10)
        self.asked += 1

        def done(outcome: Outcome) -> None:
            self._note(job_id, called, action, outcome)
            pause_s = self.world.rng.random() * 0.5
            self.world.after(pause_s, self._use_register, caller)

        caller.ask(request, done, patience_s=PATIENCE_S)

    def _note(self, job_id: int, called: float, action: Hashable, outcome: Outcome) -> None:
        if outcome is None:
            self.history.append(Operation(called, UNKNOWN, job_id, action, None))
            return
        if isinstance(outcome, Refused):
            if outcome.code != "outcome-unknown":
                raise Violation(f"a register was refused: {outcome}")
            self.history.append(Operation(called, UNKNOWN, job_id, action, None))
            return
        self.answered += 1
        result: Hashable = "written"
        if isinstance(outcome, JobPage):
            result = decode_job_view(outcome.rows[0]).priority
        self.history.append(Operation(called, self.world.now_s, job_id, action, result))

    # -- submitters
    def _submit(self, caller: Caller) -> None:
        if self.is_stopped:
            return
        self._name += 1
        name = f"job-{self._name}"
        self.submitted.add(name)
        self.asked += 1
        request_ids: list[bytes] = []

        def done(outcome: Outcome) -> None:
            if isinstance(outcome, JobAccepted):
                self.answered += 1
                self.acknowledged[name] = request_ids[0]
                if self.world.rng.random() < 0.2:
                    cancel = CancelJob(outcome.job_id, None)
                    caller.ask(cancel, lambda _: None, patience_s=PATIENCE_S)
            elif isinstance(outcome, Refused) and outcome.code != "outcome-unknown":
                raise Violation(f"{name} was refused: {outcome}")
            self.world.after(self.world.rng.random() * 1.5, self._submit, caller)

        request_ids.append(
            caller.ask(_submission(name, hold=False, priority=None), done, patience_s=PATIENCE_S)
        )

    # -- scheduler
    def _schedule(self, caller: Caller) -> None:
        if self.is_stopped:
            return

        def seen(outcome: Outcome) -> None:
            placements = self._plan(outcome) if isinstance(outcome, JobPage) else ()
            if not placements:
                self.world.after(0.5, self._schedule, caller)
                return
            caller.ask(
                PlaceJobs(caller.index, b"", placements),
                lambda _: self.world.after(0.3, self._schedule, caller),
                patience_s=PATIENCE_S,
            )

        pending = JobFilter(states=(JobState.PENDING,))
        caller.ask(QueryJobs(pending, FIRST, 50), seen, patience_s=PATIENCE_S)

    def _plan(self, page: JobPage) -> tuple[Placement, ...]:
        """Place on nodes drawn at random, full or not: the leader refuses what no longer fits."""
        rng = self.world.rng
        rows = [decode_job_view(row) for row in page.rows]
        waiting = [row for row in rows if row.hold is Hold.NONE][:3]
        return tuple(self._placement(row, rng.choice(NODES)) for row in waiting)

    def _placement(self, row: JobView, node: NodeName) -> Placement:
        return Placement(
            job_id=row.job_id,
            run=row.run,
            task=None,
            partition=MAIN,
            shares=(NodeShare(node, 1, 64, 0),),
            factors=(),
            refused=(),
            why_these="first in the queue",
        )

    # -- the end
    def judge(self) -> None:
        """Check what the clients saw against the log that all members agree on."""
        for name, request_id in self.acknowledged.items():
            self.checks.acknowledged(request_id, name)
        names: dict[str, int] = {}
        for row in self.members[0].front.state.jobs.rows.values():
            names[row.spec.name] = names.get(row.spec.name, 0) + 1
        for name, count in names.items():
            if count != 1:
                raise Violation(f"{name} was submitted once and there are {count} of it")
        for name in self.acknowledged:
            if name not in names:
                raise Violation(f"{name} was acknowledged and is not there")
        if not is_linearizable(self.history, 1, _register):
            raise Violation("what the clients saw of the registers is not linearizable")

    def last_request(self, done: Callable[[Outcome], None]) -> None:
        """Ask one more thing, once all is healed: it must be answered."""
        self.submitted.add("last")
        request = _submission("last", hold=True, priority=None)
        self._caller(user(UID)).ask(request, done, patience_s=UNKNOWN)
