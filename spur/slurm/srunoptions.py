"""The options of srun: those that it shares with sbatch, and its own.

Source: srun(1), OPTIONS and INPUT ENVIRONMENT VARIABLES.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from spur.slurm import optionvalues as at
from spur.slurm.optionrows import Effect, Option, Takes

__all__ = ["srun_rows"]

NOTHING, VALUE, MAYBE, _ = Takes
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
    "verbose": (),
    "version": (),
    "wckey": ("SLURM_WCKEY",),
}
"""Options that mean to srun what they mean to sbatch, with its own variables for them."""


def _switch(value: str, option: str) -> bool:
    """Return whether it is on: alone or 1 is yes."""
    if value not in ("", "0", "1"):
        raise at.BadOption(f'Invalid numeric value "{value}" for --{option}.', 1)
    return value != "0"


def _count(value: str, option: str) -> int:
    """Return a number from 0 on."""
    return 0 if value.strip("0") == "" and value else at.positive(value, option)


def _seconds(value: str, option: str) -> int:
    """Return seconds; an empty text is one."""
    return _count(value, option) if value else 1


def _dealing(value: str, option: str) -> str:
    """Return how tasks are dealt out; the size of a plane may come by a variable of its own."""
    return value if value == "plane" else at.distribution(value, option)


def _exclusive(value: str, option: str) -> object:
    """Return with whom a job shares its nodes; of a step, that it uses no more than it asks."""
    return at.exclusive("" if value == "1" else value, option)


_srun = partial(Option, "srun")

_OWN = (
    _srun("async", "", NOTHING, "async", None, (), REFUSED),
    _srun("bcast", "", MAYBE, "bcast", None, ("SLURM_BCAST",), REFUSED),
    _srun("bcast-exclude", "", VALUE, "bcast_exclude", None, ("SLURM_BCAST_EXCLUDE",), ACCEPTED),
    _srun("compress", "", MAYBE, "compress", None, ("SLURM_COMPRESS",), ACCEPTED),
    _srun("cpu-bind", "", VALUE, "cpu_bind", at.text, ("SLURM_CPU_BIND",), ACCEPTED),
    _srun("disable-status", "X", NOTHING, "disable_status", None, ("SLURM_DISABLE_STATUS",)),
    _srun("distribution", "m", VALUE, "distribution", _dealing, ("SLURM_DISTRIBUTION",)),
    _srun("epilog", "", VALUE, "epilog", at.text, ("SLURM_EPILOG",), REFUSED),
    _srun("exact", "", NOTHING, "exact", None, ("SLURM_EXACT",)),
    _srun("exclusive", "", MAYBE, "sharing", _exclusive, ("SLURM_EXCLUSIVE",)),
    _srun("external-launcher", "", NOTHING, "external_launcher", None, (), REFUSED),
    _srun("het-group", "", VALUE, "het_group", at.text, (), REFUSED, ("pack-group",)),
    _srun("ignore-signals", "", VALUE, "ignore_signals", at.text, (), ACCEPTED),
    _srun("immediate", "I", MAYBE, "immediate_s", _seconds, ("SLURM_IMMEDIATE",)),
    _srun("jobid", "", VALUE, "job_id", at.positive, ("SLURM_JOBID", "SLURM_JOB_ID")),
    _srun("kill-on-bad-exit", "K", MAYBE, "kill_on_bad_exit", _switch, ("SLURM_KILL_BAD_EXIT",)),
    _srun("label", "l", NOTHING, "label", None, ("SLURM_LABELIO",)),
    _srun("mpi", "", VALUE, "mpi", at.text, ("SLURM_MPI_TYPE",)),
    _srun("msg-timeout", "", VALUE, "msg_timeout", at.number_text, (), ACCEPTED),
    _srun("multi-prog", "", NOTHING, "multi_prog", None, (), REFUSED),
    _srun("no-allocate", "Z", NOTHING, "no_allocate", None, (), REFUSED),
    _srun("overlap", "", NOTHING, "overlap", None, ("SLURM_OVERLAP",)),
    _srun("preserve-env", "E", NOTHING, "preserve_env"),
    _srun("prolog", "", VALUE, "prolog", at.text, ("SLURM_PROLOG",), REFUSED),
    _srun("pty", "", MAYBE, "pty", None, (), REFUSED),
    _srun("quit-on-interrupt", "", NOTHING, "quit_on_interrupt"),
    _srun("relative", "r", VALUE, "relative", _count),
    _srun("send-libs", "", MAYBE, "send_libs", None, ("SLURM_SEND_LIBS",), ACCEPTED),
    _srun("slurmd-debug", "", VALUE, "slurmd_debug", at.text, ("SLURMD_DEBUG",), ACCEPTED),
    _srun("task-epilog", "", VALUE, "task_epilog", at.text, ("SLURM_TASK_EPILOG",), REFUSED),
    _srun("task-prolog", "", VALUE, "task_prolog", at.text, ("SLURM_TASK_PROLOG",), REFUSED),
    _srun("threads", "T", VALUE, "fanout", at.number_text, ("SLURM_THREADS",), ACCEPTED),
    _srun("treewidth", "", VALUE, "treewidth", at.text, (), ACCEPTED),
    _srun("unbuffered", "u", NOTHING, "unbuffered", None, ("SLURM_UNBUFFEREDIO",)),
    _srun("wait", "W", VALUE, "wait_s", _count, ("SLURM_WAIT",)),
    _srun("wait-for-children", "", NOTHING, "wait_for_children", None, (), ACCEPTED),
    _srun("x11", "", MAYBE, "x11", None, (), REFUSED),
)


def srun_rows(sbatch: Iterable[Option]) -> tuple[Option, ...]:
    """Return srun's rows, in the order of their names, given those of sbatch."""
    shared = [
        row._replace(
            command="srun",
            environment=_SHARED[row.long],
        )
        for row in sbatch
        if row.long in _SHARED
    ]
    return tuple(sorted((*shared, *_OWN), key=lambda row: row.long.lower()))
