"""The variables that a batch script finds, as one table.

`batch_environment(facts)` gives what Slurm sets. It is laid over what the submission exported; a
variable of the table that has no value for this job is taken out there, since it would speak of
another job. Those of `KEPT` only fill in what is missing. SLURM_TASK_PID alone is not here: it is
for the process itself to say.

Source: sbatch(1), OUTPUT ENVIRONMENT VARIABLES; environments recorded from Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from spur.slurm.gpuenv import gpu_variables
from spur.values.config import GresPool
from spur.values.hostlist import format_hostlist
from spur.values.jobspec import JobSpec
from spur.values.tres import Per, gpu_indexes

__all__ = [
    "KEPT",
    "TABLE",
    "BatchFacts",
    "batch_environment",
    "compress",
    "decode_environment",
    "spread_tasks",
]


class BatchFacts(NamedTuple):
    """All that the variables are made from."""

    job_id: int
    array_id: int
    task: int | None
    """Of the array; None for a job that is no array, whose next four are 0."""
    array_count: int
    array_min: int
    array_max: int
    array_step: int
    restarts: int
    """How often it was put back into the queue."""
    uid: int
    gid: int
    user: str
    spec: JobSpec
    partition: str
    options: Mapping[str, bytes]
    """Of the submission: name without dashes, and value."""
    nodes: tuple[str, ...]
    """The first is where the script runs."""
    cpus: tuple[int, ...]
    """What the job has on each."""
    gpus: int
    """Mask of the first node's GPUs that the job has."""
    pools: tuple[GresPool, ...]
    """Generic resources of the first node."""
    default_memory_per: Per
    default_memory_mib: int
    """For an ask that names no memory; 0 is none."""
    cluster: str
    topology: str
    topology_pattern: str
    working_cluster: str


def compress(numbers: tuple[int, ...]) -> str:
    """Spell a number for each node, repetitions counted: 4(x2),1."""
    parts: list[str] = []
    place = 0
    while place < len(numbers):
        end = place
        while end < len(numbers) and numbers[end] == numbers[place]:
            end += 1
        times = end - place
        parts.append(str(numbers[place]) if times == 1 else f"{numbers[place]}(x{times})")
        place = end
    return ",".join(parts)


