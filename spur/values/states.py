"""States of jobs, reasons for waiting or ending, and kinds of hold, in Slurm's words."""

from __future__ import annotations

from enum import IntEnum, StrEnum

__all__ = [
    "HOLD_REASONS",
    "Hold",
    "JobState",
    "NodeAction",
    "NodeShareState",
    "Phase",
    "Reach",
    "Reason",
]


class JobState(StrEnum):
    """What a job is shown as. Source: squeue(1) JOB STATE CODES."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUSPENDED = "SUSPENDED"
    COMPLETED = "COMPLETED"
    CANCELLED = "CANCELLED"
    FAILED = "FAILED"
    TIMEOUT = "TIMEOUT"
    NODE_FAIL = "NODE_FAIL"
    PREEMPTED = "PREEMPTED"
    BOOT_FAIL = "BOOT_FAIL"
    DEADLINE = "DEADLINE"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    REQUEUED = "REQUEUED"
    """How the record of a run ends whose job was put back into the queue."""


class Phase(IntEnum):
    """How far one run of a job has come. It only moves forward."""

    PENDING = 0
    RUNNING = 1
    """It has its allocation; its nodes were or will be told to launch."""
    STOPPING = 2
    """How it ends is settled; some node has still to report it dead (Slurm's COMPLETING)."""
    ENDED = 3


class NodeShareState(IntEnum):
    """What is known of a run on one of its nodes."""

    OWED = 0
    """The node has not answered the launch yet."""
    LAUNCHED = 1
    ENDED = 2
    VOID = 3
    """The attempt did not come to life here and never will."""
    LOST = 4
    """The node is cut off; whether the attempt still lives is not known."""
    DEAD = 5
    """The node was cut off, and rebooted or was fenced: the attempt can't live."""


class Hold(IntEnum):
    """Why a job may not start until it is released."""

    NONE = 0
    USER = 1
    ADMIN = 2
    """Only an operator releases it."""
    MAX_REQUEUE = 3
    LAUNCH_FAILURE = 4
    REQUEUE = 5
    """Put back into the queue with the wish that it wait there."""


class Reach(IntEnum):
    """Which processes of a run a signal goes to. Source: scancel(1) --batch, --full."""

    STEPS = 0
    SCRIPT = 1
    """The batch script's own process, not its children."""
    ALL = 2
    """The script, its children and the steps."""


class Reason(StrEnum):
    """Why a job waits, or why a run ended as it did. Source: squeue(1) JOB REASON CODES."""

    NONE = "None"
    # -- waiting
    PRIORITY = "Priority"
    RESOURCES = "Resources"
    DEPENDENCY = "Dependency"
    DEPENDENCY_NEVER_SATISFIED = "DependencyNeverSatisfied"
    BEGIN_TIME = "BeginTime"
    HELD_BY_USER = "JobHeldUser"
    HELD_BY_ADMIN = "JobHeldAdmin"
    MAX_REQUEUE = "JobHoldMaxRequeue"
    LAUNCH_FAILURE = "JobLaunchFailure"
    ARRAY_TASK_LIMIT = "JobArrayTaskLimit"
    LICENSES = "Licenses"
    RESERVATION = "Reservation"
    REQ_NODE_NOT_AVAIL = "ReqNodeNotAvail"
    BAD_CONSTRAINTS = "BadConstraints"
    PARTITION_DOWN = "PartitionDown"
    PARTITION_INACTIVE = "PartitionInactive"
    PARTITION_NODE_LIMIT = "PartitionNodeLimit"
    PARTITION_TIME_LIMIT = "PartitionTimeLimit"
    MEMORY_LIMIT = "MaxMemPerLimit"
    ACCOUNT_NOT_ALLOWED = "AccountNotAllowed"
    QOS_NOT_ALLOWED = "QOSNotAllowed"
    NODE_DOWN = "NodeDown"
    NODES_UNAVAILABLE = (
        "Nodes required for job are DOWN, DRAINED or reserved for jobs "
        "in higher priority partitions"
    )
    """Too few of the nodes that would do are in use."""
    # -- limits of associations
    ASSOC_GRP_CPU = "AssocGrpCpuLimit"
    ASSOC_GRP_MEMORY = "AssocGrpMemLimit"
    ASSOC_GRP_NODE = "AssocGrpNodeLimit"
    ASSOC_GRP_GRES = "AssocGrpGRES"
    ASSOC_GRP_JOBS = "AssocGrpJobsLimit"
    ASSOC_MAX_JOBS = "AssocMaxJobsLimit"
    ASSOC_MAX_CPU_PER_JOB = "AssocMaxCpuPerJobLimit"
    ASSOC_MAX_MEMORY_PER_JOB = "AssocMaxMemPerJob"
    ASSOC_MAX_NODE_PER_JOB = "AssocMaxNodePerJobLimit"
    ASSOC_MAX_GRES_PER_JOB = "AssocMaxGRESPerJob"
    ASSOC_MAX_WALL_PER_JOB = "AssocMaxWallDurationPerJobLimit"
    # -- limits of QOS
    QOS_GRP_CPU = "QOSGrpCpuLimit"
    QOS_GRP_MEMORY = "QOSGrpMemLimit"
    QOS_GRP_NODE = "QOSGrpNodeLimit"
    QOS_GRP_GRES = "QOSGrpGRES"
    QOS_GRP_JOBS = "QOSGrpJobsLimit"
    QOS_MAX_CPU_PER_JOB = "QOSMaxCpuPerJobLimit"
    QOS_MAX_MEMORY_PER_JOB = "QOSMaxMemoryPerJob"
    QOS_MAX_NODE_PER_JOB = "QOSMaxNodePerJobLimit"
    QOS_MAX_GRES_PER_JOB = "QOSMaxGRESPerJob"
    QOS_MAX_CPU_PER_NODE = "QOSMaxCpuPerNode"
    QOS_MAX_GRES_PER_NODE = "QOSMaxGRESPerNode"
    QOS_MAX_CPU_PER_USER = "QOSMaxCpuPerUserLimit"
    QOS_MAX_MEMORY_PER_USER = "QOSMaxMemoryPerUser"
    QOS_MAX_NODE_PER_USER = "QOSMaxNodePerUserLimit"
    QOS_MAX_GRES_PER_USER = "QOSMaxGRESPerUser"
    QOS_MAX_JOBS_PER_USER = "QOSMaxJobsPerUserLimit"
    QOS_MAX_CPU_PER_ACCOUNT = "MaxCpuPerAccount"
    QOS_MAX_MEMORY_PER_ACCOUNT = "MaxMemoryPerAccount"
    QOS_MAX_NODE_PER_ACCOUNT = "MaxNodePerAccount"
    QOS_MAX_GRES_PER_ACCOUNT = "MaxGRESPerAccount"
    QOS_MAX_JOBS_PER_ACCOUNT = "MaxJobsPerAccount"
    QOS_MAX_WALL_PER_JOB = "QOSMaxWallDurationPerJobLimit"
    QOS_MIN_CPU = "QOSMinCpuNotSatisfied"
    QOS_MIN_MEMORY = "QOSMinMemory"
    QOS_MIN_NODE = "QOSMinNode"
    QOS_MIN_GRES = "QOSMinGRES"
    # -- having ended
    NON_ZERO_EXIT_CODE = "NonZeroExitCode"
    RAISED_SIGNAL = "RaisedSignal"
    TIME_LIMIT = "TimeLimit"
    DEADLINE = "DeadLine"
    OUT_OF_MEMORY = "OutOfMemory"


HOLD_REASONS: dict[Hold, Reason] = {
    Hold.USER: Reason.HELD_BY_USER,
    Hold.ADMIN: Reason.HELD_BY_ADMIN,
    Hold.MAX_REQUEUE: Reason.MAX_REQUEUE,
    Hold.LAUNCH_FAILURE: Reason.LAUNCH_FAILURE,
    Hold.REQUEUE: Reason.HELD_BY_USER,
}
"""The reason that a held job shows."""


class NodeAction(StrEnum):
    """What is done to nodes. Source: scontrol(1) update NodeName State."""

    DRAIN = "drain"
    """No new jobs; those that run go on."""
    UNDRAIN = "undrain"
    DOWN = "down"
    """No new jobs, and those that run are ended."""
    FAIL = "fail"
    """No new jobs, as the node is about to fail; those that run go on."""
    RESUME = "resume"
    """Neither drained nor failing nor down."""
    NONE = "none"
    """The state stays as it is: only what is written of the nodes is changed."""
