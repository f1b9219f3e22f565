"""`spur controller list | add | remove | repair`: who takes part in the log."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from spur.values.errors import OperatorFault, Rejection
from spur.wire.controllers import ControllerInfo, ControllerList, RemoveController, ShowControllers
from spur_cli.arguments import add_forms, add_socket, client_of, form_of, parser_of
from spur_cli.execute import execute
from spur_cli.output.result import Column, Listing, Value
from spur_cli.output.show import show
from spur_cli.registry import Command

__all__ = ["run"]

CONTROLLERS = (
    Column("id", "ID", is_right=True),
    Column("name", "NAME"),
    Column("role", "ROLE"),
    Column("leader", "LEADER"),
    Column("address", "ADDRESS"),
    Column("match", "MATCH", is_right=True),
    Column("lag", "LAG", is_right=True),
    Column("history_from", "HISTORY_FROM", is_right=True),
    Column("erased_to", "ERASED_TO", is_right=True),
    Column("free_mib", "FREE_MIB", is_right=True),
    Column("heard_ms", "HEARD_MS", is_right=True),
    Column("authority", "AUTHORITY"),
    Column("disk", "DISK"),
)


def run(arguments: list[str], command: Command) -> int:
    """Run the verb that the registry's row names.

    Raises: OperatorFault when the cluster refuses, or no controller answers.
    """
    verb = command.words[-1]
    parser = parser_of(command)
    _OPTIONS[verb](parser)
    options = parser.parse_args(arguments)
    return _VERBS[verb](options, command)


def _list(options: argparse.Namespace, command: Command) -> int:
    with client_of(options) as client:
        found = client.ask(ShowControllers(), ControllerList)
    if isinstance(found, Rejection):
        raise OperatorFault(_sentence(found))
    rows = [_row(info) for info in found.controllers]
    show(Listing(columns=CONTROLLERS, rows=rows, empty="no controllers"), form_of(options))
    return 0


def _row(info: ControllerInfo) -> dict[str, Value]:
    return {
        "id": info.node_id,
        "name": info.name,
        "role": "voter" if info.voter else "learner",
        "leader": info.leads,
        "address": info.rpc_address,
        "match": info.match,
        "lag": info.lag,
        "history_from": info.history_from,
        "erased_to": info.erased_to,
        "free_mib": info.free_mib,
        "heard_ms": info.heard_ms,
        "authority": info.has_authority,
        "disk": info.disk_id.hex(),
    }


def _add(options: argparse.Namespace, command: Command) -> int:
    execute(command.executes)["add_controller"](options.dir, options.name, _say)
    return 0


def _remove(options: argparse.Namespace, command: Command) -> int:
    tool = execute(command.executes)
    if not options.socket and tool["knows_controller"](options.dir, options.name):
        tool["remove_controller"](options.dir, options.name, given_up=_given_up(options), say=_say)
        return 0
    with client_of(options) as client:
        found = client.ask(ShowControllers(), ControllerList)
        if isinstance(found, Rejection):
            raise OperatorFault(_sentence(found))
        said = {name: info for info in found.controllers for name in (info.name, str(info.node_id))}
        # By its id, so that it may be asked again when the answer is lost.
        known = said.get(options.name)
        named = options.name if known is None else str(known.node_id)
        if known is None and named.isdecimal():
            raise OperatorFault(f"no controller has the id {named}; nothing was changed")
        answer = client.do(RemoveController(named, **_given_up(options)))
    if isinstance(answer, Rejection):
        raise OperatorFault(_sentence(answer))
    _say(f"removed controller {options.name}; what is in its directory is of no use any more")
    return 0


def _repair(options: argparse.Namespace, command: Command) -> int:
    tool = execute(command.executes)
    tool["repair_controller"](options.dir, options.name, given_up=_given_up(options), say=_say)
    return 0


def _given_up(options: argparse.Namespace) -> dict[str, bool]:
    """Return what may be lost, as fields of `RemoveController`."""
    return {
        "gives_up_history": options.give_up_history,
        "gives_up_authority": options.give_up_authority,
    }


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def _sentence(rejection: Rejection) -> str:
    return f"{rejection.text}\nhint: {rejection.hint}" if rejection.hint else rejection.text


def _list_options(parser: argparse.ArgumentParser) -> None:
    add_forms(parser)
    add_socket(parser)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="what it is to be called")
    _add_place(parser)


def _remove_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="its name or its id, as `spur controller list` shows them")
    _add_losses(parser)
    _add_place(parser)
    add_socket(parser)


def _repair_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="its name")
    _add_losses(parser)
    _add_place(parser)


def _add_place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dir", default="", help="where the cluster of this machine lies")


def _add_losses(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--give-up-history",
        action="store_true",
        help="although no other controller has the log's oldest entries",
    )
    parser.add_argument(
        "--give-up-authority",
        action="store_true",
        help="although no other controller has the key that signs certificates",
    )


_OPTIONS: dict[str, Callable[[argparse.ArgumentParser], None]] = {
    "list": _list_options,
    "add": _add_options,
    "remove": _remove_options,
    "repair": _repair_options,
}

_VERBS: dict[str, Callable[[argparse.Namespace, Command], int]] = {
    "list": _list,
    "add": _add,
    "remove": _remove,
    "repair": _repair,
}
