"""Orders: what an agent is told of an effect, made from the state and a job's attachments.

    @orders(LaunchRun)
    def launch_order(state: State, effect: LaunchRun, index: int, contents: Contents) -> Order: ...

A new effect that agents perform is one such function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from spur.projections.attachments import AMENDED_NAMES, unpack_attachments
from spur.projections.cluster import settings_of
from spur.projections.dispatch import KillRun, LaunchRun, NotifyRun, SignalRun, SteerRun
from spur.projections.hetjobs import components_of
from spur.projections.nodes import block_of
from spur.projections.react import Effect
from spur.projections.state import State
from spur.projections.stepdispatch import KillStep, LaunchStep, LetIn, SignalStep
from spur.projections.steporders import step_order
from spur.projections.topology import path_of_node
from spur.slurm.rlimits import limits_of_site
from spur.values.ids import JobId, PartitionName
from spur.values.jobspec import amended, decode_text, encode_text
from spur.values.tres import NodeShare, Per
from spur.wire.agents import (
    HetPart,
    KillOrder,
    LaunchOrder,
    NotifyOrder,
    Order,
    SignalOrder,
    SteerOrder,
)

__all__ = ["ORDERS", "Contents", "blobs_of_effect", "order_of", "orders"]

Contents = Mapping[str, bytes]
"""Contents of a job's attachments by name."""

Maker = Callable[[State, Any, int, Contents], Order | None]

ORDERS: dict[type[Effect], Maker] = {}
"""What makes the order of each effect that agents perform; None when it is owed no more."""

M = TypeVar("M", bound=Maker)


def orders(cls: type[Effect]) -> Callable[[M], M]:
    """Register what makes the orders of a class of effects."""

    def register(maker: M) -> M:
        if cls in ORDERS:
            raise ValueError(f"{cls.__name__} has two orders")
        ORDERS[cls] = maker
        return maker

    return register


def blobs_of_effect(effect: Effect) -> tuple[tuple[str, bytes, int], ...]:
    """Return name, digest and size of each attachment that the effect's order carries."""
    if not isinstance(effect, LaunchRun | NotifyRun):
        return ()
    return tuple((ref.name, ref.digest, ref.size) for ref in unpack_attachments(effect.attachments))


def order_of(state: State, effect: Effect, index: int, contents: Contents) -> Order | None:
    """Return the order of an effect that rests on the entry `index`."""
    return ORDERS[type(effect)](state, effect, index, contents)


@orders(LaunchRun)
def launch_order(
    state: State, effect: LaunchRun, index: int, contents: Contents
) -> LaunchOrder | None:
    """Say all that launching takes; None once the node is not configured or the run has ended."""
    block, run = block_of(state, effect.node), state.runs.get(effect.job_id)
    if block is None or run is None or run.started is None:
        return None
    array = state.arrays.get(effect.array_id)
    ranges = () if array is None else array.tasks.ranges
    partition = state.partitions.get(effect.partition)
    settings = settings_of(state)
    memory_per, memory_mib = _default_memory(state, effect.partition, effect.shares)
    topology, pattern = path_of_node(state, effect.node)
    lost = [name for name, _, _ in blobs_of_effect(effect) if name not in contents]
    return LaunchOrder(
        node=effect.node,
        job_id=effect.job_id,
        run=effect.run,
        attempt=effect.attempt,
        uid=effect.uid,
        gid=effect.gid,
        spec=effect.spec,
        array_id=effect.array_id if array is not None else JobId(0),
        task=None if effect.tasks is None else effect.tasks.first,
        array_count=0 if array is None else array.tasks.count,
        array_min=0 if array is None else array.tasks.first,
        array_max=0 if array is None else array.tasks.last,
        array_step=ranges[0][2] if len(ranges) == 1 else int(bool(ranges)),
        partition=effect.partition,
        partition_nodes="" if partition is None else partition.block.nodes,
        shares=effect.shares,
        node_cpus=tuple(
            0 if (other := block_of(state, share.node)) is None else other.cpus
            for share in effect.shares
        ),
        block=block,
        limit_ns=effect.limit_ns,
        start_ns=run.started.start_ns,
        script=contents.get("script", b""),
        environment=contents.get("environment", b""),
        text=_text(contents),
        cluster_name=settings.name,
        kill_wait_s=settings.kill_wait_s,
        default_memory_per=memory_per,
        default_memory_mib=memory_mib,
        task_plugin=_parameter(state, "TaskPlugin"),
        file_append=_parameter(state, "JobFileAppend") == "1",
        topology=topology,
        topology_pattern=pattern,
        propagated=limits_of_site(
            _parameter(state, "PropagateResourceLimits"),
            _parameter(state, "PropagateResourceLimitsExcept"),
        ),
        components=_components(state, effect),
        why_not=f"nobody can read its {', '.join(lost)} any more" if lost else "",
    )


