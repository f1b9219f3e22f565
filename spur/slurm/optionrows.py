"""What a row of the table of options is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum, StrEnum
from typing import NamedTuple

__all__ = ["Effect", "Option", "Takes", "shared_rows"]


class Takes(IntEnum):
    """Whether an option has a value."""

    NOTHING = 0
    VALUE = 1
    MAYBE = 2
    """Only glued: --nice=5, -k."""
    MAYBE_NEXT = 3
    """Glued, or the next word when that is no option: squeue -j 5."""


class Effect(StrEnum):
    """What becomes of an option."""

    HONOURED = "honoured"
    ACCEPTED = "accepted, not honoured"
    REFUSED = "refused"


class Option(NamedTuple):
    """One option of one command."""

    command: str
    long: str
    short: str
    """One letter; empty for none. An option may have a letter alone."""
    takes: Takes
    field: str
    """What it sets."""
    parse: Callable[[str, str], object] | None = None
    """Reads the value, given the option's long name too. Raises: BadOption. None keeps the text."""
    environment: tuple[str, ...] = ()
    """Variables that give it when the command line does not; the last that is set counts."""
    effect: Effect = Effect.HONOURED
    aliases: tuple[str, ...] = ()
    """Other long names."""
    why: str = ""
    """Why it has no effect or is refused; empty for one that is honoured."""
    gathers: bool = False
    """Whether a list that is given again goes on, and does not replace the one before."""


def shared_rows(
    command: str,
    rows: Iterable[Option],
    variables: Mapping[str, tuple[str, ...]],
    own: Iterable[Option],
) -> tuple[Option, ...]:
    """Return a command's rows, in the order of their names: its own, and those that it shares.

    `variables` names what it shares with the command of `rows`, and its own variables for it.
    """
    shared = [
        row._replace(command=command, environment=variables[row.long])
        for row in rows
        if row.long in variables
    ]
    return tuple(sorted((*shared, *own), key=lambda row: row.long.lower()))
