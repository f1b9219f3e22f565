"""A job as a line of squeue: the values that its columns show.

Each function returns the text of one column; what Slurm shows for something that Spur's jobs never
have (a burst buffer, say) is a constant in the table of columns.

Source: transcripts of Slurm 22.05.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from spur.slurm.dependencies import format_dependency
from spur.slurm.jobids import TASKS_LETTERS, format_task_list
from spur.slurm.sizes import format_memory
from spur.slurm.statewords import COMPLETING, compact
from spur.slurm.timespec import (
    UNLIMITED_S,
    Calendar,
    format_duration,
    format_limit,
    format_moment,
)
from spur.values.arrays import TaskSet
from spur.values.hostlist import format_hostlist, parse_hostlist
from spur.values.jobspec import JobText, Sharing
from spur.values.states import Hold, JobState
from spur.values.tres import GresAsk, Per
from spur.wire.jobs import JobView, StartView

__all__ = [
    "EXCLUSIVE",
    "NULL",
    "OVER_SUBSCRIBE",
    "PRIORITY_LEAST",
    "JobLine",
    "age_points",
    "alloc_node",
    "array_job_id",
    "array_task_id",
    "batch_host",
    "command",
    "comment",
    "counted_from_ns",
    "cpus",
    "cpus_per_gpu",
    "cpus_per_task",
    "deadline",
    "dependency",
    "eligible_time",
    "end_s",
    "end_time",
    "exclusive",
    "exit_code",
    "format_gres",
    "gpus",
    "gres",
    "group_name",
    "het_job_id",
    "het_job_offset",
    "hosts",
    "is_several",
    "job_id",
    "licenses_held",
    "max_nodes",
    "memory_per_gpu",
    "min_cpus",
    "min_memory",
    "node_list",
    "node_list_or_reason",
    "nodes",
    "options",
    "over_subscribe",
    "partition",
    "pending_time",
    "points",
    "priority",
    "priority_fraction",
    "raw_job_id",
    "scheduled_nodes",
    "start_s",
    "start_time",
    "state",
    "state_compact",
    "state_word",
    "stderr_path",
    "stdin_path",
    "stdout_path",
    "submit_time",
    "tasks",
    "time_left",
    "time_limit",
    "time_used",
    "tres",
    "used_s",
    "user_name",
    "working_directory",
]

NULL = "(null)"
"""How Slurm shows a text that is not there."""

PRIORITY_LEAST = 1
"""Priority of a job that may start; 0 is a held one's."""

PRIORITY_MAX = (1 << 32) - 1

_NS = 1_000_000_000


class JobLine(NamedTuple):
    """A row of the queue, with what is needed to show it."""

    job: JobView
    tasks: TaskSet | None
    """Of an array, the tasks that this line stands for."""
    reason: str
    """Why it waits, its group's reason included."""
    limit_s: int
    """Its own time limit or its partition's."""
    now_ns: int
    calendar: Calendar
    user: Callable[[int], str]
    group: Callable[[int], str]
    text: JobText | None
    """What its owner and operators may read; None for others."""
    cluster: str
    tasks_letters: int = TASKS_LETTERS
    """0 shows every list of tasks in full."""
    converts: bool = True
    """Whether sizes are shown in the largest unit that fits."""
    age_weight: int = 0
    """How many points it has for its age once that is full."""
    age_max_s: int = 1
    """Waiting time at which age is full."""
    age_period_s: int = 1
    """In steps of which it grows."""
    cpus_per_gpu: int = 0
    """What its partition gives with each GPU."""
    memory_per_gpu_mib: int = 0
    foreseen: StartView | None = None
    """When and where it would start, as far as anybody can tell."""


def state_word(job: JobView) -> str:
    """Return the state in the word that is shown."""
    return COMPLETING if job.completing else job.state


def format_gres(asks: tuple[GresAsk, ...], per: Per) -> str:
    """Spell what is asked of generic resources per node, job, task or socket; empty for none."""
    return ",".join(
        f"gres:{ask.name}:{ask.kind}:{ask.count}" if ask.kind else f"gres:{ask.name}:{ask.count}"
        for ask in asks
        if ask.per is per
    )


