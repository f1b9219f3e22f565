"""`spur migrate`: what a site's scripts and slurm.conf come to, before it moves.

    spur migrate check DIRECTORY [--conf slurm.conf] [--ask] [--json | --parsable] [--html FILE]
    spur migrate conf slurm.conf

`check` exits with 0 when every script works, with 3 when one works with a difference, and with 1
when one fails or the configuration would be refused.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from spur.slurm.submission import Submission
from spur.slurm.wording import sentence_of
from spur.values.config import ConfigFile
from spur.values.configfile import ConfigErrors
from spur.values.errors import OperatorFault, Rejection
from spur.wire.forecasts import ForecastJob, JobForecast
from spur_cli.arguments import add_forms, add_socket, client_of, form_of, parser_of
from spur_cli.conffiles import read_config_files
from spur_cli.execute import Tool, execute
from spur_cli.output.result import Column, Form, Listing, Value
from spur_cli.output.show import show
from spur_cli.registry import Command
from spur_cli.slurm.people import LocalCalendar

__all__ = ["run"]

SCRIPT_BYTES_MAX = 4 << 20
"""Bytes of a script that is looked at."""

SCRIPTS_MAX = 100_000
"""Files of a directory that are looked at."""

_STYLES = (
    ("works", "green"),
    ("works with a difference", "yellow"),
    ("fails", "bold red"),
    ("honoured", "green"),
    ("ignored", "yellow"),
    ("missing", "bold red"),
    ("wrong", "bold red"),
)

FINDINGS = (
    Column("script", "SCRIPT"),
    Column("verdict", "VERDICT", styles=_STYLES),
    Column("line", "LINE", is_right=True),
    Column("what", "WHAT"),
    Column("instead", "INSTEAD"),
)

PARAMETERS = (
    Column("place", "PLACE"),
    Column("parameter", "PARAMETER"),
    Column("value", "VALUE"),
    Column("verdict", "VERDICT", styles=_STYLES),
    Column("note", "NOTE"),
)


def run(arguments: list[str], command: Command) -> int:
    """Run the verb that the registry's row names."""
    tool = execute(command.executes)
    return (
        _check(tool, arguments, command)
        if command.words[-1] == "check"
        else _conf(tool, arguments, command)
    )


def _conf(tool: Tool, arguments: list[str], command: Command) -> int:
    parser = parser_of(command)
    parser.add_argument("file", help="slurm.conf, with what lies beside it")
    options = parser.parse_args(arguments)
    try:
        sys.stdout.write(tool["to_toml"](read_config_files(options.file)))
    except ConfigErrors as errors:
        raise OperatorFault("\n".join(errors.sentences)) from None
    return 0


def _check(tool: Tool, arguments: list[str], command: Command) -> int:
    parser = parser_of(command)
    parser.add_argument("directory", help="where the scripts lie, in directories below it too")
    parser.add_argument("--conf", default="", help="the site's slurm.conf")
    parser.add_argument("--html", default="", metavar="FILE", help="write a page for people too")
    parser.add_argument(
        "--ask", action="store_true", help="ask the cluster at hand, as sbatch --test-only does"
    )
    add_socket(parser)
    add_forms(parser)
    options = parser.parse_args(arguments)
    if not os.path.isdir(options.directory):
        raise OperatorFault(f"{options.directory!r} is no directory; nothing was read")
    files = read_config_files(options.conf) if options.conf else ()
    beside = tuple(_beside(options.conf, tool["BESIDE"])) if options.conf else ()
    report = tool["check"](
        _scripts(options.directory),
        files,
        beside,
        calendar=LocalCalendar(),
        asked=_asker(options) if options.ask else None,
    )
    if options.html:
        page = tool["page_of"](report, title=f"Moving {options.directory} to Spur")
        with open(options.html, "w", encoding="utf-8", errors="replace") as file:
            file.write(page)
    _tell(report, form_of(options))
    return _status(report, tool)


