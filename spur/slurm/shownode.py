"""Nodes and partitions as `scontrol show` tells them: keys and values in Slurm's order.

Source: scontrol(1) show node, show partition; transcripts of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from spur.slurm.sizes import format_memory
from spur.slurm.timespec import Calendar, format_long_duration, format_moment
from spur.values.config import GresPool, OverSubscribe, PartitionBlock
from spur.values.tres import gpu_indexes
from spur.wire.nodes import NodeInfo
from spur.wire.partitions import PartitionInfo

__all__ = [
    "format_free_memory",
    "format_indexes",
    "format_load",
    "format_node_gres",
    "format_over_subscribe",
    "show_node",
    "show_partition",
    "used_gres",
]

NULL = "(null)"

_NS = 1_000_000_000


def format_node_gres(node: NodeInfo) -> str:
    """Spell what a node has of generic resources: gpu:mi300x:8; empty for none."""
    return ",".join(
        ":".join(word for word in (pool.name, pool.kind, str(pool.count)) if word)
        for pool in node.block.gres
    )


def show_node(
    node: NodeInfo,
    calendar: Calendar,
    user: Callable[[int], str],
    *,
    one_line: bool,
    details: bool = False,
) -> str:
    """Return the record of one node, with the line breaks that follow it."""
    between = " " if one_line else "\n   "
    lines = between.join(_node_lines(node, calendar, user, details=details))
    return lines + ("\n" if one_line else "\n\n")


def format_load(load_milli: int | None) -> str:
    """Return a load average as Slurm shows it; N/A when it is not known."""
    return "N/A" if load_milli is None else f"{load_milli / 1000:.2f}"


def format_free_memory(free_memory_mib: int | None) -> str:
    """Return free memory in MiB; N/A when it is not known."""
    return "N/A" if free_memory_mib is None else str(free_memory_mib)


def used_gres(pools: Iterable[GresPool], held: int, *, zeros: bool = False) -> str:
    """Spell which of a node's GPUs are held: gpu:mi300x:2(IDX:0-1).

    With `zeros` kinds of which none is held are named too.
    """
    parts: list[str] = []
    first = 0
    for pool in pools:
        if pool.name != "gpu":
            continue
        indexes = [index for index in range(first, first + pool.count) if held >> index & 1]
        first += pool.count
        if indexes or zeros:
            words = ":".join(word for word in (pool.name, pool.kind, str(len(indexes))) if word)
            parts.append(f"{words}(IDX:{format_indexes(indexes) or 'N/A'})")
    return ",".join(parts)


def format_indexes(indexes: Iterable[int]) -> str:
    """Spell ascending numbers: 0-2,5."""
    found = list(indexes)
    parts: list[str] = []
    while found:
        count = 1
        while count < len(found) and found[count] == found[0] + count:
            count += 1
        parts.append(str(found[0]) if count == 1 else f"{found[0]}-{found[count - 1]}")
        found = found[count:]
    return ",".join(parts)


def _node_lines(
    node: NodeInfo, calendar: Calendar, user: Callable[[int], str], *, details: bool
) -> Iterator[str]:
    block, machine = node.block, node.machine
    features = ",".join(node.features) or NULL
    arch = f"Arch={machine.arch} " if machine.arch else ""
    yield f"NodeName={node.name} {arch}CoresPerSocket={block.cores_per_socket} "
    yield (
        f"CPUAlloc={node.cpus_allocated} CPUEfctv={node.cpus - block.core_spec_count} "
        f"CPUTot={node.cpus} CPULoad={format_load(node.load_milli)}"
    )
    yield f"AvailableFeatures={features}"
    yield f"ActiveFeatures={features}"
    yield f"Gres={format_node_gres(node) or NULL}"
    if details:
        yield "GresDrain=N/A"
        yield f"GresUsed={used_gres(block.gres, node.gpus_allocated, zeros=True) or 'gpu:0'}"
    version = f"Version={machine.version}" if machine.version else ""
    yield (
        f"NodeAddr={block.address or node.name} NodeHostName={node.name} "
        f"Port={block.port or 0} {version}"
    )
    if machine.system:
        yield f"OS={machine.system} "
    yield (
        f"RealMemory={node.memory_mib} AllocMem={node.memory_mib_allocated} "
        f"FreeMem={format_free_memory(node.free_memory_mib)} "
        f"Sockets={block.sockets} Boards={block.boards}"
    )
    yield (
        f"State={node.state} ThreadsPerCore={block.threads_per_core} TmpDisk={block.disk_mib} "
        f"Weight={block.weight} Owner=N/A MCS_label=N/A"
    )
    yield f"Partitions={','.join(node.partitions)} "
    booted, started = (
        format_moment(at_ns // _NS, calendar, empty="None")
        for at_ns in (machine.booted_ns, machine.started_ns)
    )
    yield f"BootTime={booted} SlurmdStartTime={started}"
    seen = format_moment(node.registered_ns // _NS, calendar, empty="Unknown")
    yield f"LastBusyTime={seen}"
    yield f"CfgTRES={_tres(node.cpus, node.memory_mib, node, node.gpus, is_billed=True)}"
    held = len(gpu_indexes(node.gpus_allocated))
    yield f"AllocTRES={_tres(node.cpus_allocated, node.memory_mib_allocated, node, held)}"
    yield "CapWatts=n/a"
    yield "CurrentWatts=0 AveWatts=0"
    yield "ExtSensorsJoules=n/s ExtSensorsWatts=0 ExtSensorsTemp=n/s"
    if node.reason:
        when = format_moment(node.reason_ns // _NS, calendar, empty="Unknown")
        yield f"Reason={node.reason} [{user(node.reason_uid)}@{when}]"
    if node.comment:
        yield f"Comment={node.comment}"
    if node.extra:
        yield f"Extra={node.extra}"


def _tres(cpus: int, memory_mib: int, node: NodeInfo, gpus: int, *, is_billed: bool = False) -> str:
    parts = [f"cpu={cpus}"] if cpus else []
    if memory_mib:
        parts.append(f"mem={format_memory(memory_mib)}")
    if is_billed:
        parts.append(f"billing={cpus}")
    if gpus:
        parts.append(f"gres/gpu={gpus}")
        if node.gpu_kind:
            parts.append(f"gres/gpu:{node.gpu_kind}={gpus}")
    return ",".join(parts)


def format_over_subscribe(partition: PartitionInfo) -> str:
    """Spell whether jobs share a partition's resources: NO, YES:4, FORCE:2, EXCLUSIVE."""
    block = partition.block
    if block.over_subscribe in (OverSubscribe.YES, OverSubscribe.FORCE):
        return f"{block.over_subscribe}:{block.jobs_per_resource_max}"
    return block.over_subscribe.value


