"""A record as a line of sacct: the values that its fields show, of a job and of its steps.

Each function returns the text of one field. What Slurm shows for something that is not measured or
that Spur's jobs never have is a constant in the table of fields.

Source: sacct(1); transcripts of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from spur.slurm.columns.jobline import EXCLUSIVE, OVER_SUBSCRIBE
from spur.slurm.jobids import TASKS_LETTERS, format_task_list
from spur.slurm.timespec import format_long_duration
from spur.values.hostlist import format_hostlist
from spur.values.jobspec import JobText
from spur.values.states import JobState, Reason
from spur.values.steps import EXTERN_STEP, STEP_ID_MAX, step_name
from spur.values.tres import NodeShare, Per
from spur.wire.history import JobRecord, RunRecord, StepRecord

__all__ = [
    "UNITS",
    "RecordLine",
    "alloc_cpus",
    "alloc_nodes",
    "alloc_tres",
    "comment",
    "cpu_time",
    "cpu_time_raw",
    "derived_exit_code",
    "elapsed",
    "elapsed_raw",
    "elapsed_s",
    "eligible",
    "end",
    "exclusive",
    "exit_code",
    "flags",
    "format_size",
    "job_id",
    "job_name",
    "layout",
    "memory_asked",
    "node_list",
    "nodes",
    "over_subscribe",
    "partition",
    "priority",
    "raw_job_id",
    "reason",
    "record_name",
    "requested_cpus",
    "requested_nodes",
    "requested_tres",
    "reserved",
    "reserved_cpu",
    "reserved_cpu_raw",
    "restarts",
    "start",
    "state",
    "stderr_path",
    "stdin_path",
    "stdout_path",
    "step_tasks",
    "submit",
    "submit_line",
    "suspended",
    "suspended_s",
    "time_limit",
    "time_limit_raw",
    "working_directory",
]

UNITS = "KMGTP"
"""Letters that --units takes, each 1024 of the one before."""

_NS = 1_000_000_000

_STOPPED = (JobState.CANCELLED, JobState.TIMEOUT, JobState.PREEMPTED, JobState.REQUEUED)
"""States of runs that take their steps with them."""


class RecordLine(NamedTuple):
    """A job's run, or one of its steps, with what is needed to show it."""

    job: JobRecord
    run: RunRecord
    step: StepRecord | None
    """None for the line of the job itself."""
    now_s: int
    moment: Callable[[int], str]
    """Spells a point in time, given the seconds since 1970."""
    limit_s: int | None
    """The run's time limit or its partition's, 0 for none; None where nobody knows it."""
    memory_mib: int
    """What is asked in all, with the default where the job names nothing; 0 is not known."""
    user: Callable[[int], str]
    group: Callable[[int], str]
    text: JobText | None
    """What its owner and operators may read; None for others."""
    cluster: str
    window: tuple[int, int] | None = None
    """Seconds to which --truncate cuts start and end."""
    unit: str = ""
    """The unit that sizes are shown in; empty for the largest that leaves them whole."""
    converts: bool = True
    tasks_letters: int = TASKS_LETTERS


# -- names


def job_id(line: RecordLine) -> str:
    """Return 1501, 1505_2, 1505_[3-6%2] or 1506+1, and the step."""
    return record_name(line.job, line.run, line.tasks_letters) + _step_suffix(line)


def record_name(job: JobRecord, run: RunRecord, tasks_letters: int = TASKS_LETTERS) -> str:
    """Return 1501, 1505_2, 1505_[3-6%2] or 1506+1."""
    if job.tasks is not None:
        waits = run.state is JobState.PENDING and job.job_id == job.array_id
        if waits or not job.tasks.is_single:
            listed = format_task_list(job.tasks, job.throttle, tasks_letters)
            return f"{job.array_id}_[{listed}]"
        return f"{job.array_id}_{job.tasks.first}"
    return f"{job.het_id}+{job.het_offset}" if job.het_id else str(job.job_id)


def raw_job_id(line: RecordLine) -> str:
    """Return the number that this job alone has, and the step."""
    return f"{line.job.job_id}{_step_suffix(line)}"


def _step_suffix(line: RecordLine) -> str:
    return "" if line.step is None else f".{step_name(line.step.step)}"


