"""`spur conf check`: what becomes of each parameter of a configuration file."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

from spur.slurm.configfile import check_slurm_config
from spur.slurm.confreading import Finding
from spur.values.config import ConfigFile
from spur.values.configfile import CONFIG_FILE, ConfigErrors, parse_config
from spur_cli.arguments import add_forms, form_of, parser_of
from spur_cli.conffiles import read_config_files
from spur_cli.output.result import Column, Listing, Value
from spur_cli.output.show import show
from spur_cli.registry import Command

__all__ = ["run"]

PARAMETERS = (
    Column("place", "PLACE"),
    Column("of", "OF"),
    Column("parameter", "PARAMETER"),
    Column("value", "VALUE"),
    Column("verdict", "VERDICT"),
    Column("note", "NOTE"),
)


def run(arguments: list[str], command: Command) -> int:
    """Show every parameter with its verdict, and every error with its place; 1 when there is one.

    Nothing is sent anywhere.
    """
    parser = parser_of(command)
    parser.add_argument("file", help="slurm.conf, with what lies beside it, or spur.toml")
    add_forms(parser)
    options = parser.parse_args(arguments)
    files = read_config_files(options.file)
    if files[0].name == CONFIG_FILE:
        return _check_toml(options.file, files[0])
    checked = check_slurm_config(files)
    empty = "no parameters"
    show(Listing(columns=PARAMETERS, rows=_rows(checked.findings), empty=empty), form_of(options))
    return _tell(options.file, checked.errors)


def _check_toml(path: str, file: ConfigFile) -> int:
    """Say what is wrong with spur.toml; all of its keys are honoured."""
    try:
        parse_config(file)
    except ConfigErrors as errors:
        return _tell(path, errors.sentences)
    return _tell(path, ())


def _rows(findings: tuple[Finding, ...]) -> Iterator[Mapping[str, Value]]:
    for found in findings:
        yield {
            "place": f"{found.file}:{found.line}",
            "of": found.of,
            "parameter": found.name,
            "value": found.value,
            "verdict": found.verdict.value,
            "note": found.note,
        }


def _tell(path: str, errors: tuple[str, ...]) -> int:
    """Write what is wrong for people; return the exit status."""
    for sentence in errors:
        sys.stderr.write(f"{sentence}\n")
    if errors:
        count = f"{len(errors)} error" + ("s" if len(errors) > 1 else "")
        sys.stderr.write(f"{path}: {count}; a cluster would refuse it and change nothing\n")
        return 1
    sys.stderr.write(f"{path}: no errors\n")
    return 0