def _shown(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")


# -- who and where


def is_several(line: JobLine) -> bool:
    """Return whether the line stands for the part of an array that was not split off yet."""
    job, tasks = line.job, line.tasks
    if tasks is None:
        return False
    if not tasks.is_single:
        return True
    return job.job_id == job.array_id and job.state is JobState.PENDING and tasks is job.tasks


def job_id(line: JobLine) -> str:
    """Return 1501, 1505_2, 1505_[3-6%2] or 1506+1."""
    job, tasks = line.job, line.tasks
    if tasks is not None:
        if is_several(line):
            listed = format_task_list(tasks, job.throttle, line.tasks_letters)
            return f"{job.array_id}_[{listed}]"
        return f"{job.array_id}_{tasks.first}"
    if job.het_id:
        return f"{job.het_id}+{job.het_offset}"
    return str(job.job_id)


def raw_job_id(line: JobLine) -> str:
    """Return the number that this job alone has."""
    return str(line.job.job_id)


def array_job_id(line: JobLine) -> str:
    """Return the array's number, or the job's own."""
    return str(line.job.array_id or line.job.job_id)


def array_task_id(line: JobLine) -> str:
    """Return the task, the waiting tasks, or N/A."""
    if line.tasks is None:
        return "N/A"
    if is_several(line):
        return format_task_list(line.tasks, line.job.throttle, line.tasks_letters)
    return str(line.tasks.first)


def het_job_id(line: JobLine) -> str:
    """Return the number of the heterogeneous job, or N/A."""
    return str(line.job.het_id) if line.job.het_id else "N/A"


def het_job_offset(line: JobLine) -> str:
    """Return which component it is, or N/A."""
    return str(line.job.het_offset) if line.job.het_id else "N/A"


def user_name(line: JobLine) -> str:
    """Return the owner's name."""
    return line.user(line.job.uid)


def group_name(line: JobLine) -> str:
    """Return the name of the owner's group."""
    return line.group(line.job.gid)


def partition(line: JobLine) -> str:
    """Return where it runs, or may run."""
    return line.job.partition or ",".join(line.job.spec.partitions)


def node_list(line: JobLine) -> str:
    """Return the nodes that it holds or held."""
    return format_hostlist(share.node for share in line.job.shares)


_WITH_REASON = (
    JobState.PENDING,
    JobState.FAILED,
    JobState.TIMEOUT,
    JobState.OUT_OF_MEMORY,
    JobState.DEADLINE,
)


def node_list_or_reason(line: JobLine) -> str:
    """Return where it runs or ran, or in brackets why it does not or how it failed."""
    if line.job.state in _WITH_REASON and not line.job.completing:
        return f"({line.reason})"
    return node_list(line)


def batch_host(line: JobLine) -> str:
    """Return the node that runs its script, or n/a."""
    return line.job.shares[0].node if line.job.shares else "n/a"


def hosts(text: str) -> str:
    """Return a host list in its shortest spelling; one that can't be read as it is."""
    try:
        return format_hostlist(parse_hostlist(text))
    except ValueError:
        return text


# -- state


def state(line: JobLine) -> str:
    """Return the state's word."""
    return state_word(line.job)


def state_compact(line: JobLine) -> str:
    """Return the state's letters."""
    return compact(state_word(line.job))


def priority(line: JobLine) -> int:
    """Return its rank; 0 while it is held or suspended."""
    job = line.job
    if job.hold is not Hold.NONE or job.state is JobState.SUSPENDED:
        return 0
    if job.priority is not None:
        return job.priority
    return min(max(int(points(line)), PRIORITY_LEAST), PRIORITY_MAX)


def points(line: JobLine) -> float:
    """Return what its rank is made of, its age until now or its start included."""
    job = line.job
    return job.points + age_points(line)


def age_points(line: JobLine) -> float:
    """Return the points that it has for the time that it waits, or waited."""
    job = line.job
    if not line.age_weight or job.priority is not None or job.dependency is not None:
        return 0.0
    until_ns = job.start_ns or job.end_ns or line.now_ns
    waited_s = max(until_ns - max(job.since_ns, job.spec.begin_ns), 0) // _NS
    aged_s = waited_s // line.age_period_s * line.age_period_s
    return line.age_weight * min(aged_s / line.age_max_s, 1.0)


def priority_fraction(line: JobLine) -> str:
    """Return its rank as a part of the highest."""
    return f"{priority(line) / PRIORITY_MAX:.14f}"


def exit_code(line: JobLine) -> str:
    """Return what wait(2) said of it."""
    return str(line.job.exit_code << 8 | line.job.signal)


def dependency(line: JobLine) -> str:
    """Return what it waits for in other jobs."""
    view = line.job.dependency
    return NULL if view is None else format_dependency(view)


# -- time


def deadline(line: JobLine) -> str:
    """Return by when it has to end, or N/A."""
    return format_moment(line.job.spec.deadline_ns // _NS, line.calendar)


def used_s(line: JobLine) -> int:
    """Return for how many seconds it ran so far."""
    job = line.job
    if not job.start_ns:
        return 0
    if job.paused:
        return job.ran_ns // _NS
    return max((job.end_ns or line.now_ns) - counted_from_ns(job), 0) // _NS


def counted_from_ns(job: JobView) -> int:
    """Return when it began, had it never been suspended: what its limit counts from."""
    return job.turned_ns - job.ran_ns if job.turned_ns else job.start_ns


def time_used(line: JobLine) -> str:
    """Return for how long it ran so far."""
    return format_duration(used_s(line))


def time_limit(line: JobLine) -> str:
    """Return how long it may run."""
    return format_limit(line.limit_s)


def time_left(line: JobLine) -> str:
    """Return how long it may still run."""
    if line.limit_s == UNLIMITED_S:
        return format_limit(line.limit_s)
    return format_duration(line.limit_s - used_s(line))


def start_s(line: JobLine) -> int:
    """Return when it started or will at the earliest; 0 when nothing is known.

    A job that ended before it started has its end for both.
    """
    job = line.job
    if job.start_ns or job.end_ns:
        return (job.start_ns or job.end_ns) // _NS
    if job.state is not JobState.PENDING:
        return 0
    if line.foreseen is not None:
        return line.foreseen.start_ns // _NS
    return job.spec.begin_ns // _NS if job.spec.begin_ns > line.now_ns else 0


def end_s(line: JobLine) -> int:
    """Return when it ended, or will at the latest; 0 when nothing is known."""
    job = line.job
    if job.end_ns or job.limit_ns:
        return (job.end_ns or job.limit_ns) // _NS
    start = start_s(line)
    return start + line.limit_s if start and line.limit_s != UNLIMITED_S else 0


def start_time(line: JobLine) -> str:
    """Return when it started or will at the earliest."""
    return format_moment(start_s(line), line.calendar)


def end_time(line: JobLine) -> str:
    """Return when it ended, or will at the latest."""
    return format_moment(end_s(line), line.calendar)


def submit_time(line: JobLine) -> str:
    """Return when it was submitted."""
    return format_moment(line.job.submit_ns // _NS, line.calendar)


def eligible_time(line: JobLine) -> str:
    """Return when it could start first."""
    job = line.job
    if job.hold is not Hold.NONE:
        return "N/A"
    return format_moment(max(job.spec.begin_ns, job.since_ns) // _NS, line.calendar)


def pending_time(line: JobLine) -> str:
    """Return for how many seconds it waits, or waited."""
    job = line.job
    until = job.start_ns or job.end_ns or line.now_ns
    return str(max(until - job.submit_ns, 0) // _NS)


# -- what it asks for


def cpus(line: JobLine) -> str:
    """Return the CPUs that it holds, or asks for."""
    if line.job.shares:
        return str(sum(share.cpus for share in line.job.shares))
    ask = line.job.spec.ask
    if ask.overcommit:
        return str(ask.nodes_min)
    if ask.tasks == ask.nodes_min < ask.nodes_max and "ntasks" not in options(line):
        return str(ask.cpus_per_task)  # tasks follow the nodes, of which nobody knows how many
    return str(max(ask.tasks * ask.cpus_per_task, ask.nodes_min))


def nodes(line: JobLine) -> str:
    """Return how many nodes it holds, would start on, or asks for at least."""
    if line.job.shares:
        return str(len(line.job.shares))
    foreseen = len(parse_hostlist(line.foreseen.nodes)) if line.foreseen is not None else 0
    return str(foreseen or line.job.spec.ask.nodes_min)


def _nodes_asked(line: JobLine) -> int:
    return len(line.job.shares) or line.job.spec.ask.nodes_min


def scheduled_nodes(line: JobLine) -> str:
    """Return where a waiting job would start."""
    waits = line.job.state is JobState.PENDING and line.foreseen is not None
    return line.foreseen.nodes if waits and line.foreseen is not None else NULL


def max_nodes(line: JobLine) -> str:
    """Return the most nodes that it takes; when any number, those that it would start on."""
    return str(line.job.spec.ask.nodes_max or nodes(line))


def tasks(line: JobLine) -> str:
    """Return how many tasks its steps have by default."""
    return str(line.job.spec.ask.tasks)


def cpus_per_task(line: JobLine) -> str:
    """Return the CPUs of one task."""
    return str(line.job.spec.ask.cpus_per_task)


def min_cpus(line: JobLine) -> str:
    """Return the fewest CPUs that a node must have."""
    ask = line.job.spec.ask
    return str(max(ask.cpus_per_task * max(ask.tasks_per_node, 1), ask.cpus_per_node_min))


def min_memory(line: JobLine) -> str:
    """Return the memory asked of a node or for a CPU."""
    ask = line.job.spec.ask
    # What GPUs bring with them takes the place of the default once the job has them.
    comes_with_gpus = ask.memory_is_default and any(share.gpus for share in line.job.shares)
    memory_mib = 0 if comes_with_gpus or ask.memory_per is Per.GPU else max(ask.memory_mib, 0)
    return format_memory(memory_mib) if line.converts or not memory_mib else f"{memory_mib}M"


def cpus_per_gpu(line: JobLine) -> str:
    """Return how many CPUs come with each GPU, or N/A."""
    ask = line.job.spec.ask
    count = ask.cpus_per_gpu or (line.cpus_per_gpu if ask.cpus_per_task <= 1 else 0)
    return f"gpu:{count}" if count and gpus(line) else "N/A"


def memory_per_gpu(line: JobLine) -> str:
    """Return how much memory in MiB comes with each GPU, or N/A."""
    ask = line.job.spec.ask
    memory_mib = line.memory_per_gpu_mib if ask.memory_is_default else 0
    if ask.memory_per is Per.GPU:
        memory_mib = ask.memory_mib
    return f"gpu:{memory_mib}" if memory_mib > 0 and gpus(line) else "N/A"


def gpus(line: JobLine) -> dict[str, int]:
    """Return how many GPUs of each kind it asks for in all; the empty kind is any."""
    ask = line.job.spec.ask
    times = {Per.NODE: _nodes_asked(line), Per.TASK: ask.tasks}
    found: dict[str, int] = {}
    for asked in ask.gres:
        if asked.name == "gpu":
            count = asked.count * times.get(asked.per, 1)
            found[asked.kind] = found.get(asked.kind, 0) + count
    return found


def tres(line: JobLine) -> str:
    """Return all that it holds or asks for: cpu=2,mem=4G,node=1,billing=2,gres/gpu=2."""
    job, ask = line.job, line.job.spec.ask
    count = int(cpus(line))
    of_kind = gpus(line)
    all_gpus = sum(of_kind.values())
    if job.shares:
        memory_mib = sum(share.memory_mib for share in job.shares)
    else:
        times = {Per.CPU: count, Per.GPU: all_gpus}.get(ask.memory_per, _nodes_asked(line))
        memory_mib = max(ask.memory_mib, 0) * times
    parts = [f"cpu={count}"]
    if memory_mib:
        parts.append(f"mem={format_memory(memory_mib)}")
    parts += [f"node={_nodes_asked(line)}", f"billing={count}"]
    if all_gpus:
        parts.append(f"gres/gpu={all_gpus}")
    parts += [f"gres/gpu:{kind}={number}" for kind, number in sorted(of_kind.items()) if kind]
    return ",".join(parts)


EXCLUSIVE = {
    Sharing.PARTITION: "NO",
    Sharing.OVERSUBSCRIBE: "NO",
    Sharing.EXCLUSIVE: "NODE",
    Sharing.USER: "USER",
    Sharing.LABEL: "MCS",
}
"""Whom a job keeps off its nodes, as later releases than 22.05 say it. Source: squeue(1)."""

OVER_SUBSCRIBE = {
    Sharing.PARTITION: "OK",
    Sharing.OVERSUBSCRIBE: "YES",
    Sharing.EXCLUSIVE: "NO",
    Sharing.USER: "USER",
    Sharing.LABEL: "MCS",
}


def over_subscribe(line: JobLine) -> str:
    """Return with whom it shares its nodes."""
    return OVER_SUBSCRIBE[line.job.spec.ask.sharing]


def exclusive(line: JobLine) -> str:
    """Return whom it keeps off its nodes."""
    return EXCLUSIVE[line.job.spec.ask.sharing]


def licenses_held(line: JobLine) -> str:
    """Return the licenses that it holds, which are those that it asked for."""
    return line.job.spec.ask.licenses if line.job.shares and line.job.spec.ask.licenses else NULL


def gres(line: JobLine, per: Per) -> str:
    """Return the generic resources asked for, or N/A."""
    return format_gres(line.job.spec.ask.gres, per) or "N/A"


# -- private text


def options(line: JobLine) -> dict[str, str]:
    """Return what was typed for each option of the submission, by its long name."""
    if line.text is None:
        return {}
    return {name: _shown(value) for name, value in line.text.options}


def alloc_node(line: JobLine) -> str:
    """Return the host that it was submitted on, and the session there."""
    if line.text is None or not line.text.submit_host:
        return f"{NULL}:0"
    return f"{_shown(line.text.submit_host)}:{line.text.session_id}"


def comment(line: JobLine) -> str:
    """Return what its owner noted."""
    return (_shown(line.text.comment) if line.text else "") or NULL


def command(line: JobLine) -> str:
    """Return the script's path."""
    if line.text is None or not line.text.argv:
        return NULL
    return _shown(line.text.argv[0]) or NULL


def working_directory(line: JobLine) -> str:
    """Return where it runs."""
    return _shown(line.text.working_directory) if line.text else NULL


def stdin_path(line: JobLine) -> str:
    """Return where its input comes from."""
    return _path(line, line.text.stdin_path if line.text else b"") or "/dev/null"


def stdout_path(line: JobLine) -> str:
    """Return the file for its output, with what of a pattern is known before it starts."""
    if line.text is None:
        return NULL
    return _path(line, line.text.stdout_path or _default_output(line))


def stderr_path(line: JobLine) -> str:
    """Return the file for its errors; by default they go where its output goes."""
    if line.text is None:
        return NULL
    return _path(line, line.text.stderr_path or line.text.stdout_path or _default_output(line))


_TASK_UNKNOWN = "4294967294"
"""How Slurm spells the task of a job that is none, or of an array that was not split yet."""


def _default_output(line: JobLine) -> bytes:
    return b"slurm-%A_%a.out" if line.tasks is not None else b"slurm-%j.out"


def _path(line: JobLine, pattern: bytes) -> str:
    """Return an absolute path; a pattern with a width, or for a node, stays as it is."""
    if not pattern or line.text is None:
        return ""
    if not pattern.startswith(b"/"):
        pattern = line.text.working_directory.rstrip(b"/") + b"/" + pattern
    known = {
        "j": raw_job_id(line),
        "A": array_job_id(line),
        "a": _TASK_UNKNOWN if line.tasks is None or is_several(line) else array_task_id(line),
        "x": line.job.spec.name,
        "u": user_name(line),
    }
    return re.sub("%([jAaxu])", lambda found: known[found.group(1)], _shown(pattern))
