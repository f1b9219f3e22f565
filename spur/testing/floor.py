"""A cluster of any configuration whose scheduler is the real one: for stories of placement.

floor = Floor(CONFIG)
job_id = floor.submit(tasks=4)
floor.cycle()
assert floor.given(job_id) == "n5[0-1,8-9]"
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from spur.commands.runs import REASONS_PERIOD_NS
from spur.projections.nodes import block_of, node_names
from spur.projections.state import State
from spur.scheduling.plan import Plan, plan, policy_digest
from spur.scheduling.queue import Queue
from spur.testing.builders import CLUSTER, Cluster, actor
from spur.testing.hall import ASK, SPEC, submission
from spur.values.arrays import TaskSet
from spur.values.config import ConfigFile
from spur.values.configfile import CONFIG_FILE
from spur.values.dependencies import Dependency
from spur.values.errors import Rejection
from spur.values.ids import JobId, NodeName, PartitionName
from spur.values.jobspec import JobSpec
from spur.values.states import HOLD_REASONS, Hold, NodeShareState, Phase, Reason
from spur.values.tres import NodeShare, cpu_mask, gpu_indexes
from spur.wire.cluster import Reconfigure, Tick
from spur.wire.jobs import JobAccepted, ReleaseJob
from spur.wire.nodes import RegisterNode
from spur.wire.runs import PlaceJobs, PlacementsJudged, ReportRun, StateReasons

__all__ = ["FLOOR", "Floor", "shown_share"]

FLOOR = """\
[cluster]
name = "floor"
memory_per_cpu_mib = 500

[[nodes]]
names = "n[1-4]"
sockets = 1
cores_per_socket = 4
memory_mib = 8000
weight = 10
features = ["intel", "small"]

[[nodes]]
names = "n[5-6]"
sockets = 2
cores_per_socket = 4
threads_per_core = 2
memory_mib = 32000
weight = 20
features = ["amd", "ib"]

[[nodes]]
names = "g1"
sockets = 2
cores_per_socket = 8
memory_mib = 64000
weight = 50
features = ["amd", "gpu"]
gpus = "mi300x:8"

[[nodes]]
names = "g2"
sockets = 1
cores_per_socket = 8
memory_mib = 64000
weight = 50
features = ["intel", "gpu"]
gpus = "a100:4"

[[partitions]]
name = "debug"
nodes = "n[1-6]"
default = true
default_time_s = 600
max_time_s = 1800
priority_tier = 10

[[partitions]]
name = "gpu"
nodes = "g[1-2]"
default_time_s = 3600
cpus_per_gpu = 2
memory_per_gpu_mib = 4000
priority_tier = 10

[[partitions]]
name = "low"
nodes = "n[1-6],g[1-2]"

[[partitions]]
name = "small"
nodes = "n[1-4]"
nodes_max = 2
cpus_per_node_max = 2
over_subscribe = "YES"
jobs_per_resource_max = 2
priority_tier = 10

[[partitions]]
name = "whole"
nodes = "n[5-6]"
over_subscribe = "EXCLUSIVE"
priority_tier = 10

[[partitions]]
name = "users"
nodes = "n[1-2]"
exclusive_user = true