def job_name(line: RecordLine) -> str:
    """Return the name of the job or the step."""
    return line.job.spec.name if line.step is None else line.step.name


# -- state


def state(line: RecordLine) -> str:
    """Return the state, and who cancelled it."""
    subject: RunRecord | StepRecord = line.run if line.step is None else line.step
    if subject.state is JobState.CANCELLED and subject.killed_by is not None:
        return f"{subject.state} by {subject.killed_by}"
    return subject.state.value


def exit_code(line: RecordLine) -> str:
    """Return code:signal; nothing for a step that was lost without a word.

    A job that was stopped has 0:0: how its script then ended is told of the script.
    """
    step = line.step
    if step is None and line.run.state in _STOPPED:
        return "0:0"
    if step is None:
        return f"{line.run.exit_code}:{line.run.signal}"
    if step.state is JobState.CANCELLED and not step.exit_code and not step.signal:
        return ""
    return f"{step.exit_code}:{step.signal}"


def derived_exit_code(line: RecordLine) -> str:
    """Return the highest exit of its numbered steps, but for those that ended with the run."""
    ends = [
        (step.exit_code, step.signal)
        for step in line.run.steps
        if step.step <= STEP_ID_MAX
        and not (step.state is JobState.CANCELLED and line.run.state in _STOPPED)
    ]
    code, signal = max(ends, default=(0, 0))
    return f"{code}:{signal}"


def reason(line: RecordLine) -> str:
    """Return why it waits, or last waited."""
    run = line.run
    if run.state is JobState.PENDING and run.reason is Reason.NONE:
        if line.job.spec.begin_ns > line.now_s * _NS:
            return Reason.BEGIN_TIME.value
    return run.reason.value


def flags(line: RecordLine) -> str:
    """Return which scheduler started it. The spelling is Slurm's."""
    return "SchedMain,StartRecieved" if line.run.start_ns else "StartRecieved"


def priority(line: RecordLine) -> str:
    """Return the fixed priority; 1 where the scheduler ranks."""
    fixed = line.job.priority
    return "1" if fixed is None else str(fixed)


def restarts(line: RecordLine) -> str:
    """Return how often it was put back into the queue."""
    return str(line.run.run)


# -- times


def _times(line: RecordLine) -> tuple[int, int]:
    """Return start and end in seconds, 0 for unknown, cut to the window where that is asked."""
    subject: RunRecord | StepRecord = line.run if line.step is None else line.step
    start_s, end_s = subject.start_ns // _NS, subject.end_ns // _NS
    if line.window is not None:
        first, last = line.window
        start_s = max(start_s, first) if start_s else last
        end_s = min(end_s, last) if end_s else last
    return start_s, end_s


def start(line: RecordLine) -> str:
    """Return when it started, Unknown, or None when it never will."""
    start_s, end_s = _times(line)
    return "None" if end_s and not start_s else _moment(line, start_s)


def end(line: RecordLine) -> str:
    """Return when it ended, or Unknown."""
    return _moment(line, _times(line)[1])


