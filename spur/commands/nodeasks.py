"""What a job asks of nodes: names and features that are there, memory that was left to the site."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from spur.projections.cluster import settings_of
from spur.projections.state import State
from spur.values.errors import Rejection
from spur.values.features import Test, parse_features
from spur.values.hostlist import parse_hostlist
from spur.values.ids import PartitionName
from spur.values.jobspec import ResourceAsk
from spur.values.tres import Per

__all__ = ["refuse_nodes", "with_default_memory"]


def refuse_nodes(state: State, ask: ResourceAsk) -> Rejection | None:
    """Return why an ask names nodes or features that no cluster of this configuration has."""
    known = state.block_of_node
    asked = []
    for text in (ask.nodes_required, ask.nodes_excluded):
        try:
            names = parse_hostlist(text)
        except ValueError as error:
            return Rejection("unknown-node", f"{error}; nothing was changed")
        missing = next((name for name in names if known.key(name) is None), None)
        if missing is not None:
            return Rejection("unknown-node", f"there is no node {missing!r}; nothing was changed")
        asked.append(names)
    both = sorted(set(asked[0]).intersection(asked[1]))
    if both:
        return Rejection(
            "unknown-node", f"node {both[0]!r} is required and excluded; nothing was changed"
        )
    for text, code in ((ask.features, "invalid-feature"), (ask.preferred, "invalid-preference")):
        why = _no_features(state, text) if text else ""
        if why:
            return Rejection(code, f"{why}; nothing was changed")
    return None


def _no_features(state: State, text: str) -> str:
    """Return why a constraint can't be met by any node; empty when it can."""
    try:
        ways = parse_features(text)
    except ValueError as error:
        return str(error)
    known = {name for row in state.node_blocks.rows.values() for name in row.block.features}
    for way in ways:
        for test in (way.every, *(test for test, _ in way.some)):
            for name in _names(test):
                if name not in known:
                    return f"no node has feature {name!r}"
    return ""


def _names(test: Test) -> Iterator[str]:
    if isinstance(test, str):
        yield test
    else:
        for part in test[1:]:
            yield from _names(part)


def with_default_memory(state: State, partition: PartitionName, ask: ResourceAsk) -> ResourceAsk:
    """Return the ask with the memory that the site gives to those who name none.

    What it gives for each GPU is left out: a partition says it when the job is placed, and then it
    counts instead.

    Source: slurm.conf(5) DefMemPerCPU, DefMemPerNode.
    """
    row = state.partitions.get(partition)
    if ask.memory_mib or row is None:
        return ask
    for level in (row.block, settings_of(state)):
        if level.memory_per_cpu_mib:
            memory_mib, per = level.memory_per_cpu_mib, Per.CPU
        elif level.memory_per_node_mib:
            memory_mib, per = level.memory_per_node_mib, Per.NODE
        else:
            continue
        return replace(ask, memory_mib=memory_mib, memory_per=per, memory_is_default=True)
    return ask
