"""Configuration as values: what `reconfigure` parses, the log holds, and the state is made of.

No field has a default here, since events hold these; defaults stand in `configfile.py`, once.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from spur.values.ids import PartitionName

__all__ = [
    "ClusterSettings",
    "Config",
    "ConfigChange",
    "ConfigFile",
    "ControllerHost",
    "GrantedRole",
    "GresPool",
    "NodeBlock",
    "NodeStart",
    "OverSubscribe",
    "PartitionBlock",
    "PartitionState",
    "RequeuePolicy",
    "RoleGrant",
    "SlurmParameter",
    "TopologyKind",
    "TopologyUnit",
]


class RequeuePolicy(StrEnum):
    """When a cut-off node's requeueable jobs go back into the queue (LOG-CONTRACT 7.7)."""

    SLURM = "slurm"
    """At once, when SlurmdTimeout has passed; the former run is recorded as unfenced."""
    CONFIRMED = "confirmed"
    """After the node reports the attempt dead, reboots, or is fenced."""


class PartitionState(StrEnum):
    """Source: scontrol(1) update PartitionName State."""

    UP = "UP"
    DOWN = "DOWN"
    """Jobs queue and do not start."""
    DRAIN = "DRAIN"
    """No new jobs; those queued start."""
    INACTIVE = "INACTIVE"
    """No new jobs, and none starts."""


class OverSubscribe(StrEnum):
    """Whether jobs may share resources. Source: slurm.conf(5) PartitionName OverSubscribe."""

    NO = "NO"
    YES = "YES"
    """Jobs that ask for it share."""
    FORCE = "FORCE"
    """All jobs share."""
    EXCLUSIVE = "EXCLUSIVE"
    """A job has whole nodes."""


class NodeStart(StrEnum):
    """What a node is configured to begin as. Source: slurm.conf(5) NodeName State."""

    UNKNOWN = "UNKNOWN"
    """In use as soon as it registers."""
    CLOUD = "CLOUD"
    """Made when it is needed."""
    DOWN = "DOWN"
    DRAIN = "DRAIN"
    EXTERNAL = "EXTERNAL"
    FAIL = "FAIL"
    FAILING = "FAILING"
    FUTURE = "FUTURE"
    """Not there yet; unseen until it registers."""


class TopologyKind(StrEnum):
    """What joins nodes. Source: topology.conf(5)."""

    SWITCH = "switch"
    BLOCK = "block"
    RING = "ring"


class GrantedRole(StrEnum):
    """A role that configuration gives to a user."""

    OPERATOR = "operator"
    ADMINISTRATOR = "administrator"


class ControllerHost(
    msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True
):
    """A host of a controller. Source: slurm.conf(5) SlurmctldHost."""

    name: str
    address: str
    """The name, when no other is given."""


class ClusterSettings(
    msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True
):
    """The table [cluster]."""

    name: str
    min_job_age_s: int
    """How long an ended job stays in memory. Source: slurm.conf(5) MinJobAge."""
    slurmd_timeout_s: int
    """How long an agent may be silent. Source: slurm.conf(5) SlurmdTimeout."""
    kill_wait_s: int
    """Between SIGTERM and SIGKILL at a time limit. Source: slurm.conf(5) KillWait."""
    requeue_policy: RequeuePolicy
    array_size_max: int
    """One more than the highest task index. Source: slurm.conf(5) MaxArraySize."""
    job_count_max: int
    """Jobs and array tasks in memory. Source: slurm.conf(5) MaxJobCount."""
    controllers: tuple[ControllerHost, ...]
    """For people and for Slurm's words; where controllers are reached is not configured here."""
    first_job_id: int
    """Ids below it are never given out. Source: slurm.conf(5) FirstJobId."""
    memory_per_cpu_mib: int | None
    """For a job that names none; at most one of the two is set; None is a node's whole memory.
    Source: slurm.conf(5) DefMemPerCPU, DefMemPerNode."""
    memory_per_node_mib: int | None
    memory_per_cpu_mib_max: int | None
    """At most one of the two is set; None is no limit. Source: slurm.conf(5) MaxMemPerCPU,
    MaxMemPerNode."""
    memory_per_node_mib_max: int | None


