"""Every option of Slurm's commands, as one table.

The command line, the directives of a script, the environment and the documentation follow from it.

A row says what becomes of the option: it is honoured; or accepted, which means read, kept with the
job and without effect so far; or refused, so that nobody waits for what will not happen.

Source: the OPTIONS and ENVIRONMENT VARIABLES of each command's manual page.
"""

from __future__ import annotations

from functools import partial

from spur.slurm import keptvalues as kept
from spur.slurm import optionvalues as at
from spur.slurm.optionrows import Effect, Option, Takes
from spur.slurm.srunoptions import srun_rows

__all__ = ["OPTIONS", "Effect", "Option", "Takes"]


NOTHING, VALUE, MAYBE, MAYBE_NEXT = Takes
HONOURED, ACCEPTED, REFUSED = Effect

_submit = partial(Option, "sbatch")
_squeue = partial(Option, "squeue")
_scancel = partial(Option, "scancel")
_scontrol = partial(Option, "scontrol")
_sinfo = partial(Option, "sinfo")
_sacct = partial(Option, "sacct")
_sacctmgr = partial(Option, "sacctmgr")

_SBATCH = (
    _submit("account", "A", VALUE, "account", at.name, ("SBATCH_ACCOUNT",)),
    _submit(
        "acctg-freq",
        "",
        VALUE,
        "acctg_freq",
        kept.accounting_frequency,
        ("SBATCH_ACCTG_FREQ",),
        ACCEPTED,
    ),
    _submit("array", "a", VALUE, "array", at.array, ("SBATCH_ARRAY_INX",)),
    _submit("batch", "", VALUE, "batch", at.text, ("SBATCH_BATCH",), ACCEPTED),
    _submit("bb", "", VALUE, "bb", at.text, (), REFUSED),
    _submit("bbf", "", VALUE, "bbf", at.text, (), REFUSED),
    _submit("begin", "b", VALUE, "begin", at.text),
    _submit("chdir", "D", VALUE, "directory", at.text),
    _submit("cluster-constraint", "", VALUE, "cluster_constraint", at.text, (), REFUSED),
    _submit(
        "clusters", "M", VALUE, "clusters", at.text, ("SBATCH_CLUSTERS", "SLURM_CLUSTERS"), REFUSED
    ),
    _submit("comment", "", VALUE, "comment", at.text),
    _submit("consolidate-segments", "", NOTHING, "consolidate_segments", None, (), ACCEPTED),
    _submit("constraint", "C", VALUE, "features", at.text, ("SBATCH_CONSTRAINT",)),
    _submit("container", "", VALUE, "container", at.text, ("SBATCH_CONTAINER",), REFUSED),
    _submit("container-id", "", VALUE, "container_id", at.text, ("SBATCH_CONTAINER_ID",), REFUSED),
    _submit("contiguous", "", NOTHING, "contiguous"),
    _submit("core-spec", "S", VALUE, "core_spec", at.number_text, ("SBATCH_CORE_SPEC",), ACCEPTED),
    _submit("cores-per-socket", "", VALUE, "cores_per_socket", at.positive),
    _submit("cpu-freq", "", VALUE, "cpu_freq", kept.cpu_frequency, (), ACCEPTED),
    _submit("cpus-per-gpu", "", VALUE, "cpus_per_gpu", at.positive, ("SBATCH_CPUS_PER_GPU",)),
    _submit("cpus-per-task", "c", VALUE, "cpus_per_task", at.positive),
    _submit("deadline", "", VALUE, "deadline", at.text),
    _submit("delay-boot", "", VALUE, "delay_boot", kept.delay, ("SBATCH_DELAY_BOOT",), ACCEPTED),
    _submit("dependency", "d", VALUE, "dependency", at.text),
    _submit(
        "distribution",
        "m",
        VALUE,
        "distribution",
        at.distribution,
        ("SBATCH_DISTRIBUTION",),
        ACCEPTED,
    ),
    _submit("error", "e", VALUE, "stderr", at.text, ("SBATCH_ERROR",)),
    _submit("exclude", "x", VALUE, "nodes_excluded", at.hosts),
    _submit("exclusive", "", MAYBE, "sharing", at.exclusive, ("SBATCH_EXCLUSIVE",)),
    _submit("export", "", VALUE, "export", at.text, ("SBATCH_EXPORT",)),
    _submit("export-file", "", VALUE, "export_file", at.text, (), REFUSED),
    _submit("extra", "", VALUE, "extra", at.text, (), ACCEPTED),
    _submit("extra-node-info", "B", VALUE, "extra_node_info", at.node_shape),
    _submit("get-user-env", "", NOTHING, "get_user_env", None, ("SBATCH_GET_USER_ENV",), REFUSED),
    _submit("gid", "", VALUE, "gid", at.text),
    _submit("gpu-bind", "", VALUE, "gpu_bind", kept.gpu_binding, ("SBATCH_GPU_BIND",)),
    _submit("gpu-freq", "", VALUE, "gpu_freq", kept.gpu_frequency, ("SBATCH_GPU_FREQ",), ACCEPTED),
    _submit("gpus", "G", VALUE, "gpus", at.gpus, ("SBATCH_GPUS",)),
    _submit("gpus-per-node", "", VALUE, "gpus_per_node", at.gpus, ("SBATCH_GPUS_PER_NODE",)),
    _submit("gpus-per-socket", "", VALUE, "gpus_per_socket", at.gpus),
    _submit("gpus-per-task", "", VALUE, "gpus_per_task", at.gpus, ("SBATCH_GPUS_PER_TASK",)),
    _submit("gres", "", VALUE, "gres", at.gres, ("SBATCH_GRES",)),
    _submit("gres-flags", "", VALUE, "gres_flags", at.gres_flags, ("SBATCH_GRES_FLAGS",), ACCEPTED),
    _submit("help", "h", NOTHING, "help", None),
    _submit("hint", "", VALUE, "hint", at.hint, ("SBATCH_HINT", "SLURM_HINT")),
    _submit("hold", "H", NOTHING, "hold", None),
    _submit("ignore-pbs", "", NOTHING, "ignore_pbs", None, ("SBATCH_IGNORE_PBS",)),
    _submit("input", "i", VALUE, "stdin", at.text, ("SBATCH_INPUT",)),
    _submit("job-name", "J", VALUE, "name", at.text, ("SBATCH_JOB_NAME",)),
    _submit("kill-on-invalid-dep", "", VALUE, "kill_on_invalid_dep", at.yes_or_no),
    _submit("licenses", "L", VALUE, "licenses", at.text),
    _submit("mail-type", "", VALUE, "mail_type", at.mail_types, (), ACCEPTED),
    _submit("mail-user", "", VALUE, "mail_user", at.text, (), ACCEPTED),
    _submit("mcs-label", "", VALUE, "mcs_label", at.text, (), ACCEPTED),
    _submit("mem", "", VALUE, "memory_per_node", at.memory, ("SBATCH_MEM_PER_NODE",)),
    _submit("mem-bind", "", VALUE, "mem_bind", kept.memory_binding, ("SBATCH_MEM_BIND",), ACCEPTED),
    _submit("mem-per-cpu", "", VALUE, "memory_per_cpu", at.memory, ("SBATCH_MEM_PER_CPU",)),
    _submit("mem-per-gpu", "", VALUE, "memory_per_gpu", at.memory, ("SBATCH_MEM_PER_GPU",)),
    _submit("mem-update", "", VALUE, "mem_update", at.text, (), ACCEPTED),
    _submit("mincpus", "", VALUE, "mincpus", at.positive),
    _submit("network", "", VALUE, "network", at.text, ("SBATCH_NETWORK",), ACCEPTED),
    _submit("nice", "", MAYBE, "nice", at.nice),
    _submit("no-kill", "k", MAYBE, "no_kill", kept.off, ("SBATCH_NO_KILL",), ACCEPTED),
    _submit("no-requeue", "", NOTHING, "requeue", at.requeue, ("SBATCH_NO_REQUEUE",)),
    _submit("nodefile", "F", VALUE, "nodefile", at.text),
    _submit("nodelist", "w", VALUE, "nodes_required", at.hosts),
    _submit("nodes", "N", VALUE, "nodes", at.nodes),
    _submit("ntasks", "n", VALUE, "tasks", at.positive),
    _submit("ntasks-per-core", "", VALUE, "ntasks_per_core", at.positive),
    _submit("ntasks-per-gpu", "", VALUE, "ntasks_per_gpu", at.positive),
    _submit("ntasks-per-node", "", VALUE, "tasks_per_node", at.positive),
    _submit("ntasks-per-socket", "", VALUE, "ntasks_per_socket", at.positive),
    _submit("oom-kill-step", "", MAYBE, "oom_kill_step", at.text, (), ACCEPTED),
    _submit("open-mode", "", VALUE, "open_mode", at.open_mode, ("SBATCH_OPEN_MODE",)),
    _submit("output", "o", VALUE, "stdout", at.text, ("SBATCH_OUTPUT",)),
    _submit("overcommit", "O", NOTHING, "overcommit", None, ("SBATCH_OVERCOMMIT",)),
    _submit("oversubscribe", "s", NOTHING, "sharing", at.oversubscribe),
    _submit("parsable", "", NOTHING, "parsable", None),
    _submit("partition", "p", VALUE, "partitions", at.partitions, ("SBATCH_PARTITION",)),
    _submit("prefer", "", VALUE, "prefer", at.text),
    _submit("priority", "", VALUE, "priority", at.priority),
    _submit("profile", "", VALUE, "profile", kept.profiles, ("SBATCH_PROFILE",), ACCEPTED),
    _submit("propagate", "", MAYBE, "propagate", at.limits),
    _submit("qos", "q", VALUE, "qos", at.name, ("SBATCH_QOS",)),
    _submit("quiet", "Q", NOTHING, "quiet", None),
    _submit("reboot", "", NOTHING, "reboot", None),
    _submit("requeue", "", MAYBE, "requeue", at.requeue, ("SBATCH_REQUEUE",)),
    _submit("reservation", "", VALUE, "reservation", at.text, ("SBATCH_RESERVATION",)),
    _submit("resources", "", VALUE, "resources", at.text, (), REFUSED),
    _submit("resv-ports", "", MAYBE, "resv_ports", at.text, (), ACCEPTED),
    _submit("runtime", "", VALUE, "runtime", at.text, ("SBATCH_RUNTIME",), REFUSED),
    _submit("segment", "", VALUE, "segment", at.number_text, ("SBATCH_SEGMENT_SIZE",), ACCEPTED),
    _submit("signal", "", VALUE, "signal", at.signal, ("SBATCH_SIGNAL",)),
    _submit("sockets-per-node", "", VALUE, "sockets_per_node", at.positive),
    _submit("spread-job", "", NOTHING, "spread_job", None, ("SBATCH_SPREAD_JOB",), ACCEPTED),
    _submit("spread-segments", "", NOTHING, "spread_segments", None, (), ACCEPTED),
    _submit("stepmgr", "", NOTHING, "stepmgr", None, (), ACCEPTED),
    _submit("switches", "", VALUE, "switches", at.switches, ("SBATCH_REQ_SWITCH",), ACCEPTED),
    _submit("test-only", "", NOTHING, "test_only"),
    _submit(
        "thread-spec", "", VALUE, "thread_spec", at.number_text, ("SBATCH_THREAD_SPEC",), ACCEPTED
    ),
    _submit(
        "threads-per-core",
        "",
        VALUE,
        "threads_per_core",
        at.positive,
        ("SBATCH_THREADS_PER_CORE",),
    ),
    _submit("time", "t", VALUE, "time_limit_s", at.time_limit, ("SBATCH_TIMELIMIT",)),
    _submit("time-min", "", VALUE, "time_limit_min_s", at.time_limit),
    _submit("tmp", "", VALUE, "disk_mib", at.disk),
    _submit("tres-bind", "", VALUE, "tres_bind", at.text, ("SBATCH_TRES_BIND",), ACCEPTED),
    _submit(
        "tres-per-task", "", VALUE, "tres_per_task", at.text, ("SBATCH_TRES_PER_TASK",), REFUSED
    ),
    _submit("uid", "", VALUE, "uid", at.text),
    _submit("usage", "", NOTHING, "usage", None),
    _submit(
        "use-min-nodes", "", NOTHING, "use_min_nodes", None, ("SBATCH_USE_MIN_NODES",), ACCEPTED
    ),
    _submit("verbose", "v", NOTHING, "verbose", None, ("SBATCH_DEBUG",), ACCEPTED),
    _submit("version", "V", NOTHING, "version", None),
    _submit("wait", "W", NOTHING, "wait", None, ("SBATCH_WAIT",)),
    _submit(
        "wait-all-nodes",
        "",
        VALUE,
        "wait_all_nodes",
        kept.wait_for_nodes,
        ("SBATCH_WAIT_ALL_NODES",),
        ACCEPTED,
    ),
    _submit("wckey", "", VALUE, "wckey", at.text, ("SBATCH_WCKEY",), ACCEPTED),
    _submit("wrap", "", VALUE, "wrap", at.text),
)

