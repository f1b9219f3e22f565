"""The configuration of a cluster that was asked for by numbers, in files as a site writes them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from spur.slurm.configfile import SLURM_FILE
from spur.values.config import ConfigFile
from spur.values.configfile import CONFIG_FILE
from spur.values.errors import OperatorFault
from spur.values.hostlist import format_hostlist

__all__ = ["AGENTS_MAX", "NODES_MAX", "administrator", "made_config"]

NODES_MAX = 5_000
"""Nodes that one machine may be asked to play."""

AGENTS_MAX = 16
"""Agents that play one node each; with more nodes each agent plays several."""

MEMORY_PER_CPU_MIB = 2_000

_GPUS = re.compile(r"(?:[A-Za-z0-9._-]{1,64}:)?[0-9]{1,3}\Z")

_SLURM = """\
# Written by `spur up`; change it and run `scontrol reconfigure`.
ClusterName=spur
{controllers}
SlurmdTimeout=60
KillWait=5
ReturnToService=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU={memory_per_cpu}
{gres_types}{nodes}PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def made_config(
    controllers: Sequence[str], *, nodes: int, nodes_per_agent: int, cpus: int, gpus: str
) -> tuple[ConfigFile, ...]:
    """Return a slurm.conf of equal nodes in one partition.

    `gpus` is what each node has: "8", "gfx942:8", "a100:2,h100:2", or nothing.

    Each agent serves `nodes_per_agent` of them; 0 for one each, or more when there are many.

    Raises: OperatorFault when one of them is no such number.
    """
    if not 1 <= nodes <= NODES_MAX:
        raise OperatorFault(f"{nodes} nodes; it takes 1 to {NODES_MAX}; nothing was made")
    if not 0 <= nodes_per_agent <= NODES_MAX:
        raise OperatorFault(f"{nodes_per_agent} nodes for each agent; nothing was made")
    if not 1 <= cpus <= 4_096:
        raise OperatorFault(f"{cpus} CPUs; a node has 1 to 4096; nothing was made")
    kinds = [kind for kind in gpus.split(",") if kind]
    for kind in kinds:
        if not _GPUS.match(kind):
            raise OperatorFault(
                f"GPUs {kind!r}; it takes kind and number, such as gfx942:8; nothing was made"
            )
    gres = ",".join(f"gpu:{kind}" for kind in kinds)
    has = f"CPUs={cpus} RealMemory={cpus * MEMORY_PER_CPU_MIB}"
    if gres:
        has += f" Gres={gres}"
    text = _SLURM.format(
        controllers="\n".join(f"SlurmctldHost={name}(127.0.0.1)" for name in controllers),
        memory_per_cpu=MEMORY_PER_CPU_MIB,
        gres_types="GresTypes=gpu\n" if kinds else "",
        nodes="".join(_node_lines(nodes, nodes_per_agent or -(-nodes // AGENTS_MAX), has)),
    )
    return (ConfigFile(SLURM_FILE, text),)


def _node_lines(nodes: int, each: int, has: str) -> Iterator[str]:
    """Yield the NodeName lines: one for all, or one for the nodes of each agent."""
    if each == 1:
        yield f"NodeName={_names(1, nodes)} {has} State=UNKNOWN\n"
        return
    for number, first in enumerate(range(1, nodes + 1, each), 1):
        last = min(nodes, first + each - 1)
        yield f"NodeName={_names(first, last)} NodeHostname=h{number} {has} State=UNKNOWN\n"


def _names(first: int, last: int) -> str:
    return format_hostlist([f"n{number}" for number in range(first, last + 1)])


def administrator(uid: int) -> ConfigFile:
    """Return the spur.toml that makes a user an administrator."""
    text = (
        "# Written by `spur up`: whose cluster this is.\n"
        f'[[roles]]\nuid = {uid}\nrole = "administrator"\n'
    )
    return ConfigFile(CONFIG_FILE, text)
