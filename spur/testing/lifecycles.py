"""Mixed lives of jobs, drawn under a seed: what users, scheduler, agents and time do to a cluster.

    lives = Lifecycles(Hall(), seed=7)
    lives.run(1_000)

Every step goes the way of a request and may be refused, as a person's may. Agents answer what
they were told (the effects), late, twice, or for an attempt that is long gone. The same seed gives
the same log.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TypeVar

from msgspec.structs import replace

from spur.projections.dispatch import KillRun, LaunchRun
from spur.projections.jobfilters import shown_state
from spur.projections.nodes import is_usable
from spur.testing.accounts import random_edit
from spur.testing.builders import ADMIN, CLUSTER, actor
from spur.testing.hall import NODES, SPEC, Hall, het_submission, placement, submission
from spur.values.arrays import TaskSet
from spur.values.dependencies import Condition, Dependency, DependencyKind
from spur.values.errors import Rejection
from spur.values.ids import JobId, NodeName, PartitionName
from spur.values.jobspec import JobSpec, shape_of
from spur.values.states import Hold, JobState, NodeAction, NodeShareState, Phase, Reach, Reason
from spur.values.tres import NodeShare
from spur.wire.accounts import EditEntities
from spur.wire.declare import Request
from spur.wire.jobs import (
    CancelJob,
    CancelJobs,
    GroupReasonView,
    HoldJob,
    JobAccepted,
    JobChanges,
    JobFilter,
    QueryJobs,
    ReleaseJob,
    RequeueJob,
    ResumeJob,
    SignalJob,
    SuspendJob,
    UpdateJob,
)
from spur.wire.nodes import MarkNodeLost, UpdateNodes
from spur.wire.runs import (
    ConfirmNodeDead,
    JobReasonView,
    Placement,
    ReportRun,
    StateReasons,
)

__all__ = ["WEIGHTS", "Lifecycles"]

T = TypeVar("T")

WEIGHTS: dict[str, int] = {
    "submit": 16,
    "submit_array": 4,
    "submit_het": 3,
    "place": 24,
    "answer": 40,
    "answer_again": 3,
    "answer_stale": 3,
    "hold": 3,
    "release": 3,
    "update": 3,
    "cancel": 4,
    "cancel_many": 1,
    "requeue": 3,
    "signal": 1,
    "suspend": 2,
    "lose_node": 1,
    "return_node": 5,
    "take_down": 1,
    "take_up": 5,
    "confirm_dead": 1,
    "reasons": 1,
    "query": 1,
    "edit_accounts": 3,
    "wait": 4,
}
"""How often each kind of step is drawn."""

USERS = (actor(1001), actor(1002), actor(1003))

TASKS_MAX = 12
"""Of a drawn array: small, so that arrays come to their end."""


class Lifecycles:
    """One story under one seed."""

    def __init__(self, hall: Hall, *, seed: int, weights: dict[str, int] | None = None) -> None:
        """Begin a story; `weights` replaces how often each kind of step is drawn."""
        self.hall = hall
        self.refused: dict[str, int] = {}
        """How often each code of refusal was met."""
        self._rng = random.Random(seed)
        chosen = WEIGHTS if weights is None else weights
        self._names = list(chosen)
        self._weights = list(chosen.values())
        #: Jobs that were met; those that left the state are dropped when they are drawn.
        self._jobs: list[JobId] = []
        #: Jobs that may be placed.
        self._waiting: list[JobId] = []
        #: What agents were told and have not dealt with, and whether it is known to live.
        self._inbox: list[tuple[LaunchRun | KillRun, bool]] = []
        self._told = 0
        self._sent: list[ReportRun] = []

    def run(self, steps: int) -> None:
        """Take so many steps."""
        for _ in range(steps):
            self.step()

    def step(self, name: str = "") -> None:
        """Take the named step, a key of `WEIGHTS`; without a name, one drawn by weight."""
        chosen = name or self._rng.choices(self._names, self._weights)[0]
        take: Callable[[], None] = getattr(self, f"_{chosen}")
        take()

    def settle(self) -> None:
        """Let agents answer all that they were told, so that nothing is owed to a live node."""
        self._read_inbox()
        while self._inbox:
            self._answer()
            self._read_inbox()

    # -- drawing
    def _ask(self, request: Request, *, by_admin: bool = False) -> None:
        rng = self._rng
        who = ADMIN if by_admin or rng.random() < 0.3 else rng.choice(USERS)
        outcome = self.hall.cluster.ask(request, who)
        if isinstance(outcome, Rejection):
            self._count(outcome.code)

    def _ask_cluster(self, request: Request) -> None:
        outcome = self.hall.cluster.ask(request, CLUSTER)
        if isinstance(outcome, Rejection):
            self._count(outcome.code)

    def _count(self, code: str) -> None:
        self.refused[code] = self.refused.get(code, 0) + 1

    def _draw(self, jobs: list[JobId]) -> JobId:
        """Return a job of the list that is in the state; now and then one that never was."""
        rng, rows = self._rng, self.hall.state.jobs
        while jobs and rng.random() > 0.01:
            place = rng.randrange(len(jobs))
            if jobs[place] in rows:
                return jobs[place]
            jobs[place] = jobs[-1]
            jobs.pop()
        return JobId(1_000_000 + rng.randrange(1_000))

    def _some_tasks(self, job_id: JobId) -> TaskSet | None:
        if job_id in self.hall.state.arrays and self._rng.random() < 0.6:
            first = self._rng.randrange(TASKS_MAX)
            return TaskSet.of(range(first, first + 1 + self._rng.randrange(3)))
        return None

    # -- users
    def _spec(self) -> JobSpec:
        rng = self._rng
        ask = replace(SPEC.ask, tasks=1 + rng.randrange(4), nodes_min=1 + (rng.random() < 0.2))
        return replace(
            SPEC,
            name=f"job-{rng.randrange(50)}",
            account=rng.choice(("", "physics", "astro")),
            ask=ask,
            time_limit_s=rng.choice((None, 60, 600, 3_600)),
            begin_ns=self.hall.cluster.now_ns + 30_000_000_000 if rng.random() < 0.1 else 0,
            requeue=rng.random() < 0.7,
            dependency=self._dependency() if rng.random() < 0.2 else None,
            deadline_ns=self.hall.cluster.now_ns + 600_000_000_000 if rng.random() < 0.05 else 0,
            kill_on_invalid_dependency=rng.choice((None, True)),
        )

    def _dependency(self) -> Dependency:
        rng = self._rng
        conditions = []
        for _ in range(1 + rng.randrange(2)):
            kind = rng.choice(tuple(DependencyKind))
            if kind is DependencyKind.SINGLETON:
                conditions.append(Condition(kind, JobId(0), None, 0))
                continue
            task = rng.randrange(TASKS_MAX) if rng.random() < 0.2 else None
            delay_s = 60 if rng.random() < 0.1 else 0
            conditions.append(Condition(kind, self._draw(self._jobs), task, delay_s))
        return Dependency(rng.random() < 0.3, tuple(dict.fromkeys(conditions)))

    def _submit(self) -> None:
        self._submit_with(None, 0)

    def _submit_array(self) -> None:
        rng = self._rng
        tasks = TaskSet.of(rng.sample(range(TASKS_MAX), 1 + rng.randrange(TASKS_MAX)))
        self._submit_with(tasks, rng.choice((0, 0, 2)))

    def _submit_with(self, tasks: TaskSet | None, throttle: int) -> None:
        rng = self._rng
        request = submission(self._spec(), tasks=tasks, throttle=throttle, hold=rng.random() < 0.1)
        outcome = self.hall.cluster.ask(request, rng.choice(USERS))
        if isinstance(outcome, JobAccepted):
            self._jobs.append(outcome.job_id)
            self._waiting.append(outcome.job_id)
        elif isinstance(outcome, Rejection):
            self._count(outcome.code)

    def _submit_het(self) -> None:
        rng = self._rng
        specs = [self._spec() for _ in range(2 + rng.randrange(2))]
        request = het_submission(*specs, hold=rng.random() < 0.1)
        outcome = self.hall.cluster.ask(request, rng.choice(USERS))
        if isinstance(outcome, Rejection):
            self._count(outcome.code)
        self._meet_new_jobs()

    def _edit_accounts(self) -> None:
        edits = tuple(random_edit(self._rng) for _ in range(1 + self._rng.randrange(2)))
        self._ask(EditEntities(edits), by_admin=True)

    def _hold(self) -> None:
        job_id = self._draw(self._jobs)
        hold = self._rng.choice((Hold.USER, Hold.USER, Hold.ADMIN))
        self._ask(HoldJob(job_id, self._some_tasks(job_id), hold))
        self._meet_new_jobs()

    def _release(self) -> None:
        job_id = self._draw(self._jobs)
        self._ask(ReleaseJob(job_id, self._some_tasks(job_id)))
        self._meet_new_jobs()

    def _update(self) -> None:
        rng, job_id = self._rng, self._draw(self._jobs)
        changes = rng.choice(
            (
                JobChanges(nice=rng.randrange(-10, 100)),
                JobChanges(priority=rng.randrange(-1, 5)),
                JobChanges(time_limit_s=rng.choice((30, 120, 7_200)), name="renamed"),
                JobChanges(partitions=(PartitionName(rng.choice(("gpu", "debug", "none"))),)),
                JobChanges(requeue=rng.random() < 0.5),
                JobChanges(dependency=self._dependency()),
                JobChanges(throttle=rng.randrange(3)),
                JobChanges(account=rng.choice(("physics", "chem"))),
            )
        )
        self._ask(UpdateJob(job_id, self._some_tasks(job_id), changes))
        self._meet_new_jobs()

    def _cancel(self) -> None:
        job_id = self._draw(self._jobs)
        self._ask(CancelJob(job_id, self._some_tasks(job_id)))
        self._meet_new_jobs()

    def _cancel_many(self) -> None:
        rng = self._rng
        name = f"job-{rng.randrange(50)}"
        states = rng.choice(((), (JobState.PENDING,), (JobState.RUNNING,)))
        self._ask(CancelJobs(JobFilter(names=(name,), states=states)))

    def _requeue(self) -> None:
        job_id = self._draw(self._jobs)
        self._ask(RequeueJob(job_id, self._some_tasks(job_id), self._rng.random() < 0.3))
        self._meet_new_jobs()
        self._waiting.append(job_id)

    def _signal(self) -> None:
        job_id = self._draw(self._jobs)
        self._ask(SignalJob(job_id, None, self._rng.choice((10, 12, 70)), Reach.ALL))

    def _suspend(self) -> None:
        rng, job_id = self._rng, self._draw(self._jobs)
        kind = SuspendJob if rng.random() < 0.5 else ResumeJob
        self._ask(kind(job_id, None))

    def _query(self) -> None:
        rng = self._rng
        wanted = rng.choice(
            (
                JobFilter(),
                JobFilter(uids=(1001,)),
                JobFilter(states=(JobState.RUNNING,)),
                JobFilter(nodes=(rng.choice(NODES),)),
            )
        )
        self._ask(QueryJobs(wanted, JobId(0), 1 + rng.randrange(50)))

    def _meet_new_jobs(self) -> None:
        """Take note of rows that were split off since the last look."""
        state = self.hall.state
        newest = state.counters.get("job-id")
        last = self._jobs[-1] if self._jobs else 0
        for job_id in range(last + 1, 1 if newest is None else newest.value + 1):
            self._jobs.append(JobId(job_id))
            self._waiting.append(JobId(job_id))

    # -- the scheduler
    def _place(self) -> None:
        """Propose up to four starts, most of which hold."""
        placements: list[Placement] = []
        for _ in range(4):
            placements += self._placements(self._draw(self._waiting))
        judged = self.hall.place(*placements)
        for refusal in judged.refusals:
            self._count(refusal.code)
        self._meet_new_jobs()

    def _placements(self, job_id: JobId) -> list[Placement]:
        """Return the start of a job, or mostly of all components of its het job."""
        job = self.hall.state.jobs.get(job_id)
        if job is None or not job.het_id or self._rng.random() < 0.1:
            return [self._placement(job_id)]
        starts = [self._placement(each) for each in self.hall.state.het_runs.jobs(job.het_id)]
        return [starts[0], *(replace(start, joined=True) for start in starts[1:])]

    def _placement(self, job_id: JobId) -> Placement:
        rng, state = self._rng, self.hall.state
        run, job = state.runs.get(job_id), state.jobs.get(job_id)
        if run is None or job is None:
            return placement(job_id, self._share(NODES[0]))
        if run.phase is not Phase.PENDING and job_id in self._waiting:
            self._waiting.remove(job_id)
        task = None if job.tasks is None else rng.choice(list(job.tasks))
        usable = [node for node in NODES if is_usable(state, node) or rng.random() < 0.1]
        count = job.spec.ask.nodes_min
        nodes = rng.sample(usable if len(usable) >= count else NODES, count)
        shares = [self._share(node) for node in nodes]
        return placement(
            job_id, *shares, run=run.number, task=task, partition=job.spec.partitions[0]
        )

    def _share(self, node: NodeName) -> NodeShare:
        """Return a share that mostly fits what is free there."""
        rng = self._rng
        cpus, memory_mib = 1 + rng.randrange(16), 1_000 * rng.randrange(64)
        gpus = 0b11 << 2 * rng.randrange(4) if rng.random() < 0.5 else 0
        if rng.random() < 0.9:
            use = self.hall.state.allocations.use(node)
            gpus &= ~use.gpus
            cpus = max(1, min(cpus, 64 - use.cpus))
            memory_mib = max(0, min(memory_mib, 512_000 - use.memory_mib))
        return self.hall.share(node, cpus=cpus, memory_mib=memory_mib, gpus=gpus)

    def _reasons(self) -> None:
        rng, state = self._rng, self.hall.state
        job_id = self._draw(self._waiting)
        job = state.jobs.get(job_id)
        spec = SPEC if job is None else job.spec
        reason = rng.choice((Reason.NONE, Reason.PRIORITY, Reason.RESOURCES))
        group = GroupReasonView(spec.partitions[0], shape_of(spec.ask), reason)
        self._ask_cluster(StateReasons((group,), (JobReasonView(job_id, Reason.BEGIN_TIME),)))

    # -- agents
    def _read_inbox(self) -> None:
        """Take what agents were told since the last look."""
        effects = self.hall.cluster.effects
        told = (e for e in effects[self._told :] if isinstance(e, LaunchRun | KillRun))
        self._inbox.extend((effect, False) for effect in told)
        self._told = len(effects)

    def _answer(self) -> None:
        """Let one agent deal with one thing it was told."""
        self._read_inbox()
        if not self._inbox:
            return
        rng = self._rng
        place = rng.randrange(len(self._inbox))
        told, lives = self._inbox[place]
        self._inbox[place] = self._inbox[-1]
        self._inbox.pop()
        if isinstance(told, KillRun):
            state = rng.choice((NodeShareState.ENDED, NodeShareState.ENDED, NodeShareState.VOID))
            signal = 15 if state is NodeShareState.ENDED else 0
        elif lives:
            state = NodeShareState.ENDED
            signal = rng.choice((0, 0, 0, 0, 11))
        else:
            states = (NodeShareState.LAUNCHED, NodeShareState.ENDED, NodeShareState.VOID)
            state = rng.choices(states, (6, 3, 1))[0]
            signal = 0
        self._report(told, state, signal=signal)
        if state is NodeShareState.LAUNCHED:
            self._inbox.append((told, True))  # It ends by itself in another step.

    def _report(self, told: LaunchRun | KillRun, state: NodeShareState, *, signal: int) -> None:
        rng = self._rng
        report = self.hall.next_report(
            told.node,
            told.job_id,
            state,
            exit_code=0 if signal else rng.choice((0, 0, 0, 1, 139)),
            signal=signal,
            out_of_memory=rng.random() < 0.02,
            age_ns=rng.choice((0, 5_000_000, 10**12)),
        )
        report = replace(report, run=told.run, attempt=told.attempt)
        self._sent.append(report)
        del self._sent[:-64]
        self._deliver(report)

    def _deliver(self, report: ReportRun) -> None:
        outcome = self.hall.deliver(report)
        self._count(outcome)

    def _answer_again(self) -> None:
        """Send a report a second time, as after a lost answer."""
        if self._sent:
            self._deliver(self._rng.choice(self._sent))

    def _answer_stale(self) -> None:
        """Report an attempt that ended, was voided or never was, under a new number."""
        if not self._sent:
            return
        former = self._rng.choice(self._sent)
        fresh = self.hall.next_report(former.node, former.job_id, NodeShareState.ENDED)
        attempt = max(0, former.attempt - self._rng.randrange(2))
        self._deliver(replace(fresh, run=former.run, attempt=attempt))

    # -- nodes and time
    def _lose_node(self) -> None:
        node = self._rng.choice(NODES)
        self._ask_cluster(MarkNodeLost(node, self.hall.cluster.now_ns))
        self.hall.tick()

    def _return_node(self) -> None:
        node, boot_id = self._rng.choice(NODES), self._rng.randbytes(2)
        self._ask_cluster(self.hall.registration(node, boot_id=boot_id))

    def _take_down(self) -> None:
        action = self._rng.choice((NodeAction.DOWN, NodeAction.DRAIN))
        request = UpdateNodes(self._rng.choice(NODES), action, "being looked at")
        self._ask(request, by_admin=True)

    def _take_up(self) -> None:
        self._ask(UpdateNodes(self._rng.choice(NODES), NodeAction.RESUME, ""), by_admin=True)

    def _confirm_dead(self) -> None:
        self._ask(ConfirmNodeDead(self._rng.choice(NODES)), by_admin=True)

    def _wait(self) -> None:
        self.hall.tick(self._rng.choice((0.1, 1, 20, 90)))

    def tally(self) -> dict[JobState, int]:
        """Return how many jobs of the state are shown in each state."""
        counts: dict[JobState, int] = {}
        for job_id in self.hall.state.runs.sorted_keys():
            state = shown_state(self.hall.state.runs[job_id])
            counts[state] = counts.get(state, 0) + 1
        return counts
