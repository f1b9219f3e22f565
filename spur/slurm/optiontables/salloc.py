"""The options of salloc: those that it shares with sbatch, and its own.

Source: salloc(1), OPTIONS and INPUT ENVIRONMENT VARIABLES.
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
    "account": ("SALLOC_ACCOUNT",),
    "acctg-freq": ("SALLOC_ACCTG_FREQ",),
    "bb": ("SALLOC_BURST_BUFFER",),
    "bbf": (),
    "begin": (),
    "chdir": (),
    "cluster-constraint": (),
    "clusters": (
        "SLURM_CLUSTERS",
        "SALLOC_CLUSTERS",
    ),
    "comment": (),
    "consolidate-segments": (),
    "constraint": ("SALLOC_CONSTRAINT",),
    "container": ("SALLOC_CONTAINER",),
    "container-id": ("SALLOC_CONTAINER_ID",),
    "contiguous": (),
    "core-spec": ("SALLOC_CORE_SPEC",),
    "cores-per-socket": (),
    "cpu-freq": (),
    "cpus-per-gpu": ("SALLOC_CPUS_PER_GPU",),
    "cpus-per-task": (),
    "deadline": (),
    "delay-boot": ("SALLOC_DELAY_BOOT",),
    "dependency": (),
    "distribution": (),
    "exclude": (),
    "exclusive": ("SALLOC_EXCLUSIVE",),
    "extra": (),
    "extra-node-info": (),
    "gpu-bind": ("SALLOC_GPU_BIND",),
    "gpu-freq": ("SALLOC_GPU_FREQ",),
    "gpus": ("SALLOC_GPUS",),
    "gpus-per-node": ("SALLOC_GPUS_PER_NODE",),
    "gpus-per-socket": (),
    "gpus-per-task": ("SALLOC_GPUS_PER_TASK",),
    "gres": ("SALLOC_GRES",),
    "gres-flags": ("SALLOC_GRES_FLAGS",),
    "help": (),
    "hint": (
        "SLURM_HINT",
        "SALLOC_HINT",
    ),
    "hold": (),
    "job-name": (),
    "licenses": (),
    "mail-type": (),
    "mail-user": (),
    "mcs-label": (),
    "mem": ("SALLOC_MEM_PER_NODE",),
    "mem-bind": ("SALLOC_MEM_BIND",),
    "mem-per-cpu": ("SALLOC_MEM_PER_CPU",),
    "mem-per-gpu": ("SALLOC_MEM_PER_GPU",),
    "mem-update": (),
    "mincpus": (),
    "network": ("SALLOC_NETWORK",),
    "nice": (),
    "no-kill": ("SALLOC_NO_KILL",),
    "nodefile": (),
    "nodelist": (),
    "nodes": (),
    "ntasks": (),
    "ntasks-per-core": (),
    "ntasks-per-gpu": (),
    "ntasks-per-node": (),
    "ntasks-per-socket": (),
    "oom-kill-step": (),
    "overcommit": ("SALLOC_OVERCOMMIT",),
    "oversubscribe": (),
    "partition": ("SALLOC_PARTITION",),
    "prefer": (),
    "priority": (),
    "profile": ("SALLOC_PROFILE",),
    "qos": ("SALLOC_QOS",),
    "quiet": (),
    "reboot": (),
    "reservation": ("SALLOC_RESERVATION",),
    "resources": (),
    "resv-ports": (),
    "runtime": ("SALLOC_RUNTIME",),
    "segment": ("SALLOC_SEGMENT_SIZE",),
    "signal": ("SALLOC_SIGNAL",),
    "sockets-per-node": (),
    "spread-job": ("SALLOC_SPREAD_JOB",),
    "spread-segments": (),
    "stepmgr": (),
    "switches": ("SALLOC_REQ_SWITCH",),
    "thread-spec": ("SALLOC_THREAD_SPEC",),
    "threads-per-core": ("SALLOC_THREADS_PER_CORE",),
    "time": ("SALLOC_TIMELIMIT",),
    "time-min": (),
    "tmp": (),
    "tres-bind": ("SALLOC_TRES_BIND",),
    "tres-per-task": ("SALLOC_TRES_PER_TASK",),
    "usage": (),
    "use-min-nodes": ("SALLOC_USE_MIN_NODES",),
    "verbose": ("SALLOC_DEBUG",),
    "version": (),
    "wait-all-nodes": ("SALLOC_WAIT_ALL_NODES",),
    "wckey": ("SALLOC_WCKEY",),
}
"""Options that mean to salloc what they mean to sbatch, with its own variables for them."""

_row = partial(Option, "salloc")

_OWN = (
    _row("bell", "", NOTHING, "bell", None, ("SALLOC_BELL",)),
    _row("immediate", "I", MAYBE, "immediate_s", at.seconds_or_one, ("SALLOC_IMMEDIATE",)),
    _row("kill-command", "K", MAYBE, "kill_command", at.kill_signal, ("SALLOC_KILL_CMD",)),
    _row("no-bell", "", NOTHING, "no_bell", None, ("SALLOC_NO_BELL",)),
    _row("no-shell", "", NOTHING, "no_shell"),
    _row("x11", "", MAYBE, "x11", None, (), REFUSED, why="X11 is not passed on"),
)

ROWS: tuple[Option, ...] = shared_rows("salloc", SBATCH, _SHARED, _OWN)
