"""Variables that Slurm's commands read and that stand for no option, as one table.

Those that stand for an option are in its row. Source: ENVIRONMENT VARIABLES of each manual page.
"""

from __future__ import annotations

from typing import NamedTuple

from spur.slurm.optionrows import Effect
from spur.slurm.options import OPTIONS

__all__ = ["VARIABLES", "Variable", "variables_of"]

HONOURED, ACCEPTED, _ = Effect


class Variable(NamedTuple):
    """A variable."""

    name: str
    commands: tuple[str, ...]
    """Those that read it."""
    effect: Effect
    what: str
    """What it does; of one that is not honoured, why not."""


_ALL = tuple(OPTIONS)
_SUBMITTING = ("salloc", "sbatch", "srun")


def _later(name: str, why: str, *commands: str) -> Variable:
    """Return the row of one that is read by nobody."""
    return Variable(name, commands, ACCEPTED, why)


VARIABLES: tuple[Variable, ...] = (
    Variable("SLURM_CONF", _ALL, HONOURED, "beside this file lie the addresses of the cluster"),
    _later("SLURM_DEBUG_FLAGS", "there is nothing more to tell", *_ALL),
    Variable(
        "SLURM_BITSTR_LEN",
        ("sacct", "scontrol", "squeue"),
        HONOURED,
        "letters of a list of tasks before it ends in dots",
    ),
    Variable(
        "SLURM_TIME_FORMAT",
        ("sacct", "scontrol", "sinfo", "squeue"),
        HONOURED,
        "how points in time are spelled: standard, relative, or as strftime(3)",
    ),
    _later("SLURM_CONF_OUT", "scontrol writes no slurm.conf", "scontrol"),
    _later("SLURM_TOPO_LEN", "a line of the topology is shown whole", "scontrol"),
    _later("SLURM_EXIT_ERROR", "an error of the command ends it with 1", *_SUBMITTING, "sattach"),
    _later("SLURM_EXIT_IMMEDIATE", "--immediate ends with 1", "salloc", "srun"),
    Variable("SLURM_UMASK", ("sbatch", "srun"), HONOURED, "the mask of files of a job's tasks"),
    _later("SLURM_STEP_KILLED_MSG_NODE_ID", "every node tells of a step's end", "sbatch", "srun"),
    _later("SALLOC_POWER", "power is not managed for jobs", "salloc"),
    _later("SBATCH_POWER", "power is not managed for jobs", "sbatch"),
    _later("SLURM_POWER", "power is not managed for jobs", "srun"),
    _later("SALLOC_WAIT4SWITCH", "placement does not know the topology", "salloc"),
    _later("SBATCH_WAIT4SWITCH", "placement does not know the topology", "sbatch"),
    _later("SLURM_WAIT4SWITCH", "placement does not know the topology", "srun"),
    Variable("SLURM_DIST_PLANESIZE", ("srun",), HONOURED, "tasks of a plane"),
    _later("PMI_FANOUT", "agents need no tree", "srun"),
    _later("PMI_FANOUT_OFF_HOST", "agents need no tree", "srun"),
    _later("PMI_TIME", "agents need no pause", "srun"),
    _later("SLURM_PMI_KVS_NO_DUP_KEYS", "keys are always looked at", "srun"),
    _later("SLURM_SRUN_REDUCE_TASK_EXIT_MSG", "equal messages are always told once", "srun"),
    _later("SLURM_TEST_EXEC", "the program is looked for on the node", "srun"),
    _later("VISUAL", "there are no recurring jobs", "scrontab"),
    _later("EDITOR", "there are no recurring jobs", "scrontab"),
)


def variables_of(command: str) -> dict[str, Effect]:
    """Return what becomes of each variable of a command, those of its options too."""
    found = {row.name: row.effect for row in VARIABLES if command in row.commands}
    for option in OPTIONS[command]:
        for name in option.environment:
            found[name] = option.effect
    return found
