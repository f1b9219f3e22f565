"""A job of the queue as a document. Source: OpenAPI schema v0.0.41, job_info."""

from __future__ import annotations

from spur.slurm.columns import jobline as at
from spur.slurm.columns.jobline import EXCLUSIVE, NULL, JobLine
from spur.slurm.dataparser.parts import Document, ended, number, seconds, unset
from spur.slurm.timespec import UNLIMITED_S
from spur.values.hostlist import format_hostlist
from spur.values.jobspec import Sharing
from spur.values.states import Hold
from spur.values.tres import NodeShare, Per

__all__ = ["job_document", "state_document"]


def _plain(text: str) -> str:
    return "" if text in (NULL, "N/A") else text


def _states(line: JobLine) -> list[str]:
    word = line.job.state.name
    return [word, "COMPLETING"] if line.job.completing else [word]


def _count(value: int) -> Document:
    """Return a count, of which 0 means that nobody said."""
    return number(value) if value else unset()


def _memory(line: JobLine, per: Per) -> Document:
    ask = line.job.spec.ask
    return number(ask.memory_mib) if ask.memory_per is per and ask.memory_mib > 0 else unset()


def _array(line: JobLine) -> Document:
    job, tasks = line.job, line.tasks
    one = tasks is not None and tasks.is_single
    return {
        "array_job_id": number(job.array_id),
        "array_task_id": number(tasks.first) if tasks is not None and one else unset(),
        "array_max_tasks": number(job.throttle),
        "array_task_string": "" if tasks is None or one else _plain(at.array_task_id(line)),
    }


def _share(place: int, share: NodeShare) -> Document:
    return {
        "index": place,
        "name": share.node,
        "cpus": {"count": share.cpus, "used": share.cpus},
        "memory": {"used": share.memory_mib, "allocated": share.memory_mib},
        "sockets": [],
    }


def _resources(line: JobLine) -> Document:
    shares = line.job.shares
    if not shares:
        return {}
    return {
        "select_type": ["CPU", "CORE", "MEMORY"],
        "nodes": {
            "count": len(shares),
            "select_type": ["AVAILABLE"],
            "list": format_hostlist(share.node for share in shares),
            "whole": line.job.spec.ask.sharing is Sharing.EXCLUSIVE,
            "allocation": [_share(place, share) for place, share in enumerate(shares)],
        },
        "cpus": sum(share.cpus for share in shares),
        "threads_per_core": unset(),
    }


