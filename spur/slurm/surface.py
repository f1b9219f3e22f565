"""What there is of Slurm's commands, counted from the tables: options, columns, variables."""

from __future__ import annotations

from typing import NamedTuple

from spur.slurm.columns.jobs import JOB_COLUMNS
from spur.slurm.columns.nodes import NODE_COLUMNS
from spur.slurm.columns.priorities import PRIORITY_COLUMNS
from spur.slurm.columns.records import FIELDS
from spur.slurm.columns.shares import SHARE_FIELDS
from spur.slurm.columns.steps import STEP_COLUMNS
from spur.slurm.columns.stepstats import STAT_FIELDS
from spur.slurm.optionrows import Effect
from spur.slurm.options import OPTIONS
from spur.slurm.variables import VARIABLES, variables_of

__all__ = ["Counts", "Name", "Shown", "counts_of", "names_of", "shown_by"]


class Shown(NamedTuple):
    """A column that a command's format can name."""

    name: str
    """Empty for one that has a letter alone."""
    letter: str
    """Empty for one that has a name alone."""
    heading: str


class Name(NamedTuple):
    """One name that scripts use, and what becomes of it."""

    kind: str
    """option, column or variable."""
    name: str
    letter: str
    effect: Effect
    why: str
    """Empty where it is honoured."""


class Counts(NamedTuple):
    """How much of a command there is."""

    options: int
    honoured: int
    accepted: int
    refused: int
    columns: int
    variables: int
    variables_read: int


def shown_by(command: str) -> tuple[Shown, ...]:
    """Return the columns that a command can show, those of steps too."""
    if command == "squeue":
        return (
            *(Shown(column.name, column.letter, column.header) for column in JOB_COLUMNS),
            *(Shown(column.name, column.letter, column.header) for column in STEP_COLUMNS),
        )
    if command == "sinfo":
        rows = [row.column for row in NODE_COLUMNS]
        return tuple(Shown(column.name, column.letter, column.header) for column in rows)
    if command == "sacct":
        return tuple(Shown(field.name, "", field.name) for field in FIELDS)
    if command == "sprio":
        return tuple(Shown("", column.letter, column.header) for column in PRIORITY_COLUMNS)
    if command == "sshare":
        return tuple(Shown(field.name, "", field.head) for field in SHARE_FIELDS)
    if command == "sstat":
        return tuple(Shown(field.name, "", field.head) for field in STAT_FIELDS)
    return ()


def counts_of(command: str) -> Counts:
    """Count the rows of a command."""
    effects = [option.effect for option in OPTIONS[command]]
    variables = variables_of(command)
    return Counts(
        options=len(effects),
        honoured=effects.count(Effect.HONOURED),
        accepted=effects.count(Effect.ACCEPTED),
        refused=effects.count(Effect.REFUSED),
        columns=len(shown_by(command)),
        variables=len(variables),
        variables_read=sum(effect is Effect.HONOURED for effect in variables.values()),
    )


def names_of(command: str) -> tuple[Name, ...]:
    """Return every name of a command: its options, its columns, its variables."""
    whys = {row.name: row.what for row in VARIABLES if command in row.commands}
    whys |= {name: row.why for row in OPTIONS[command] for name in row.environment}
    return (
        *(
            Name(
                "option",
                f"--{row.long}" if row.long else "",
                _dashed(row.short),
                row.effect,
                row.why,
            )
            for row in OPTIONS[command]
        ),
        *(
            Name("column", row.name, f"%{row.letter}" if row.letter else "", Effect.HONOURED, "")
            for row in shown_by(command)
        ),
        *(
            Name("variable", name, "", effect, "" if effect is Effect.HONOURED else whys[name])
            for name, effect in variables_of(command).items()
        ),
    )


def _dashed(letter: str) -> str:
    return f"-{letter}" if letter else ""