_SQUEUE = (
    _squeue(
        "account", "A", VALUE, "accounts", environment=("SQUEUE_ACCOUNT",), aliases=("accounts",)
    ),
    _squeue("all", "a", NOTHING, "all", environment=("SQUEUE_ALL",), effect=ACCEPTED),
    _squeue("array", "r", NOTHING, "array", environment=("SQUEUE_ARRAY",)),
    _squeue("clusters", "M", VALUE, "clusters", environment=("SLURM_CLUSTERS",)),
    _squeue("expand-patterns", "", NOTHING, "expand_patterns", effect=REFUSED),
    _squeue(
        "federation", "", NOTHING, "federation", environment=("SQUEUE_FEDERATION",), effect=ACCEPTED
    ),
    _squeue("format", "o", VALUE, "format", environment=("SQUEUE_FORMAT",)),
    _squeue("Format", "O", VALUE, "long_format", environment=("SQUEUE_FORMAT2",)),
    _squeue("help", "", NOTHING, "help"),
    _squeue("hide", "", NOTHING, "hide", effect=ACCEPTED),
    _squeue("iterate", "i", VALUE, "iterate"),
    _squeue("jobs", "j", MAYBE_NEXT, "jobs", aliases=("job",)),
    _squeue("json", "", MAYBE, "json", environment=("SLURM_JSON",), effect=REFUSED),
    _squeue("licenses", "L", VALUE, "licenses", environment=("SQUEUE_LICENSES",)),
    _squeue("local", "", NOTHING, "local", environment=("SQUEUE_LOCAL",), effect=ACCEPTED),
    _squeue("long", "l", NOTHING, "long"),
    _squeue("me", "", NOTHING, "me"),
    _squeue("name", "n", VALUE, "names", environment=("SQUEUE_NAMES",)),
    _squeue("noconvert", "", NOTHING, "noconvert"),
    _squeue("nodelist", "w", VALUE, "nodes"),
    _squeue("noheader", "h", NOTHING, "noheader"),
    _squeue("notme", "", NOTHING, "notme"),
    _squeue("only-job-state", "", NOTHING, "only_job_state", effect=ACCEPTED),
    _squeue(
        "partition",
        "p",
        VALUE,
        "partitions",
        environment=("SQUEUE_PARTITION",),
        aliases=("partitions",),
    ),
    _squeue(
        "priority", "P", NOTHING, "priority", environment=("SQUEUE_PRIORITY",), effect=ACCEPTED
    ),
    _squeue("qos", "q", VALUE, "qos", environment=("SQUEUE_QOS",)),
    _squeue("reservation", "R", VALUE, "reservation"),
    _squeue("running-over", "", VALUE, "running_over"),
    _squeue("running-under", "", VALUE, "running_under"),
    _squeue("sibling", "", NOTHING, "sibling", environment=("SQUEUE_SIBLING",), effect=ACCEPTED),
    _squeue("sort", "S", VALUE, "sort", environment=("SQUEUE_SORT",)),
    _squeue("start", "", NOTHING, "start"),
    _squeue("states", "t", VALUE, "states", environment=("SQUEUE_STATES",), aliases=("state",)),
    _squeue("steps", "s", MAYBE_NEXT, "steps", aliases=("step",)),
    _squeue("usage", "", NOTHING, "usage"),
    _squeue("user", "u", VALUE, "users", environment=("SQUEUE_USERS",), aliases=("users",)),
    _squeue("verbose", "v", NOTHING, "verbose", effect=ACCEPTED),
    _squeue("version", "V", NOTHING, "version"),
    _squeue("yaml", "", MAYBE, "yaml", environment=("SLURM_YAML",), effect=REFUSED),
)