def _times(line: JobLine) -> Document:
    job, spec = line.job, line.job.spec
    is_held = job.hold is not Hold.NONE
    eligible_ns = 0 if is_held else max(spec.begin_ns, job.since_ns)
    limit = number(line.limit_s // 60)
    if line.limit_s == UNLIMITED_S:
        limit = unset(infinite=True)
    return {
        "accrue_time": seconds(eligible_ns),
        "deadline": seconds(spec.deadline_ns),
        "delay_boot": number(0),
        "eligible_time": seconds(eligible_ns),
        "end_time": number(at.end_s(line)),
        "last_sched_evaluation": seconds(0),
        "pre_sus_time": seconds(0),
        "preempt_time": seconds(0),
        "preemptable_time": seconds(0),
        "resize_time": seconds(0),
        "start_time": number(at.start_s(line)),
        "submit_time": seconds(job.submit_ns),
        "suspend_time": seconds(0),
        "time_limit": limit,
        "time_minimum": number((spec.time_limit_min_s or 0) // 60),
    }


def _gres(line: JobLine) -> Document:
    return {
        "tres_bind": "",
        "tres_freq": "",
        "tres_per_job": _plain(at.gres(line, Per.JOB)),
        "tres_per_node": _plain(at.gres(line, Per.NODE)),
        "tres_per_socket": _plain(at.gres(line, Per.SOCKET)),
        "tres_per_task": _plain(at.gres(line, Per.TASK)),
        "tres_req_str": _plain(at.tres(line)),
        "tres_alloc_str": _plain(at.tres(line)) if line.job.shares else "",
        "gres_detail": [],
    }


def _asks(line: JobLine) -> Document:
    ask = line.job.spec.ask
    return {
        "contiguous": ask.contiguous,
        "core_spec": unset(),
        "thread_spec": unset(),
        "cores_per_socket": _count(ask.cores_per_socket),
        "cpus_per_task": number(ask.cpus_per_task),
        "cpu_frequency_minimum": unset(),
        "cpu_frequency_maximum": unset(),
        "cpu_frequency_governor": unset(),
        "cpus_per_tres": "",
        "cpus": number(int(at.cpus(line))),
        "excluded_nodes": ask.nodes_excluded,
        "features": ask.features,
        "licenses": ask.licenses,
        "max_cpus": number(0),
        "max_nodes": number(ask.nodes_max),
        "memory_per_cpu": _memory(line, Per.CPU),
        "memory_per_node": _memory(line, Per.NODE),
        "memory_per_tres": "",
        "minimum_cpus_per_node": number(int(at.min_cpus(line))),
        "minimum_switches": 0,
        "minimum_tmp_disk_per_node": number(ask.disk_mib),
        "node_count": number(int(at.nodes(line))),
        "prefer": ask.preferred,
        "required_nodes": ask.nodes_required,
        "resv_name": ask.reservation,
        "shared": [] if ask.sharing is Sharing.PARTITION else [_sharing(ask.sharing)],
        "exclusive": [] if EXCLUSIVE[ask.sharing] == "NO" else [_sharing(ask.sharing)],
        "oversubscribe": ask.sharing is Sharing.OVERSUBSCRIBE,
        "sockets_per_board": 0,
        "sockets_per_node": _count(ask.sockets_per_node),
        "tasks": number(ask.tasks),
        "tasks_per_board": number(0),
        "tasks_per_core": _count(ask.tasks_per_core),
        "tasks_per_node": number(ask.tasks_per_node),
        "tasks_per_socket": _count(ask.tasks_per_socket),
        "tasks_per_tres": _count(ask.tasks_per_gpu),
        "threads_per_core": _count(ask.threads_per_core),
    }


def _sharing(sharing: Sharing) -> str:
    return {
        Sharing.OVERSUBSCRIBE: "oversubscribe",
        Sharing.EXCLUSIVE: "none",
        Sharing.USER: "user",
        Sharing.LABEL: "mcs",
    }.get(sharing, "")


_ALWAYS: Document = {
    "admin_comment": "",
    "association_id": 0,
    "batch_features": "",
    "burst_buffer": "",
    "burst_buffer_state": "",
    "cluster_features": "",
    "container": "",
    "container_id": "",
    "cron": "",
    "extra": "",
    "failed_node": "",
    "federation_origin": "",
    "federation_siblings_active": "",
    "federation_siblings_viable": "",
    "flags": [],
    "het_job_id_set": "",
    "job_size_str": [],
    "mail_type": [],
    "mail_user": "",
    "maximum_switch_wait_time": 0,
    "mcs_label": "",
    "network": "",
    "power": {"flags": []},
    "profile": ["NOT_SET"],
    "reboot": False,
    "scheduled_nodes": "",
    "selinux_context": "",
    "show_flags": ["DETAIL"],
    "state_description": "",
    "system_comment": "",
    "wckey": "",
}
"""What is the same of all, since nothing here has it."""


def job_document(line: JobLine) -> Document:
    """Return a job, or the tasks of an array that have all in common."""
    job, spec = line.job, line.job.spec
    is_over = bool(job.end_ns)
    found: Document = {
        **_ALWAYS,
        "account": spec.account,
        "allocating_node": _plain(at.alloc_node(line).rpartition(":")[0]),
        "batch_flag": spec.batch,
        "batch_host": job.shares[0].node if job.shares else "",
        "billable_tres": number(float(at.cpus(line))) if job.shares else unset(),
        "cluster": line.cluster,
        "command": _plain(at.command(line)),
        "comment": _plain(at.comment(line)),
        "current_working_directory": _plain(at.working_directory(line)),
        "dependency": _plain(at.dependency(line)),
        "derived_exit_code": ended(job.exit_code, job.signal, is_over=is_over),
        "exit_code": ended(job.exit_code, job.signal, is_over=is_over),
        "group_id": job.gid,
        "group_name": line.group(job.gid),
        "het_job_id": number(job.het_id),
        "het_job_offset": number(job.het_offset),
        "hold": job.hold is not Hold.NONE,
        "job_id": job.job_id,
        "job_resources": _resources(line),
        "job_state": _states(line),
        "name": spec.name,
        "nice": spec.nice,
        "nodes": format_hostlist(share.node for share in job.shares),
        "partition": at.partition(line),
        "priority": number(at.priority(line)),
        "qos": spec.qos,
        "requeue": spec.requeue,
        "restart_cnt": job.run,
        "standard_error": _plain(at.stderr_path(line)),
        "standard_input": _plain(at.stdin_path(line)),
        "standard_output": _plain(at.stdout_path(line)),
        "state_reason": line.reason,
        "user_id": job.uid,
        "user_name": line.user(job.uid),
        **_array(line),
        **_asks(line),
        **_gres(line),
        **_times(line),
    }
    return dict(sorted(found.items()))


def state_document(line: JobLine) -> Document:
    """Return the little that --only-job-state tells."""
    job = line.job
    array = _array(line)
    return {
        "job_id": job.job_id,
        "array_job_id": array["array_job_id"],
        "array_task_id": array["array_task_string"] or str(array["array_task_id"]["number"]),
        "het_job_id": number(job.het_id),
        "state": _states(line),
    }
