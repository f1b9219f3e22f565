"""Nodes and partitions as documents. Source: OpenAPI schema v0.0.41, node and partition_info."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from spur.slurm.dataparser.parts import Document, number, seconds, unset
from spur.values.config import OverSubscribe
from spur.values.hostlist import format_hostlist
from spur.wire.nodes import NodeInfo
from spur.wire.partitions import PartitionInfo

__all__ = ["node_document", "partition_document", "summary_document"]


def _gres(node: NodeInfo) -> str:
    return ",".join(
        ":".join(filter(None, (pool.name, pool.kind, str(pool.count)))) for pool in node.block.gres
    )


def _gres_used(node: NodeInfo) -> str:
    if not node.gpus:
        return ""
    return ":".join(filter(None, ("gpu", node.gpu_kind, str(node.gpus_allocated.bit_count()))))


def _tres(cpus: int, memory_mib: int, gpus: int) -> str:
    words = [f"cpu={cpus}", f"mem={memory_mib}M"] if cpus or memory_mib else []
    return ",".join([*words, *([f"gres/gpu={gpus}"] if gpus else [])])


_ALWAYS: Document = {
    "burstbuffer_network_address": "",
    "cpu_binding": 0,
    "specialized_cpus": "",
    "energy": {},
    "external_sensors": {},
    "power": {},
    "gpu_spec": "",
    "gres_drained": "N/A",
    "instance_id": "",
    "instance_type": "",
    "last_busy": seconds(0),
    "mcs_label": "",
    "next_state_after_reboot": ["INVALID"],
    "owner": "",
    "res_cores_per_gpu": 0,
    "resume_after": seconds(0),
    "reservation": "",
    "tres_weighted": 0.0,
}
"""What is the same of all, since nothing here has it."""


def node_document(node: NodeInfo, user: Callable[[int], str], cluster: str) -> Document:
    """Return a node."""
    block = node.block
    machine = node.machine
    return {
        **_ALWAYS,
        "architecture": machine.arch,
        "boards": block.boards,
        "boot_time": seconds(machine.booted_ns),
        "cluster_name": cluster,
        "cores": block.cores_per_socket,
        "specialized_cores": block.core_spec_count,
        "cpu_load": 0 if node.load_milli is None else node.load_milli // 10,
        "free_mem": unset() if node.free_memory_mib is None else number(node.free_memory_mib),
        "cpus": node.cpus,
        "effective_cpus": node.cpus - block.core_spec_count,
        "extra": node.extra,
        "features": list(node.features),
        "active_features": list(node.features),
        "gres": _gres(node),
        "gres_used": _gres_used(node),
        "specialized_memory": block.memory_spec_mib,
        "name": node.name,
        "address": block.address or node.name,
        "hostname": node.name,
        "state": node.state.split("+"),
        "operating_system": machine.system,
        "partitions": list(node.partitions),
        "port": int(block.port) if block.port.isdigit() else 6818,
        "real_memory": node.memory_mib,
        "comment": node.comment,
        "reason": node.reason,
        "reason_changed_at": seconds(node.reason_ns),
        "reason_set_by_user": user(node.reason_uid) if node.reason else "",
        "alloc_memory": node.memory_mib_allocated,
        "alloc_cpus": node.cpus_allocated,
        "alloc_idle_cpus": node.cpus - node.cpus_allocated,
        "tres_used": _tres(
            node.cpus_allocated, node.memory_mib_allocated, node.gpus_allocated.bit_count()
        ),
        "slurmd_start_time": seconds(machine.started_ns),
        "sockets": block.sockets,
        "threads": block.threads_per_core,
        "temporary_disk": block.disk_mib,
        "weight": block.weight,
        "tres": _tres(node.cpus, node.memory_mib, node.gpus),
        "version": machine.version,
    }


def _limit(value_s: int | None) -> Document:
    return unset(infinite=True) if value_s is None else number(value_s // 60)


def _most(value: int | None) -> Document:
    return unset(infinite=True) if value is None else number(value)


def partition_document(
    partition: PartitionInfo, cpus: int, cluster: str, tres: str = ""
) -> Document:
    """Return a partition; `cpus` are those of all its nodes."""
    block = partition.block
    default_time = block.default_time_s
    return {
        "nodes": {
            "allowed_allocation": block.alloc_nodes,
            "configured": partition.nodes,
            "total": partition.node_count,
        },
        "accounts": {
            "allowed": ",".join(block.allow_accounts),
            "deny": ",".join(block.deny_accounts),
        },
        "groups": {"allowed": ",".join(block.allow_groups)},
        "qos": {
            "allowed": ",".join(block.allow_qos),
            "deny": ",".join(block.deny_qos),
            "assigned": block.qos,
        },
        "alternate": block.alternate,
        "tres": {"billing_weights": "", "configured": tres},
        "cluster": cluster,
        "select_type": [],
        "cpus": {"task_binding": 0, "total": cpus},
        "defaults": {
            "memory_per_cpu": block.memory_per_cpu_mib or 0,
            "partition_memory_per_cpu": _most_of(block.memory_per_cpu_mib),
            "partition_memory_per_node": _most_of(block.memory_per_node_mib),
            "time": unset() if default_time is None else number(default_time // 60),
            "job": "",
        },
        "grace_time": block.grace_time_s,
        "maximums": {
            "cpus_per_node": _most(block.cpus_per_node_max),
            "cpus_per_socket": _most(block.cpus_per_socket_max),
            "memory_per_cpu": block.memory_per_cpu_mib_max or 0,
            "partition_memory_per_cpu": _most_of(block.memory_per_cpu_mib_max),
            "partition_memory_per_node": _most_of(block.memory_per_node_mib_max),
            "nodes": _most(block.nodes_max),
            "shares": block.jobs_per_resource_max,
            "oversubscribe": {
                "jobs": block.jobs_per_resource_max,
                "flags": ["force"] if block.over_subscribe is OverSubscribe.FORCE else [],
            },
            "time": _limit(block.max_time_s),
            "over_time_limit": unset(),
        },
        "minimums": {"nodes": block.nodes_min},
        "name": partition.name,
        "node_sets": "",
        "priority": {"job_factor": block.priority_job_factor, "tier": block.priority_tier},
        "timeouts": {"resume": unset(), "suspend": unset()},
        "partition": {"state": [partition.state.upper()]},
        "suspend_time": unset(),
    }


def _most_of(value: int | None) -> Document:
    return unset() if value is None else number(value)


def summary_document(partition: PartitionInfo, nodes: Sequence[NodeInfo], cluster: str) -> Document:
    """Return a line of sinfo: nodes of one partition that are in one state."""
    states = nodes[0].state.split("+") if nodes else ["UNKNOWN"]
    busy = [node for node in nodes if node.cpus_allocated]
    out = [node for node in nodes if _is_out(node)]
    idle = len(nodes) - len(busy) - len([node for node in out if not node.cpus_allocated])
    return {
        "port": 6818,
        "node": {"state": states},
        "nodes": {
            "allocated": len(busy),
            "idle": idle,
            "other": len(nodes) - len(busy) - idle,
            "total": len(nodes),
            "hostnames": [node.name for node in nodes],
            "addresses": [node.block.address or node.name for node in nodes],
            "nodes": [node.name for node in nodes],
        },
        "cpus": {
            **_range(node.cpus for node in nodes),
            "allocated": sum(node.cpus_allocated for node in nodes),
            "idle": sum(node.cpus - node.cpus_allocated for node in nodes if not _is_out(node)),
            "other": sum(node.cpus - node.cpus_allocated for node in out),
            "total": sum(node.cpus for node in nodes),
        },
        "sockets": _range(node.block.sockets for node in nodes),
        "cores": _range(node.block.cores_per_socket for node in nodes),
        "threads": _range(node.block.threads_per_core for node in nodes),
        "disk": _range(node.block.disk_mib for node in nodes),
        "memory": {
            **_range(node.memory_mib for node in nodes),
            "free": _free(nodes),
            "allocated": sum(node.memory_mib_allocated for node in nodes),
        },
        "weight": _range(node.block.weight for node in nodes),
        "features": {
            "total": ",".join(dict.fromkeys(word for node in nodes for word in node.features)),
            "active": ",".join(dict.fromkeys(word for node in nodes for word in node.features)),
        },
        "gres": {
            "total": _gres(nodes[0]) if nodes else "",
            "used": _gres_used(nodes[0]) if nodes else "",
        },
        "cluster": cluster,
        "comment": nodes[0].comment if nodes else "",
        "extra": nodes[0].extra if nodes else "",
        "reason": {
            "description": nodes[0].reason if nodes else "",
            "time": seconds(nodes[0].reason_ns if nodes else 0),
            "user": "",
        },
        "reservation": "",
        "partition": partition_document(
            partition, sum(node.cpus for node in nodes), cluster, format_hostlist(())
        ),
    }


def _is_out(node: NodeInfo) -> bool:
    return any(word in node.state for word in ("DOWN", "DRAIN", "FAIL", "NOT_RESPONDING"))


def _range(values: Iterable[int]) -> dict[str, int]:
    found = list(values)
    return {"minimum": min(found, default=0), "maximum": max(found, default=0)}


def _free(nodes: Sequence[NodeInfo]) -> dict[str, Document]:
    known = [node.free_memory_mib for node in nodes if node.free_memory_mib is not None]
    return {
        "minimum": number(min(known)) if known else unset(),
        "maximum": number(max(known)) if known else unset(),
    }
