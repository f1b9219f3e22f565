"""Variables that tell the makers' libraries which GPUs a process may use.

Which ones a pool of devices sets follows from its flags in gres.conf; without a flag all of them.
A process without GPUs finds none of them.

Source: gres.conf(5) Flags; environments recorded from Slurm 22.05.
"""

from __future__ import annotations

from spur.values.config import GresPool
from spur.values.tres import gpu_indexes

__all__ = ["GPU_VARIABLES", "gpu_variables"]

GPU_VARIABLES: dict[str, tuple[bytes, ...]] = {
    "nvidia_gpu_env": (b"CUDA_VISIBLE_DEVICES",),
    "amd_gpu_env": (b"ROCR_VISIBLE_DEVICES",),
    "intel_gpu_env": (b"ZE_AFFINITY_MASK",),
    "opencl_env": (b"GPU_DEVICE_ORDINAL",),
}
"""By flag of gres.conf: the variables that hold the devices' indexes on their node."""

RELATIVE: dict[str, bytes] = {"amd_gpu_env": b"HIP_VISIBLE_DEVICES"}
"""By flag: a variable that counts among the devices which the one above leaves visible."""

_ALL = tuple(GPU_VARIABLES)


def gpu_variables(gpus: int, pools: tuple[GresPool, ...]) -> dict[bytes, bytes | None]:
    """Return each variable for the GPUs in a mask; None is one that must not be found.

    The pools are those of the node, in the order of their devices.
    """
    found: dict[bytes, bytes | None] = dict.fromkeys(
        (*(name for names in GPU_VARIABLES.values() for name in names), *RELATIVE.values())
    )
    if not gpus:
        return found
    indexes = gpu_indexes(gpus)
    flags = _flags(indexes, pools)
    for flag in flags or _ALL:
        for name in GPU_VARIABLES[flag]:
            found[name] = b",".join(b"%d" % index for index in indexes)
        if flags and flag in RELATIVE:
            found[RELATIVE[flag]] = b",".join(b"%d" % place for place in range(len(indexes)))
    return found


def _flags(indexes: tuple[int, ...], pools: tuple[GresPool, ...]) -> list[str]:
    """Return the flags of the pools that these devices lie in, of those that set a variable."""
    found: list[str] = []
    first = 0
    for pool in pools:
        if pool.name != "gpu":
            continue
        if any(first <= index < first + pool.count for index in indexes):
            found += [flag for flag in pool.flags if flag in GPU_VARIABLES and flag not in found]
        first += pool.count
    return found