def show_partition(
    partition: PartitionInfo, members: Iterable[NodeInfo], licenses: str, *, one_line: bool
) -> str:
    """Return the record of one partition, with the line breaks that follow it.

    `licenses` is what every partition has of the cluster's: license/matlab=4; empty for none.
    """
    between = " " if one_line else "\n   "
    lines = between.join(_partition_lines(partition, list(members), licenses))
    return lines + ("\n" if one_line else "\n\n")


def _yes(value: bool) -> str:
    return "YES" if value else "NO"


def _or_unlimited(value: int | None) -> str:
    return "UNLIMITED" if value is None else str(value)


def _words(words: tuple[str, ...], empty: str = "ALL") -> str:
    return ",".join(words) or empty


def _duration(seconds: int | None, empty: str) -> str:
    return empty if seconds is None else format_long_duration(seconds)


def _memory(of_cpu: int | None, of_node: int | None, word: str) -> str:
    if of_cpu is not None:
        return f"{word}MemPerCPU={of_cpu}"
    return f"{word}MemPerNode={_or_unlimited(of_node)}"


def _access(partition: PartitionInfo) -> str:
    block = partition.block
    accounts = (
        f"DenyAccounts={_words(block.deny_accounts)}"
        if block.deny_accounts
        else f"AllowAccounts={_words(block.allow_accounts)}"
    )
    qos = (
        f"DenyQos={_words(block.deny_qos)}"
        if block.deny_qos
        else f"AllowQos={_words(block.allow_qos)}"
    )
    return f"AllowGroups={_words(block.allow_groups)} {accounts} {qos}"


