"""The columns of `squeue --steps`, and a step as `scontrol show step` tells it.

Source: squeue(1) --steps; scontrol(1) show step; transcripts of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from spur.slurm.columns.jobline import NULL
from spur.slurm.formats import Column
from spur.slurm.timespec import Calendar, format_duration, format_limit, format_moment
from spur.values.hostlist import format_hostlist
from spur.values.steps import BATCH_STEP, EXTERN_STEP, Dealing, step_name
from spur.values.tres import NodeShare
from spur.wire.jobs import JobView
from spur.wire.steps import StepView

__all__ = [
    "STEPS_BY_LETTER",
    "STEPS_BY_NAME",
    "STEP_COLUMNS",
    "STEP_FORMAT",
    "StepLine",
    "batch_line",
    "extern_line",
    "full_name",
    "line_of_step",
    "show_step",
]

STEP_FORMAT = "%.15i %.8j %.9P %.8u %.9M %N"

_NS = 1_000_000_000


class StepLine(NamedTuple):
    """A step as a line."""

    job: JobView
    step_id: int
    name: str
    shares: tuple[NodeShare, ...]
    tasks: int
    cpus: int
    """0 for those that Slurm shows with none: batch and extern."""
    dealing: Dealing | None
    start_ns: int
    limit_ns: int
    now_ns: int
    calendar: Calendar
    user: Callable[[int], str]


def line_of_step(
    job: JobView, step: StepView, now_ns: int, calendar: Calendar, user: Callable[[int], str]
) -> StepLine:
    """Return the line of a step that srun started."""
    return StepLine(
        job,
        step.step_id,
        step.name,
        step.shares,
        sum(step.tasks),
        sum(share.cpus for share in step.shares),
        step.dealing,
        step.start_ns,
        step.limit_ns,
        now_ns,
        calendar,
        user,
    )


def batch_line(
    job: JobView, now_ns: int, calendar: Calendar, user: Callable[[int], str]
) -> StepLine:
    """Return the line of the step that a batch script is."""
    shares = job.shares[:1]
    return StepLine(
        job, BATCH_STEP, "batch", shares, 1, 0, None, job.start_ns, 0, now_ns, calendar, user
    )


def extern_line(
    job: JobView, now_ns: int, calendar: Calendar, user: Callable[[int], str]
) -> StepLine:
    """Return the line of what holds the place of a job on its nodes."""
    count = len(job.shares)
    return StepLine(
        job, EXTERN_STEP, "extern", job.shares, count, 0, None, job.start_ns, 0, now_ns, calendar,
        user,
    )  # fmt: skip


def full_name(line: StepLine) -> str:
    """Return 1501.0, 1505_2.batch."""
    job = line.job
    if job.tasks is not None:
        first = f"{job.array_id}_{job.tasks.first}"
    else:
        first = str(job.job_id)
    return f"{first}.{step_name(line.step_id)}"


def _limit_s(line: StepLine) -> int:
    return (line.limit_ns - line.start_ns) // _NS if line.limit_ns else 0


def _nodes(line: StepLine) -> str:
    return format_hostlist([share.node for share in line.shares])


def _row(
    name: str, letter: str, header: str, value: Callable[[StepLine], str] | str, json: str = ""
) -> Column[StepLine]:
    def constant(line: StepLine) -> str:
        return str(value)

    shown = value if callable(value) else constant
    return Column(name, letter, header, shown, json, "squeue(1) --steps")


STEP_COLUMNS: tuple[Column[StepLine], ...] = (
    _row("NumTasks", "A", "TASKS", lambda line: str(line.tasks)),
    _row("Gres", "b", "TRES_PER_JOB", NULL),
    _row("StepID", "i", "STEPID", full_name),
    _row("StepName", "j", "NAME", lambda line: line.name),
    _row("TimeLimit", "l", "TIME_LIMIT", lambda line: format_limit(_limit_s(line))),
    _row(
        "TimeUsed",
        "M",
        "TIME",
        lambda line: format_duration((line.now_ns - line.start_ns) // _NS),
    ),
    _row("Nodes", "N", "NODELIST", _nodes),
    _row("Partition", "P", "PARTITION", lambda line: line.job.partition),
    _row(
        "StartTime",
        "S",
        "START_TIME",
        lambda line: format_moment(line.start_ns // _NS, line.calendar),
    ),
    _row("UserName", "u", "USER", lambda line: line.user(line.job.uid)),
    _row("UserID", "U", "UID", lambda line: str(line.job.uid)),
    _row("Container", "", "CONTAINER", NULL),
    _row(
        "CpuFreq",
        "",
        "CPU_FREQ",
        lambda line: (
            "0-0:0" if line.step_id in (BATCH_STEP, EXTERN_STEP) else "Unknown-Unknown:Unknown"
        ),
    ),
    _row("Network", "", "NETWORK", NULL),
    _row("ResvPort", "", "RESV_PORTS", NULL),
    _row("StepState", "", "STATE", "RUNNING"),
    _row("tres-per-step", "", "TRES_PER_STEP", NULL),
)

STEPS_BY_LETTER = {column.letter: column for column in STEP_COLUMNS if column.letter}
STEPS_BY_NAME = {column.name.lower(): column for column in STEP_COLUMNS}


_DEALINGS = {Dealing.BLOCK: "Block", Dealing.CYCLIC: "Cyclic", Dealing.PLANE: "Plane"}


def show_step(line: StepLine, *, one_line: bool) -> str:
    """Return the record of one step, with the line breaks that follow it."""
    between = " " if one_line else "\n   "
    memory_mib = sum(share.memory_mib for share in line.shares)
    tres = f"cpu={line.cpus},mem={memory_mib}M,node={len(line.shares)}" if line.cpus else NULL
    dist = "" if line.dealing is None else f" Dist={_DEALINGS[line.dealing]}"
    parts = (
        f"StepId={full_name(line)} UserId={line.job.uid} "
        f"StartTime={format_moment(line.start_ns // _NS, line.calendar)} "
        f"TimeLimit={format_limit(_limit_s(line))}",
        f"State=RUNNING Partition={line.job.partition} NodeList={_nodes(line)}",
        f"Nodes={len(line.shares)} CPUs={line.cpus} Tasks={line.tasks} Name={line.name} "
        f"Network={NULL}",
        f"TRES={tres}",
        f"ResvPorts={NULL}",
        f"CPUFreqReq=Default{dist}",
        f"SrunHost:Pid={NULL}:0",
    )
    return between.join(parts) + ("\n" if one_line else "\n\n")
