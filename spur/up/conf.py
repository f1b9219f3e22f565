"""The configuration of a cluster that was asked for by numbers, in files as a site writes them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from spur.slurm.configfile import SLURM_FILE
from spur.values.config import ConfigFile
from spur.values.configfile import CONFIG_FILE
from spur.values.errors import OperatorFault
from spur.values.hostlist import format_hostlist

__all__ = ["NODES_MAX", "administrator", "made_config", "node_names"]

NODES_MAX = 5_000
"""Nodes that one machine may be asked to play."""

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
{gres_types}NodeName={nodes} CPUs={cpus} RealMemory={memory}{gres} State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def node_names(count: int) -> tuple[str, ...]:
    """Return the nodes' names. Raises: OperatorFault for a number that is none of ours."""
    if not 1 <= count <= NODES_MAX:
        raise OperatorFault(f"{count} nodes; it takes 1 to {NODES_MAX}; nothing was made")
    return tuple(f"n{number}" for number in range(1, count + 1))


def made_config(
    controllers: Sequence[str], *, nodes: int, cpus: int, gpus: str
) -> tuple[ConfigFile, ...]:
    """Return a slurm.conf of equal nodes in one partition.

    `gpus` is what each node has: "8", "gfx942:8", "a100:2,h100:2", or nothing.

    Raises: OperatorFault when one of them is no such number.
    """
    if not 1 <= cpus <= 4_096:
        raise OperatorFault(f"{cpus} CPUs; a node has 1 to 4096; nothing was made")
    kinds = [kind for kind in gpus.split(",") if kind]
    for kind in kinds:
        if not _GPUS.match(kind):
            raise OperatorFault(
                f"GPUs {kind!r}; it takes kind and number, such as gfx942:8; nothing was made"
            )
    gres = ",".join(f"gpu:{kind}" for kind in kinds)
    text = _SLURM.format(
        controllers="\n".join(f"SlurmctldHost={name}(127.0.0.1)" for name in controllers),
        memory_per_cpu=MEMORY_PER_CPU_MIB,
        gres_types="GresTypes=gpu\n" if kinds else "",
        nodes=format_hostlist(node_names(nodes)),
        cpus=cpus,
        memory=cpus * MEMORY_PER_CPU_MIB,
        gres=f" Gres={gres}" if gres else "",
    )
    return (ConfigFile(SLURM_FILE, text),)


def administrator(uid: int) -> ConfigFile:
    """Return the spur.toml that makes a user an administrator."""
    text = (
        "# Written by `spur up`: whose cluster this is.\n"
        f'[[roles]]\nuid = {uid}\nrole = "administrator"\n'
    )
    return ConfigFile(CONFIG_FILE, text)
