"""Views of the cluster, its nodes and its partitions: rows for people, read from the state."""

from __future__ import annotations

from collections.abc import Sequence

from spur.projections.cluster import config_of
from spur.projections.counters import JOB_ID_COUNTER, counter
from spur.projections.nodes import NodeRow, node_names, node_row
from spur.projections.state import State
from spur.values.config import NodeBlock, NodeStart
from spur.values.hostlist import parse_hostlist
from spur.values.ids import NodeName
from spur.wire.cluster import ClusterInfo, ConfigInfo, HostInfo
from spur.wire.nodes import NodeInfo
from spur.wire.partitions import PartitionInfo

__all__ = ["cluster_info", "config_info", "node_infos", "partition_infos"]


def cluster_info(state: State) -> ClusterInfo:
    """Return what the cluster is and how it is configured."""
    row = state.cluster[1]
    config = config_of(state)
    return ClusterInfo(
        cluster_id=row.cluster_id,
        incarnation=row.incarnation,
        version=row.version,
        index=state.index,
        checkpoint_index=row.checkpoint_index,
        clock_accepted_ns=row.clock_accepted_ns,
        settings=None if config is None else config.settings,
        roles=() if config is None else config.roles,
        hosts=tuple(
            HostInfo(host_id, row.name, row.role, row.ends_ns)
            for host_id, row in ((key, state.hosts[key]) for key in state.hosts.sorted_keys())
        ),
    )


def config_info(state: State) -> ConfigInfo:
    """Return the configuration in force, and what its last change was."""
    row = state.config.get(1)
    if row is None:
        return ConfigInfo(0, 0, 0, (), None, (), ())
    return ConfigInfo(
        index=row.index,
        configured_ns=row.configured_ns,
        uid=row.uid,
        changes=row.changes,
        settings=row.settings,
        topology=row.topology,
        parameters=row.parameters,
        next_job_id=counter(state, JOB_ID_COUNTER) + 1,
        node_count=len(node_names(state)),
    )


def partition_infos(state: State) -> tuple[PartitionInfo, ...]:
    """Return every partition, in the order of the file."""
    config = state.config.get(1)
    written = () if config is None else config.parameters
    preempt_mode = {each.name: each.value.upper() for each in written}.get("PreemptMode", "OFF")
    rows = sorted(state.partitions.rows.items(), key=lambda item: item[1].number)
    return tuple(
        PartitionInfo(
            name=name,
            state=row.state,
            default=row.block.default,
            nodes=row.block.nodes,
            node_count=len(parse_hostlist(row.block.nodes)),
            default_time_s=row.block.default_time_s,
            max_time_s=row.block.max_time_s,
            block=row.block,
            preempt_mode=row.block.preempt_mode or preempt_mode,
        )
        for name, row in rows
    )


def node_infos(state: State, names: Sequence[NodeName]) -> tuple[NodeInfo, ...]:
    """Return configured nodes, in the order that they are named."""
    return tuple(_node_info(state, name) for name in names)


def _node_info(state: State, name: NodeName) -> NodeInfo:
    key = state.block_of_node.key(name)
    if key is None:
        raise KeyError(name)
    block = state.node_blocks[key].block
    row = node_row(state, name)
    use = state.allocations.use(name)
    return NodeInfo(
        name=name,
        state=_state_words(row, use.cpus, block),
        cpus=block.cpus,
        memory_mib=block.memory_mib,
        gpu_kind=block.gpu_kind,
        gpus=block.gpus,
        cpus_allocated=use.cpus,
        memory_mib_allocated=use.memory_mib,
        gpus_allocated=use.gpus,
        features=block.features,
        partitions=state.members.of(name),
        reason=row.reason or ("Not responding" if row.lost_ns else ""),
        reason_uid=row.reason_uid,
        reason_ns=row.reason_ns,
        host_id=row.host_id,
        boot_id=row.boot_id,
        block=block,
        comment=row.comment,
        extra=row.extra,
        machine=row.machine,
        registered_ns=row.registered_ns,
    )


def _state_words(row: NodeRow, cpus_held: int, block: NodeBlock) -> str:
    """Return Slurm's words for a node. Source: scontrol(1) show node, State."""
    cpus = block.cpus
    if row.down or row.lost_ns:
        words = ["DOWN"]
    elif not row.boot_id:
        is_cloud = block.start is NodeStart.CLOUD
        words = ["IDLE", "CLOUD", "POWERED_DOWN"] if is_cloud else ["UNKNOWN"]
    elif not cpus_held:
        words = ["IDLE"]
    else:
        words = ["MIXED" if cpus_held < cpus else "ALLOCATED"]
    if row.drain:
        words.append("DRAIN")
    if row.fail:
        words.append("FAIL")
    # Nobody waits for an answer of a node that was set down.
    if row.lost_ns and not row.down:
        words.append("NOT_RESPONDING")
    return "+".join(words)
