"""Command lines: parsers made from the registry's rows, and options that many commands share."""

from __future__ import annotations

import argparse

from spur_cli.output.result import Form
from spur_cli.registry import Command

__all__ = ["add_forms", "form_of", "parser_of"]


def parser_of(command: Command) -> argparse.ArgumentParser:
    """Return a parser that takes full option names alone and names the command in its errors."""
    return argparse.ArgumentParser(
        prog=f"spur {' '.join(command.words)}",
        description=f"{command.summary[0].upper()}{command.summary[1:]}.",
        allow_abbrev=False,
    )


def add_forms(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose a form; without one it is a table for people."""
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--json", action="store_true", help="JSON, one object a line for a list")
    forms.add_argument("--parsable", action="store_true", help="fields parted by '|'")


def form_of(options: argparse.Namespace) -> Form:
    """Return the form that the options of `add_forms` chose."""
    if options.json:
        return Form.JSON
    return Form.PARSABLE if options.parsable else Form.TABLE