[[partitions]]
name = "closed"
nodes = "n[1-2]"
state = "DOWN"
"""
"""Nodes of one and two sockets, of one and two threads a core, with and without GPUs."""


def shown_share(share: NodeShare) -> str:
    """Return a share as "n5[0-1,8-9] 1000M gpu0-3"."""
    words = [
        f"{share.node}[{_ranges(gpu_indexes(cpu_mask(share.cpu_set)))}]",
        f"{share.memory_mib}M",
    ]
    if share.gpus:
        words.append(f"gpu{_ranges(gpu_indexes(share.gpus))}")
    return " ".join(words)


def _ranges(numbers: tuple[int, ...]) -> str:
    parts: list[str] = []
    start = before = -2
    for number in (*numbers, -2):
        if number != before + 1:
            if start >= 0:
                parts.append(str(start) if start == before else f"{start}-{before}")
            start = number
        before = number
    return ",".join(parts)


class Floor:
    """A cluster whose nodes are all there, and the scheduler's cycle by hand."""

    def __init__(
        self, config: str | ConfigFile | tuple[ConfigFile, ...] = FLOOR, *, checked: bool = True
    ) -> None:
        """Configure, and register every node as it is configured."""
        self.cluster = Cluster(checked=checked)
        if isinstance(config, str):
            config = ConfigFile(CONFIG_FILE, config)
        files = config if isinstance(config, tuple) else (config,)
        taken = self.cluster.ask(Reconfigure(files))
        if isinstance(taken, Rejection):
            raise ValueError(taken.text)
        self._reports: dict[NodeName, int] = {}
        for node in node_names(self.state):
            self.register(node)
        self.queue = Queue(self.state)

    @property
    def state(self) -> State:
        """The cluster's state."""
        return self.cluster.state

    def register(self, node: NodeName) -> None:
        """Let a node be there with all that it is configured to have."""
        block = block_of(self.state, node)
        if block is None:
            raise ValueError(f"there is no node {node}")
        self._reports[node] = 0
        self.cluster.ask(
            RegisterNode(node, b"boot", block.cpus, block.memory_mib, block.gpu_kind, block.gpus),
            CLUSTER,
        )

    def submit(
        self,
        *,
        partitions: str = "debug",
        by: int = 1001,
        array: TaskSet | None = None,
        throttle: int = 0,
        priority: int | None = None,
        limit_s: int | None = 600,
        begin_s: float = 0,
        hold: bool = False,
        dependency: Dependency | None = None,
        account: str = "",
        qos: str = "",
        nice: int = 0,
        **ask: Any,
    ) -> JobId:
        """Submit a job of one task, but for these fields of its ask; return its id.

        One that these nodes could never run is submitted held and released then, as nodes that
        were taken away leave it.
        """
        base = replace(ASK, memory_mib=0)
        spec: JobSpec = replace(
            SPEC,
            partitions=tuple(PartitionName(name) for name in partitions.split(",")),
            ask=replace(base, **ask),
            account=account,
            qos=qos,
            nice=nice,
            time_limit_s=limit_s,
            dependency=dependency,
            begin_ns=int(self.cluster.now_ns + begin_s * 1e9) if begin_s else 0,
        )
        request = submission(spec, tasks=array, throttle=throttle, hold=hold, priority=priority)
        role = actor(0) if priority is not None else actor(by)
        outcome = self.cluster.ask(request, role)
        is_impossible = isinstance(outcome, Rejection) and outcome.code.endswith("-unavailable")
        if is_impossible:
            outcome = self.cluster.ask(replace(request, hold=True), role)
        if not isinstance(outcome, JobAccepted):
            raise ValueError(str(outcome))
        if is_impossible:
            self.cluster.ask(ReleaseJob(outcome.job_id, None), role)
        return outcome.job_id

    def plan(self) -> Plan:
        """Return what the scheduler would do now."""
        return plan(self.state, self.cluster.now_ns, self.queue)

    def cycle(self) -> Plan:
        """Do what the scheduler would. Raises: ValueError when a placement is refused."""
        made = self.plan()
        if made.placements:
            request = PlaceJobs(self.state.index, policy_digest(), made.placements)
            judged = self.cluster.ask(request, CLUSTER)
            if not isinstance(judged, PlacementsJudged) or judged.refused:
                raise ValueError(f"{judged} of {made.placements}")
        if made.groups or made.jobs:
            self.cluster.pass_seconds(REASONS_PERIOD_NS / 1e9)
            self.cluster.ask(StateReasons(made.groups, made.jobs), CLUSTER)
        return made

    def end(self, job_id: JobId) -> None:
        """Let every node of a job report its end."""
        run = self.state.runs[job_id]
        for share in () if run.started is None else run.started.shares:
            self._reports[share.node] += 1
            report = ReportRun(
                share.node,
                b"o" * 16,
                self._reports[share.node],
                job_id,
                run.number,
                run.attempt,
                NodeShareState.ENDED,
                0,
                0,
                False,
                0,
            )
            self.cluster.ask(report, CLUSTER)

    def tick(self, seconds: float) -> None:
        """Let time go by and what falls due happen."""
        self.cluster.pass_seconds(seconds)
        self.cluster.ask(Tick(), CLUSTER)

    def given(self, job_id: JobId) -> str:
        """Return what a running job holds, nodes joined by "; "; empty when it waits."""
        run = self.state.runs[job_id]
        if run.started is None or run.phase is Phase.ENDED:
            return ""
        return "; ".join(shown_share(share) for share in run.started.shares)

    def reason(self, job_id: JobId) -> Reason:
        """Return why a job waits, as squeue shows it."""
        job, run = self.state.jobs[job_id], self.state.runs[job_id]
        if run.hold is not Hold.NONE:
            return HOLD_REASONS[run.hold]
        if run.reason is not Reason.NONE or run.phase is not Phase.PENDING:
            return run.reason
        row = self.state.reasons.get(
            (job.spec.partitions[0], self.state.shared.shape(job.spec.ask))
        )
        return Reason.NONE if row is None else row.reason
