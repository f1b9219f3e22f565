"""The configuration that follows from numbers is one that a cluster takes."""

from __future__ import annotations

import pytest

from spur.slurm.configfile import parse_slurm_config
from spur.up.conf import AGENTS_MAX, NODES_MAX, administrator, made_config
from spur.values.config import GrantedRole
from spur.values.hostlist import parse_hostlist


@pytest.mark.parametrize(
    ("nodes", "each", "agents"),
    [(1, 0, 0), (4, 0, 0), (AGENTS_MAX, 0, 0), (100, 0, 15), (10, 4, 3), (NODES_MAX, 0, 16)],
)
def test_made_files_are_taken(nodes: int, each: int, agents: int) -> None:
    """Someone asks for nodes by number: few have an agent each, many share a few agents."""
    files = made_config(["c1"], nodes=nodes, nodes_per_agent=each, cpus=8, gpus="gfx942:4,9")
    config = parse_slurm_config((*files, administrator(1000)))
    names = [name for block in config.nodes for name in parse_hostlist(block.names)]
    assert names == [f"n{number}" for number in range(1, nodes + 1)]
    assert len({block.agent for block in config.nodes} - {""}) == agents
    assert {(block.cpus, block.gpus) for block in config.nodes} == {(8, 13)}
    [role] = config.roles
    assert (role.uid, role.role) == (1000, GrantedRole.ADMINISTRATOR)


def test_nodes_without_gpus_are_taken() -> None:
    """Someone asks for three controllers and plain nodes."""
    files = made_config(["c1", "c2", "c3"], nodes=2, nodes_per_agent=0, cpus=1, gpus="")
    config = parse_slurm_config(files)
    assert [host.name for host in config.settings.controllers] == ["c1", "c2", "c3"]
    assert [block.gpus for block in config.nodes] == [0]
