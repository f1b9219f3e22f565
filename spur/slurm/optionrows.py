"""What a row of the table of options is."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum, StrEnum
from typing import NamedTuple

__all__ = ["Effect", "Option", "Takes"]


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
    """One letter; empty for none."""
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
