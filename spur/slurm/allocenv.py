"""The variables of the command that salloc runs in its allocation.

They are those of a batch script that speak of the whole allocation, by the same table.

Source: salloc(1), OUTPUT ENVIRONMENT VARIABLES; transcripts of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from spur.slurm.jobenv import TABLE, BatchFacts
from spur.values.tres import Per

if TYPE_CHECKING:
    from spur.values.jobspec import JobSpec
    from spur.wire.jobs import JobView

__all__ = ["salloc_environment"]

_NAMES = (
    "SLURM_CLUSTER_NAME",
    "SLURM_CPUS_PER_GPU",
    "SLURM_CPUS_PER_TASK",
    "SLURM_DISTRIBUTION",
    "SLURM_DIST_PLANESIZE",
    "SLURM_GPUS",
    "SLURM_GPUS_PER_NODE",
    "SLURM_GPUS_PER_SOCKET",
    "SLURM_GPUS_PER_TASK",
    "SLURM_GPU_BIND",
    "SLURM_GPU_FREQ",
    "SLURM_HINT",
    "SLURM_JOBID",
    "SLURM_JOB_ACCOUNT",
    "SLURM_JOB_CPUS_PER_NODE",
    "SLURM_JOB_ID",
    "SLURM_JOB_NAME",
    "SLURM_JOB_NODELIST",
    "SLURM_JOB_NUM_NODES",
    "SLURM_JOB_PARTITION",
    "SLURM_JOB_QOS",
    "SLURM_JOB_RESERVATION",
    "SLURM_MEM_PER_CPU",
    "SLURM_MEM_PER_GPU",
    "SLURM_MEM_PER_NODE",
    "SLURM_NNODES",
    "SLURM_NODELIST",
    "SLURM_NODE_ALIASES",
    "SLURM_NPROCS",
    "SLURM_NTASKS",
    "SLURM_NTASKS_PER_CORE",
    "SLURM_NTASKS_PER_GPU",
    "SLURM_NTASKS_PER_NODE",
    "SLURM_NTASKS_PER_SOCKET",
    "SLURM_OVERCOMMIT",
    "SLURM_TASKS_PER_NODE",
    "SLURM_THREADS_PER_CORE",
)


def salloc_environment(
    job: JobView, asked: JobSpec, options: Mapping[str, bytes], *, cluster: str, user: str
) -> dict[str, str]:
    """Return the variables that have a value.

    `asked` is the submission as it was made, `options` its options by their long names.
    """
    facts = BatchFacts(
        job_id=job.job_id,
        array_id=0,
        task=None,
        array_count=0,
        array_min=0,
        array_max=0,
        array_step=0,
        restarts=0,
        uid=job.uid,
        gid=job.gid,
        user=user,
        # What the cluster filled in of memory was not asked; account and QOS are the job's.
        spec=replace(job.spec, ask=asked.ask),
        partition=job.partition,
        options=options,
        nodes=tuple(share.node for share in job.shares),
        cpus=tuple(share.cpus for share in job.shares),
        gpus=0,
        pools=(),
        default_memory_per=Per.NODE,
        default_memory_mib=0,
        cluster=cluster,
        topology="",
        topology_pattern="",
        working_cluster="",
    )
    found = {name: TABLE[name](facts) for name in _NAMES}
    return {name: value for name, value in found.items() if value is not None}