_SCANCEL = (
    _scancel("account", "A", VALUE, "accounts", environment=("SCANCEL_ACCOUNT",)),
    _scancel("admin-comment", "", VALUE, "admin_comment", effect=REFUSED),
    _scancel("batch", "b", NOTHING, "batch", environment=("SCANCEL_BATCH",)),
    _scancel("clusters", "M", VALUE, "clusters", environment=("SLURM_CLUSTERS",), effect=REFUSED),
    _scancel("ctld", "", NOTHING, "ctld", environment=("SCANCEL_CTLD",), effect=ACCEPTED),
    _scancel("cron", "c", NOTHING, "cron", environment=("SCANCEL_CRON",), effect=ACCEPTED),
    _scancel("full", "f", NOTHING, "full", environment=("SCANCEL_FULL",)),
    _scancel("help", "", NOTHING, "help"),
    _scancel("hurry", "H", NOTHING, "hurry", environment=("SCANCEL_HURRY",), effect=ACCEPTED),
    _scancel(
        "interactive",
        "i",
        NOTHING,
        "interactive",
        environment=("SCANCEL_INTERACTIVE",),
        effect=REFUSED,
    ),
    _scancel("jobname", "n", VALUE, "names", environment=("SCANCEL_NAME",), aliases=("name",)),
    _scancel("me", "", NOTHING, "me"),
    _scancel("nodelist", "w", VALUE, "nodes"),
    _scancel("partition", "p", VALUE, "partitions", environment=("SCANCEL_PARTITION",)),
    _scancel("qos", "q", VALUE, "qos", environment=("SCANCEL_QOS",)),
    _scancel("quiet", "Q", NOTHING, "quiet"),
    _scancel("reservation", "R", VALUE, "reservation"),
    _scancel("sibling", "", VALUE, "sibling", effect=REFUSED),
    _scancel("signal", "s", VALUE, "signal"),
    _scancel("state", "t", VALUE, "states", environment=("SCANCEL_STATE",)),
    _scancel("usage", "", NOTHING, "usage"),
    _scancel("user", "u", VALUE, "users", environment=("SCANCEL_USER",)),
    _scancel("verbose", "v", NOTHING, "verbose", environment=("SCANCEL_VERBOSE",)),
    _scancel("version", "V", NOTHING, "version"),
    _scancel("wckey", "", VALUE, "wckey", environment=("SCANCEL_WCKEY",), effect=REFUSED),
)

