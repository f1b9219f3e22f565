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

__all__ = ["OPTIONS", "Effect", "Option", "Takes"]

_COMMANDS = (
    "sacct",
    "sacctmgr",
    "salloc",
    "sattach",
    "sbatch",
    "sbcast",
    "scancel",
    "scontrol",
    "scrontab",
    "sdiag",
    "sinfo",
    "sprio",
    "squeue",
    "sreport",
    "srun",
    "sshare",
    "sstat",
    "strigger",
)


class _Tables(Mapping[str, tuple[Option, ...]]):
    """The rows by command; those of a command are loaded when they are asked for."""

    def __getitem__(self, command: str) -> tuple[Option, ...]:
        if command not in _COMMANDS:
            raise KeyError(command)
        module = importlib.import_module(f"spur.slurm.optiontables.{command}")
        rows: tuple[Option, ...] = module.ROWS
        return rows

    def __iter__(self) -> Iterator[str]:
        return iter(_COMMANDS)

    def __len__(self) -> int:
        return len(_COMMANDS)


OPTIONS: Mapping[str, tuple[Option, ...]] = _Tables()
"""By command, each in the order of its manual page."""
