"""Every option of Slurm's commands, as one table.

The command line, the directives of a script, the environment and the documentation follow from it.

A row says what becomes of the option: it is honoured; or accepted, which means read, kept with the
job and without effect so far; or refused, so that nobody waits for what will not happen.

Source: the OPTIONS and ENVIRONMENT VARIABLES of each command's manual page.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping

from spur.slurm.optionrows import Effect, Option, Takes

__all__ = ["NOT_YET", "OPTIONS", "Effect", "Option", "Takes"]

_MODULES = {
    "sacct": "spur.slurm.optiontables.sacct",
    "sacctmgr": "spur.slurm.optiontables.sacctmgr",
    "salloc": "spur.slurm.optiontables.salloc",
    "sattach": "spur.slurm.optiontables.sattach",
    "sbatch": "spur.slurm.optiontables.sbatch",
    "sbcast": "spur.slurm.optiontables.sbcast",
    "scancel": "spur.slurm.optiontables.scancel",
    "scontrol": "spur.slurm.optiontables.scontrol",
    "scrontab": "spur.slurm.optiontables.scrontab",
    "sdiag": "spur.slurm.optiontables.sdiag",
    "sinfo": "spur.slurm.optiontables.sinfo",
    "sprio": "spur.slurm.optiontables.sprio",
    "squeue": "spur.slurm.optiontables.squeue",
    "sreport": "spur.slurm.optiontables.sreport",
    "srun": "spur.slurm.optiontables.srun",
    "sshare": "spur.slurm.optiontables.sshare",
    "sstat": "spur.slurm.optiontables.sstat",
    "strigger": "spur.slurm.optiontables.strigger",
}


class _Tables(Mapping[str, tuple[Option, ...]]):
    """The rows by command; those of a command are loaded when they are asked for."""

    def __getitem__(self, command: str) -> tuple[Option, ...]:
        rows: tuple[Option, ...] = importlib.import_module(_MODULES[command]).ROWS
        return rows

    def __iter__(self) -> Iterator[str]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)


OPTIONS: Mapping[str, tuple[Option, ...]] = _Tables()
"""By command, each in the order of its manual page."""

NOT_YET = frozenset(("strigger",))
"""Commands that have rows and are not there yet."""
