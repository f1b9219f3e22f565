"""`spur join`: let this host into a cluster, with a token that an administrator made.

The token is read from a file or from stdin: the command line is seen by everybody on the host.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from spur.values.errors import OperatorFault
from spur.values.hostlist import parse_hostlist
from spur.values.jointoken import TOKEN_ROLES
from spur_cli.arguments import parser_of
from spur_cli.execute import execute
from spur_cli.registry import Command

__all__ = ["run"]

_TOKEN_BYTES_MAX = 4096
_ROLE_HELP = f"refuse a token for another role than this: {', '.join(TOKEN_ROLES)}"


def run(arguments: list[str], command: Command) -> int:
    """Join.

    Raises: OperatorFault with the one thing that was wrong.
    """
    parser = parser_of(command)
    parser.add_argument(
        "--controllers", required=True, help="HOST:PORT of controllers' calls, parted by commas"
    )
    parser.add_argument(
        "--token-file",
        default="-",
        help="a file of mode 0600 with the token (default: stdin)",
    )
    parser.add_argument("--dir", required=True, type=Path, help="the daemon's directory to be")
    parser.add_argument(
        "--name",
        default=_own_name(),
        help="of this host in the cluster (default: its host name)",
    )
    parser.add_argument(
        "--role", default="", choices=("", *TOKEN_ROLES), metavar="ROLE", help=_ROLE_HELP
    )
    parser.add_argument("--nodes", default="", help="nodes to serve (default: all that it may)")
    parser.add_argument(
        "--address",
        default="",
        help="HOST:PORT that streams of steps are brought to (default: this host's port 6818)",
    )
    parser.add_argument(
        "--raft-address", default="", help="of a controller: HOST:PORT for the other controllers"
    )
    parser.add_argument(
        "--rpc-address", default="", help="of a controller: HOST:PORT for agents and clients"
    )
    parser.add_argument(
        "--set", action="append", type=_setting, default=[], metavar="KEY=VALUE", help="a setting"
    )
    options = parser.parse_args(arguments)
    token = _read_token(options.token_file)
    tool = execute(command.executes)
    try:
        nodes = tuple(parse_hostlist(options.nodes)) if options.nodes else ()
    except ValueError as error:
        raise OperatorFault(f"{error}; nobody was asked") from error
    joining = tool["Joining"](
        directory=options.dir.absolute(),
        name=options.name,
        controllers=tuple(word for word in options.controllers.split(",") if word),
        token=token,
        role=options.role,
        nodes=nodes,
        address=options.address,
        settings=dict(options.set),
        raft_address=options.raft_address,
        rpc_address=options.rpc_address,
    )
    sys.stdout.write(f"{tool['join'](joining)}\n")
    return 0


def _read_token(path: str) -> str:
    """Return the token from a file, from stdin, or from whoever sits before it.

    Raises: OperatorFault when the file can't be read, or can be read by others.
    """
    if path == "-":
        if sys.stdin.isatty():
            from getpass import getpass

            return getpass("token: ")
        return sys.stdin.read(_TOKEN_BYTES_MAX)
    try:
        with open(path, encoding="ascii") as file:
            if os.fstat(file.fileno()).st_mode & 0o077:
                raise OperatorFault(
                    f"{path} can be read by others; its mode must be 0600; nobody was asked"
                )
            return file.read(_TOKEN_BYTES_MAX)
    except (OSError, UnicodeDecodeError) as error:
        raise OperatorFault(f"{path} can't be read: {error}; nobody was asked") from error


def _own_name() -> str:
    return os.uname().nodename.partition(".")[0]


def _setting(text: str) -> tuple[str, str | int | bool]:
    """Return a key and its value, a number or a truth where it reads as one."""
    key, equals, value = text.partition("=")
    if not (equals and key):
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE, such as gpus=8")
    if value in ("true", "false"):
        return key, value == "true"
    return key, int(value) if value.lstrip("-").isdigit() else value