_SCONTROL = (
    _scontrol("all", "a", NOTHING, "all", environment=("SCONTROL_ALL",)),
    _scontrol("clusters", "M", VALUE, "clusters", environment=("SLURM_CLUSTERS",), effect=REFUSED),
    _scontrol("details", "d", NOTHING, "details", effect=ACCEPTED),
    _scontrol(
        "federation",
        "",
        NOTHING,
        "federation",
        environment=("SCONTROL_FEDERATION",),
        effect=ACCEPTED,
    ),
    _scontrol("future", "F", NOTHING, "future", environment=("SCONTROL_FUTURE",), effect=ACCEPTED),
    _scontrol("help", "h", NOTHING, "help"),
    _scontrol("hide", "", NOTHING, "hide", effect=ACCEPTED),
    _scontrol("json", "", MAYBE, "json", environment=("SLURM_JSON",), effect=REFUSED),
    _scontrol("local", "", NOTHING, "local", environment=("SCONTROL_LOCAL",), effect=ACCEPTED),
    _scontrol("oneliner", "o", NOTHING, "oneliner"),
    _scontrol("quiet", "Q", NOTHING, "quiet"),
    _scontrol(
        "sibling", "", NOTHING, "sibling", environment=("SCONTROL_SIBLING",), effect=ACCEPTED
    ),
    _scontrol("uid", "u", VALUE, "uid", effect=REFUSED),
    _scontrol("verbose", "v", NOTHING, "verbose", effect=ACCEPTED),
    _scontrol("version", "V", NOTHING, "version"),
    _scontrol("yaml", "", MAYBE, "yaml", environment=("SLURM_YAML",), effect=REFUSED),
)

