"""What of jobs runs on this host, by the variables that every process of a job has.

A user sees their own processes, root all of them. Source: scontrol(1) listpids, listjobs,
liststeps, pidinfo.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from typing import NamedTuple

from spur.slurm.layers import Layer
from spur.slurm.wording import SlurmError
from spur.values.errors import Rejection
from spur.values.ids import JobId
from spur.wire.jobs import JobFilter
from spur_cli.slurm.queue import fetch_queue
from spur_cli.slurm.session import Session

__all__ = ["explain_process", "list_jobs", "list_processes", "list_steps"]

_NS = 1_000_000_000

_NAMED = {"batch": "batch", "4294967291": "batch", "4294967292": "extern"}


class _Process(NamedTuple):
    pid: int
    job: int
    step: str
    node: str
    local: str
    rank: str
    is_task: bool
    """Whether it is a task itself, not what a task started."""


def _processes() -> Iterator[_Process]:
    """Yield what can be seen of jobs' processes, by number."""
    for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdigit()):
        found = _process(pid)
        if found is not None:
            yield found


def _process(pid: int) -> _Process | None:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            pairs = [each.partition(b"=") for each in file.read().split(b"\0")]
    except OSError:
        return None
    variables = {key.decode("ascii", "replace"): value for key, _, value in pairs}
    text = {
        key: variables.get(key, b"").decode("ascii", "replace")
        for key in (
            "SLURM_JOB_ID",
            "SLURM_STEP_ID",
            "SLURMD_NODENAME",
            "SLURM_LOCALID",
            "SLURM_PROCID",
            "SLURM_TASK_PID",
        )
    }
    if not text["SLURM_JOB_ID"].isdigit() or not text["SLURMD_NODENAME"]:
        return None
    step = text["SLURM_STEP_ID"] or "batch"
    return _Process(
        pid,
        int(text["SLURM_JOB_ID"]),
        _NAMED.get(step, step),
        text["SLURMD_NODENAME"],
        text["SLURM_LOCALID"] or "0",
        text["SLURM_PROCID"] or "0",
        text["SLURM_TASK_PID"] == str(pid),
    )


def list_processes(session: Session, line: Layer, words: list[str]) -> int:
    """List the processes of all jobs, of one, or of a step, on this host or one of its nodes."""
    if len(words) > 2:
        raise SlurmError("too many arguments for keyword:listpids")
    job, step = _wanted(words[0] if words else "")
    node = words[1] if len(words) > 1 else ""
    found = [
        each
        for each in _processes()
        if (job is None or each.job == job)
        and (not step or each.step == step)
        and (not node or each.node == node)
    ]
    sys.stdout.write("PID      JOBID    STEPID   LOCALID GLOBALID\n")
    if not found:
        where = node or os.uname().nodename
        if job is None:
            raise SlurmError("No job steps exist on this node.")
        if step:
            raise SlurmError(f"StepId={job}.{step} does not exist on node {where}.")
        raise SlurmError(f"There are no steps for job {job} on node {where}.")
    found.sort(key=lambda each: (each.job, each.step, not each.is_task, each.pid))
    for each in found:
        local, rank = (each.local, each.rank) if each.is_task else ("-", "-")
        sys.stdout.write(f"{each.pid:<8} {each.job:<8} {each.step:<8} {local:<7} {rank:<8}\n")
    return 0


def _wanted(text: str) -> tuple[int | None, str]:
    """Return the job and the step that are named; none for all. Raises: SlurmError."""
    if text in ("", "*", "ALL"):
        return None, ""
    job, dot, step = text.partition(".")
    if not job.isdigit():
        raise SlurmError(f'"{text}" does not look like a jobid')
    if dot and not (step.isdigit() or step in ("batch", "extern", "interactive")):
        raise SlurmError(f'"{text}" does not look like a stepid')
    return int(job), step


def list_jobs(session: Session, line: Layer, words: list[str]) -> int:
    """List the jobs that run something on this host, or on one of its nodes."""
    found = sorted({(each.job) for each in _processes() if not words or each.node == words[0]})
    if not found:
        raise SlurmError("No jobs found on this node")
    sys.stdout.write("JOBID   \n" + "".join(f"{job:<8}\n" for job in found))
    return 0


def list_steps(session: Session, line: Layer, words: list[str]) -> int:
    """List the steps that run something on this host, or on one of its nodes."""
    found = sorted(
        {(each.job, each.step) for each in _processes() if not words or each.node == words[0]}
    )
    if not found:
        raise SlurmError("No steps found on this node")
    rows = "".join(f"{job:<8} {step:<8}\n" for job, step in found)
    sys.stdout.write(f"JOBID    STEPID  \n{rows}")
    return 0


def explain_process(session: Session, line: Layer, words: list[str]) -> int:
    """Say which job a process belongs to, and for how long that may run."""
    if len(words) != 1:
        many = "many" if len(words) > 1 else "few"
        raise SlurmError(f"too {many} arguments for keyword:pidinfo")
    found = _process(int(words[0])) if words[0].isdigit() else None
    if found is None:
        raise SlurmError("Failed to locate job for requested pid")
    queue = fetch_queue(session, JobFilter(job_ids=(JobId(found.job),)))
    rows = () if isinstance(queue, Rejection) else queue.jobs
    if not rows:
        raise SlurmError("Failed to get job end time")
    end_s = (rows[0].end_ns or rows[0].limit_ns) // _NS
    when = time.ctime(end_s) if end_s else "Unknown"
    left_s = max(end_s - int(time.time()), 0) if end_s else 0
    sys.stdout.write(f"Slurm JobId={found.job} ends at {when}\n")
    sys.stdout.write(f"Job remaining time is {left_s} seconds\n")
    return 0
