"""All who use the simulated cluster.

registers    write and read priorities: linearizable registers
people       submit and change jobs; an answered one exists once, any other at most once
scheduler    places what waits, on a view that may be old
watchman     tells the cluster which nodes are silent
agents       run what is launched and report it
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spur.projections.react import Effect
from spur.testing.simulation.agents import Agent
from spur.testing.simulation.callers import (
    ADMINISTRATOR,
    CLUSTER,
    FOR_EVER,
    Caller,
    Callers,
    Outcome,
)
from spur.testing.simulation.checks import Checks
from spur.testing.simulation.jobs import MAIN, People, submission
from spur.testing.simulation.member import NOON_NS, SimMember, Violation
from spur.testing.simulation.plan import Plan
from spur.testing.simulation.registers import Registers
from spur.testing.simulation.world import World
from spur.values.config import ConfigFile
from spur.values.configfile import CONFIG_FILE
from spur.values.ids import JobId, NodeName
from spur.values.states import Hold, JobState
from spur.values.tres import NodeShare, cpu_set
from spur.wire.calls import Refused
from spur.wire.cluster import AcceptClock, AddHost, HostAdded, Reconfigure
from spur.wire.declare import Answer, Request
from spur.wire.jobs import JobAccepted, JobFilter, JobPage, JobView, QueryJobs, page_views
from spur.wire.nodes import MarkNodeLost
from spur.wire.runs import PlaceJobs, Placement

__all__ = ["Load"]

NODES = (NodeName("n1"), NodeName("n2"))

CONFIG = """
[cluster]
name = "simulated"
min_job_age_s = {job_age_s}
requeue_policy = "{requeue_policy}"

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
WRITERS = 4
SUBMITTERS = 2
PATIENCE_S = 6.0
SILENCE_S = 0.8
"""A node that is silent for longer is given up."""


