"""A hall of four nodes that are there, with a scheduler and agents played by hand: for stories.

hall = Hall()
job_id = hall.submit()
hall.start(job_id, hall.share("n1", cpus=4))
hall.report("n1", job_id, NodeShareState.ENDED, exit_code=3)
assert hall.view(job_id).state is JobState.FAILED
"""

from __future__ import annotations

from spur.events.envelope import Actor
from spur.projections.jobviews import job_view
from spur.projections.state import State
from spur.testing.builders import CLUSTER, SMALL_CONFIG, Cluster, actor
from spur.values.arrays import TaskSet
from spur.values.errors import Rejection
from spur.values.ids import JobId, NodeName, PartitionName
from spur.values.jobspec import JobSpec, JobText, ResourceAsk, Sharing, encode_text
from spur.values.states import NodeShareState
from spur.values.steps import Dealing
from spur.values.tres import NodeShare, Per, cpu_set
from spur.wire.cluster import Tick
from spur.wire.declare import Attachment
from spur.wire.jobs import HetComponent, JobAccepted, JobView, SubmitHetJob, SubmitJob
from spur.wire.nodes import MarkNodeLost, RegisterNode
from spur.wire.runs import PlaceJobs, Placement, PlacementsJudged, ReportAnswered, ReportRun
from spur.wire.steps import (
    QuerySteps,
    ReportStep,
    StartStep,
    StepAccepted,
    StepAsk,
    StepPage,
    StepView,
)

__all__ = [
    "ASK",
    "NODES",
    "SPEC",
    "STEP",
    "USER",
    "Hall",
    "het_submission",
    "placement",
    "submission",
]

NODES = tuple(NodeName(f"n{number}") for number in range(1, 5))
"""Of 64 CPUs, 512 000 MiB and eight GPUs each."""

CPUS = 64

USER = actor(1001)

ASK = ResourceAsk(
    nodes_min=1,
    nodes_max=0,
    tasks=1,
    tasks_per_node=0,
    cpus_per_task=1,
    memory_mib=100,
    memory_per=Per.NODE,
    memory_is_default=False,
    gres=(),
    features="",
    nodes_required="",
    nodes_excluded="",
    sharing=Sharing.PARTITION,
    licenses="",
    reservation="",
    tasks_per_socket=0,
    tasks_per_core=0,
    tasks_per_gpu=0,
    sockets_per_node=0,
    cores_per_socket=0,
    threads_per_core=0,
    cpus_per_node_min=0,
    cpus_per_gpu=0,
    disk_mib=0,
    contiguous=False,
    overcommit=False,
    preferred="",
    tasks_follow=False,
)
"""One task on one CPU."""

SPEC = JobSpec(
    name="train",
    partitions=(PartitionName("gpu"),),
    account="physics",
    qos="normal",
    ask=ASK,
    time_limit_s=3_600,
    begin_ns=0,
    nice=0,
    requeue=True,
    batch=True,
    deadline_ns=0,
    dependency=None,
    kill_on_invalid_dependency=None,
    time_limit_min_s=None,
)
"""An hour of one task, as a batch job that may be put back into the queue."""

_TEXT = JobText(
    working_directory=b"/home/ada",
    argv=(b"train.sh", b"--epochs", b"3"),
    stdin_path=b"",
    stdout_path=b"slurm-%j.out",
    stderr_path=b"",
    comment=b"",
)


def submission(
    spec: JobSpec = SPEC,
    *,
    tasks: TaskSet | None = None,
    throttle: int = 0,
    hold: bool = False,
    priority: int | None = None,
) -> SubmitJob:
    """Return the request of a batch job with a small script, environment and text."""
    return SubmitJob(
        spec,
        tasks,
        throttle,
        hold,
        priority,
        (
            Attachment("script", b"#!/bin/sh\ntrue\n"),
            Attachment("environment", b"PATH=/bin\0"),
            Attachment("text", encode_text(_TEXT)),
        ),
    )


def het_submission(*specs: JobSpec, hold: bool = False) -> SubmitHetJob:
    """Return the request of a het job of batch components; the first one has the script."""
    attachments = [*submission().attachments]
    components = [HetComponent(specs[0], hold, None, (0, 1, 2))]
    for spec in specs[1:]:
        components.append(HetComponent(spec, hold, None, (len(attachments),)))
        attachments.append(Attachment("text", encode_text(_TEXT)))
    return SubmitHetJob(tuple(components), tuple(attachments))


