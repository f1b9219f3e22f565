"""The columns of squeue, as one table: one row makes a letter, a long name and a field of JSON.

A row whose value is a constant is something that no job of Spur's has; Slurm shows the same when a
job has none. Rows without a letter are reached by -O alone, rows without a name by -o alone.
"""

from __future__ import annotations

from collections.abc import Callable

from spur.slurm.columns import jobline as at
from spur.slurm.columns.jobline import NULL, JobLine
from spur.slurm.formats import Column
from spur.values.tres import Per

__all__ = [
    "BY_LETTER",
    "BY_NAME",
    "DEFAULT_FORMAT",
    "JOB_COLUMNS",
    "LONG_FORMAT",
    "START_FORMAT",
    "STATE_FORMAT",
    "TEXT_NAMES",
]

DEFAULT_FORMAT = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
LONG_FORMAT = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
STATE_FORMAT = "%.18i %.8T"
"""Of --only-job-state."""

START_FORMAT = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R"

_MANUAL = "squeue(1) --format, --Format"


def _row(
    name: str,
    letter: str,
    header: str,
    value: Callable[[JobLine], str] | str,
    json: str = "",
    *,
    cuts: bool = True,
    is_text: bool = False,
    is_own: bool = False,
) -> Column[JobLine]:
    def constant(line: JobLine) -> str:
        return str(value)

    shown = value if callable(value) else constant
    return Column(name, letter, header, shown, json, _MANUAL, cuts, is_text, is_own or is_text)


def _spec(name: str) -> Callable[[JobLine], str]:
    """Return the value of a text of the spec, (null) when it is empty."""
    return lambda line: getattr(line.job.spec, name) or NULL


def _ask(name: str) -> Callable[[JobLine], str]:
    """Return the value of a text of what is asked of nodes, (null) when it is empty."""
    return lambda line: getattr(line.job.spec.ask, name) or NULL