def spread_tasks(facts: BatchFacts) -> tuple[int, ...]:
    """Return how many tasks the job is given on each node: round by round, while CPUs last."""
    ask = facts.spec.ask
    each = max(ask.cpus_per_task, 1)
    room = [max(cpus // each, 1) for cpus in facts.cpus]
    if ask.tasks_per_node:
        return tuple(min(ask.tasks_per_node, ask.tasks) for _ in room)
    if not _names_tasks(facts):
        return tuple(room)
    counts = [0] * len(room)
    left = ask.tasks
    if ask.overcommit or left > sum(room):
        room = [left] * len(room)
    while left > 0:
        for place, limit in enumerate(room):
            if left and counts[place] < limit:
                counts[place] += 1
                left -= 1
    return tuple(counts)


def _names_tasks(facts: BatchFacts) -> bool:
    """Return whether the submission said how many tasks there are."""
    given = facts.options
    return (
        any(name in given for name in ("ntasks", "ntasks-per-node", "extra-node-info"))
        or ("ntasks-per-gpu" in given and any(name.startswith("gpus") for name in given))
        or ("sockets-per-node" in given and "cores-per-socket" in given)
    )


def batch_environment(facts: BatchFacts) -> dict[bytes, bytes | None]:
    """Return each variable of the table; None is one that the script must not find."""
    found: dict[bytes, bytes | None] = {}
    for name, value in TABLE.items():
        text = value(facts)
        found[name.encode()] = None if text is None else text.encode("utf-8", "surrogateescape")
    found.update(gpu_variables(facts.gpus, facts.pools))
    return found


def decode_environment(content: bytes) -> dict[bytes, bytes]:
    """Read the attachment "environment": NAME=value, each ended by a NUL."""
    found: dict[bytes, bytes] = {}
    for entry in content.split(b"\0"):
        name, equals, value = entry.partition(b"=")
        if name and equals:
            found[name] = value
    return found


KEPT: dict[bytes, bytes] = {b"TMPDIR": b"/tmp", b"SLURM_PRIO_PROCESS": b"0"}
"""Set where the submission exported nothing by that name."""


# -- the table

Value = Callable[[BatchFacts], str | None]


def _option(name: str) -> Value:
    """Return the value of an option as it was written; None when it was not."""

    def value(facts: BatchFacts) -> str | None:
        given = facts.options.get(name)
        return None if given is None else given.decode("utf-8", "surrogateescape")

    return value


def _array(number: Callable[[BatchFacts], int | None]) -> Value:
    return lambda facts: None if facts.task is None else str(number(facts))


def _tasks(facts: BatchFacts) -> str | None:
    return str(facts.spec.ask.tasks) if _names_tasks(facts) else None


_MEMORY_OPTIONS = ("mem", "mem-per-cpu", "mem-per-gpu")


def _memory(facts: BatchFacts, per: Per) -> str | None:
    ask = facts.spec.ask
    comes_with_gpus = ask.memory_is_default and facts.default_memory_per is Per.GPU
    named = (ask.memory_mib and not comes_with_gpus) or any(
        name in facts.options for name in _MEMORY_OPTIONS
    )
    which, mib = (
        (ask.memory_per, ask.memory_mib)
        if named
        else (facts.default_memory_per, facts.default_memory_mib)
    )
    if per is Per.GPU and not named:
        return None
    return str(mib) if which is per and mib > 0 else None


def _distribution(facts: BatchFacts) -> str | None:
    text = _option("distribution")(facts)
    return None if text is None else text.partition("=")[0]


def _plane_size(facts: BatchFacts) -> str | None:
    word, equals, size = (_option("distribution")(facts) or "").partition("=")
    return size if word == "plane" and equals else None


def _threads_per_core(facts: BatchFacts) -> str | None:
    threads = facts.spec.ask.threads_per_core
    if threads:
        return str(threads)
    return "1" if facts.options.get("hint") == b"nomultithread" else None


def _node_list(facts: BatchFacts) -> str:
    return format_hostlist(facts.nodes)


def _open_mode(facts: BatchFacts) -> str | None:
    text = _option("open-mode")(facts)
    return text[:1].lower() if text else None


def _gpus_on_node(facts: BatchFacts) -> str | None:
    return str(facts.gpus.bit_count()) if facts.gpus else None


def _job_gpus(facts: BatchFacts) -> str | None:
    return ",".join(map(str, gpu_indexes(facts.gpus))) or None


def _always(text: str) -> Value:
    return lambda facts: text


TABLE: dict[str, Value] = {
    "ENVIRONMENT": _always("BATCH"),
    "HOSTNAME": lambda facts: facts.nodes[0],
    "SLURMD_NODENAME": lambda facts: facts.nodes[0],
    "SLURM_ARRAY_JOB_ID": _array(lambda facts: facts.array_id),
    "SLURM_ARRAY_TASK_COUNT": _array(lambda facts: facts.array_count),
    "SLURM_ARRAY_TASK_ID": _array(lambda facts: facts.task),
    "SLURM_ARRAY_TASK_MAX": _array(lambda facts: facts.array_max),
    "SLURM_ARRAY_TASK_MIN": _array(lambda facts: facts.array_min),
    "SLURM_ARRAY_TASK_STEP": _array(lambda facts: facts.array_step),
    "SLURM_CLUSTER_NAME": lambda facts: facts.cluster,
    "SLURM_CPUS_ON_NODE": lambda facts: str(facts.cpus[0]),
    "SLURM_CPUS_PER_GPU": _option("cpus-per-gpu"),
    "SLURM_CPUS_PER_TASK": _option("cpus-per-task"),
    "SLURM_DISTRIBUTION": _distribution,
    "SLURM_DIST_PLANESIZE": _plane_size,
    "SLURM_GPUS": _option("gpus"),
    "SLURM_GPUS_ON_NODE": _gpus_on_node,
    "SLURM_GPUS_PER_NODE": _option("gpus-per-node"),
    "SLURM_GPUS_PER_SOCKET": _option("gpus-per-socket"),
    "SLURM_GPUS_PER_TASK": _option("gpus-per-task"),
    "SLURM_GPU_BIND": _option("gpu-bind"),
    "SLURM_GPU_FREQ": _option("gpu-freq"),
    "SLURM_GTIDS": _always("0"),
    "SLURM_HINT": _option("hint"),
    "SLURM_JOBID": lambda facts: str(facts.job_id),
    "SLURM_JOB_ACCOUNT": lambda facts: facts.spec.account or None,
    "SLURM_JOB_CPUS_PER_NODE": lambda facts: compress(facts.cpus),
    "SLURM_JOB_DEPENDENCY": _option("dependency"),
    "SLURM_JOB_GID": lambda facts: str(facts.gid),
    "SLURM_JOB_GPUS": _job_gpus,
    "SLURM_JOB_ID": lambda facts: str(facts.job_id),
    "SLURM_JOB_NAME": lambda facts: facts.spec.name,
    "SLURM_JOB_NODELIST": _node_list,
    "SLURM_JOB_NUM_NODES": lambda facts: str(len(facts.nodes)),
    "SLURM_JOB_PARTITION": lambda facts: facts.partition,
    "SLURM_JOB_QOS": lambda facts: facts.spec.qos or None,
    "SLURM_JOB_RESERVATION": lambda facts: facts.spec.ask.reservation or None,
    "SLURM_JOB_UID": lambda facts: str(facts.uid),
    "SLURM_JOB_USER": lambda facts: facts.user,
    "SLURM_LOCALID": _always("0"),
    "SLURM_MEM_PER_CPU": lambda facts: _memory(facts, Per.CPU),
    "SLURM_MEM_PER_GPU": lambda facts: _memory(facts, Per.GPU),
    "SLURM_MEM_PER_NODE": lambda facts: _memory(facts, Per.NODE),
    "SLURM_NNODES": lambda facts: str(len(facts.nodes)),
    "SLURM_NODEID": _always("0"),
    "SLURM_NODELIST": _node_list,
    "SLURM_NODE_ALIASES": _always("(null)"),
    "SLURM_NPROCS": _tasks,
    "SLURM_NTASKS": _tasks,
    "SLURM_NTASKS_PER_CORE": _option("ntasks-per-core"),
    "SLURM_NTASKS_PER_GPU": _option("ntasks-per-gpu"),
    "SLURM_NTASKS_PER_NODE": _option("ntasks-per-node"),
    "SLURM_NTASKS_PER_SOCKET": _option("ntasks-per-socket"),
    "SLURM_OPEN_MODE": _open_mode,
    "SLURM_OVERCOMMIT": lambda facts: "1" if facts.spec.ask.overcommit else None,
    "SLURM_PROCID": _always("0"),
    "SLURM_RESTART_COUNT": lambda facts: str(facts.restarts) if facts.restarts else None,
    "SLURM_TASKS_PER_NODE": lambda facts: compress(spread_tasks(facts)),
    "SLURM_THREADS_PER_CORE": _threads_per_core,
    "SLURM_TOPOLOGY_ADDR": lambda facts: facts.topology or None,
    "SLURM_TOPOLOGY_ADDR_PATTERN": lambda facts: facts.topology_pattern or None,
    "SLURM_UMASK": lambda facts: None,
    "SLURM_WORKING_CLUSTER": lambda facts: facts.working_cluster or None,
    # Those of a step that the submission was made in.
    "SLURM_STEPID": lambda facts: None,
    "SLURM_STEP_GPUS": lambda facts: None,
    "SLURM_STEP_ID": lambda facts: None,
    "SLURM_STEP_LAUNCHER_PORT": lambda facts: None,
    "SLURM_STEP_NODELIST": lambda facts: None,
    "SLURM_STEP_NUM_NODES": lambda facts: None,
    "SLURM_STEP_NUM_TASKS": lambda facts: None,
    "SLURM_STEP_TASKS_PER_NODE": lambda facts: None,
}
"""By name: the value, or None where the script does not find the variable."""