def _text(contents: Contents) -> bytes:
    """Return the text as it is by now."""
    text = contents.get("text", b"")
    if not text or contents.keys().isdisjoint(AMENDED_NAMES):
        return text
    return encode_text(amended(decode_text(text), contents))


def _components(state: State, effect: LaunchRun) -> tuple[HetPart, ...]:
    """Return what the components of a het job have, for the node where its script runs."""
    if not effect.spec.batch or effect.node != effect.shares[0].node:
        return ()
    found = []
    for job_id in components_of(state, effect.job_id):
        run = state.runs[job_id]
        if run.number != effect.run or run.started is None:
            continue
        started = run.started
        per, mib = _default_memory(state, started.partition, started.shares)
        spec = state.jobs[job_id].spec
        found.append(HetPart(job_id, spec, started.partition, started.shares, per, mib))
    return tuple(found)


def _default_memory(
    state: State, name: PartitionName, shares: tuple[NodeShare, ...]
) -> tuple[Per, int]:
    """Return what a job has that names no memory: the partition's default, else the cluster's."""
    partition = state.partitions.get(name)
    per_gpu = None if partition is None else partition.block.memory_per_gpu_mib
    if per_gpu and any(share.gpus for share in shares):
        return Per.GPU, per_gpu
    for each in (None if partition is None else partition.block, settings_of(state)):
        if each is None:
            continue
        if each.memory_per_cpu_mib is not None:
            return Per.CPU, each.memory_per_cpu_mib
        if each.memory_per_node_mib is not None:
            return Per.NODE, each.memory_per_node_mib
    return Per.NODE, 0


def _parameter(state: State, name: str) -> str:
    """Return a parameter of Slurm's files as it was written; empty when it was not."""
    parameters = state.config[1].parameters
    return next((each.value for each in parameters if each.name == name), "")


@orders(LaunchStep)
@orders(KillStep)
@orders(SignalStep)
@orders(LetIn)
def order_of_step(
    state: State, effect: LaunchStep | KillStep | SignalStep | LetIn, index: int, contents: Contents
) -> Order:
    """Say what is to be done about a step."""
    return step_order(state, effect, index)


@orders(KillRun)
def kill_order(state: State, effect: KillRun, index: int, contents: Contents) -> KillOrder:
    """Say what is to end, and how it will be recorded."""
    return KillOrder(
        node=effect.node,
        job_id=effect.job_id,
        run=effect.run,
        attempt=effect.attempt,
        state=effect.state,
        kill_wait_s=settings_of(state).kill_wait_s,
    )


@orders(SignalRun)
def signal_order(state: State, effect: SignalRun, index: int, contents: Contents) -> SignalOrder:
    """Say which signal is sent to what."""
    return SignalOrder(
        node=effect.node,
        job_id=effect.job_id,
        run=effect.run,
        attempt=effect.attempt,
        signal=effect.signal,
        reach=effect.reach,
        index=index,
    )


@orders(SteerRun)
def steer_order(state: State, effect: SteerRun, index: int, contents: Contents) -> SteerOrder:
    """Say how a run is to go on."""
    return SteerOrder(
        node=effect.node,
        job_id=effect.job_id,
        run=effect.run,
        attempt=effect.attempt,
        paused=effect.paused,
        limit_ns=effect.limit_ns,
        index=effect.index,
    )


@orders(NotifyRun)
def notify_order(
    state: State, effect: NotifyRun, index: int, contents: Contents
) -> NotifyOrder | None:
    """Say what somebody said; None once nobody can read it any more."""
    if "notice" not in contents:
        return None
    return NotifyOrder(
        node=effect.node,
        job_id=effect.job_id,
        run=effect.run,
        attempt=effect.attempt,
        text=contents["notice"],
        index=index,
    )