_SINFO = (
    _sinfo("all", "a", NOTHING, "all", environment=("SINFO_ALL",)),
    _sinfo("clusters", "M", VALUE, "clusters", environment=("SLURM_CLUSTERS",), effect=REFUSED),
    _sinfo("dead", "d", NOTHING, "dead"),
    _sinfo("exact", "e", NOTHING, "exact", effect=ACCEPTED),
    _sinfo(
        "federation", "", NOTHING, "federation", environment=("SINFO_FEDERATION",), effect=ACCEPTED
    ),
    _sinfo("future", "F", NOTHING, "future", environment=("SCONTROL_FUTURE",), effect=ACCEPTED),
    _sinfo("format", "o", VALUE, "format", environment=("SINFO_FORMAT",)),
    _sinfo("Format", "O", VALUE, "long_format"),
    _sinfo("help", "", NOTHING, "help"),
    _sinfo("hide", "", NOTHING, "hide", effect=ACCEPTED),
    _sinfo("iterate", "i", VALUE, "iterate", effect=REFUSED),
    _sinfo("json", "", MAYBE, "json", environment=("SLURM_JSON",), effect=REFUSED),
    _sinfo("list-reasons", "R", NOTHING, "list_reasons"),
    _sinfo("local", "", NOTHING, "local", environment=("SINFO_LOCAL",), effect=ACCEPTED),
    _sinfo("long", "l", NOTHING, "long"),
    _sinfo("noconvert", "", NOTHING, "noconvert", effect=ACCEPTED),
    _sinfo("Node", "N", NOTHING, "by_node"),
    _sinfo("nodes", "n", VALUE, "nodes"),
    _sinfo("noheader", "h", NOTHING, "noheader"),
    _sinfo("partition", "p", VALUE, "partitions", environment=("SINFO_PARTITION",)),
    _sinfo("reservation", "T", NOTHING, "reservation", effect=REFUSED),
    _sinfo("responding", "r", NOTHING, "responding"),
    _sinfo("sort", "S", VALUE, "sort", environment=("SINFO_SORT",)),
    _sinfo("states", "t", VALUE, "states"),
    _sinfo("summarize", "s", NOTHING, "summarize"),
    _sinfo("usage", "", NOTHING, "usage"),
    _sinfo("verbose", "v", NOTHING, "verbose", effect=ACCEPTED),
    _sinfo("version", "V", NOTHING, "version"),
    _sinfo("yaml", "", MAYBE, "yaml", environment=("SLURM_YAML",), effect=REFUSED),
)

