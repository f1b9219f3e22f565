"""What a job needs, made ready for fitting: defaults filled in, limits of its partition applied.

Jobs of one shape have the same need in a partition, so it is worked out once for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from spur.projections.cluster import parameter_of
from spur.projections.partitions import may_share
from spur.projections.state import State
from spur.values.config import ClusterSettings, OverSubscribe, PartitionBlock
from spur.values.features import Alternative, parse_features
from spur.values.hostlist import parse_hostlist
from spur.values.ids import PartitionName
from spur.values.jobspec import ResourceAsk, Sharing
from spur.values.tres import GresAsk, Per

__all__ = ["Need", "breaks_memory", "counts_memory", "need_of"]

ALL_MEMORY = -1
"""Asks for all that a node has. Source: sbatch(1) --mem=0."""


@dataclass(frozen=True, slots=True)
class Need:
    """What each job of one shape needs in one partition."""

    ask: ResourceAsk
    nodes_min: int
    nodes_wanted: int
    """As many are taken as long as there are; 0 is as few as it takes."""
    nodes_max: int
    """0 is any number."""
    tasks: int
    tasks_per_node_min: int
    """A node that can't take so many is none for the job."""
    tasks_per_node_max: int
    """0 is any number, as for what follows."""
    tasks_per_socket: int
    tasks_per_core: int
    cpus_per_task: int
    cpus_min: int
    """Of each node."""
    cpus_max: int
    """Of each node for all jobs of the partition together."""
    threads: int
    """Of each core that are used; 0 is all."""
    memory_mib: int
    """-1 is all of a node."""
    memory_per: Per
    memory_limit: tuple[int, Per] | None
    """MiB that a job may have in the partition, and of what."""
    partition: PartitionName
    gpus: tuple[GresAsk, ...]
    cpus_per_gpu: int
    is_whole: bool
    """Nodes are not shared with anyone."""
    is_by_user: bool
    """Nodes are shared with jobs of the same user alone."""
    is_shared: bool
    """CPUs may be held by several such jobs."""
    jobs_per_cpu_max: int
    overcommits: bool
    ways: tuple[Alternative, ...]
    """Of meeting its constraint; empty when it can't be read."""
    required: tuple[str, ...]
    excluded: frozenset[str]
    is_known: bool
    """Whether all that it asks is something Spur can give."""

    @property
    def is_single(self) -> bool:
        """Whether any node with room for a task is enough."""
        return (
            self.nodes_min == 1
            and self.tasks == 1
            and not self.required
            and len(self.ways) == 1
            and not self.ways[0].some
        )


def counts_memory(state: State) -> bool:
    """Return whether a job that names no memory gets some of its own.

    Source: slurm.conf(5) SelectTypeParameters.
    """
    chosen = parameter_of(state, "SelectTypeParameters")
    return not chosen or "memory" in chosen.lower()


