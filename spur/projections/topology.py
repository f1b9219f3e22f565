"""Where a node is in the network, as a job is told: the switches above it and its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spur.values.config import SlurmParameter, TopologyKind, TopologyUnit
from spur.values.hostlist import parse_hostlist

if TYPE_CHECKING:
    from spur.projections.state import State

__all__ = ["path_of_node"]


def path_of_node(state: State, node: str) -> tuple[str, str]:
    """Return the path to a node and what each part of it is; without a tree, the node alone.

    Source: srun(1) SLURM_TOPOLOGY_ADDR, SLURM_TOPOLOGY_ADDR_PATTERN; slurm.conf(5) TopologyPlugin.
    """
    row = state.config.get(1)
    switches: tuple[TopologyUnit, ...] = ()
    if row is not None and SlurmParameter("TopologyPlugin", "topology/tree") in row.parameters:
        switches = tuple(unit for unit in row.topology if unit.kind is TopologyKind.SWITCH)
    path = [node]
    leaf = next((unit for unit in switches if node in parse_hostlist(unit.nodes)), None)
    while leaf is not None and len(path) <= len(switches):
        path.append(leaf.name)
        below = leaf.name
        leaf = next((unit for unit in switches if below in unit.switches), None)
    path.reverse()
    return ".".join(path), ".".join(["switch"] * (len(path) - 1) + ["node"])
