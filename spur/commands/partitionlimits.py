"""What partitions say to a submission: who may use them, their limits, and their nodes.

A job that breaks a limit waits for the limit to change, unless EnforcePartLimits has it refused.
One that the nodes of none of its partitions could ever run is refused, unless it can't start yet
anyway: then it is accepted, and the scheduler says why it waits.

Source: slurm.conf(5) EnforcePartLimits, MaxTime, MaxNodes, MinNodes, MaxMemPerNode, MaxMemPerCPU,
RootOnly, AllowAccounts; what Slurm 22.05 answered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from spur.commands.decide import Context
from spur.projections.cluster import parameter_of, settings_of
from spur.projections.partitions import PartitionRow, not_for
from spur.projections.state import State
from spur.scheduling.capacity import Capacity, Lack, capacity_of, lack_of
from spur.scheduling.need import Need, breaks_memory, counts_memory, need_of
from spur.values.config import ClusterSettings, PartitionBlock
from spur.values.errors import Rejection
from spur.values.hostlist import parse_hostlist
from spur.values.ids import HostId
from spur.values.jobspec import JobSpec
from spur.values.states import Reason
from spur.wire.jobs import SubmitJob

__all__ = ["refuse_by_partitions"]


class _Case(NamedTuple):
    """One job and one partition."""

    spec: JobSpec
    need: Need
    partition: PartitionRow
    capacity: Capacity
    settings: ClusterSettings


class _Limit(NamedTuple):
    """One row: a limit of a partition."""

    code: str
    is_broken: Callable[[_Case], bool]
    told: Callable[[_Case], str]


def _breaks_time(case: _Case) -> bool:
    most_s, limit_s = case.partition.block.max_time_s, case.spec.time_limit_s
    return most_s is not None and limit_s is not None and not 0 < limit_s <= most_s


def _nodes_max(case: _Case) -> int:
    there, most = len(case.capacity.sites), case.partition.block.nodes_max
    return there if most is None else min(there, most)


def _breaks_nodes(case: _Case) -> bool:
    least = case.partition.block.nodes_min
    most_asked = case.need.nodes_max
    if most_asked and (
        most_asked < least or most_asked > (case.partition.block.nodes_max or most_asked)
    ):
        return True
    return case.need.nodes_min > _nodes_max(case)


def _cpus(need: Need) -> int:
    if need.overcommits:
        return need.nodes_min
    return max(need.tasks * need.cpus_per_task, need.nodes_min)


def _takes_not(reason: Reason) -> Callable[[_Case], bool]:
    return lambda case: not_for(case.partition.block, case.spec) is reason


_LIMITS = (
    _Limit(
        "over-cpu-limit",
        lambda case: _cpus(case.need) > case.capacity.cpus,
        lambda case: f"has {case.capacity.cpus} CPUs, and this needs {_cpus(case.need)}",
    ),
    _Limit(
        "over-node-limit",
        _breaks_nodes,
        lambda case: (
            f"gives a job {case.partition.block.nodes_min} to {_nodes_max(case)} nodes, "
            f"and this needs {case.need.nodes_min}"
        ),
    ),
    _Limit(
        "over-time-limit",
        _breaks_time,
        lambda case: (
            f"lets a job run for {case.partition.block.max_time_s} s, "
            f"and this asks for {case.spec.time_limit_s}"
        ),
    ),
    _Limit(
        "over-memory-limit",
        lambda case: breaks_memory(case.need),
        lambda case: f"gives a job less memory of a node than {case.need.memory_mib} MiB",
    ),
    _Limit(
        "invalid-account",
        _takes_not(Reason.ACCOUNT_NOT_ALLOWED),
        lambda case: f"is closed to account {case.spec.account!r}",
    ),
    _Limit(
        "invalid-qos",
        _takes_not(Reason.QOS_NOT_ALLOWED),
        lambda case: f"is closed to QOS {case.spec.qos!r}",
    ),
)
"""In the order in which Slurm looks at them."""

_LACKS = {
    Lack.CPUS: ("cpus-unavailable", "with so many CPUs"),
    Lack.MEMORY: ("memory-unavailable", "with so much memory"),
    Lack.DISK: ("disk-unavailable", "with so much temporary disk"),
    Lack.SHAPE: ("shape-unavailable", "with such sockets, cores and threads"),
    Lack.NODES: ("nodes-unavailable", "that could ever run it"),
}


def refuse_by_partitions(state: State, request: SubmitJob, context: Context) -> Rejection | None:
    """Return why none of the job's partitions takes it, or None; each of them must be known."""
    spec, settings = request.spec, settings_of(state)
    cases = []
    memory = counts_memory(state)
    for name in spec.partitions:
        partition = state.partitions[name]
        need = need_of(spec.ask, partition.block, settings, counts_memory=memory)
        cases.append(_Case(spec, need, partition, capacity_of(state, partition), settings))
    for case in cases:
        refused = _refuse_use(state, case, context)
        if refused is not None:
            return refused
    return _refuse_limits(state, cases) or _refuse_sizes(request, cases, context)


def _takes_from(block: PartitionBlock, host: str) -> bool:
    """Whether jobs may be submitted on a host. Source: slurm.conf(5) AllocNodes."""
    return block.alloc_nodes.upper() in ("", "ALL") or host in parse_hostlist(block.alloc_nodes)


def _refuse_use(state: State, case: _Case, context: Context) -> Rejection | None:
    block = case.partition.block
    name = block.name
    if block.root_only and context.actor.uid:
        return Rejection("not-permitted", f"partition {name!r} is root's; nothing was changed")
    host = state.hosts.get(HostId(context.actor.host_id))
    if host is not None and not _takes_from(block, host.name):
        text = f"partition {name!r} takes nothing that is submitted on {host.name!r}"
        return Rejection("not-permitted", f"{text}; nothing was changed")
    least_s, most_s = case.spec.time_limit_min_s, case.partition.block.max_time_s
    limit_s = most_s if case.spec.time_limit_s is None else case.spec.time_limit_s
    for longest_s in (limit_s, most_s):
        if least_s is not None and longest_s and least_s > longest_s:
            text = f"a least time limit of {least_s} s is over {longest_s} s"
            return Rejection("invalid-time-min", f"{text}; nothing was changed")
    return None


def _broken(case: _Case) -> _Limit | None:
    return next((limit for limit in _LIMITS if limit.is_broken(case)), None)


def _refuse_limits(state: State, cases: list[_Case]) -> Rejection | None:
    enforced = parameter_of(state, "EnforcePartLimits").upper()
    if enforced in ("", "NO"):
        return None
    broken = [(case, limit) for case in cases if (limit := _broken(case)) is not None]
    if not broken or (enforced == "ANY" and len(broken) < len(cases)):
        return None
    case, limit = broken[0]
    text = f"partition {case.partition.block.name!r} {limit.told(case)}"
    return Rejection(limit.code, f"{text}; nothing was changed")


def _refuse_sizes(request: SubmitJob, cases: list[_Case], context: Context) -> Rejection | None:
    """Return why the nodes of no partition could run a job that could start now."""
    spec = request.spec
    if request.hold or spec.dependency is not None or spec.begin_ns > context.now_ns:
        return None
    lacks = []
    for case in cases:
        lack = None if _broken(case) else lack_of(case.capacity, case.need)
        if lack is None:
            return None
        lacks.append(lack)
    code, what = _LACKS[lacks[0]]
    names = ", ".join(repr(case.partition.block.name) for case in cases)
    return Rejection(code, f"partition {names} has no nodes {what}; nothing was changed")
