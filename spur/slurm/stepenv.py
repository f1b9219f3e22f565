"""The variables of a step's tasks: those that srun sets for all of them, and each task's own.

Source: srun(1), OUTPUT ENVIRONMENT VARIABLES; transcripts of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from spur.slurm.bindenv import bind_environment
from spur.values.hostlist import format_hostlist
from spur.values.steps import Dealing, spell_counts, tasks_on

if TYPE_CHECKING:
    from spur.wire.agents import LaunchStepOrder
    from spur.wire.jobs import JobView
    from spur.wire.steps import StepView

__all__ = ["allocation_environment", "step_environment", "task_environment"]

_MEMORY = ("memory_per_node", "memory_per_cpu")


def allocation_environment(job: JobView) -> dict[str, str]:
    """Return what speaks of the job that a step runs in."""
    nodes = format_hostlist([share.node for share in job.shares])
    found = {
        "SLURM_JOBID": str(job.job_id),
        "SLURM_JOB_ID": str(job.job_id),
        "SLURM_JOB_ACCOUNT": job.spec.account,
        "SLURM_JOB_CPUS_PER_NODE": spell_counts(tuple(share.cpus for share in job.shares)),
        "SLURM_JOB_NAME": job.spec.name,
        "SLURM_JOB_NODELIST": nodes,
        "SLURM_JOB_NUM_NODES": str(len(job.shares)),
        "SLURM_JOB_PARTITION": job.partition,
        "SLURM_JOB_QOS": job.spec.qos,
        "SLURM_NODELIST": nodes,
    }
    return {name: value for name, value in found.items() if value}


def step_environment(step: StepView, values: Mapping[str, Any]) -> dict[str, str]:
    """Return what speaks of the step; `values` are the options of srun."""
    nodes = format_hostlist([share.node for share in step.shares])
    tasks = str(sum(step.tasks))
    counts = spell_counts(step.tasks)
    found = {
        "SLURM_NNODES": str(len(step.shares)),
        "SLURM_NPROCS": tasks,
        "SLURM_NTASKS": tasks,
        "SLURM_PRIO_PROCESS": "0",
        "SLURM_STEPID": str(step.step_id),
        "SLURM_STEP_ID": str(step.step_id),
        "SLURM_STEP_NODELIST": nodes,
        "SLURM_STEP_NUM_NODES": str(len(step.shares)),
        "SLURM_STEP_NUM_TASKS": tasks,
        "SLURM_STEP_TASKS_PER_NODE": counts,
        "SLURM_TASKS_PER_NODE": counts,
        "SRUN_DEBUG": "3",
    }
    if "cpus_per_task" in values:
        found["SLURM_CPUS_PER_TASK"] = str(values["cpus_per_task"])
    distribution = _distribution(step, values)
    if distribution:
        found["SLURM_DISTRIBUTION"] = distribution
        if step.dealing is Dealing.PLANE:
            found["SLURM_DIST_PLANESIZE"] = str(step.plane)
    if "tasks_per_node" in values:
        found["SLURM_NTASKS_PER_NODE"] = str(values["tasks_per_node"])
    if values.get("overcommit"):
        found["SLURM_OVERCOMMIT"] = "1"
    return found | bind_environment(values)


def _distribution(step: StepView, values: Mapping[str, Any]) -> str:
    """Return how tasks were dealt out, where that is told; empty otherwise.

    Of a step that asks for memory Slurm tells it too. Source: transcripts of Slurm 22.05.
    """
    text: str = values.get("distribution", "")
    if text:
        return text.lower().partition("=")[0].partition(",")[0]
    if any(values.get(field, 0) > 0 for field in _MEMORY):
        return "cyclic" if sum(step.tasks) <= len(step.shares) else "block"
    return ""


def task_environment(order: LaunchStepOrder, task: int, *, user: str) -> dict[bytes, bytes]:
    """Return what a node sets for one task, over what srun sent; `task` counts in the whole step.

    SLURM_TASK_PID is for the task's process itself to set.
    """
    place = next(i for i, share in enumerate(order.shares) if share.node == order.node)
    here = tasks_on(order.tasks, place, dealing=order.dealing, plane=order.plane)
    found = {
        "SLURMD_NODENAME": order.node,
        "SLURM_CLUSTER_NAME": order.cluster_name,
        "SLURM_CPUS_ON_NODE": str(order.shares[place].cpus),
        "SLURM_GTIDS": ",".join(map(str, here)),
        "SLURM_JOB_GID": str(order.gid),
        "SLURM_JOB_UID": str(order.uid),
        "SLURM_JOB_USER": user,
        "SLURM_LOCALID": str(here.index(task)),
        "SLURM_NODEID": str(place),
        "SLURM_PROCID": str(task),
    }
    return {name.encode(): value.encode() for name, value in found.items()}