class RoleGrant(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """One row of [[roles]]: what a user may be, from which host (LOG-CONTRACT 6.1)."""

    uid: int
    host: str
    """Name of the host that may vouch for it; empty for any but compute hosts."""
    role: GrantedRole


class SlurmParameter(
    msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True
):
    """A parameter of Slurm's files that has no field of its own, as it was written."""

    name: str
    """In the manual's spelling."""
    value: str


class GresPool(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """Devices of one generic resource and kind, on each node of a block."""

    name: str
    """Such as "gpu"."""
    kind: str
    """Such as "mi300x"; empty when it has none."""
    count: int
    files: str
    """Device files, as a list with brackets; empty when none are named."""
    cores: str
    """Cores near to them, as written; empty for all."""
    flags: tuple[str, ...]


class NodeBlock(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """One row of [[nodes]], or nodes of one NodeName line: nodes that are alike."""

    names: str
    """A host list."""
    cpus: int
    """Hardware threads, or cores where only those are counted. Source: slurm.conf(5) CPUs."""
    memory_mib: int
    gpu_kind: str
    """Such as "gfx942"; empty when there is none, or more than one kind."""
    gpus: int
    """Devices of each node, of all kinds; their indexes go through the pools in order."""
    features: tuple[str, ...]
    agent: str
    """Name of the host whose agent serves all of them; empty when each node is its own host."""
    boards: int
    sockets: int
    """Of a node, all boards together."""
    cores_per_socket: int
    threads_per_core: int
    core_spec_count: int
    """Cores kept for the system."""
    memory_spec_mib: int
    """Memory kept for the system."""
    disk_mib: int
    """Temporary disk."""
    weight: int
    """Nodes of a lower weight are taken first."""
    address: str
    """A host list as long as the names, or one address for all; empty when it is the name."""
    port: str
    """A port, or a list of them as long as the names; empty for the usual one."""
    start: NodeStart
    reason: str
    """Why it does not begin in use."""
    gres: tuple[GresPool, ...]
    """GPUs too: all generic resources, the pools in the order of their devices."""
    others: tuple[SlurmParameter, ...]


class PartitionBlock(
    msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True
):
    """One row of [[partitions]], or one PartitionName line."""

    name: PartitionName
    nodes: str
    """A host list of configured nodes."""
    default: bool
    """Whether a job that names no partition goes here."""
    default_time_s: int | None
    """Time limit of a job that names none; None is `max_time_s`."""
    max_time_s: int | None
    """None is no limit."""
    state: PartitionState
    priority_tier: int
    priority_job_factor: int
    over_subscribe: OverSubscribe
    jobs_per_resource_max: int
    """How many jobs share one resource; 1 where none do."""
    nodes_min: int
    """Of one job."""
    nodes_max: int | None
    cpus_per_node_max: int | None
    cpus_per_socket_max: int | None
    memory_per_cpu_mib: int | None
    """For a job that names none; at most one of the two is set; None is the cluster's."""
    memory_per_node_mib: int | None
    memory_per_cpu_mib_max: int | None
    """At most one of the two is set; None is the cluster's."""
    memory_per_node_mib_max: int | None
    cpus_per_gpu: int | None
    """For a job that names none, as is memory."""
    memory_per_gpu_mib: int | None
    grace_time_s: int
    """Between the warning and the end of a preempted job."""
    preempt_mode: str
    """Slurm's words; empty for the cluster's."""
    hidden: bool
    root_only: bool
    exclusive_user: bool
    """Nodes are not shared between users."""
    least_loaded: bool
    """Nodes with the most idle CPUs are taken first."""
    needs_reservation: bool
    allow_accounts: tuple[str, ...]
    """Empty for all, as are QOS and groups."""
    deny_accounts: tuple[str, ...]
    allow_qos: tuple[str, ...]
    deny_qos: tuple[str, ...]
    allow_groups: tuple[str, ...]
    alloc_nodes: str
    """Hosts that jobs may be submitted from; empty for all."""
    alternate: str
    """Partition that is taken instead while this one is not up; empty for none."""
    qos: str
    """QOS whose limits count here; empty for none."""
    others: tuple[SlurmParameter, ...]


class TopologyUnit(
    msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True
):
    """A switch, block or ring of the network."""

    kind: TopologyKind
    name: str
    nodes: str
    """A host list of nodes right under it; empty for a switch of switches."""
    switches: tuple[str, ...]
    """Switches right under it."""


class Config(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """All that the files say."""

    parser_version: int
    settings: ClusterSettings
    roles: tuple[RoleGrant, ...]
    nodes: tuple[NodeBlock, ...]
    partitions: tuple[PartitionBlock, ...]
    topology: tuple[TopologyUnit, ...]
    """In the order of the file."""
    parameters: tuple[SlurmParameter, ...]
    """In the order of their names; none is a secret."""


class ConfigChange(
    msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True
):
    """One difference between two configurations, as people read it."""

    what: str
    """Such as "cluster.min_job_age_s" or "nodes n[1-4]"."""
    before: str
    """Empty when it is new."""
    after: str
    """Empty when it is gone."""


class ConfigFile(
    msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True
):
    """A file as it is handed in; it goes over the wire, never into the log."""

    name: str
    text: str