def placement(
    job_id: JobId,
    *shares: NodeShare,
    run: int = 0,
    task: int | None = None,
    partition: str = "gpu",
) -> Placement:
    """Return one start of a plan."""
    return Placement(
        job_id, run, task, PartitionName(partition), shares, (("age", 10),), (), "first that fits"
    )


STEP = StepAsk(
    nodes_min=0,
    nodes_max=0,
    tasks=1,
    tasks_per_node=0,
    cpus_per_task=0,
    memory_mib=0,
    memory_per=Per.NODE,
    gres=None,
    nodes_required="",
    nodes_excluded="",
    relative=None,
    dealing=Dealing.BLOCK,
    plane=1,
    arbitrary=False,
    exact=False,
    overlaps=False,
    overcommits=False,
)
"""One task on one CPU, which takes all that is free on its node."""


class Hall:
    """A cluster, its scheduler and its agents."""

    def __init__(
        self,
        config: str = SMALL_CONFIG,
        *,
        checked: bool = True,
        commits: bool = True,
        is_sealed: bool = False,
    ) -> None:
        """Begin with four nodes registered."""
        self.cluster = Cluster(checked=checked, commits=commits, is_sealed=is_sealed)
        self.cluster.configure(config)
        self._reports = dict.fromkeys(NODES, 0)
        #: Where the search for CPUs of the next share begins.
        self._next_cpu: dict[NodeName, int] = {}
        for node in NODES:
            self.register(node)

    @property
    def state(self) -> State:
        """The cluster's state."""
        return self.cluster.state

    # -- users
    def submit(
        self,
        spec: JobSpec = SPEC,
        *,
        by: Actor = USER,
        tasks: TaskSet | None = None,
        throttle: int = 0,
        hold: bool = False,
    ) -> JobId:
        """Submit a job; return its id. Raises: ValueError when it is refused."""
        request = submission(spec, tasks=tasks, throttle=throttle, hold=hold)
        outcome = self.cluster.ask(request, by)
        if not isinstance(outcome, JobAccepted):
            raise ValueError(str(outcome))
        return outcome.job_id

    def view(self, job_id: JobId) -> JobView:
        """Return the job's row in the queue."""
        return job_view(self.state, job_id)

    # -- the scheduler
    def place(self, *placements: Placement) -> PlacementsJudged:
        """Propose a plan."""
        plan = PlaceJobs(self.state.index, b"p" * 32, placements)
        outcome = self.cluster.ask(plan, CLUSTER)
        if not isinstance(outcome, PlacementsJudged):
            raise ValueError(str(outcome))
        return outcome

    def start(self, job_id: JobId, *shares: NodeShare, task: int | None = None) -> JobId:
        """Start a job, on a CPU of n1 unless told otherwise; return the id that started.

        Raises: ValueError when the start is refused.
        """
        job, newest = self.state.jobs[job_id], self.state.counters["job-id"].value
        if job.tasks is not None and task is None:
            task = job.tasks.first
        is_split = job.tasks is not None and not job.tasks.is_single
        run = self.state.runs[job_id].number
        judged = self.place(placement(job_id, *(shares or (self.share("n1"),)), run=run, task=task))
        if judged.refused:
            raise ValueError(str(judged))
        return JobId(newest + 1) if is_split else job_id

    def share(self, node: str, *, cpus: int = 1, memory_mib: int = 100, gpus: int = 0) -> NodeShare:
        """Return a share of a node; `gpus` is a mask.

        Its CPUs are free and in no share returned before, as far as there are any.
        """
        name = NodeName(node)
        held = self.state.allocations.use(name).cpu_mask
        start = self._next_cpu.get(name, 0)
        around = [(start + step) % CPUS for step in range(CPUS)]
        chosen = sorted(around, key=lambda cpu: held >> cpu & 1)[:cpus]
        self._next_cpu[name] = (chosen[-1] + 1) % CPUS
        mask = sum(1 << cpu for cpu in chosen)
        return NodeShare(name, cpus, memory_mib, gpus, cpu_set(mask), False)

    # -- agents
    def register(self, node: str, *, boot_id: bytes = b"boot") -> None:
        """Let a node's agent say that it is there."""
        outcome = self.cluster.ask(self.registration(node, boot_id=boot_id), CLUSTER)
        if isinstance(outcome, Rejection):
            raise ValueError(outcome.text)

    @staticmethod
    def registration(node: str, *, boot_id: bytes = b"boot") -> RegisterNode:
        """Return what a node's agent says when it comes."""
        return RegisterNode(NodeName(node), boot_id, 64, 512_000, "gfx942", 8)

    def lose(self, node: str) -> None:
        """Let a node be silent for too long, and its jobs be given up."""
        self.cluster.ask(MarkNodeLost(NodeName(node), self.cluster.now_ns), CLUSTER)
        self.tick()

    def next_report(
        self,
        node: str,
        job_id: JobId,
        state: NodeShareState,
        *,
        exit_code: int = 0,
        signal: int = 0,
        out_of_memory: bool = False,
        age_ns: int = 0,
    ) -> ReportRun:
        """Return the node's next report, about the job's newest attempt."""
        name = NodeName(node)
        self._reports[name] += 1
        run = self.state.runs.get(job_id)
        return ReportRun(
            node=name,
            outbox=b"o" * 16,
            number=self._reports[name],
            job_id=job_id,
            run=0 if run is None else run.number,
            attempt=0 if run is None else run.attempt,
            state=state,
            exit_code=exit_code,
            signal=signal,
            out_of_memory=out_of_memory,
            age_ns=age_ns,
        )

    def deliver(self, report: ReportRun | ReportStep) -> str:
        """Let a report arrive; return its outcome, or the code of its refusal."""
        outcome = self.cluster.ask(report, CLUSTER)
        if isinstance(outcome, ReportAnswered):
            return outcome.outcome
        return outcome.code if isinstance(outcome, Rejection) else str(outcome)

    def report(
        self,
        node: str,
        job_id: JobId,
        state: NodeShareState,
        *,
        exit_code: int = 0,
        signal: int = 0,
        out_of_memory: bool = False,
        age_ns: int = 0,
    ) -> str:
        """Let a node send its next report; return the outcome."""
        return self.deliver(
            self.next_report(
                node,
                job_id,
                state,
                exit_code=exit_code,
                signal=signal,
                out_of_memory=out_of_memory,
                age_ns=age_ns,
            )
        )

    def end(self, job_id: JobId, *, exit_code: int = 0) -> None:
        """Let every node of a job report its end."""
        started = self.state.runs[job_id].started
        for share in () if started is None else started.shares:
            self.report(share.node, job_id, NodeShareState.ENDED, exit_code=exit_code)

    # -- steps
    def start_step(
        self, job_id: JobId, ask: StepAsk, *, time_limit_s: int = 0, by: Actor = USER
    ) -> int:
        """Start a step; return its number. Raises: ValueError when it is refused."""
        outcome = self.cluster.ask(StartStep(job_id, "sleep", ask, time_limit_s, bytes(32)), by)
        if not isinstance(outcome, StepAccepted):
            raise ValueError(str(outcome))
        return outcome.step_id

    def next_step_report(
        self,
        node: str,
        job_id: JobId,
        step_id: int,
        state: NodeShareState,
        *,
        exit_code: int = 0,
        signal: int = 0,
        out_of_memory: bool = False,
        age_ns: int = 0,
    ) -> ReportStep:
        """Return the node's next report, about a step of the job's newest attempt."""
        report = self.next_report(
            node,
            job_id,
            state,
            exit_code=exit_code,
            signal=signal,
            out_of_memory=out_of_memory,
            age_ns=age_ns,
        )
        return ReportStep(
            report.node,
            report.outbox,
            report.number,
            job_id,
            report.run,
            report.attempt,
            step_id,
            state,
            exit_code,
            signal,
            out_of_memory,
            age_ns,
        )

    def report_step(
        self,
        node: str,
        job_id: JobId,
        step_id: int,
        state: NodeShareState,
        *,
        exit_code: int = 0,
        signal: int = 0,
    ) -> str:
        """Let a node report a step; return the outcome."""
        return self.deliver(
            self.next_step_report(node, job_id, step_id, state, exit_code=exit_code, signal=signal)
        )

    def steps(self, job_id: JobId) -> tuple[StepView, ...]:
        """Return the open steps of a job."""
        outcome = self.cluster.ask(QuerySteps((job_id,), JobId(0), 1000), USER)
        if not isinstance(outcome, StepPage):
            raise ValueError(str(outcome))
        return outcome.rows

    # -- time
    def tick(self, seconds: float = 0) -> None:
        """Let time go by and all that falls due happen."""
        self.cluster.pass_seconds(seconds)
        while True:
            before = self.state.index
            self.cluster.ask(Tick(), CLUSTER)
            if self.state.index == before:
                return