_SACCT = (
    _sacct("accounts", "A", VALUE, "accounts", aliases=("account",)),
    _sacct("allclusters", "L", NOTHING, "all_clusters"),
    _sacct("allocations", "X", NOTHING, "allocations"),
    _sacct("allusers", "a", NOTHING, "all_users"),
    _sacct("associations", "x", VALUE, "associations", effect=ACCEPTED),
    _sacct("batch-script", "B", NOTHING, "batch_script"),
    _sacct("brief", "b", NOTHING, "brief"),
    _sacct("clusters", "M", VALUE, "clusters", environment=("SLURM_CLUSTERS",)),
    _sacct("completion", "c", NOTHING, "completion"),
    _sacct("constraints", "C", VALUE, "constraints"),
    _sacct("delimiter", "", VALUE, "delimiter"),
    _sacct("duplicates", "D", NOTHING, "duplicates"),
    _sacct("endtime", "E", VALUE, "end"),
    _sacct("env-vars", "", NOTHING, "env_vars", effect=REFUSED),
    _sacct(
        "federation", "", NOTHING, "federation", environment=("SACCT_FEDERATION",), effect=ACCEPTED
    ),
    _sacct("file", "f", VALUE, "file", effect=ACCEPTED),
    _sacct("flags", "F", VALUE, "flags"),
    _sacct("format", "o", VALUE, "format", environment=("SACCT_FORMAT",)),
    _sacct("group", "g", VALUE, "groups", aliases=("gid",)),
    _sacct("help", "h", NOTHING, "help"),
    _sacct("helpformat", "e", NOTHING, "help_format"),
    _sacct("jobs", "j", VALUE, "jobs"),
    _sacct("json", "", MAYBE, "json", environment=("SLURM_JSON",), effect=REFUSED),
    _sacct("local", "", NOTHING, "local", environment=("SACCT_LOCAL",), effect=ACCEPTED),
    _sacct("long", "l", NOTHING, "long"),
    _sacct("name", "", VALUE, "names"),
    _sacct("ncpus", "I", VALUE, "cpus"),
    _sacct("nnodes", "i", VALUE, "node_count"),
    _sacct("noconvert", "", NOTHING, "noconvert"),
    _sacct("nodelist", "N", VALUE, "nodes"),
    _sacct("noheader", "n", NOTHING, "noheader"),
    _sacct("parsable", "p", NOTHING, "parsable"),
    _sacct("parsable2", "P", NOTHING, "parsable2"),
    _sacct("partition", "r", VALUE, "partitions"),
    _sacct("qos", "q", VALUE, "qos"),
    _sacct("reason", "R", VALUE, "reasons"),
    _sacct("starttime", "S", VALUE, "start"),
    _sacct("state", "s", VALUE, "states"),
    _sacct("timelimit-max", "K", VALUE, "limit_max"),
    _sacct("timelimit-min", "k", VALUE, "limit_min"),
    _sacct("truncate", "T", NOTHING, "truncate"),
    _sacct("units", "", VALUE, "units"),
    _sacct("usage", "", NOTHING, "usage"),
    _sacct("use-local-uid", "", NOTHING, "use_local_uid", effect=ACCEPTED),
    _sacct("user", "u", VALUE, "users", aliases=("uid",)),
    _sacct("verbose", "v", NOTHING, "verbose", effect=ACCEPTED),
    _sacct("version", "V", NOTHING, "version"),
    _sacct("wckeys", "W", VALUE, "wckeys"),
    _sacct("whole-hetjob", "", MAYBE, "whole_hetjob"),
    _sacct("yaml", "", MAYBE, "yaml", environment=("SLURM_YAML",), effect=REFUSED),
)

