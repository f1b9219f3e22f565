"""What must hold of steps in every state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spur.projections.invariants import invariant
from spur.projections.runrows import RunRow
from spur.projections.steprows import StepsRow, is_over
from spur.values.ids import NodeName
from spur.values.states import Phase
from spur.values.tres import NodeShare, cpu_mask

if TYPE_CHECKING:
    from spur.projections.state import State

__all__: list[str] = []


@invariant("steps-live-within-their-run")
def homeless_steps(state: State) -> Iterator[str]:
    """Steps are open only while their run holds its allocation, in its newest attempt."""
    for job_id in state.steps.sorted_keys():
        row, run = state.steps[job_id], state.runs.get(job_id)
        if run is None or run.phase not in (Phase.RUNNING, Phase.STOPPING):
            yield f"job {job_id} has steps and no allocation"
        elif (row.run, row.attempt) != (run.number, run.attempt):
            yield f"job {job_id} is at run {run.number}, attempt {run.attempt}; its steps are not"
        numbers = [step.step_id for step in row.steps]
        if numbers != sorted(set(numbers)) or any(number >= row.next_id for number in numbers):
            yield f"job {job_id} has open steps {numbers}, and {row.next_id} is next"
        for step in row.steps:
            if len(step.states) != len(step.shares) or len(step.tasks) != len(step.shares):
                yield f"step {job_id}.{step.step_id}: its nodes, states and tasks do not fit"
            if is_over(step):
                yield f"step {job_id}.{step.step_id} lives nowhere and has not ended"


@invariant("steps-use-what-their-run-holds")
def steps_beyond_their_run(state: State) -> Iterator[str]:
    """A step's share is within its run's, and no two that do not overlap use the same."""
    for job_id in state.steps.sorted_keys():
        run = state.runs.get(job_id)
        if run is not None and run.started is not None:
            yield from (f"job {job_id}: {breach}" for breach in _breaches(state.steps[job_id], run))


def _breaches(row: StepsRow, run: RunRow) -> Iterator[str]:
    held = {share.node: share for share in run.started.shares} if run.started else {}
    cpus: dict[NodeName, int] = {}
    memory_mib: dict[NodeName, int] = {}
    gpus: dict[NodeName, int] = {}
    for step in row.steps:
        for share in step.shares:
            node, whole = share.node, held.get(share.node)
            if whole is None or not _is_within(share, whole):
                yield f"step {step.step_id} uses more of node {node} than the run holds"
            if step.overlaps:
                continue
            mask = cpu_mask(share.cpu_set)
            if cpus.get(node, 0) & mask or gpus.get(node, 0) & share.gpus:
                yield f"step {step.step_id} uses CPUs or GPUs of node {node} of another step"
            cpus[node] = cpus.get(node, 0) | mask
            gpus[node] = gpus.get(node, 0) | share.gpus
            memory_mib[node] = memory_mib.get(node, 0) + share.memory_mib
    for node in sorted(memory_mib):
        if node in held and memory_mib[node] > held[node].memory_mib:
            yield f"steps use {memory_mib[node]} MiB of node {node}, more than the run holds"


def _is_within(share: NodeShare, whole: NodeShare) -> bool:
    """Whether a step's share is part of its run's."""
    return (
        not cpu_mask(share.cpu_set) & ~cpu_mask(whole.cpu_set)
        and not share.gpus & ~whole.gpus
        and share.memory_mib <= whole.memory_mib
        and share.cpus <= cpu_mask(share.cpu_set).bit_count()
    )