JOB_COLUMNS: tuple[Column[JobLine], ...] = (
    _row("Account", "a", "ACCOUNT", _spec("account"), "account"),
    _row("JobID", "A", "JOBID", at.raw_job_id, "job_id", is_own=True),
    _row(
        "tres-per-node", "b", "TRES_PER_NODE", lambda line: at.gres(line, Per.NODE), "tres_per_node"
    ),
    _row("BatchHost", "B", "EXEC_HOST", at.batch_host, "batch_host"),
    _row("MinCpus", "c", "MIN_CPUS", at.min_cpus, "minimum_cpus_per_node"),
    _row("NumCPUs", "C", "CPUS", at.cpus, "cpus"),
    _row("MinTmpDisk", "d", "MIN_TMP_DISK", "0", "minimum_tmp_disk_per_node"),
    _row("NumNodes", "D", "NODES", at.nodes, "node_count"),
    _row("EndTime", "e", "END_TIME", at.end_time, "end_time"),
    _row("Dependency", "E", "DEPENDENCY", at.dependency, "dependency"),
    _row("Feature", "f", "FEATURES", _ask("features"), "features"),
    _row("ArrayJobID", "F", "ARRAY_JOB_ID", at.array_job_id, "array_job_id", is_own=True),
    _row("GroupName", "g", "GROUP", at.group_name, "group_name"),
    _row("GroupID", "G", "GROUP", lambda line: str(line.job.gid), "group_id"),
    _row("OverSubscribe", "h", "OVER_SUBSCRIBE", at.over_subscribe, "shared"),
    _row("Sockets", "H", "SOCKETS_PER_NODE", "*", "sockets_per_node"),
    _row("JobArrayID", "i", "JOBID", at.job_id, "job_array_id", is_own=True),
    _row("Cores", "I", "CORES_PER_SOCKET", "*", "cores_per_socket"),
    _row("Name", "j", "NAME", lambda line: line.job.spec.name, "name"),
    _row("Threads", "J", "THREADS_PER_CORE", "*", "threads_per_core"),
    _row("Comment", "k", "COMMENT", at.comment, "comment", is_text=True),
    _row("ArrayTaskID", "K", "ARRAY_TASK_ID", at.array_task_id, "array_task_id", is_own=True),
    _row("TimeLimit", "l", "TIME_LIMIT", at.time_limit, "time_limit", cuts=False),
    _row("TimeLeft", "L", "TIME_LEFT", at.time_left, "time_left", cuts=False),
    _row("MinMemory", "m", "MIN_MEMORY", at.min_memory, "memory_per_node"),
    _row("TimeUsed", "M", "TIME", at.time_used, "time_used", cuts=False),
    _row(
        "ReqNodes",
        "n",
        "REQ_NODES",
        lambda line: at.hosts(line.job.spec.ask.nodes_required),
        "required_nodes",
    ),
    _row("NodeList", "N", "NODELIST", at.node_list, "nodes"),
    _row("Command", "o", "COMMAND", at.command, "command", is_text=True),
    _row("Contiguous", "O", "CONTIGUOUS", "0", "contiguous"),
    _row("Priority", "p", "PRIORITY", at.priority_fraction, "priority_fraction", is_own=True),
    _row("Partition", "P", "PARTITION", at.partition, "partition"),
    _row("QOS", "q", "QOS", _spec("qos"), "qos"),
    _row(
        "PriorityLong",
        "Q",
        "PRIORITY",
        lambda line: str(at.priority(line)),
        "priority",
        is_own=True,
    ),
    _row("Reason", "r", "REASON", lambda line: line.reason, "state_reason"),
    _row("ReasonList", "R", "NODELIST(REASON)", at.node_list_or_reason, "nodes_or_reason"),
    _row("SelectJobInfo", "s", "", "", ""),
    _row("StartTime", "S", "START_TIME", at.start_time, "start_time"),
    _row("StateCompact", "t", "ST", at.state_compact, "state_compact"),
    _row("State", "T", "STATE", at.state, "job_state"),
    _row("UserName", "u", "USER", at.user_name, "user_name"),
    _row("UserID", "U", "UID", lambda line: str(line.job.uid), "user_id"),
    _row("Reservation", "v", "RESERVATION", _ask("reservation"), "resv_name"),
    _row("SubmitTime", "V", "SUBMIT_TIME", at.submit_time, "submit_time", is_own=True),
    _row("WCKey", "w", "WCKEY", NULL, "wckey"),
    _row("Licenses", "W", "LICENSES", _ask("licenses"), "licenses"),
    _row(
        "ExcNodes",
        "x",
        "EXC_NODES",
        lambda line: at.hosts(line.job.spec.ask.nodes_excluded),
        "excluded_nodes",
    ),
    _row("CoreSpec", "X", "CORE_SPEC", "N/A", "core_spec"),
    _row("Nice", "y", "NICE", lambda line: str(line.job.spec.nice), "nice"),
    _row("SchedNodes", "Y", "SCHEDNODES", at.scheduled_nodes, "scheduled_nodes"),
    _row("SCT", "z", "S:C:T", "*:*:*", ""),
    _row(
        "WorkDir", "Z", "WORK_DIR", at.working_directory, "current_working_directory", is_text=True
    ),
    # -- by name alone
    _row("AccrueTime", "", "ACCRUE_TIME", at.eligible_time, "accrue_time", is_own=True),
    _row("admin_comment", "", "ADMIN_COMMENT", NULL, "admin_comment"),
    _row(
        "AllocNodes",
        "",
        "ALLOC_NODES",
        lambda line: at.alloc_node(line).rpartition(":")[0],
        "allocating_node",
        is_text=True,
    ),
    _row(
        "AllocSID",
        "",
        "ALLOC_SID",
        lambda line: at.alloc_node(line).rpartition(":")[2],
        "",
        is_text=True,
    ),
    _row("AssocID", "", "ASSOC_ID", "0", "association_id"),
    _row("BatchFlag", "", "BATCH_FLAG", lambda line: str(int(line.job.spec.batch)), "batch_flag"),
    _row("BoardsPerNode", "", "BOARDS_PER_NODE", "0", ""),
    _row("BurstBuffer", "", "BURST_BUFFER", NULL, "burst_buffer"),
    _row("BurstBufferState", "", "BURST_BUFFER_STATE", NULL, "burst_buffer_state"),
    _row("Cluster", "", "CLUSTER", lambda line: line.cluster, "cluster"),
    _row("ClusterFeature", "", "CLUSTER_FEATURES", NULL, "cluster_features"),
    _row("Container", "", "CONTAINER", NULL, "container"),
    _row("ContainerID", "", "CONTAINER_ID", NULL, "container_id"),
    _row("cpus-per-task", "", "CPUS_PER_TASK", at.cpus_per_task, "cpus_per_task"),
    _row("cpus-per-tres", "", "CPUS_PER_TRES", at.cpus_per_gpu, "cpus_per_tres"),
    _row("CronJob", "", "CRON_JOB", "No", "cron_job"),
    _row("Deadline", "", "DEADLINE", at.deadline, "deadline"),
    _row("DelayBoot", "", "DELAY_BOOT", "0:00", "delay_boot"),
    _row("DerivedEC", "", "DERIVED_EXIT_CODE", at.exit_code, "derived_exit_code"),
    _row("EligibleTime", "", "ELIGIBLE_TIME", at.eligible_time, "eligible_time", is_own=True),
    _row("Exclusive", "", "EXCLUSIVE", at.exclusive, "exclusive"),
    _row("exit_code", "", "EXIT_CODE", at.exit_code, "exit_code"),
    _row("HetJobID", "", "HET_JOB_ID", at.het_job_id, "het_job_id"),
    _row("HetJobIDSet", "", "HET_JOB_ID_SET", NULL, "het_job_id_set"),
    _row("HetJobOffset", "", "HET_JOB_OFFSET", at.het_job_offset, "het_job_offset"),
    _row("LastSchedEval", "", "LAST_SCHED_EVAL", "N/A", "last_sched_evaluation"),
    _row("LicensesAlloc", "", "LICENSES_ALLOC", at.licenses_held, "licenses_allocated"),
    _row("MaxCPUs", "", "MAX_CPUS", at.cpus, "max_cpus"),
    _row("MaxNodes", "", "MAX_NODES", at.max_nodes, "max_nodes"),
    _row("MCSLabel", "", "MCSLABEL", NULL, "mcs_label"),
    _row("mem-per-tres", "", "MEM_PER_TRES", at.memory_per_gpu, "memory_per_tres"),
    _row("MinTime", "", "MIN_TIME", "N/A", "time_minimum"),
    _row("Network", "", "NETWORK", NULL, "network"),
    _row("NTPerBoard", "", "NTASKS_PER_BOARD", "N/A", "tasks_per_board"),
    _row("NTPerCore", "", "NTASKS_PER_CORE", "N/A", "tasks_per_core"),
    _row(
        "NTPerNode",
        "",
        "NTASKS_PER_NODE",
        lambda line: str(line.job.spec.ask.tasks_per_node),
        "tasks_per_node",
    ),
    _row("NTPerSocket", "", "NTASKS_PER_SOCKET", "N/A", "tasks_per_socket"),
    _row("NumTasks", "", "TASKS", at.tasks, "tasks"),
    _row("Origin", "", "ORIGIN", "NA", "federation_origin"),
    _row("OriginRaw", "", "ORIGIN_RAW", "NA", ""),
    _row("PendingTime", "", "PENDING_TIME", at.pending_time, "pending_time", is_own=True),
    _row("PreemptTime", "", "PREEMPT_TIME", "N/A", "preempt_time"),
    _row("Prefer", "", "PREFER", NULL, "prefer"),
    _row("Profile", "", "PROFILE", NULL, "profile"),
    _row("Reboot", "", "REBOOT", "0", "reboot"),
    _row("ReqSwitch", "", "REQ_SWITCH", "0", "required_switches"),
    _row("Requeue", "", "REQUEUE", lambda line: str(int(line.job.spec.requeue)), "requeue"),
    _row("ResizeTime", "", "RESIZE_TIME", "N/A", "resize_time"),
    _row("RestartCnt", "", "RESTART_COUNT", lambda line: str(line.job.run), "restart_cnt"),
    _row("ResvPort", "", "RESV_PORTS", NULL, "resv_ports"),
    _row("Runtime", "", "RUNTIME", NULL, ""),
    _row("SegmentSize", "", "SEGMENT_SIZE", "0", "segment_size"),
    _row("SiblingsActive", "", "ACTIVE_SIBLINGS", "NA", ""),
    _row("SiblingsActiveRaw", "", "ACTIVE_SIBLINGS_RAW", "NA", ""),
    _row("SiblingsViable", "", "VIABLE_SIBLINGS", "NA", ""),
    _row("SiblingsViableRaw", "", "VIALBLE_SIBLINGS_RAW", "NA", ""),
    _row("Sluid", "", "SLUID", NULL, ""),
    _row("SPerBoard", "", "SOCKETS_PER_BOARD", "0", "sockets_per_board"),
    _row("STDERR", "", "STDERR", at.stderr_path, "standard_error", is_text=True),
    _row("STDIN", "", "STDIN", at.stdin_path, "standard_input", is_text=True),
    _row("STDOUT", "", "STDOUT", at.stdout_path, "standard_output", is_text=True),
    _row("system_comment", "", "SYSTEM_COMMENT", NULL, "system_comment"),
    _row("tres-bind", "", "TRES_BIND", "N/A", "tres_bind"),
    _row("tres-freq", "", "TRES_FREQ", "N/A", "tres_freq"),
    _row("tres-per-job", "", "TRES_PER_JOB", lambda line: at.gres(line, Per.JOB), "tres_per_job"),
    _row(
        "tres-per-socket",
        "",
        "TRES_PER_SOCKET",
        lambda line: at.gres(line, Per.SOCKET),
        "tres_per_socket",
    ),
    _row(
        "tres-per-task", "", "TRES_PER_TASK", lambda line: at.gres(line, Per.TASK), "tres_per_task"
    ),
    _row("tres", "", "TRES_ALLOC", at.tres, "tres"),
    _row("tres-alloc", "", "TRES_ALLOC", at.tres, "tres_alloc_str"),
    _row("Wait4Switch", "", "WAIT4SWITCH", "0", "maximum_switch_wait_time"),
)

BY_LETTER: dict[str, Column[JobLine]] = {row.letter: row for row in JOB_COLUMNS if row.letter}
BY_NAME: dict[str, Column[JobLine]] = {row.name.lower(): row for row in JOB_COLUMNS}

TEXT_NAMES = frozenset(("Comment", "Command", "WorkDir", "STDERR", "STDIN", "STDOUT"))
"""Columns that show private text, which is fetched only for them."""