_SACCTMGR = (
    _sacctmgr("associations", "s", NOTHING, "associations"),
    _sacctmgr("help", "h", NOTHING, "help"),
    _sacctmgr("immediate", "i", NOTHING, "immediate"),
    _sacctmgr("json", "", MAYBE, "json", effect=REFUSED),
    _sacctmgr("noheader", "n", NOTHING, "noheader"),
    _sacctmgr("oneliner", "o", NOTHING, "oneliner", effect=ACCEPTED),
    _sacctmgr("parsable", "p", NOTHING, "parsable"),
    _sacctmgr("parsable2", "P", NOTHING, "parsable2"),
    _sacctmgr("quiet", "Q", NOTHING, "quiet", effect=ACCEPTED),
    _sacctmgr("readonly", "r", NOTHING, "readonly"),
    _sacctmgr("usage", "", NOTHING, "usage"),
    _sacctmgr("verbose", "v", NOTHING, "verbose", effect=ACCEPTED),
    _sacctmgr("version", "V", NOTHING, "version"),
    _sacctmgr("yaml", "", MAYBE, "yaml", effect=REFUSED),
)

OPTIONS: dict[str, tuple[Option, ...]] = {
    "sacct": _SACCT,
    "sacctmgr": _SACCTMGR,
    "sbatch": _SBATCH,
    "scancel": _SCANCEL,
    "scontrol": _SCONTROL,
    "sinfo": _SINFO,
    "squeue": _SQUEUE,
    "srun": srun_rows(_SBATCH),
}
"""By command, each in the order of its manual page."""
