"""Trackable resources: what a job asks of a generic resource, and what it holds on a node."""

from __future__ import annotations

from enum import IntEnum

import msgspec

from spur.values.ids import NodeName

__all__ = [
    "GPUS_PER_NODE_MAX",
    "GresAsk",
    "NodeShare",
    "Per",
    "cpu_mask",
    "cpu_set",
    "gpu_indexes",
    "gpu_mask",
]

GPUS_PER_NODE_MAX = 64
"""Devices of one node, MIG slices included: a mask of them is one 64-bit integer."""


class Per(IntEnum):
    """Of what a count is asked."""

    JOB = 0
    NODE = 1
    TASK = 2
    SOCKET = 3
    CPU = 4
    GPU = 5


class GresAsk(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """A number of devices of one generic resource. Source: sbatch(1) --gres, --gpus."""

    name: str
    """Such as "gpu"."""
    kind: str
    """Such as "mi300x"; empty for any kind."""
    count: int
    per: Per


class NodeShare(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """What a run holds on one node."""

    node: NodeName
    cpus: int
    """As they are counted for people: at most as many as in `cpu_set`, which has whole cores."""
    memory_mib: int
    gpus: int
    """Bit i set: it holds the node's GPU with index i."""
    cpu_set: bytes
    """Which CPUs, as `cpu_set` writes a mask. They are numbered core by core, socket by socket:
    the threads of one core follow each other. Where a node's CPUs are its cores, one is a core."""
    is_shared: bool
    """Whether other runs may hold the same CPUs. Source: slurm.conf(5) OverSubscribe."""


def cpu_set(mask: int) -> bytes:
    """Return a mask of CPUs as it is stored: big-endian, without leading zeros."""
    return mask.to_bytes((mask.bit_length() + 7) // 8, "big")


def cpu_mask(stored: bytes) -> int:
    """Return the mask of a stored set: bit i stands for CPU i."""
    return int.from_bytes(stored, "big")


def gpu_mask(indexes: tuple[int, ...]) -> int:
    """Return the mask with these device indexes set."""
    mask = 0
    for index in indexes:
        mask |= 1 << index
    return mask


def gpu_indexes(mask: int) -> tuple[int, ...]:
    """Return the device indexes set in a mask, ascending."""
    return tuple(index for index in range(mask.bit_length()) if mask >> index & 1)
