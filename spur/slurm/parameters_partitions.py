"""Parameters of the lines about partitions and about the network.

Source: slurm.conf(5), PARTITION CONFIGURATION; topology.conf(5).
"""

from __future__ import annotations

from spur.slurm.grammar import (
    BOOLEAN,
    COUNT16,
    COUNT32,
    HOSTS,
    LIMIT_TIME,
    LOWER_NAME,
    LOWER_WORDS,
    MEMORY,
    NAME,
    OVER_SUBSCRIBE,
    PARTITION_NODES,
    PARTITION_STATE,
    PREEMPT_MODE,
    TEXT,
    WORDS,
    whole,
)
from spur.slurm.parameters import Parameter, Verdict

__all__ = ["PARTITION_PARAMETERS", "TOPOLOGY_PARAMETERS"]

HONOURED = Verdict.HONOURED

PARTITION_PARAMETERS: tuple[Parameter, ...] = (
    Parameter(
        "AllocNodes", TEXT, "Hosts that jobs may be submitted from.", "alloc_nodes", HONOURED
    ),
    Parameter(
        "AllowAccounts", LOWER_WORDS, "Accounts that may use it.", "allow_accounts", HONOURED
    ),
    Parameter("AllowGroups", WORDS, "Groups that may use it.", "allow_groups"),
    Parameter("AllowQos", LOWER_WORDS, "QOS that may use it.", "allow_qos", HONOURED),
    Parameter("Alternate", NAME, "Partition that is taken while it is not up.", "alternate"),
    Parameter("CpuBind", TEXT, "How tasks are bound that don't say."),
    Parameter(
        "Default", BOOLEAN, "Whether jobs go here that name no partition.", "default", HONOURED
    ),
    Parameter(
        "DefaultTime",
        LIMIT_TIME,
        "Time limit of a job that names none.",
        "default_time_s",
        HONOURED,
    ),
    Parameter(
        "DefCpuPerGPU",
        whole(1, 65_535),
        "CPUs for each GPU of a job that names none.",
        "cpus_per_gpu",
        HONOURED,
    ),
    Parameter(
        "DefMemPerCPU",
        MEMORY,
        "Memory for each CPU of a job that names none, in MiB.",
        "memory_per_cpu_mib",
        HONOURED,
    ),
    Parameter(
        "DefMemPerGPU",
        MEMORY,
        "Memory for each GPU of a job that names none, in MiB.",
        "memory_per_gpu_mib",
        HONOURED,
    ),
    Parameter(
        "DefMemPerNode",
        MEMORY,
        "Memory on each node of a job that names none, in MiB.",
        "memory_per_node_mib",
        HONOURED,
    ),
    Parameter(
        "DenyAccounts", LOWER_WORDS, "Accounts that may not use it.", "deny_accounts", HONOURED
    ),
    Parameter("DenyQos", LOWER_WORDS, "QOS that may not use it.", "deny_qos", HONOURED),
    Parameter("DisableRootJobs", BOOLEAN, "Whether root may run jobs."),
    Parameter("Exclusive", TEXT, "Whether nodes are not shared between users, or topologies."),
    Parameter(
        "ExclusiveUser",
        BOOLEAN,
        "Whether nodes are not shared between users.",
        "exclusive_user",
        HONOURED,
    ),
    Parameter(
        "GraceTime",
        whole(0, 1_000_000_000),
        "Seconds between warning and end of a preempted job.",
        "grace_time_s",
    ),
    Parameter("Hidden", BOOLEAN, "Whether it is not shown.", "hidden"),
    Parameter(
        "LLN",
        BOOLEAN,
        "Whether nodes with the most idle CPUs are taken first.",
        "least_loaded",
        HONOURED,
    ),
    Parameter(
        "MaxCPUsPerNode",
        COUNT32,
        "The most CPUs on a node for all of its jobs.",
        "cpus_per_node_max",
        HONOURED,
    ),
    Parameter(
        "MaxCPUsPerSocket",
        COUNT32,
        "The most CPUs on a socket for all of its jobs.",
        "cpus_per_socket_max",
    ),
    Parameter(
        "MaxMemPerCPU",
        MEMORY,
        "The most memory for each CPU, in MiB.",
        "memory_per_cpu_mib_max",
        HONOURED,
    ),
    Parameter(
        "MaxMemPerNode",
        MEMORY,
        "The most memory on each node, in MiB.",
        "memory_per_node_mib_max",
        HONOURED,
    ),
    Parameter("MaxNodes", COUNT32, "The most nodes of a job.", "nodes_max", HONOURED),
    Parameter("MaxTime", LIMIT_TIME, "The longest time limit of a job.", "max_time_s", HONOURED),
    Parameter(
        "MinNodes", whole(0, (1 << 32) - 3), "The fewest nodes of a job.", "nodes_min", HONOURED
    ),
    Parameter("Nodes", PARTITION_NODES, "Its nodes.", "nodes", HONOURED),
    Parameter(
        "OverSubscribe", OVER_SUBSCRIBE, "Whether jobs share resources.", "over_subscribe", HONOURED
    ),
    Parameter("OverTimeLimit", COUNT16, "Minutes that a job may run over its limit."),
    Parameter("PowerDownOnIdle", BOOLEAN, "Whether idle nodes are powered down at once."),
    Parameter("PreemptMode", PREEMPT_MODE, "What happens to its preempted jobs.", "preempt_mode"),
    Parameter(
        "Priority",
        whole(0, 65_533),
        "Former: PriorityJobFactor and PriorityTier in one.",
        "priority",
    ),
    Parameter(
        "PriorityJobFactor",
        whole(0, 65_533),
        "What it adds to the priority of jobs.",
        "priority_job_factor",
    ),
    Parameter(
        "PriorityTier",
        whole(0, 65_533),
        "Partitions of a higher tier go first.",
        "priority_tier",
        HONOURED,
    ),
    Parameter("QOS", LOWER_NAME, "QOS whose limits count here.", "qos"),
    Parameter("ReqResv", BOOLEAN, "Whether jobs must name a reservation.", "needs_reservation"),
    Parameter("ResumeTimeout", COUNT16, "Seconds that a node may take to come up."),
    Parameter("RootOnly", BOOLEAN, "Whether only root submits here.", "root_only"),
    Parameter("SelectTypeParameters", TEXT, "Which parts of nodes are allocated."),
    Parameter(
        "Shared", OVER_SUBSCRIBE, "Former name of OverSubscribe.", "over_subscribe", HONOURED
    ),
    Parameter("State", PARTITION_STATE, "Whether it takes and starts jobs.", "state", HONOURED),
    Parameter("SuspendTime", TEXT, "Seconds of idleness after which a node is powered down."),
    Parameter("SuspendTimeout", COUNT16, "Seconds that powering down may take."),
    Parameter("Topology", TEXT, "Name of the network's shape that counts here."),
    Parameter("TRESBillingWeights", TEXT, "What its resources cost."),
)
"""Behind PartitionName."""

TOPOLOGY_PARAMETERS: tuple[Parameter, ...] = (
    Parameter("BlockName", NAME, "A block of nodes.", "block"),
    Parameter("BlockSizes", TEXT, "Sizes in which blocks are given out."),
    Parameter("LinkSpeed", TEXT, "Speed of a switch's links."),
    Parameter("Nodes", HOSTS, "Nodes right under it.", "nodes"),
    Parameter("RingName", NAME, "A ring of nodes.", "ring"),
    Parameter("SwitchName", NAME, "A switch.", "switch"),
    Parameter("Switches", TEXT, "Switches right under it.", "switches"),
)
"""Lines of topology.conf."""
