"""`spur up`, `spur env`, `spur status`, `spur down`: a cluster on this machine."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable

from spur.values.config import ConfigFile
from spur_cli.arguments import add_forms, form_of, parser_of
from spur_cli.commands.link import closed_to_others, make_names
from spur_cli.conffiles import read_config_files
from spur_cli.execute import Tool, execute
from spur_cli.output.result import Column, Listing, Record
from spur_cli.output.show import show
from spur_cli.registry import Command

__all__ = ["run"]

_NUMBERS = ("nodes", "nodes_per_agent", "cpus", "gpus")

PROCESSES = (
    Column("name", "NAME"),
    Column("role", "ROLE"),
    Column("state", "STATE"),
    Column("pid", "PID", is_right=True),
    Column("address", "ADDRESS"),
    Column("leader", "LEADER"),
    Column("index", "INDEX", is_right=True),
    Column("memory_kib", "MEMORY_KIB", is_right=True),
    Column("certified_until", "CERTIFIED_UNTIL"),
)


def run(arguments: list[str], command: Command) -> int:
    """Run the verb that the registry's row names."""
    verb = command.words[-1]
    parser = parser_of(command)
    parser.add_argument(
        "--dir",
        default="",
        help="where the cluster lies (default: $SPUR_UP_DIR, else a place of the user's own)",
    )
    _OPTIONS[verb](parser)
    options = parser.parse_args(arguments)
    return _VERBS[verb](execute(command.executes), options)


def _up(tool: Tool, options: argparse.Namespace) -> int:
    files: tuple[ConfigFile, ...] = read_config_files(options.conf) if options.conf else ()
    said: list[str] = []

    def say(text: str) -> None:
        said.append(text)
        _say(text)

    tool["up"](
        options.dir,
        controllers=options.controllers,
        numbers={key: getattr(options, key) for key in _NUMBERS},
        files=files,
        say=say,
    )
    make_names(tool["environment"](options.dir)["PATH"], "spur")
    closed = closed_to_others() if said else ""
    if closed:
        _say(closed)
    where = f" --dir {shlex.quote(options.dir)}" if options.dir else ""
    _say(f'hint: eval "$(spur env{where})" lets sbatch and its like find the cluster')
    return 0


def _env(tool: Tool, options: argparse.Namespace) -> int:
    found: dict[str, str] = tool["environment"](options.dir)
    names = found.pop("PATH")
    values = {key: shlex.quote(value) for key, value in found.items()}
    values["PATH"] = f'{shlex.quote(names)}:"$PATH"'
    text = "\n".join(f"export {key}={value}" for key, value in values.items())
    show(Record(fields=values, line=f"unset SPUR_SOCKET\n{text}"), form_of(options))
    return 0


def _status(tool: Tool, options: argparse.Namespace) -> int:
    rows = tool["status"](options.dir)
    show(Listing(columns=PROCESSES, rows=rows, empty="no processes"), form_of(options))
    return 0 if all(row["state"] == "running" for row in rows) else 1


def _down(tool: Tool, options: argparse.Namespace) -> int:
    ended, parts = tool["down"](options.dir, keeps_jobs=options.keep_jobs)
    _say(f"ended {', '.join(ended)}" if ended else "nothing ran")
    if parts:
        _say(f"ended {parts} parts of jobs that ran on nodes, as if the power had failed")
    return 0


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def _up_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--controllers", type=int, help="1, 3 or 5 (default: 1)")
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--nodes", type=int, help="how many, called n1, n2 ... (default: 4)")
    shape.add_argument("--conf", help="a slurm.conf with what lies beside it, or a spur.toml")
    parser.add_argument(
        "--nodes-per-agent", type=int, help="0 for one each, or more when there are many (default)"
    )
    parser.add_argument("--cpus", type=int, help="CPUs that each node has (default: 8)")
    parser.add_argument("--gpus", help="GPUs that each node has, such as gfx942:8 (default: none)")


def _down_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--keep-jobs", action="store_true", help="let jobs go on; `spur up` finds them again"
    )


_OPTIONS: dict[str, Callable[[argparse.ArgumentParser], None]] = {
    "up": _up_options,
    "env": add_forms,
    "status": add_forms,
    "down": _down_options,
}

_VERBS: dict[str, Callable[[Tool, argparse.Namespace], int]] = {
    "up": _up,
    "env": _env,
    "status": _status,
    "down": _down,
}
