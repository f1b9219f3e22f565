"""Which nodes, CPUs, memory and GPUs a job gets on idle nodes: as a Slurm 22.05 answered."""

from __future__ import annotations

from typing import Any

import pytest

from spur.testing.floor import Floor
from spur.values.jobspec import Sharing
from spur.values.tres import GresAsk, Per


def gpus(count: int, per: Per = Per.NODE, kind: str = "") -> tuple[GresAsk, ...]:
    return (GresAsk("gpu", kind, count, per),)


AS_SLURM: list[tuple[dict[str, Any], str]] = [
    ({}, "n1[0] 500M"),
    ({"nodes_required": "n5"}, "n5[0-1] 1000M"),
    ({"nodes_required": "n5", "tasks": 4}, "n5[0-1,8-9] 2000M"),
    ({"nodes_required": "n5", "tasks": 2, "cpus_per_task": 2}, "n5[0-3] 2000M"),
    ({"nodes_required": "n5", "tasks": 3, "cpus_per_task": 3}, "n5[0-5,8-11] 5000M"),
    ({"nodes_required": "n5", "tasks": 12, "memory_mib": 20480}, "n5[0-5,8-13] 20480M"),
    ({"tasks": 6}, "n1[0-3] 2000M; n2[0-1] 1000M"),
    ({"tasks": 3, "nodes_min": 2, "nodes_max": 2}, "n1[0-1] 1000M; n2[0] 500M"),
    ({"nodes_min": 1, "nodes_max": 3}, "n1[0] 500M"),
    ({"nodes_max": 3, "tasks_follow": True}, "n1[0] 500M; n2[0] 500M; n3[0] 500M"),
    ({"nodes_max": 3, "tasks": 6}, "n1[0-2] 1500M; n2[0-1] 1000M; n3[0] 500M"),
    ({"nodes_max": 3, "tasks": 8}, "n1[0-3] 2000M; n2[0-2] 1500M; n3[0] 500M"),
    ({"nodes_max": 3, "tasks": 12}, "n1[0-3] 2000M; n2[0-3] 2000M; n3[0-3] 2000M"),
    (
        {"nodes_max": 6, "tasks": 3, "cpus_per_task": 2},
        "n1[0-1] 1000M; n2[0-1] 1000M; n3[0-1] 1000M",
    ),
    ({"nodes_min": 2, "nodes_max": 3, "tasks": 4}, "n1[0-1] 1000M; n2[0] 500M; n3[0] 500M"),
    ({"preferred": "amd"}, "n5[0-1] 1000M"),
    ({"features": "intel", "preferred": "amd"}, "n5[0-1] 1000M"),
    (
        {"tasks": 8, "nodes_min": 2, "nodes_max": 2, "nodes_required": "n[5-6]"},
        "n5[0-3,8-9] 3000M; n6[0-1] 1000M",
    ),
    ({"tasks": 2, "sharing": Sharing.EXCLUSIVE}, "n1[0-3] 2000M"),
    (
        {"sharing": Sharing.EXCLUSIVE, "memory_mib": -1, "nodes_required": "n5"},
        "n5[0-15] 32000M",
    ),
    ({"tasks": 2, "threads_per_core": 1, "nodes_required": "n5"}, "n5[0-1,8-9] 1000M"),
    ({"tasks": 2, "tasks_per_core": 1, "nodes_required": "n5"}, "n5[0-1,8-9] 2000M"),
    ({"tasks": 6, "tasks_per_node": 2}, "n1[0-1] 1000M; n2[0-1] 1000M; n3[0-1] 1000M"),
    ({"tasks": 2, "memory_mib": 3000, "memory_per": Per.CPU}, "n1[0-1] 6000M"),
    ({"tasks": 20, "overcommit": True}, "n1[0] 500M"),
    ({"tasks": 3, "partitions": "small"}, "n1[0-1] 1000M; n2[0] 500M"),
    ({"tasks": 5, "features": "intel&small"}, "n1[0-3] 2000M; n2[0] 500M"),
    ({"features": "amd|gpu"}, "n5[0-1] 1000M"),
    ({"partitions": "whole"}, "n5[0-15] 8000M"),
    ({"partitions": "gpu", "gres": gpus(3, Per.JOB)}, "g1[0-2,8-10] 12000M gpu0-2"),
    ({"partitions": "gpu", "gres": gpus(2, kind="mi300x")}, "g1[0-1,8-9] 8000M gpu0-1"),
    ({"partitions": "gpu", "gres": gpus(1, kind="a100")}, "g2[0-1] 4000M gpu0"),
    (
        {"partitions": "gpu", "gres": gpus(1, Per.TASK), "tasks": 3, "nodes_required": "g2"},
        "g2[0-5] 12000M gpu0-2",
    ),
    (
        {"partitions": "gpu", "gres": gpus(1), "sharing": Sharing.EXCLUSIVE},
        "g1[0-15] 32000M gpu0-7",
    ),
    (
        {"partitions": "gpu", "gres": gpus(5, Per.JOB), "nodes_min": 2, "nodes_max": 2},
        "g1[0-3,8-11] 16000M gpu0-3; g2[0-1] 4000M gpu0",
    ),
    (
        {
            "partitions": "gpu",
            "gres": gpus(2),
            "cpus_per_task": 3,
            "nodes_required": "g2",
        },
        "g2[0-2] 8000M gpu0-1",
    ),
    ({"partitions": "gpu", "tasks": 10}, "g1[0-4,8-12] 5000M"),
]


@pytest.mark.parametrize(("ask", "given"), AS_SLURM, ids=str)
def test_a_job_gets_what_slurm_gives_it(ask: dict[str, Any], given: str) -> None:
    """All nodes are idle, and a job is submitted."""
    floor = Floor()
    job_id = floor.submit(**ask)
    floor.cycle()
    assert floor.given(job_id) == given
