"""Command lines: parsers made from the registry's rows, and options that many commands share."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from spur_cli.output.result import Form
from spur_cli.registry import Command

if TYPE_CHECKING:
    from spur.client.blocking import BlockingClient

__all__ = ["add_forms", "add_socket", "client_of", "form_of", "parser_of"]

WAIT_S = 5.0
"""How long a command waits for a controller, a failover included."""


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


def add_socket(parser: argparse.ArgumentParser) -> None:
    """Add the option that names a controller."""
    parser.add_argument(
        "--socket",
        default="",
        help="the controller's Unix socket (default: as sbatch and its like find it)",
    )


def client_of(options: argparse.Namespace) -> BlockingClient:
    """Return a client of the controller that `add_socket` named, or else of the one at hand.

    Raises: OperatorFault when there is no address to ask.
    """
    from spur.client.blocking import BlockingClient
    from spur.client.locate import locate

    named = (f"unix:{os.path.abspath(options.socket)}",) if options.socket else ()
    return BlockingClient(named or locate(os.environ), deadline_s=WAIT_S)


def form_of(options: argparse.Namespace) -> Form:
    """Return the form that the options of `add_forms` chose."""
    if options.json:
        return Form.JSON
    return Form.PARSABLE if options.parsable else Form.TABLE