def _gpus_of(members: list[NodeInfo]) -> str:
    """Return the GPUs of nodes as trackable resources, after a comma; empty for none."""
    pools: dict[str, int] = {}
    for node in members:
        for pool in node.block.gres:
            if pool.name == "gpu":
                pools[pool.kind] = pools.get(pool.kind, 0) + pool.count
    gres = f",gres/gpu={sum(pools.values())}" if pools else ""
    return gres + "".join(
        f",gres/gpu:{kind}={count}" for kind, count in sorted(pools.items()) if kind
    )


def _partition_lines(
    partition: PartitionInfo, members: list[NodeInfo], licenses: str
) -> Iterator[str]:
    block = partition.block
    cpus = sum(node.cpus for node in members)
    memory_mib = sum(node.memory_mib for node in members)
    yield f"PartitionName={partition.name}"
    yield _access(partition)
    others = {each.name: each.value for each in block.others}
    alternate = f"Alternate={block.alternate} " if block.alternate else ""
    binding = f"CpuBind={others['CpuBind']}  " if "CpuBind" in others else ""
    yield (
        f"AllocNodes={block.alloc_nodes or 'ALL'} {alternate}Default={_yes(partition.default)} "
        f"{binding}QoS={block.qos or 'N/A'}"
    )
    yield (
        f"DefaultTime={_duration(partition.default_time_s, 'NONE')} "
        f"DisableRootJobs={others.get('DisableRootJobs', 'NO').upper()} "
        f"ExclusiveUser={_yes(block.exclusive_user)} GraceTime={block.grace_time_s} "
        f"Hidden={_yes(block.hidden)}"
    )
    yield (
        f"MaxNodes={_or_unlimited(block.nodes_max)} "
        f"MaxTime={_duration(partition.max_time_s, 'UNLIMITED')} MinNodes={block.nodes_min} "
        f"LLN={_yes(block.least_loaded)} MaxCPUsPerNode={_or_unlimited(block.cpus_per_node_max)}"
    )
    yield f"Nodes={partition.nodes}"
    yield (
        f"PriorityJobFactor={block.priority_job_factor} PriorityTier={block.priority_tier} "
        f"RootOnly={_yes(block.root_only)} ReqResv={_yes(block.needs_reservation)} "
        f"OverSubscribe={format_over_subscribe(partition)}"
    )
    over = others.get("OverTimeLimit", "NONE").upper()
    yield f"OverTimeLimit={over} PreemptMode={partition.preempt_mode}"
    yield (
        f"State={partition.state} TotalCPUs={cpus} TotalNodes={partition.node_count} "
        "SelectTypeParameters=NONE"
    )
    yield f"JobDefaults={_job_defaults(block)}"
    yield (
        f"{_memory(block.memory_per_cpu_mib, block.memory_per_node_mib, 'Def')} "
        f"{_memory(block.memory_per_cpu_mib_max, block.memory_per_node_mib_max, 'Max')}"
    )
    held = (
        f"cpu={cpus},mem={format_memory(memory_mib)},node={partition.node_count},"
        f"billing={cpus}{_gpus_of(members)}"
    )
    yield f"TRES={','.join(part for part in (held if cpus else '', licenses) if part)}"
    yield from _powers(others)
    if "TRESBillingWeights" in others:
        yield f"TRESBillingWeights={others['TRESBillingWeights']}"


def _job_defaults(block: PartitionBlock) -> str:
    defaults = (
        ("DefCpuPerGPU", block.cpus_per_gpu),
        ("DefMemPerGPU", block.memory_per_gpu_mib),
    )
    told = (f"{word}={value}" for word, value in defaults if value is not None)
    return ",".join(told) or NULL


def _powers(others: Mapping[str, str]) -> Iterator[str]:
    """Tell after which times nodes are powered, where the partition has its own."""
    names = ("ResumeTimeout", "SuspendTimeout", "SuspendTime")
    if any(name in others for name in names):
        yield " ".join(f"{name}={others.get(name, 'GLOBAL')}" for name in names)