def submit(line: RecordLine) -> str:
    """Return when the job was submitted or put back, or the step began."""
    at_ns = line.run.submit_ns if line.step is None else line.step.start_ns
    return _moment(line, at_ns // _NS)


def eligible(line: RecordLine) -> str:
    """Return since when it may start, or Unknown while it is held."""
    at_ns = line.run.eligible_ns if line.step is None else line.step.start_ns
    return _moment(line, at_ns // _NS)


def _moment(line: RecordLine, seconds: int) -> str:
    return line.moment(seconds) if seconds else "Unknown"


def elapsed_s(line: RecordLine) -> int:
    """Return how long it ran, without the time that it was suspended."""
    start_s, end_s = _times(line)
    if not start_s:
        return 0
    return max((end_s or line.now_s) - start_s - suspended_s(line), 0)


def elapsed(line: RecordLine) -> str:
    """Return how long it ran."""
    return format_long_duration(elapsed_s(line))


def elapsed_raw(line: RecordLine) -> str:
    """Return how many seconds it ran."""
    return str(elapsed_s(line))


def cpu_time(line: RecordLine) -> str:
    """Return the time that its CPUs were held, together."""
    return format_long_duration(elapsed_s(line) * _cpus(line))


def cpu_time_raw(line: RecordLine) -> str:
    """Return the seconds that its CPUs were held, together."""
    return str(elapsed_s(line) * _cpus(line))


def suspended_s(line: RecordLine) -> int:
    """Return for how many seconds it was suspended."""
    run = line.run
    now_ns = run.end_ns or line.now_s * _NS
    since_ns = max(now_ns - run.suspended_since_ns, 0) if run.suspended_since_ns else 0
    return (run.suspended_ns + since_ns) // _NS


def suspended(line: RecordLine) -> str:
    """Return how long it was suspended."""
    return format_long_duration(suspended_s(line))


def _reserved_s(line: RecordLine) -> int:
    """Return how long it waited since it might have started; negative before it may."""
    run = line.run
    if not run.eligible_ns:
        return 0
    until_s = (run.start_ns or run.end_ns) // _NS or line.now_s
    return until_s - run.eligible_ns // _NS


def reserved(line: RecordLine) -> str:
    """Return how long it waited; Slurm calls what lies in the future INVALID."""
    return _length(_reserved_s(line))


def reserved_cpu(line: RecordLine) -> str:
    """Return how long its CPUs waited, together."""
    return _length(_reserved_s(line) * _cpus_asked(line))


def reserved_cpu_raw(line: RecordLine) -> str:
    """Return how many seconds its CPUs waited, together, in 32 bits as Slurm does."""
    return str(_reserved_s(line) * _cpus_asked(line) & 0xFFFF_FFFF)


def _length(seconds: int) -> str:
    return format_long_duration(seconds) if seconds >= 0 else "INVALID"


def time_limit(line: RecordLine) -> str:
    """Return the time limit."""
    limit_s = line.limit_s
    if limit_s is None:
        return "Partition_Limit"
    return format_long_duration(limit_s) if limit_s else "UNLIMITED"


def time_limit_raw(line: RecordLine) -> str:
    """Return the time limit in minutes."""
    limit_s = line.limit_s
    if limit_s is None:
        return "Partition_Limit"
    return str(limit_s // 60) if limit_s else "UNLIMITED"


# -- resources


def _shares(line: RecordLine) -> tuple[NodeShare, ...]:
    return line.run.shares if line.step is None else line.step.shares


def _cpus(line: RecordLine) -> int:
    return sum(share.cpus for share in _shares(line)) or _cpus_asked(line)


def _cpus_asked(line: RecordLine) -> int:
    if line.step is not None:
        return sum(share.cpus for share in line.step.shares)
    ask = line.job.spec.ask
    return max(ask.tasks * ask.cpus_per_task, ask.nodes_min, 1)


def alloc_cpus(line: RecordLine) -> str:
    """Return the CPUs that it holds or held, or asks for."""
    return str(_cpus(line))


def requested_cpus(line: RecordLine) -> str:
    """Return the CPUs that were asked for."""
    return str(_cpus_asked(line))


def alloc_nodes(line: RecordLine) -> str:
    """Return how many nodes it holds or held."""
    return str(len(_shares(line)))


def nodes(line: RecordLine) -> str:
    """Return how many nodes it holds or held, or asks for."""
    return str(len(_shares(line)) or line.job.spec.ask.nodes_min)


def requested_nodes(line: RecordLine) -> str:
    """Return how many nodes were asked for."""
    return str(line.job.spec.ask.nodes_min if line.step is None else len(line.step.shares))


def exclusive(line: RecordLine) -> str:
    """Return whom it kept off its nodes."""
    return EXCLUSIVE[line.job.spec.ask.sharing]


def over_subscribe(line: RecordLine) -> str:
    """Return with whom it shared its nodes."""
    return OVER_SUBSCRIBE[line.job.spec.ask.sharing]


def node_list(line: RecordLine) -> str:
    """Return the nodes that it holds or held."""
    shares = _shares(line)
    return format_hostlist(share.node for share in shares) if shares else "None assigned"


def step_tasks(line: RecordLine) -> str:
    """Return how many tasks a step has."""
    return "" if line.step is None else str(line.step.tasks)


def partition(line: RecordLine) -> str:
    """Return where it runs or ran, or may run."""
    return line.run.partition or ",".join(line.job.spec.partitions)


def layout(line: RecordLine) -> str:
    """Return how a step's tasks were laid out."""
    return "" if line.step is None else line.step.distribution or "Unknown"


def memory_asked(line: RecordLine) -> str:
    """Return the memory asked for in all."""
    return format_size(line.memory_mib, line) if line.memory_mib else ""


def format_size(mib: int, line: RecordLine) -> str:
    """Spell a size in the unit of the line, or the largest one that leaves it whole."""
    if line.unit:
        shift = UNITS.index(line.unit) - 1
        size = mib * 1024 if shift < 0 else mib / 1024**shift
        return f"{size:.0f}{line.unit}" if size == int(size) else f"{size:.2f}{line.unit}"
    letter = 1
    while line.converts and mib and mib % 1024 == 0 and letter < len(UNITS) - 1:
        mib //= 1024
        letter += 1
    return f"{mib}{UNITS[letter]}"


def alloc_tres(line: RecordLine) -> str:
    """Return all that it holds or held: billing=4,cpu=4,mem=2000M,node=2."""
    shares = _shares(line)
    if not shares:
        return ""
    cpus = sum(share.cpus for share in shares)
    parts = _tres(
        line,
        cpus=cpus,
        memory_mib=sum(share.memory_mib for share in shares),
        nodes=len(shares),
        gpus=sum(share.gpus.bit_count() for share in shares),
    )
    if line.step is None or line.step.step == EXTERN_STEP:
        parts += [f"billing={cpus}", *_licenses(line)]
    return ",".join(sorted(parts))


def requested_tres(line: RecordLine) -> str:
    """Return all that was asked for."""
    cpus = _cpus_asked(line)
    parts = _tres(
        line,
        cpus=cpus,
        memory_mib=line.memory_mib,
        nodes=line.job.spec.ask.nodes_min,
        gpus=sum(count for _, count in _gpus_asked(line)),
    )
    return ",".join(sorted([*parts, f"billing={cpus}", *_licenses(line)]))


def _tres(line: RecordLine, *, cpus: int, memory_mib: int, nodes: int, gpus: int) -> list[str]:
    parts = [f"cpu={cpus}", f"node={nodes}"]
    if memory_mib:
        parts.append(f"mem={format_size(memory_mib, line)}")
    if gpus:
        parts.append(f"gres/gpu={gpus}")
        kinds = {kind for kind, _ in _gpus_asked(line) if kind}
        if len(kinds) == 1:
            parts.append(f"gres/gpu:{kinds.pop()}={gpus}")
        else:
            parts += [f"gres/gpu:{kind}={count}" for kind, count in _gpus_asked(line) if kind]
    return parts


def _gpus_asked(line: RecordLine) -> list[tuple[str, int]]:
    """Return kind and number of the GPUs asked for, in all."""
    ask = line.job.spec.ask
    times = {Per.NODE: max(ask.nodes_min, 1), Per.TASK: ask.tasks}
    return [
        (each.kind, each.count * times.get(each.per, 1)) for each in ask.gres if each.name == "gpu"
    ]


def _licenses(line: RecordLine) -> Iterable[str]:
    for word in line.job.spec.ask.licenses.split(","):
        name, _, count = word.partition(":")
        if name:
            yield f"license/{name}={count or 1}"


# -- private text


def working_directory(line: RecordLine) -> str:
    """Return where it runs."""
    return "" if line.text is None else _shown(line.text.working_directory)


def comment(line: RecordLine) -> str:
    """Return what its owner noted."""
    return "" if line.text is None else _shown(line.text.comment)


def stdin_path(line: RecordLine) -> str:
    """Return where its input comes from."""
    return "" if line.text is None else _shown(line.text.stdin_path)


def stdout_path(line: RecordLine) -> str:
    """Return the pattern of the file for its output."""
    return "" if line.text is None else _shown(line.text.stdout_path)


def stderr_path(line: RecordLine) -> str:
    """Return the pattern of the file for its errors."""
    return "" if line.text is None else _shown(line.text.stderr_path)


def submit_line(line: RecordLine) -> str:
    """Return the script and its arguments, as far as the submission tells."""
    return "" if line.text is None else " ".join(_shown(word) for word in line.text.argv)


def _shown(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")
