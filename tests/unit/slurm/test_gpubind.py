"""Which GPUs of a step each task gets, as a Slurm 22.05 answered."""

from __future__ import annotations

from typing import Any

import pytest

from spur.slurm.gpubind import bound_gpus, gpu_binding
from spur.values.tres import GresAsk, Per, gpu_indexes


def of_task(count: int) -> tuple[GresAsk, ...]:
    return (GresAsk("gpu", "", count, Per.TASK),)


@pytest.mark.parametrize(
    ("values", "environment", "binding"),
    [
        ({"gpus_per_task": of_task(2)}, {}, "per_task:2"),
        ({"gpus_per_task": of_task(1), "gpu_bind": "none"}, {}, "none"),
        ({"gpu_bind": "verbose,map_gpu:1,0"}, {}, "map_gpu:1,0"),
        ({"gpu_bind": "verbose", "gpus_per_task": of_task(1)}, {}, "per_task:1"),
        ({"ntasks_per_gpu": 2}, {}, "single:2"),
        ({}, {"SLURM_GPUS_PER_TASK": "a100:2"}, "per_task:2"),
        ({}, {}, ""),
    ],
)
def test_what_is_asked_says_how_tasks_are_bound(
    values: dict[str, Any], environment: dict[str, str], binding: str
) -> None:
    """On srun's command line, or in the environment of the job that a step runs in."""
    assert gpu_binding(values, environment) == binding


@pytest.mark.parametrize(
    ("binding", "held", "given"),
    [
        ("per_task:1", (0, 1), [(0,), (1,)]),
        ("per_task:2", (0, 1, 2, 3), [(0, 1), (2, 3)]),
        ("per_task:1", (2, 5), [(2,), (5,)]),
        ("single:1", (0, 1), [(0,), (1,), (0,)]),
        ("single:2", (0, 1), [(0,), (0,), (1,), (1,)]),
        ("map_gpu:1,0", (0, 1), [(1,), (0,), (1,)]),
        ("map_gpu:9", (0, 1), [(0, 1)]),
        ("mask_gpu:0x3,2", (4, 5), [(4, 5), (5,)]),
        ("mask_gpu:x", (4, 5), [(4, 5)]),
        ("none", (0, 1), [(0, 1), (0, 1)]),
        ("closest", (0, 1), [(0, 1)]),
        ("", (0, 1), [(0, 1)]),
        ("per_task:1", (), [()]),
    ],
)
def test_each_task_gets_its_own(
    binding: str, held: tuple[int, ...], given: list[tuple[int, ...]]
) -> None:
    """The tasks of a node, in their order."""
    mask = sum(1 << index for index in held)
    found = [gpu_indexes(bound_gpus(binding, mask, place)) for place in range(len(given))]
    assert found == given
