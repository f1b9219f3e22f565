"""`spur log`: reading a controller's log where it lies, whether the controller runs or not.

Nothing is written to the directory, and private text is never shown.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable

from spur.values.errors import OperatorFault
from spur_cli.arguments import add_forms, form_of, parser_of
from spur_cli.execute import Tool, execute
from spur_cli.output.json import write_rows
from spur_cli.output.result import Column, Listing, Record
from spur_cli.output.show import show
from spur_cli.registry import Command

__all__ = ["run"]

ENTRIES = (
    Column("index", "INDEX", is_right=True),
    Column("term", "TERM", is_right=True),
    Column("time", "TIME"),
    Column("command", "COMMAND"),
    Column("actor", "ACTOR"),
    Column("events", "EVENTS"),
    Column("attachments", "ATTACHMENTS"),
)

EVENTS = (
    Column("index", "INDEX", is_right=True),
    Column("position", "POSITION", is_right=True),
    Column("time", "TIME"),
    Column("event", "EVENT"),
    Column("version", "VERSION", is_right=True),
    Column("fields", "FIELDS"),
)


def run(arguments: list[str], command: Command) -> int:
    """Run the verb that the registry's row names."""
    verb = command.words[-1]
    parser = parser_of(command)
    parser.add_argument("directory", help="the controller's directory")
    _OPTIONS[verb](parser)
    options = parser.parse_args(arguments)
    _VERBS[verb](execute(command.executes), options)
    return 0


def _show(tool: Tool, options: argparse.Namespace) -> None:
    read = tool["show_events"] if options.events else tool["show"]
    rows = read(options.directory, first=options.first, last=options.last, tail=options.tail)
    columns = EVENTS if options.events else ENTRIES
    empty = "no events" if options.events else "no entries"
    show(Listing(columns=columns, rows=rows, empty=empty), form_of(options))


def _head(tool: Tool, options: argparse.Namespace) -> None:
    show(Record(fields=tool["head"](options.directory)), form_of(options))


def _verify(tool: Tool, options: argparse.Namespace) -> None:
    show(Record(fields=tool["verify"](options.directory, replay=options.replay)), form_of(options))


def _export(tool: Tool, options: argparse.Namespace) -> None:
    rows = tool["export"](options.directory, first=options.first, last=options.last)
    if options.output is None:
        write_rows(rows, sys.stdout)
        return
    try:
        number = os.open(options.output, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise OperatorFault(
            f"{options.output!r} can't be made: {error.strerror}; name a new file;"
            " nothing was exported"
        ) from error
    with os.fdopen(number, "w", encoding="utf-8") as file:
        count = write_rows(rows, file)
    sys.stderr.write(f"{count} entries were exported to {options.output}\n")


def _add_range(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--first", type=_index, help="first index (default: the oldest kept)")
    parser.add_argument("--last", type=_index, help="last index (default: the newest)")


def _index(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no index; indexes are 1, 2, 3 ...")
    return int(text)


def _show_options(parser: argparse.ArgumentParser) -> None:
    _add_range(parser)
    parser.add_argument("--tail", type=_index, help="only so many of the newest")
    parser.add_argument("--events", action="store_true", help="one row for each event")
    add_forms(parser)


def _verify_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--replay",
        action="store_true",
        help="also rebuild the state from the first entry on and compare it with each checkpoint",
    )
    add_forms(parser)


def _export_options(parser: argparse.ArgumentParser) -> None:
    _add_range(parser)
    parser.add_argument("--output", metavar="FILE", help="a new file (default: stdout)")


_OPTIONS: dict[str, Callable[[argparse.ArgumentParser], None]] = {
    "show": _show_options,
    "head": add_forms,
    "verify": _verify_options,
    "export": _export_options,
}

_VERBS: dict[str, Callable[[Tool, argparse.Namespace], None]] = {
    "show": _show,
    "head": _head,
    "verify": _verify,
    "export": _export,
}
