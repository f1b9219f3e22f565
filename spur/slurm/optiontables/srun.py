"""The options of srun: those that it shares with sbatch, and its own.

Source: srun(1), OPTIONS and INPUT ENVIRONMENT VARIABLES.
"""

from __future__ import annotations

from functools import partial

from spur.slurm import optionvalues as at
from spur.slurm.optionrows import Effect, Option, Takes, shared_rows
from spur.slurm.optiontables.sbatch import ROWS as SBATCH

__all__ = ["ROWS"]

NOTHING, VALUE, MAYBE, MAYBE_NEXT = Takes
HONOURED, ACCEPTED, REFUSED = Effect

_SHARED: dict[str, tuple[str, ...]] = {
    "account": ("SLURM_ACCOUNT",),
    "acctg-freq": ("SLURM_ACCTG_FREQ",),
    "bb": ("SLURM_BURST_BUFFER",),
    "bbf": (),
    "begin": (),
    "chdir": ("SLURM_REMOTE_CWD", "SLURM_WORKING_DIR"),
    "cluster-constraint": (),
    "clusters": ("SLURM_CLUSTERS",),
    "comment": (),
    "consolidate-segments": (),
    "constraint": ("SLURM_CONSTRAINT",),
    "container": ("SRUN_CONTAINER",),
    "container-id": ("SRUN_CONTAINER_ID",),
    "contiguous": (),
    "core-spec": ("SLURM_CORE_SPEC",),
    "cores-per-socket": (),
    "cpu-freq": ("SLURM_CPU_FREQ_REQ",),
    "cpus-per-gpu": ("SLURM_CPUS_PER_GPU",),
    "cpus-per-task": ("SRUN_CPUS_PER_TASK", "SLURM_CPUS_PER_TASK"),
    "deadline": (),
    "delay-boot": ("SLURM_DELAY_BOOT",),
    "dependency": ("SLURM_DEPENDENCY",),
    "error": ("SLURM_STDERRMODE", "SRUN_ERROR"),
    "exclude": (),
    "export": ("SLURM_EXPORT_ENV", "SRUN_EXPORT_ENV"),
    "extra": (),
    "extra-node-info": (),
    "gpu-bind": ("SLURM_GPU_BIND",),
    "gpu-freq": ("SLURM_GPU_FREQ",),
    "gpus": ("SLURM_GPUS",),
    "gpus-per-node": ("SLURM_GPUS_PER_NODE",),
    "gpus-per-socket": (),
    "gpus-per-task": ("SLURM_GPUS_PER_TASK",),
    "gres": ("SLURM_GRES", "SLURM_STEP_GRES"),
    "gres-flags": ("SLURM_GRES_FLAGS",),
    "help": (),
    "hint": ("SLURM_HINT",),
    "hold": (),
    "input": ("SLURM_STDINMODE", "SRUN_INPUT"),
    "job-name": ("SLURM_JOB_NAME",),
    "licenses": (),
    "mail-type": (),
    "mail-user": (),
    "mcs-label": (),
    "mem": ("SLURM_MEM_PER_NODE",),
    "mem-bind": ("SLURM_MEM_BIND",),
    "mem-per-cpu": ("SLURM_MEM_PER_CPU",),
    "mem-per-gpu": ("SLURM_MEM_PER_GPU",),
    "mem-update": (),
    "mincpus": (),
    "network": ("SLURM_NETWORK",),
    "nice": (),
    "no-kill": ("SLURM_NO_KILL",),
    "nodefile": (),
    "nodelist": (),
    "nodes": ("SLURM_JOB_NUM_NODES", "SLURM_NNODES"),
    "ntasks": ("SLURM_NPROCS", "SLURM_NTASKS", "SRUN_NTASKS"),
    "ntasks-per-core": ("SLURM_NTASKS_PER_CORE",),
    "ntasks-per-gpu": ("SLURM_NTASKS_PER_GPU",),
    "ntasks-per-node": ("SLURM_NTASKS_PER_NODE",),
    "ntasks-per-socket": ("SLURM_NTASKS_PER_SOCKET",),
    "oom-kill-step": ("SLURM_OOMKILLSTEP",),
    "open-mode": ("SLURM_OPEN_MODE",),
    "output": ("SLURM_STDOUTMODE", "SRUN_OUTPUT"),
    "overcommit": ("SLURM_OVERCOMMIT",),
    "oversubscribe": (),
    "parsable": (),
    "partition": ("SLURM_PARTITION",),
    "prefer": (),
    "priority": (),
    "profile": ("SLURM_PROFILE",),
    "propagate": (),
    "qos": ("SLURM_QOS",),
    "quiet": (),
    "reboot": (),
    "reservation": ("SLURM_RESERVATION",),
    "resources": (),
    "resv-ports": ("SLURM_RESV_PORTS",),
    "runtime": ("SRUN_RUNTIME",),
    "segment": ("SRUN_SEGMENT_SIZE",),
    "signal": ("SLURM_SIGNAL",),
    "sockets-per-node": (),
    "spread-job": ("SLURM_SPREAD_JOB",),
    "spread-segments": (),
    "stepmgr": (),
    "switches": ("SLURM_REQ_SWITCH",),
    "test-only": (),
    "thread-spec": ("SLURM_THREAD_SPEC",),
    "threads-per-core": ("SLURM_THREADS_PER_CORE",),
    "time": ("SLURM_TIMELIMIT",),
    "time-min": (),
    "tmp": (),
    "tres-bind": ("SLURM_TRES_BIND",),
    "tres-per-task": ("SLURM_TRES_PER_TASK",),
    "usage": (),
    "use-min-nodes": ("SLURM_USE_MIN_NODES",),
    "verbose": ("SLURM_DEBUG",),
    "version": (),
    "wckey": ("SLURM_WCKEY",),
}
"""Options that mean to srun what they mean to sbatch, with its own variables for them."""