def need_of(
    ask: ResourceAsk, block: PartitionBlock, settings: ClusterSettings, *, counts_memory: bool
) -> Need:
    """Return what jobs of an ask need in a partition."""
    gpus = tuple(gres for gres in ask.gres if gres.name == "gpu")
    if ask.tasks_per_gpu and not gpus:
        gpus = (GresAsk("gpu", "", -(-ask.tasks // ask.tasks_per_gpu), Per.JOB),)
    required = _names(ask.nodes_required)
    nodes_min = max(ask.nodes_min, len(required), 1)
    if not ask.nodes_max or ask.nodes_max >= block.nodes_min:
        nodes_min = max(nodes_min, block.nodes_min)
    tasks = _tasks_of(ask, nodes_min)
    cpus_per_task, cpus_per_gpu = _cpus_of(ask, block, gpus)
    memory_mib, memory_per = 0, Per.NODE
    if ask.memory_mib or counts_memory:
        memory_mib, memory_per = _memory_of(ask, block, settings, has_gpus=bool(gpus))
    limit_mib = block.memory_per_cpu_mib_max or settings.memory_per_cpu_mib_max
    if limit_mib and memory_per is Per.CPU and memory_mib > limit_mib:
        # Slurm spreads memory over the limit on more CPUs, each of which then has less.
        factor = -(-memory_mib // limit_mib)
        cpus_per_task, memory_mib = cpus_per_task * factor, -(-memory_mib // factor)
    return Need(
        ask=ask,
        nodes_min=nodes_min,
        nodes_wanted=_nodes_wanted(ask, nodes_min, tasks),
        nodes_max=ask.nodes_max,
        tasks=tasks,
        tasks_per_node_min=min(ask.tasks_per_node, tasks) if not ask.overcommit else 0,
        tasks_per_node_max=ask.tasks_per_node,
        tasks_per_socket=ask.tasks_per_socket,
        tasks_per_core=ask.tasks_per_core,
        cpus_per_task=cpus_per_task,
        cpus_min=ask.cpus_per_node_min,
        cpus_max=block.cpus_per_node_max or 0,
        threads=ask.threads_per_core,
        memory_mib=memory_mib,
        memory_per=memory_per,
        memory_limit=_memory_limit(block, settings),
        partition=block.name,
        gpus=gpus,
        cpus_per_gpu=cpus_per_gpu,
        is_whole=ask.sharing is Sharing.EXCLUSIVE
        or block.over_subscribe is OverSubscribe.EXCLUSIVE,
        is_by_user=ask.sharing is Sharing.USER or block.exclusive_user,
        is_shared=may_share(block, ask),
        jobs_per_cpu_max=block.jobs_per_resource_max,
        overcommits=ask.overcommit,
        ways=(*(_ways_of(ask.preferred) if ask.preferred else ()), *_ways_of(ask.features)),
        required=required,
        excluded=frozenset(_names(ask.nodes_excluded)),
        is_known=all(gres.name == "gpu" for gres in ask.gres)
        and sum(gres.per is Per.JOB for gres in gpus) <= 1,
    )


def _nodes_wanted(ask: ResourceAsk, nodes_min: int, tasks: int) -> int:
    if not ask.nodes_max:
        return 0
    return ask.nodes_max if ask.tasks_follow else max(nodes_min, min(ask.nodes_max, tasks))


def _memory_limit(block: PartitionBlock, settings: ClusterSettings) -> tuple[int, Per] | None:
    """Return the limit on memory, and of what; None when there is none."""
    for level in (block, settings):
        if level.memory_per_cpu_mib_max:
            return level.memory_per_cpu_mib_max, Per.CPU
        if level.memory_per_node_mib_max:
            return level.memory_per_node_mib_max, Per.NODE
    return None


def breaks_memory(need: Need) -> bool:
    """Whether jobs ask for more memory of a node than the partition gives.

    Source: slurm.conf(5) MaxMemPerNode.
    """
    limit = need.memory_limit
    # More memory a CPU than is allowed is spread over more CPUs instead.
    if limit is None or limit[1] is Per.CPU or need.memory_mib < 0:
        return False
    least_mib = {Per.NODE: need.memory_mib, Per.CPU: need.memory_mib * need.cpus_per_task}
    return least_mib.get(need.memory_per, 0) > limit[0]


def _names(text: str) -> tuple[str, ...]:
    return parse_hostlist(text) if text else ()


def _ways_of(features: str) -> tuple[Alternative, ...]:
    try:
        return parse_features(features)
    except ValueError:
        return ()


def _tasks_of(ask: ResourceAsk, nodes_min: int) -> int:
    """Return the tasks; --nodes with --ntasks-per-node alone says them too."""
    if ask.tasks <= 1 and ask.tasks_per_node:
        return nodes_min * ask.tasks_per_node
    return max(ask.tasks, nodes_min)


def _cpus_of(ask: ResourceAsk, block: PartitionBlock, gpus: tuple[GresAsk, ...]) -> tuple[int, int]:
    """Return CPUs of a task, and of a GPU. Source: slurm.conf(5) DefCpuPerGPU."""
    per_gpu = ask.cpus_per_gpu
    if not per_gpu and ask.cpus_per_task <= 1:
        per_gpu = block.cpus_per_gpu or 0
    if not gpus:
        return ask.cpus_per_task, 0
    of_task = sum(gres.count for gres in gpus if gres.per is Per.TASK)
    return max(ask.cpus_per_task, of_task * per_gpu), per_gpu


def _memory_of(
    ask: ResourceAsk, block: PartitionBlock, settings: ClusterSettings, *, has_gpus: bool
) -> tuple[int, Per]:
    """Return how much memory is needed, and of what. Source: slurm.conf(5) DefMemPerCPU."""
    comes_with_gpus = has_gpus and block.memory_per_gpu_mib
    if ask.memory_mib and not (ask.memory_is_default and comes_with_gpus):
        return ask.memory_mib, ask.memory_per
    if block.memory_per_gpu_mib and comes_with_gpus:
        return block.memory_per_gpu_mib, Per.GPU
    for level in (block, settings):
        if level.memory_per_cpu_mib:
            return level.memory_per_cpu_mib, Per.CPU
        if level.memory_per_node_mib:
            return level.memory_per_node_mib, Per.NODE
    return ALL_MEMORY, Per.NODE