class Load:
    """All clients of one run."""

    def __init__(
        self, world: World, members: Sequence[SimMember], checks: Checks, plan: Plan
    ) -> None:
        self._world = world
        self._members = members
        self._plan = plan
        callers = self._callers = Callers(world, members)
        callers.on_clock_step = self._accept_clock
        self.has_begun = False
        """The cluster is set up, and everybody at work."""
        self.agents = [Agent(world, callers, node) for node in NODES]
        self.registers = Registers(world, callers, plan)
        self.people = People(world, callers, checks, plan.haste)
        self._register_ids: list[JobId] = []
        self._is_stopped = False
        self._person_is_busy = False

    # -- beginning
    def start(self) -> None:
        """Configure the cluster, its hosts and registers, then let everybody begin."""
        text = CONFIG.format(
            job_age_s=self._plan.job_age_s, requeue_policy=self._plan.requeue_policy
        )
        admin = self._callers.caller(ADMINISTRATOR)
        request = Reconfigure((ConfigFile(CONFIG_FILE, text),))
        self._insist(admin, lambda: request, lambda _: self._add_hosts(admin, list(self.agents)))

    def _insist(
        self, caller: Caller, make: Callable[[], Request], done: Callable[[Answer], None]
    ) -> None:
        """Ask until it is answered; what is forgotten is asked anew, which must do no harm."""

        def heard(outcome: Outcome) -> None:
            if isinstance(outcome, Answer):
                done(outcome)
            elif isinstance(outcome, Refused) and outcome.code == "outcome-unknown":
                self._insist(caller, make, done)
            else:
                raise Violation(f"setting up was refused: {outcome}")

        caller.ask(make(), heard, patience_s=FOR_EVER)

    def _add_hosts(self, admin: Caller, agents: list[Agent]) -> None:
        if not agents:
            self._make_register(admin, 0)
            return
        agent = agents.pop()

        def added(answer: Answer) -> None:
            if isinstance(answer, HostAdded):
                agent.register(answer.host_id, lambda: self._add_hosts(admin, agents))

        self._insist(admin, lambda: AddHost(agent.node, "compute"), added)

    def _make_register(self, admin: Caller, tries: int) -> None:
        names = iter(range(tries, 1 << 30))

        def make() -> Request:
            return submission(f"register-{next(names)}", hold=True)

        def made(answer: Answer) -> None:
            if isinstance(answer, JobAccepted):
                self._register_ids.append(answer.job_id)
            if len(self._register_ids) < REGISTERS:
                self._make_register(admin, next(names))
            else:
                self._begin()

        self._insist(admin, make, made)

    def _begin(self) -> None:
        self._world.tell("load", "begins")
        self.has_begun = True
        self._callers.loss = self._plan.caller_loss
        self.registers.start(self._register_ids, WRITERS)
        self.people.start(SUBMITTERS)
        self._world.after(0.5, self._schedule, self._callers.caller(CLUSTER))
        self._world.after(1.0, self._watch, self._callers.caller(CLUSTER))

    def stop(self) -> None:
        """Let nobody begin anything new; agents go on."""
        self._callers.loss = 0.0
        self._is_stopped = self.registers.is_stopped = self.people.is_stopped = True

    def _accept_clock(self) -> None:
        """A person looks at the alarm and vouches for the clock, one at a time."""
        if self._person_is_busy:
            return
        self._person_is_busy = True

        def done(outcome: Outcome) -> None:
            self._person_is_busy = False

        self._callers.caller(ADMINISTRATOR).ask(AcceptClock(), done, patience_s=PATIENCE_S)

    @property
    def is_quiet(self) -> bool:
        """Whether the cluster is set up, nothing runs, and all that ran was reported and heard."""
        return self.has_begun and not any(agent.alive or agent.unheard for agent in self.agents)

    # -- the leader's shell
    def performed(self, member: SimMember, effect: Effect) -> None:
        """Carry an effect to its agent: as long as the leader lives, and leads, it tries."""
        node = getattr(effect, "node", "")
        agent = next((agent for agent in self.agents if agent.node == node), None)
        if agent is not None:
            term = member.replica.core.term
            self._carry(member, member.starts, term, agent, effect)

    def _carry(
        self, member: SimMember, start: int, term: int, agent: Agent, effect: Effect
    ) -> None:
        rng = self._world.rng
        late = rng.random() < 0.05
        delay_s = rng.random() * (1.0 if late else 0.02)
        self._world.after(delay_s, self._arrive, member, start, term, agent, effect)

    def _arrive(
        self, member: SimMember, start: int, term: int, agent: Agent, effect: Effect
    ) -> None:
        if not member.is_up or member.starts != start:
            self._world.counts["effects lost with their leader"] += 1
        elif not agent.is_silent:
            agent.perform(effect)
        elif member.replica.core.is_leader and member.replica.core.term == term:
            self._world.after(0.5, self._arrive, member, start, term, agent, effect)

    # -- watchman
    def _watch(self, caller: Caller) -> None:
        if self._is_stopped:
            return
        now_s = self._world.now_s
        for agent in self.agents:
            if agent.is_silent and now_s - agent.silent_since_s > SILENCE_S:
                seen_ns = NOON_NS + int(agent.silent_since_s * 1e9)
                caller.ask(MarkNodeLost(agent.node, seen_ns), self._marked, patience_s=PATIENCE_S)
        self._world.after(0.5, self._watch, caller)

    def _marked(self, outcome: Outcome) -> None:
        if isinstance(outcome, Answer):
            self._world.counts["nodes given up"] += 1

    # -- scheduler
    def _schedule(self, caller: Caller) -> None:
        if self._is_stopped:
            return

        def seen(outcome: Outcome) -> None:
            placements = self._plan_of(outcome) if isinstance(outcome, JobPage) else ()
            if not placements:
                self._world.after(0.5, self._schedule, caller)
                return
            caller.ask(
                PlaceJobs(caller.index, b"", placements),
                lambda _: self._world.after(0.3, self._schedule, caller),
                patience_s=PATIENCE_S,
            )

        pending = JobFilter(states=(JobState.PENDING,))
        caller.ask(QueryJobs(pending, JobId(0), 50), seen, patience_s=PATIENCE_S)

    def _plan_of(self, page: JobPage) -> tuple[Placement, ...]:
        """Place on nodes drawn at random, full or not: the leader must refuse what does not fit."""
        rng = self._world.rng
        rows = page_views(page)
        waiting = [row for row in rows if row.hold is Hold.NONE][:3]
        return tuple(_placement(row, rng.choice(NODES)) for row in waiting)

    # -- the end
    def judge(self) -> None:
        """Check what the clients saw against the log that all members agree on."""
        self.people.judge()
        self.registers.judge()
        for agent in self.agents:
            if agent.unheard:
                raise Violation(f"{agent.unheard} reports of node {agent.node} were not answered")

    def last_request(self, done: Callable[[Answer], None]) -> None:
        """Ask one more thing, once all is healed: it must be answered."""
        caller = self._callers.caller(ADMINISTRATOR)
        names = iter(range(1 << 30))
        self._insist(caller, lambda: submission(f"last-{next(names)}", hold=True), done)


def _placement(row: JobView, node: NodeName) -> Placement:
    return Placement(
        job_id=row.job_id,
        run=row.run,
        task=None if row.tasks is None else row.tasks.first,
        partition=MAIN,
        shares=(NodeShare(node, 1, 64, 0, cpu_set(1 << row.job_id % 2), False),),
        factors=(),
        refused=(),
        why_these="first in the queue",
    )
