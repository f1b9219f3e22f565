"""`spur version`: which version this is."""

from __future__ import annotations

import platform

from spur import __version__
from spur_cli.arguments import add_forms, form_of, parser_of
from spur_cli.output.result import Record
from spur_cli.output.show import show
from spur_cli.registry import Command

__all__ = ["run"]


def run(arguments: list[str], command: Command) -> int:
    """Show the version of this program and of the Python that runs it."""
    parser = parser_of(command)
    add_forms(parser)
    options = parser.parse_args(arguments)
    fields = {"version": __version__, "python": platform.python_version()}
    show(Record(fields=fields, line=f"spur {__version__}"), form_of(options))
    return 0
