"""Laying out a step: which of its run's nodes, CPUs, memory and GPUs it uses, and its tasks.

As Slurm does: a step takes the nodes of its allocation in order; without `exact` it takes every
CPU that is free on them; and the number of tasks on each node is what dealing them out one node
after the other gives, as long as the node has CPUs for one more.

Source: srun(1); slurm's dist_tasks.c for the counts of the block distribution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from spur.projections.steprows import OpenStep
from spur.values.errors import Rejection
from spur.values.hostlist import parse_hostlist
from spur.values.ids import NodeName
from spur.values.tres import GresAsk, NodeShare, Per, cpu_mask, cpu_set
from spur.wire.steps import StepAsk

__all__ = ["TASKS_MAX", "StepLayout", "lay_out"]

TASKS_MAX = 512_000
"""Tasks of one step. Source: slurm.conf(5) MaxTasksPerNode, times a thousand nodes."""


@dataclass(frozen=True, slots=True)
class StepLayout:
    """Where a step runs."""

    shares: tuple[NodeShare, ...]
    tasks: tuple[int, ...]
    """How many on each node."""


@dataclass(slots=True)
class _Node:
    """A node of the run, and what of it no other step uses."""

    held: NodeShare
    free_mask: int
    free_memory_mib: int
    free_gpus: int

    @property
    def name(self) -> NodeName:
        return self.held.node

    def room(self, cpus_per_task: int) -> int:
        """How many tasks have CPUs of their own here."""
        return self.free_mask.bit_count() // cpus_per_task


def lay_out(
    shares: Sequence[NodeShare], open_steps: Sequence[OpenStep], ask: StepAsk
) -> StepLayout | Rejection:
    """Return where a step runs in its run's allocation, or why it cannot.

    Rejections: `step-busy` while other steps use what it needs; `step-too-large` and
    `step-unavailable` when it would not fit with nothing else there.
    """
    now = _choose(_nodes(shares, () if ask.overlaps else open_steps), ask)
    if not isinstance(now, Rejection) or not open_steps:
        return now
    ever = _choose(_nodes(shares, ()), ask)
    if isinstance(ever, Rejection):
        return ever
    return Rejection("step-busy", "other steps use what this one needs; it was not started")


def _nodes(shares: Sequence[NodeShare], open_steps: Sequence[OpenStep]) -> list[_Node]:
    """Return the nodes of a run with what is free on them beside these steps."""
    nodes = {
        share.node: _Node(share, cpu_mask(share.cpu_set), share.memory_mib, share.gpus)
        for share in shares
    }
    for step in open_steps:
        if step.overlaps:
            continue
        for used in step.shares:
            node = nodes[used.node]
            node.free_mask &= ~cpu_mask(used.cpu_set)
            node.free_memory_mib -= used.memory_mib
            node.free_gpus &= ~used.gpus
    return list(nodes.values())


def _choose(nodes: list[_Node], ask: StepAsk) -> StepLayout | Rejection:
    """Return the layout on these nodes as they are."""
    found = _candidates(nodes, ask)
    if isinstance(found, Rejection):
        return found
    per_task = ask.cpus_per_task or 1
    usable = [node for node in found if _has_room(node, ask, per_task)]
    chosen = _enough(usable, ask, per_task)
    if isinstance(chosen, Rejection):
        return chosen
    counts = _counts(chosen, ask, per_task)
    if isinstance(counts, Rejection):
        return counts
    gpus = _gpus(chosen, counts, ask)
    if gpus is None:
        return _unavailable("the GPUs that it asks are not there")
    given = [
        _share(node, count, mask, ask, per_task)
        for node, count, mask in zip(chosen, counts, gpus, strict=True)
    ]
    whole = [share for share in given if share is not None]
    if len(whole) != len(given):
        return _unavailable("the memory that it asks is not there")
    return StepLayout(tuple(whole), tuple(counts))


def _candidates(nodes: list[_Node], ask: StepAsk) -> list[_Node] | Rejection:
    """Return the nodes that the step may use, those first that it must."""
    known = {node.name: node for node in nodes}
    required = tuple(dict.fromkeys(parse_hostlist(ask.nodes_required)))
    excluded = set(parse_hostlist(ask.nodes_excluded))
    for name in required:
        if NodeName(name) not in known:
            return _unavailable(f"node {name!r} is not in the allocation")
    if ask.relative is not None:
        if ask.relative >= len(nodes):
            return _unavailable(f"the allocation has {len(nodes)} nodes, and no {ask.relative}")
        nodes = nodes[ask.relative :]
    if not required:
        return [node for node in nodes if node.name not in excluded]
    if ask.arbitrary:
        return [known[NodeName(name)] for name in required]
    most = ask.nodes_max or max(ask.nodes_min, len(required))
    others = [n for n in nodes if n.name not in required and n.name not in excluded]
    wanted = {NodeName(name) for name in required}
    wanted.update(node.name for node in others[: max(0, most - len(required))])
    return [node for node in nodes if node.name in wanted]


def _has_room(node: _Node, ask: StepAsk, per_task: int) -> bool:
    """Whether one task fits on a node."""
    if not node.free_mask or not (ask.overcommits or node.room(per_task)):
        return False
    return (
        ask.memory_mib <= 0
        or ask.memory_per is not Per.NODE
        or (ask.memory_mib <= node.free_memory_mib)
    )


def _enough(usable: list[_Node], ask: StepAsk, per_task: int) -> list[_Node] | Rejection:
    """Return as many of the nodes as the step takes, in order."""
    is_mapped = ask.arbitrary and bool(ask.nodes_required)
    least = len(set(parse_hostlist(ask.nodes_required))) if is_mapped else max(ask.nodes_min, 1)
    if len(usable) < least:
        return _too_large(f"{least} nodes are asked for, and {len(usable)} have room")
    most = min(ask.nodes_max or len(usable), len(usable))
    if is_mapped:
        return usable
    if not ask.tasks:
        return usable[: most if ask.nodes_max else ask.nodes_min or len(usable)]
    if ask.overcommits:
        return usable[:least]
    chosen = usable[:least]
    room = sum(_limit(node, ask, per_task) for node in chosen)
    for node in usable[least:most]:
        if room >= ask.tasks:
            break
        chosen.append(node)
        room += _limit(node, ask, per_task)
    return chosen


def _limit(node: _Node, ask: StepAsk, per_task: int) -> int:
    """How many tasks of the step a node takes."""
    room = node.room(per_task)
    return min(room, ask.tasks_per_node) if ask.tasks_per_node else room


def _counts(chosen: list[_Node], ask: StepAsk, per_task: int) -> list[int] | Rejection:
    """Return how many tasks run on each node."""
    if ask.arbitrary and ask.nodes_required:
        return [1] * len(chosen)
    total = ask.tasks or len(chosen) * max(1, ask.tasks_per_node)
    if total > TASKS_MAX:
        return Rejection("limit-exceeded", f"step-tasks-max is {TASKS_MAX}, and this needs {total}")
    if total < len(chosen):
        return _too_large(f"{total} tasks cannot run on {len(chosen)} nodes")
    limits = [_limit(node, ask, per_task) for node in chosen]
    if ask.overcommits:
        limits = [total] * len(chosen)
    if sum(limits) < total:
        return _too_large(f"{total} tasks of {per_task} CPUs do not fit on these nodes")
    block = max(1, ask.plane)
    counts = [0] * len(chosen)
    left = total
    while left:
        for place, limit in enumerate(limits):
            taken = min(block, left, limit - counts[place])
            counts[place] += taken
            left -= taken
    return counts


def _share(node: _Node, tasks: int, gpus: int, ask: StepAsk, per_task: int) -> NodeShare | None:
    """Return what the step uses on a node; None when the node does not have it."""
    mask = node.free_mask
    if ask.exact:
        mask = _lowest(mask, min(mask.bit_count(), tasks * per_task))
    cpus = mask.bit_count()
    memory_mib = node.free_memory_mib
    if ask.memory_mib > 0:
        asked = ask.memory_mib * (cpus if ask.memory_per is Per.CPU else 1)
        if asked > memory_mib:
            return None
        memory_mib = asked
    return replace(
        node.held,
        cpus=min(cpus, max(node.held.cpus, 1)),
        memory_mib=memory_mib,
        gpus=gpus,
        cpu_set=cpu_set(mask),
    )


def _gpus(chosen: list[_Node], counts: list[int], ask: StepAsk) -> list[int] | None:
    """Return the mask of GPUs that the step uses on each node; None when they are not there."""
    if ask.gres is None:
        if any(node.held.gpus and not node.free_gpus for node in chosen):
            return None
        return [node.free_gpus for node in chosen]
    wanted = [sum(_asked_of_node(gres, tasks) for gres in ask.gres) for tasks in counts]
    of_step = sum(gres.count for gres in ask.gres if gres.per is Per.JOB)
    for place, node in enumerate(chosen):
        more = min(of_step, max(0, node.free_gpus.bit_count() - wanted[place]))
        wanted[place] += more
        of_step -= more
    free = [node.free_gpus for node in chosen]
    if of_step or any(n > mask.bit_count() for n, mask in zip(wanted, free, strict=True)):
        return None
    return [_lowest(mask, count) for mask, count in zip(free, wanted, strict=True)]


def _asked_of_node(gres: GresAsk, tasks: int) -> int:
    """Return how many GPUs one ask means on a node with so many tasks."""
    if gres.per is Per.JOB:
        return 0
    return gres.count * tasks if gres.per is Per.TASK else gres.count


def _lowest(mask: int, count: int) -> int:
    """Return the lowest bits of a mask, so many."""
    kept = 0
    for _ in range(count):
        bit = mask & -mask
        kept |= bit
        mask ^= bit
    return kept


def _too_large(text: str) -> Rejection:
    return Rejection("step-too-large", f"{text}; the step was not started")


def _unavailable(text: str) -> Rejection:
    return Rejection("step-unavailable", f"{text}; the step was not started")
