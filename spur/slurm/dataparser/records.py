"""A record of accounting as a document. Source: OpenAPI schema v0.0.41, slurmdb job."""

from __future__ import annotations

from collections.abc import Callable

from spur.slurm.columns import recordline as at
from spur.slurm.columns.recordline import RecordLine
from spur.slurm.dataparser.parts import Document, ended, number, unset
from spur.values.hostlist import format_hostlist
from spur.values.states import JobState
from spur.values.steps import STEP_ID_MAX, step_name
from spur.wire.history import StepRecord

__all__ = ["record_document"]

_NS = 1_000_000_000
_TIMES: Document = {"seconds": 0, "microseconds": 0}


def _tres(line: RecordLine) -> list[Document]:
    """Return what a run holds or held, one resource each."""
    shares = line.run.shares
    if not shares:
        return []
    rows = [
        ("cpu", "", 1, sum(share.cpus for share in shares)),
        ("mem", "", 2, sum(share.memory_mib for share in shares)),
        ("node", "", 4, len(shares)),
    ]
    return [
        {"type": kind, "name": name, "id": number_, "count": count}
        for kind, name, number_, count in rows
    ]


def _step(line: RecordLine, step: StepRecord, user: Callable[[int], str]) -> Document:
    job = line.job
    nodes = [share.node for share in step.shares]
    name = step_name(step.step)
    end_ns = step.end_ns
    return {
        "time": {
            "elapsed": max((end_ns or line.now_s * _NS) - step.start_ns, 0) // _NS,
            "end": number(end_ns // _NS),
            "start": number(step.start_ns // _NS),
            "suspended": 0,
            "system": _TIMES,
            "total": _TIMES,
            "user": _TIMES,
        },
        "exit_code": ended(step.exit_code, step.signal, is_over=bool(end_ns)),
        "nodes": {"count": len(nodes), "range": format_hostlist(nodes), "list": nodes},
        "tasks": {"count": step.tasks},
        "pid": "",
        "CPU": {
            "requested_frequency": {"min": number(0), "max": number(0)},
            "governor": "0",
        },
        "kill_request_user": "" if step.killed_by is None else user(step.killed_by),
        "state": [step.state.name],
        "statistics": {"CPU": {"actual_frequency": 0}, "energy": {"consumed": unset()}},
        "step": {"id": f"{job.job_id}.{name}", "name": step.name},
        "task": {"distribution": step.distribution or "Unknown"},
        "tres": {
            "requested": {"max": [], "min": [], "average": [], "total": []},
            "consumed": {"max": [], "min": [], "average": [], "total": []},
            "allocated": [
                {
                    "type": "cpu",
                    "name": "",
                    "id": 1,
                    "count": sum(share.cpus for share in step.shares),
                },
                {"type": "node", "name": "", "id": 4, "count": len(nodes)},
            ],
        },
    }


def _times(line: RecordLine) -> Document:
    run = line.run
    limit = unset()
    if line.limit_s is not None:
        limit = number(line.limit_s // 60) if line.limit_s else unset(infinite=True)
    return {
        "elapsed": at.elapsed_s(line),
        "eligible": run.eligible_ns // _NS,
        "end": run.end_ns // _NS,
        "planned": number(max((run.start_ns or run.end_ns) - run.eligible_ns, 0) // _NS),
        "start": run.start_ns // _NS,
        "submission": run.submit_ns // _NS,
        "suspended": run.suspended_ns // _NS,
        "system": _TIMES,
        "limit": limit,
        "total": _TIMES,
        "user": _TIMES,
    }


def _texts(line: RecordLine) -> Document:
    """Return what its owner and operators may read."""
    return {
        "stdin_expanded": at.stdin_path(line),
        "stdout_expanded": at.stdout_path(line),
        "stderr_expanded": at.stderr_path(line),
        "stdout": at.stdout_path(line),
        "stderr": at.stderr_path(line),
        "stdin": at.stdin_path(line),
        "submit_line": at.submit_line(line),
        "working_directory": at.working_directory(line),
    }


_ALWAYS: Document = {
    "block": "",
    "container": "",
    "extra": "",
    "failed_node": "",
    "mcs": {"label": ""},
    "script": "",
    "used_gres": "",
    "wckey": {"wckey": "", "flags": []},
}
"""What is the same of all, since nothing here has it."""


def record_document(line: RecordLine) -> Document:
    """Return a run of a job with its steps."""
    job, run, spec = line.job, line.run, line.job.spec
    one = job.tasks is not None and job.tasks.is_single
    is_over = bool(run.end_ns)
    return {
        **_ALWAYS,
        **_texts(line),
        "account": spec.account,
        "comment": {"administrator": "", "job": at.comment(line), "system": ""},
        "allocation_nodes": len(run.shares),
        "array": {
            "job_id": job.array_id,
            "limits": {"max": {"running": {"tasks": job.throttle}}},
            "task_id": number(job.tasks.first) if job.tasks is not None and one else unset(),
            "task": "" if job.tasks is None or one else at.job_id(line).partition("_")[2],
        },
        "association": {
            "account": spec.account,
            "cluster": line.cluster,
            "partition": "",
            "user": line.user(job.uid),
            "id": 0,
        },
        "cluster": line.cluster,
        "constraints": spec.ask.features,
        "derived_exit_code": ended(run.exit_code, run.signal, is_over=is_over),
        "time": _times(line),
        "exit_code": ended(run.exit_code, run.signal, is_over=is_over),
        "flags": [word for word in at.flags(line).split(",") if word],
        "group": line.group(job.gid),
        "het": {
            "job_id": job.het_id,
            "job_offset": number(job.het_offset) if job.het_id else unset(),
        },
        "job_id": job.job_id,
        "name": spec.name,
        "licenses": spec.ask.licenses,
        "nodes": at.node_list(line),
        "partition": at.partition(line),
        "hold": not run.eligible_ns and run.state is JobState.PENDING,
        "priority": number(int(at.priority(line) or 0)),
        "qos": spec.qos,
        "qosreq": spec.qos,
        "required": {
            "CPUs": int(at.requested_cpus(line) or 0),
            "memory_per_cpu": unset(),
            "memory_per_node": unset(),
        },
        "kill_request_user": "" if run.killed_by is None else line.user(run.killed_by),
        "restart_cnt": run.run,
        "reservation": {"id": 0, "name": spec.ask.reservation, "requested": ""},
        "state": {"current": [run.state.name], "reason": at.reason(line)},
        "steps": [
            _step(line, step, line.user)
            for step in sorted(run.steps, key=lambda step: step.step <= STEP_ID_MAX)
        ],
        "tres": {"allocated": _tres(line), "requested": _tres(line)},
        "user": line.user(job.uid),
    }
