"""Which GPUs of a step each of its tasks gets.

Source: srun(1) --gpu-bind, --gpus-per-task, --ntasks-per-gpu; what Slurm 22.05 answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spur.values.tres import gpu_indexes, gpu_mask

__all__ = ["bound_gpus", "gpu_binding"]


def gpu_binding(values: Mapping[str, Any], environment: Mapping[str, str]) -> str:
    """Return how tasks are bound to GPUs, as --gpu-bind spells it; empty when they are not.

    GPUs that are asked for each task are each task's own, unless something else is said. A step of
    a job takes that from the job's environment.
    """
    asked: str = values.get("gpu_bind", "")
    words = [word for word in asked.split(",") if word not in ("v", "verbose", "q", "quiet")]
    if words and words != [""]:
        return ",".join(words)
    of_task = sum(ask.count for ask in values.get("gpus_per_task", ()))
    if not of_task:
        counts = environment.get("SLURM_GPUS_PER_TASK", "").split(",")
        ends = [count.rpartition(":")[2] for count in counts]
        of_task = sum(int(end) for end in ends if end.isdigit())
    if of_task:
        return f"per_task:{of_task}"
    if values.get("ntasks_per_gpu"):
        return f"single:{values['ntasks_per_gpu']}"
    return ""


def bound_gpus(binding: str, gpus: int, place: int) -> int:
    """Return the mask of the GPUs that a task gets of the step's mask on its node.

    `place` counts the node's tasks from 0. What makes no sense binds nothing: all are given.
    """
    held = gpu_indexes(gpus)
    kind, _, text = binding.partition(":")
    if not held or not text:
        return gpus
    words = text.split(",")
    if kind in ("per_task", "single") and text.isdigit() and int(text):
        count = int(text)
        if kind == "single":
            return gpu_mask((held[place // count % len(held)],))
        return gpu_mask(held[place * count : (place + 1) * count]) or gpus
    word = words[place % len(words)]
    if kind == "map_gpu" and word.isdigit() and int(word) < len(held):
        return gpu_mask((held[int(word)],))
    if kind == "mask_gpu":
        try:
            mask = int(word, 16)
        except ValueError:
            return gpus
        return gpu_mask(tuple(held[i] for i in range(len(held)) if mask >> i & 1)) or gpus
    return gpus
