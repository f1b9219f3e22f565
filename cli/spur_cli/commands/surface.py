"""`spur surface`: how much of Slurm's commands there is, and what becomes of each name."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping

from spur.slurm.optionrows import Effect
from spur.slurm.options import OPTIONS
from spur.slurm.surface import counts_of, names_of
from spur_cli.arguments import add_forms, form_of, parser_of
from spur_cli.output.result import Column, Listing, Value
from spur_cli.output.show import show
from spur_cli.registry import COMMANDS, Command

__all__ = ["run"]

COUNTS = (
    Column("command", "COMMAND"),
    Column("is_there", "IS THERE"),
    Column("options", "OPTIONS", is_right=True),
    Column("honoured", "HONOURED", is_right=True),
    Column("accepted", "ACCEPTED", is_right=True),
    Column("refused", "REFUSED", is_right=True),
    Column("percent", "HONOURED %", is_right=True),
    Column("columns", "COLUMNS", is_right=True),
    Column("variables", "VARIABLES", is_right=True),
    Column("variables_read", "READ", is_right=True),
)

NAMES = (
    Column("command", "COMMAND"),
    Column("kind", "KIND"),
    Column("name", "NAME"),
    Column("letter", "LETTER"),
    Column("effect", "WHAT BECOMES OF IT"),
    Column("why", "WHY"),
)


def run(arguments: list[str], command: Command) -> int:
    """Show the counts of each command, or the names of those that are given; nothing is asked."""
    parser = parser_of(command)
    parser.add_argument(
        "commands",
        nargs="*",
        metavar="COMMAND",
        help="commands whose names are shown one by one",
    )
    parser.add_argument("--names", action="store_true", help="show the names of every command")
    parser.add_argument(
        "--lacking", action="store_true", help="show only the names that have no effect"
    )
    add_forms(parser)
    options = parser.parse_args(arguments)
    for name in options.commands:
        if name not in OPTIONS:
            parser.error(f"{name} is none of {', '.join(OPTIONS)}")
    if options.commands or options.names or options.lacking:
        show(Listing(NAMES, _names(options), empty="every name is honoured"), form_of(options))
        return 0
    show(Listing(COUNTS, _counts(), empty=""), form_of(options))
    sys.stdout.flush()
    sys.stderr.write("hint: `spur surface sbatch` shows its names one by one\n")
    return 0


def _there() -> frozenset[str]:
    return frozenset(row.alias for row in COMMANDS if row.alias)


def _counts() -> Iterator[Mapping[str, Value]]:
    there = _there()
    sums: dict[str, int] = {}
    for command in OPTIONS:
        counts = counts_of(command)._asdict()
        if command not in there:
            counts |= {"honoured": 0, "accepted": 0, "refused": counts["options"]}
        for name, count in counts.items():
            sums[name] = sums.get(name, 0) + count
        yield _row(command, command in there, counts)
    yield _row("all", len(there.intersection(OPTIONS)) == len(OPTIONS), sums)


def _row(command: str, is_there: bool, counts: Mapping[str, int]) -> Mapping[str, Value]:
    percent = counts["honoured"] * 100 // counts["options"]
    return {"command": command, "is_there": is_there, "percent": percent, **counts}


def _names(options: argparse.Namespace) -> Iterator[Mapping[str, Value]]:
    there = _there()
    for command in options.commands or OPTIONS:
        for row in names_of(command):
            if command not in there:
                row = row._replace(effect=Effect.REFUSED, why="the command is not there yet")
            if not (options.lacking and row.effect is Effect.HONOURED):
                yield {"command": command, **row._asdict(), "effect": row.effect.value}
