"""A job as `scontrol show job` tells it: keys and values in Slurm's order.

Source: scontrol(1) show job; transcripts of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from spur.slurm.columns import jobline as at
from spur.slurm.columns.jobline import NULL, JobLine
from spur.slurm.mailtypes import mail_events
from spur.slurm.shownode import format_indexes, used_gres
from spur.slurm.sizes import format_memory
from spur.slurm.timespec import (
    format_long_duration,
    format_long_limit,
    format_moment,
    parse_time_limit,
)
from spur.values.config import GresPool
from spur.values.hostlist import format_hostlist
from spur.values.ids import NodeName
from spur.values.states import Hold, JobState, Reason
from spur.values.tres import Per, cpu_mask

__all__ = ["Details", "show_job"]

_NS = 1_000_000_000


class Details(NamedTuple):
    """What is shown of a job when more is asked for."""

    exit_code: str
    """The highest of its steps, as 0:0."""
    pools: Mapping[NodeName, tuple[GresPool, ...]]
    """Of the nodes that it holds."""


def show_job(line: JobLine, *, one_line: bool, details: Details | None = None) -> str:
    """Return the record of one job, with the line breaks that follow it."""
    between = " " if one_line else "\n   "
    return between.join(_lines(line, details)) + between + ("\n" if one_line else "\n\n")


def _lines(line: JobLine, details: Details | None) -> Iterator[str]:
    job, spec = line.job, line.job.spec
    yield f"{_names(line)} JobName={spec.name}"
    yield from _het_job(line)
    yield (
        f"UserId={line.user(job.uid)}({job.uid}) GroupId={line.group(job.gid)}({job.gid}) "
        f"MCS_label={at.options(line).get('mcs-label') or 'N/A'}"
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
    if details is not None:
        yield f"DerivedExitCode={details.exit_code}"
    yield from _times(line)
    yield from _places(line)
    yield from _asks(line, details)
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


def _het_job(line: JobLine) -> Iterator[str]:
    job = line.job
    if job.het_id:
        yield f"HetJobIdSet={job.het_id}-{job.het_id + job.het_size - 1}"


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
    waits = job.state is JobState.PENDING and (
        job.spec.begin_ns > line.now_ns or job.hold is not Hold.NONE
    )
    # Slurm lets no task of a throttled array grow older by waiting.
    is_unknown = waits or (line.tasks is not None and job.throttle)
    yield f"AccrueTime={'Unknown' if is_unknown else _moment(line, _eligible_s(line))}"
    yield (
        f"StartTime={_moment(line, at.start_s(line))} EndTime={_moment(line, at.end_s(line))} "
        f"Deadline={at.deadline(line)}"
    )
    turned = _moment(line, job.turned_ns // _NS) if job.turned_ns else "None"
    yield (
        f"SuspendTime={turned} SecsPreSuspend={job.ran_ns // _NS} "
        f"LastSchedEval={submit} Scheduler=Main"
    )


def _eligible_s(line: JobLine) -> int:
    """Return since when it may start, or will at the earliest; 0 while it is held."""
    job = line.job
    begin_ns = job.spec.begin_ns
    if job.hold is not Hold.NONE and begin_ns <= line.now_ns:
        return 0
    if job.state is JobState.PENDING and (
        job.dependency is not None or line.reason == Reason.ARRAY_TASK_LIMIT
    ):
        return 0
    return max(begin_ns, job.since_ns) // _NS


def _places(line: JobLine) -> Iterator[str]:
    job, ask = line.job, line.job.spec.ask
    yield f"Partition={at.partition(line)} AllocNode:Sid={at.alloc_node(line)}"
    yield (
        f"ReqNodeList={at.hosts(ask.nodes_required) or NULL} "
        f"ExcNodeList={at.hosts(ask.nodes_excluded) or NULL}"
    )
    yield f"NodeList={at.node_list(line)}"
    if job.shares:
        yield f"BatchHost={at.batch_host(line)}"


def _delay(minutes: str) -> str:
    try:
        return format_long_duration(parse_time_limit(minutes) if minutes else 0)
    except ValueError:
        return format_long_duration(0)


def _held(line: JobLine, details: Details) -> Iterator[str]:
    """Tell what the job holds on each node; nodes of which it holds the same are together."""
    if not line.job.shares:
        return
    counts: dict[str, int] = {}
    rows: list[tuple[list[str], str]] = []
    for share in line.job.shares:
        first = 0
        pools = details.pools.get(share.node, ())
        for pool in pools:
            if pool.name == "gpu":
                mask = ((1 << pool.count) - 1) << first
                first += pool.count
                if share.gpus & mask:
                    kind = ":".join(word for word in (pool.name, pool.kind) if word)
                    counts[kind] = counts.get(kind, 0) + (share.gpus & mask).bit_count()
        cpus = cpu_mask(share.cpu_set)
        ids = format_indexes(index for index in range(cpus.bit_length()) if cpus >> index & 1)
        told = f"CPU_IDs={ids} Mem={share.memory_mib} GRES={used_gres(pools, share.gpus)}"
        if rows and rows[-1][1] == told:
            rows[-1][0].append(share.node)
        else:
            rows.append(([share.node], told))
    gres = ",".join(f"{kind}:{count}" for kind, count in counts.items())
    yield f"JOB_GRES={gres or NULL}"
    for nodes, told in rows:
        yield f"  Nodes={format_hostlist(nodes)} {told}"


def _asks(line: JobLine, details: Details | None) -> Iterator[str]:
    job, ask = line.job, line.job.spec.ask
    typed = at.options(line)
    nodes = at.nodes(line)
    if not job.shares and ask.tasks_per_node:
        nodes = str(max(ask.nodes_min, ask.tasks // ask.tasks_per_node))
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
    if details is not None:
        yield from _held(line, details)
    kind = "CPU" if ask.memory_per is Per.CPU and ask.memory_mib >= 0 else "Node"
    memory_mib = 0 if ask.memory_per is Per.GPU else max(ask.memory_mib, 0)
    yield (
        f"MinCPUsNode={at.min_cpus(line)} MinMemory{kind}={format_memory(memory_mib)} "
        f"MinTmpDiskNode={format_memory(ask.disk_mib)}"
    )
    features = ask.features or ("" if "constraint" in typed else NULL)
    yield f"Features={features} DelayBoot={_delay(typed.get('delay-boot', ''))}"
    if ask.preferred:
        yield f"Prefer={ask.preferred}"
    yield (
        f"OverSubscribe={at.over_subscribe(line)} Contiguous={int(ask.contiguous)} "
        f"Licenses={ask.licenses or NULL} Network={typed.get('network') or NULL}"
    )


def _files(line: JobLine) -> Iterator[str]:
    typed = at.options(line)
    yield f"Command={at.command(line)}"
    yield f"WorkDir={at.working_directory(line)}"
    comment = at.comment(line)
    if comment != NULL or "comment" in typed:
        yield f"Comment={typed.get('comment', '') if comment == NULL else comment} "
    yield f"StdErr={at.stderr_path(line)}"
    yield f"StdIn={at.stdin_path(line)}"
    yield f"StdOut={at.stdout_path(line)}"
    if "switches" in typed:
        yield f"Switches={typed['switches'].partition('@')[0]}@{_SWITCHES_WAIT}"
    yield "Power="
    yield from _flags(line, typed)
    yield from _trackable(line, typed)
    events = mail_events(typed.get("mail-type", ""))
    if events:
        yield f"MailUser={typed.get('mail-user') or at.user_name(line)} MailType={events}"


_SWITCHES_WAIT = "00:05:00"
"""The longest that a job waits for switches. Source: slurm.conf(5) max_switch_wait."""


def _flags(line: JobLine, typed: Mapping[str, str]) -> Iterator[str]:
    binding = typed.get("gres-flags", "")
    for word, shown in (("enforce-binding", "Yes"), ("disable-binding", "No")):
        if word in binding:
            yield f"GresEnforceBind={shown}"
    flags = ""
    kills = line.job.spec.kill_on_invalid_dependency
    if kills is not None:
        flags += f"KillOInInvalidDependent={'Yes' if kills else 'No'}"
    if "spread-job" in typed:
        flags += "SpreadJob=Yes"
    if flags:
        yield flags


def _trackable(line: JobLine, typed: Mapping[str, str]) -> Iterator[str]:
    ask = line.job.spec.ask
    if ask.cpus_per_gpu:
        yield f"CpusPerTres=gres:gpu:{ask.cpus_per_gpu}"
    if ask.memory_per is Per.GPU:
        yield f"MemPerTres=gres:gpu:{max(ask.memory_mib, 0)}"
    for word, option in (("TresBind", "gpu-bind"), ("TresFreq", "gpu-freq")):
        if option in typed:
            yield f"{word}=gpu:{typed[option]}"
    for word, per, names in (
        ("TresPerJob", Per.JOB, ("gpus",)),
        ("TresPerNode", Per.NODE, ("gres", "gpus-per-node")),
        ("TresPerSocket", Per.SOCKET, ("gpus-per-socket",)),
        ("TresPerTask", Per.TASK, ("gpus-per-task",)),
    ):
        asked = _typed_gres(typed, names) or at.format_gres(ask.gres, per)
        if asked:
            yield f"{word}={asked}"
    if ask.tasks_per_gpu:
        yield f"NtasksPerTRES={ask.tasks_per_gpu}"


def _typed_gres(typed: Mapping[str, str], names: Sequence[str]) -> str:
    """Return what was typed about generic resources, as Slurm keeps it."""
    parts = []
    for name in names:
        start = "gres:" if name == "gres" else "gres:gpu:"
        value = typed.get(name, "")
        if value.lower() != "none":
            parts += [start + part.removeprefix("gres:") for part in value.split(",") if part]
    return ",".join(parts)