def _asker(options: argparse.Namespace) -> Callable[[Submission], str]:
    client = client_of(options)

    def ask(submission: Submission) -> str:
        answer = client.ask(ForecastJob(submission.spec), JobForecast)
        return sentence_of(answer) if isinstance(answer, Rejection) else ""

    return ask


def _scripts(directory: str) -> Iterator[tuple[str, bytes]]:
    """Yield the scripts below a directory: whatever begins as one, or is called one."""
    count = 0
    for folder, folders, names in os.walk(directory):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = os.path.join(folder, name)
            try:
                with open(path, "rb") as file:
                    content = file.read(SCRIPT_BYTES_MAX)
            except OSError as error:
                raise OperatorFault(f"{path!r} can't be read: {error.strerror}") from error
            if _is_script(name, content):
                count += 1
                if count > SCRIPTS_MAX:
                    raise OperatorFault(f"{directory!r} has more than {SCRIPTS_MAX} scripts")
                yield os.path.relpath(path, directory), content


def _is_script(name: str, content: bytes) -> bool:
    called = name.endswith((".sh", ".slurm", ".sbatch", ".job", ".batch", ".bash"))
    return called or content.startswith(b"#!") or b"\n#SBATCH" in content


def _beside(path: str, names: Mapping[str, str]) -> Iterator[ConfigFile]:
    folder = os.path.dirname(os.path.abspath(path))
    for name in names:
        place = os.path.join(folder, name)
        if os.path.isfile(place):
            with open(place, encoding="utf-8", errors="replace") as file:
                yield ConfigFile(name, file.read(SCRIPT_BYTES_MAX))


# -- telling


def _tell(report: Any, form: Form) -> None:
    if form is Form.JSON:
        sys.stdout.write(f"{json.dumps(_document(report))}\n")
        return
    show(Listing(FINDINGS, _script_rows(report), empty="no scripts"), form)
    if report.parameters:
        if form is Form.TABLE:
            sys.stdout.write("\n")
        show(Listing(PARAMETERS, _parameter_rows(report), empty=""), form)
    sys.stdout.flush()
    for error in report.errors:
        sys.stderr.write(f"{error}\n")
    verdicts = [str(script.verdict) for script in report.scripts]
    words = ", ".join(
        f"{verdicts.count(word)} {word}" for word in ("works", "works with a difference", "fails")
    )
    sys.stderr.write(f"{len(verdicts)} scripts: {words}\n")


def _document(report: Any) -> dict[str, Any]:  # as the tool's SiteReport
    return {
        "scripts": [
            {
                "name": script.name,
                "verdict": str(script.verdict),
                "notes": [note._asdict() for note in script.notes],
                "commands": script.commands,
                "lacking": script.lacking,
            }
            for script in report.scripts
        ],
        "parameters": [each._asdict() for each in report.parameters],
        "errors": report.errors,
    }


def _script_rows(report: Any) -> Iterator[Mapping[str, Value]]:
    for script in report.scripts:
        verdict = str(script.verdict)
        if not script.notes:
            yield {
                "script": script.name,
                "verdict": verdict,
                "line": None,
                "what": "",
                "instead": "",
            }
        for note in script.notes:
            yield {
                "script": script.name,
                "verdict": verdict,
                "line": note.line or None,
                "what": note.what,
                "instead": note.instead,
            }


def _parameter_rows(report: Any) -> Iterator[Mapping[str, Value]]:
    for each in report.parameters:
        yield {
            "place": f"{each.file}:{each.line}",
            "parameter": each.name,
            "value": each.value,
            "verdict": each.verdict,
            "note": each.note,
        }


def _status(report: Any, tool: Tool) -> int:
    found = {script.verdict for script in report.scripts}
    if tool["Word"].FAILS in found or report.errors:
        return 1
    return 3 if tool["Word"].DIFFERS in found else 0
