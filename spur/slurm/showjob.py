"""A job as `scontrol show job` tells it: keys and values in Slurm's order.

Source: scontrol(1) show job; transcripts of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Iterator

from spur.slurm.columns import jobline as at
from spur.slurm.columns.jobline import NULL, JobLine
from spur.slurm.sizes import format_memory
from spur.slurm.timespec import format_long_duration, format_long_limit, format_moment
from spur.values.states import Hold, JobState
from spur.values.tres import Per

__all__ = ["show_job"]

_NS = 1_000_000_000


def show_job(line: JobLine, *, one_line: bool) -> str:
    """Return the record of one job, with the line breaks that follow it."""
    between = " " if one_line else "\n   "
    return between.join(_lines(line)) + between + ("\n" if one_line else "\n\n")


def _lines(line: JobLine) -> Iterator[str]:
    job, spec = line.job, line.job.spec
    yield f"{_names(line)} JobName={spec.name}"
    yield (
        f"UserId={line.user(job.uid)}({job.uid}) GroupId={line.group(job.gid)}({job.gid}) "
        "MCS_label=N/A"
    )
    yield (
        f"Priority={at.priority(line)} Nice={spec.nice} "
        f"Account={spec.account or NULL} QOS={spec.qos or NULL}"
    )
    reason = line.reason.replace(" ", "_")
    yield f"JobState={at.state(line)} Reason={reason} Dependency={at.dependency(line)}"
    yield (
        f"Requeue={int(spec.requeue)} Restarts={job.run} BatchFlag={int(spec.batch)} Reboot=0 "
        f"ExitCode={job.exit_code}:{job.signal}"
    )
    yield from _times(line)
    yield from _places(line)
    yield from _asks(line)
    yield from _files(line)


def _names(line: JobLine) -> str:
    job = line.job
    name = f"JobId={job.job_id}"
    if line.tasks is not None:
        name += f" ArrayJobId={job.array_id} ArrayTaskId={at.array_task_id(line)}"
        if job.throttle:
            name += f" ArrayTaskThrottle={job.throttle}"
    elif job.het_id:
        name += f" HetJobId={job.het_id} HetJobOffset={job.het_offset}"
    return name


def _moment(line: JobLine, seconds: int) -> str:
    return format_moment(seconds, line.calendar, empty="Unknown")


def _times(line: JobLine) -> Iterator[str]:
    job, spec = line.job, line.job.spec
    submit = _moment(line, job.submit_ns // _NS)
    yield (
        f"RunTime={format_long_duration(at.used_s(line))} "
        f"TimeLimit={format_long_limit(line.limit_s)} "
        f"TimeMin={format_long_limit(spec.time_limit_min_s) if spec.time_limit_min_s else 'N/A'}"
    )
    yield f"SubmitTime={submit} EligibleTime={_moment(line, _eligible_s(line))}"
    waits = job.state is JobState.PENDING and (at.start_s(line) or job.hold is not Hold.NONE)
    yield f"AccrueTime={'Unknown' if waits else _moment(line, _eligible_s(line))}"
    yield (
        f"StartTime={_moment(line, at.start_s(line))} EndTime={_moment(line, at.end_s(line))} "
        f"Deadline={at.deadline(line)}"
    )
    yield f"SuspendTime=None SecsPreSuspend=0 LastSchedEval={submit} Scheduler=Main"


def _eligible_s(line: JobLine) -> int:
    """Return since when it may start, or will at the earliest; 0 while it is held."""
    job = line.job
    begin_ns = job.spec.begin_ns
    if job.hold is not Hold.NONE and begin_ns <= line.now_ns:
        return 0
    return max(begin_ns, job.since_ns) // _NS


def _places(line: JobLine) -> Iterator[str]:
    job, ask = line.job, line.job.spec.ask
    yield f"Partition={at.partition(line)} AllocNode:Sid={NULL}:0"
    yield (
        f"ReqNodeList={at.hosts(ask.nodes_required) or NULL} "
        f"ExcNodeList={at.hosts(ask.nodes_excluded) or NULL}"
    )
    yield f"NodeList={at.node_list(line)}"
    if job.shares:
        yield f"BatchHost={at.batch_host(line)}"


def _asks(line: JobLine) -> Iterator[str]:
    job, ask = line.job, line.job.spec.ask
    nodes = at.nodes(line)
    if not job.shares and ask.nodes_max:
        nodes += f"-{ask.nodes_max}"
    yield (
        f"NumNodes={nodes} NumCPUs={at.cpus(line)} NumTasks={ask.tasks} "
        f"CPUs/Task={ask.cpus_per_task} "
        f"ReqB:S:C:T=0:0:{ask.cores_per_socket or '*'}:{ask.threads_per_core or '*'}"
    )
    yield f"TRES={at.tres(line)}"
    per = f"{ask.tasks_per_node}:0:{ask.tasks_per_socket or '*'}:{ask.tasks_per_core or '*'}"
    yield f"Socks/Node={ask.sockets_per_node or '*'} NtasksPerN:B:S:C={per} CoreSpec=*"
    kind = "CPU" if ask.memory_per is Per.CPU else "Node"
    memory_mib = 0 if ask.memory_per is Per.GPU else max(ask.memory_mib, 0)
    yield (
        f"MinCPUsNode={at.min_cpus(line)} MinMemory{kind}={format_memory(memory_mib)} "
        f"MinTmpDiskNode={format_memory(ask.disk_mib)}"
    )
    yield f"Features={ask.features or NULL} DelayBoot=00:00:00"
    yield (
        f"OverSubscribe={at.over_subscribe(line)} Contiguous={int(ask.contiguous)} "
        f"Licenses={ask.licenses or NULL} Network={NULL}"
    )


def _files(line: JobLine) -> Iterator[str]:
    yield f"Command={at.command(line)}"
    yield f"WorkDir={at.working_directory(line)}"
    comment = at.comment(line)
    if comment != NULL:
        yield f"Comment={comment} "
    yield f"StdErr={at.stderr_path(line)}"
    yield f"StdIn={at.stdin_path(line)}"
    yield f"StdOut={at.stdout_path(line)}"
    yield "Power="
    ask = line.job.spec.ask
    if ask.memory_per is Per.GPU:
        yield f"MemPerTres=gres:gpu:{max(ask.memory_mib, 0)}"
    for word, per in (
        ("TresPerJob", Per.JOB),
        ("TresPerNode", Per.NODE),
        ("TresPerSocket", Per.SOCKET),
        ("TresPerTask", Per.TASK),
    ):
        asked = at.format_gres(ask.gres, per)
        if asked:
            yield f"{word}={asked}"