def _switch(value: str, option: str) -> bool:
    """Return whether it is on: alone or 1 is yes."""
    if value not in ("", "0", "1"):
        raise at.BadOption(f'Invalid numeric value "{value}" for --{option}.', 1)
    return value != "0"


def _dealing(value: str, option: str) -> str:
    """Return how tasks are dealt out; the size of a plane may come by a variable of its own."""
    return value if value == "plane" else at.distribution(value, option)


def _mpi(value: str, option: str) -> str:
    """Return how ranks find each other: by their own means, so far; or that the ways are listed."""
    if value not in ("none", "list"):
        raise at.BadOption(
            f"Couldn't find the specified plugin name for mpi/{value} looking at all files\n"
            f"cannot find mpi plugin for mpi/{value}\n"
            f"MPI: Cannot create context for mpi/{value}\n"
            "MPI: Unable to load any plugin",
            1,
            f"Invalid MPI type '{value}', --mpi=list for acceptable types",
        )
    return value


def _exclusive(value: str, option: str) -> object:
    """Return with whom a job shares its nodes; of a step, that it uses no more than it asks."""
    return at.exclusive("" if value == "1" else value, option)


_srun = partial(Option, "srun")

_OWN = (
    _srun("async", "", NOTHING, "async", None, (), REFUSED, why="srun stays with its step"),
    _srun("bcast", "", MAYBE, "bcast", None, ("SLURM_BCAST",)),
    _srun(
        "bcast-exclude",
        "",
        VALUE,
        "bcast_exclude",
        None,
        ("SLURM_BCAST_EXCLUDE",),
        ACCEPTED,
        why="no libraries are sent",
    ),
    _srun("compress", "", MAYBE, "compress", None, ("SLURM_COMPRESS",)),
    _srun(
        "cpu-bind",
        "",
        VALUE,
        "cpu_bind",
        at.text,
        ("SLURM_CPU_BIND",),
        ACCEPTED,
        why="tasks are bound to the CPUs of their step together",
    ),
    _srun("disable-status", "X", NOTHING, "disable_status", None, ("SLURM_DISABLE_STATUS",)),
    _srun("distribution", "m", VALUE, "distribution", _dealing, ("SLURM_DISTRIBUTION",)),
    _srun("epilog", "", VALUE, "epilog", at.text, ("SLURM_EPILOG",)),
    _srun("exact", "", NOTHING, "exact", None, ("SLURM_EXACT",)),
    _srun("exclusive", "", MAYBE, "sharing", _exclusive, ("SLURM_EXCLUSIVE",)),
    _srun(
        "external-launcher",
        "",
        NOTHING,
        "external_launcher",
        None,
        (),
        REFUSED,
        why="mpirun starts by srun",
    ),
    _srun(
        "het-group",
        "",
        VALUE,
        "het_group",
        at.text,
        (),
        REFUSED,
        ("pack-group",),
        why="there are no heterogeneous jobs",
    ),
    _srun(
        "ignore-signals",
        "",
        VALUE,
        "ignore_signals",
        at.text,
        (),
        ACCEPTED,
        why="every signal is passed on",
    ),
    _srun("immediate", "I", MAYBE, "immediate_s", at.seconds_or_one, ("SLURM_IMMEDIATE",)),
    _srun("jobid", "", VALUE, "job_id", at.positive, ("SLURM_JOBID", "SLURM_JOB_ID")),
    _srun("kill-on-bad-exit", "K", MAYBE, "kill_on_bad_exit", _switch, ("SLURM_KILL_BAD_EXIT",)),
    _srun("label", "l", NOTHING, "label", None, ("SLURM_LABELIO",)),
    _srun("mpi", "", VALUE, "mpi", _mpi, ("SLURM_MPI_TYPE",)),
    _srun(
        "msg-timeout",
        "",
        VALUE,
        "msg_timeout",
        at.number_text,
        (),
        ACCEPTED,
        why="a message has the time that the connection needs",
    ),
    _srun("multi-prog", "", NOTHING, "multi_prog"),
    _srun(
        "no-allocate",
        "Z",
        NOTHING,
        "no_allocate",
        None,
        (),
        ACCEPTED,
        why="nothing runs outside an allocation: srun says so and ends",
    ),
    _srun("overlap", "", NOTHING, "overlap", None, ("SLURM_OVERLAP",)),
    _srun("preserve-env", "E", NOTHING, "preserve_env"),
    _srun("prolog", "", VALUE, "prolog", at.text, ("SLURM_PROLOG",)),
    _srun("pty", "", MAYBE, "pty"),
    _srun("quit-on-interrupt", "", NOTHING, "quit_on_interrupt"),
    _srun("relative", "r", VALUE, "relative", at.count),
    _srun(
        "send-libs",
        "",
        MAYBE,
        "send_libs",
        None,
        ("SLURM_SEND_LIBS",),
        ACCEPTED,
        why="no libraries are sent",
    ),
    _srun(
        "slurmd-debug",
        "",
        VALUE,
        "slurmd_debug",
        at.text,
        ("SLURMD_DEBUG",),
        ACCEPTED,
        why="there is nothing more to tell",
    ),
    _srun("task-epilog", "", VALUE, "task_epilog", at.text, ("SLURM_TASK_EPILOG",)),
    _srun("task-prolog", "", VALUE, "task_prolog", at.text, ("SLURM_TASK_PROLOG",)),
    _srun(
        "threads",
        "T",
        VALUE,
        "fanout",
        at.number_text,
        ("SLURM_THREADS",),
        ACCEPTED,
        why="a step starts on all nodes at once",
    ),
    _srun(
        "treewidth",
        "",
        VALUE,
        "treewidth",
        at.text,
        (),
        ACCEPTED,
        why="agents hold one connection each",
    ),
    _srun("unbuffered", "u", NOTHING, "unbuffered", None, ("SLURM_UNBUFFEREDIO",)),
    _srun("wait", "W", VALUE, "wait_s", at.count, ("SLURM_WAIT",)),
    _srun(
        "wait-for-children",
        "",
        NOTHING,
        "wait_for_children",
        None,
        (),
        ACCEPTED,
        why="a task ends with its first process",
    ),
    _srun("x11", "", MAYBE, "x11", None, (), REFUSED, why="X11 is not passed on"),
)


ROWS: tuple[Option, ...] = shared_rows("srun", SBATCH, _SHARED, _OWN)
