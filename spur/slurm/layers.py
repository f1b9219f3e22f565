"""Options from one place (a command line, variables, a script), read by their rows of the table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from spur.slurm.getopt import Given
from spur.slurm.options import Effect, Option, Takes
from spur.slurm.optionvalues import BadOption
from spur.slurm.wording import SlurmError, error_line, failure_of

__all__ = ["Layer", "environment_layer", "layer_of"]


class Layer(NamedTuple):
    """Options from one place."""

    values: dict[str, Any]  # by field, each of the type that its row's parser returns
    given: dict[str, str]
    """What was typed, by long name; empty for a flag."""


def layer_of(given: Iterable[Given], program: str) -> Layer:
    """Read the values of options. Raises: SlurmError for one that is refused or has a bad value."""
    values: dict[str, Any] = {}
    typed: dict[str, str] = {}
    for option, text in given:
        if option.effect is Effect.REFUSED:
            raise SlurmError(
                error_line(
                    program,
                    f"{_called(option)} is not honoured yet: {option.why}; nothing was done",
                )
            )
        try:
            value = _value(option, text)
        except BadOption as error:
            before = f"{failure_of(program)}: " if error.is_late else ""
            lines = (error_line(program, before + sentence) for sentence in error.sentences)
            raise SlurmError(*lines, status=error.status) from error
        typed[option.long or option.short] = text or ""
        if option.effect is Effect.HONOURED:
            if option.gathers and option.field in values:
                value = f"{values[option.field]},{value}"
            values[option.field] = value
    return Layer(values, typed)


def _called(option: Option) -> str:
    return f"--{option.long}" if option.long else f"-{option.short}"


def _value(option: Option, text: str | None) -> Any:  # of the type that the row's parser returns
    if option.parse is not None:
        return option.parse(text or "", option.long)
    return True if option.takes is Takes.NOTHING else text or ""


def environment_layer(
    environment: Mapping[str, str], options: Sequence[Option], program: str
) -> Layer:
    """Read the variables that stand for options. Raises: as `layer_of`."""
    given: list[Given] = []
    for option in options:
        for name in option.environment:
            if name in environment:
                given.append((option, environment[name]))
    return layer_of(given, program)
