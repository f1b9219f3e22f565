"""`spur host list | remove`: which hosts are in the cluster, and taking one out of it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from spur.client.blocking import BlockingClient
from spur.values.errors import OperatorFault, Rejection
from spur.wire.cluster import ClusterInfo, RemoveHost, ShowCluster
from spur_cli.arguments import add_forms, add_socket, client_of, form_of, parser_of
from spur_cli.commands.token import moment_words
from spur_cli.output.result import Column, Listing, Value
from spur_cli.output.show import show
from spur_cli.registry import Command

__all__ = ["run"]

HOSTS = (
    Column("id", "ID", is_right=True),
    Column("name", "NAME"),
    Column("role", "ROLE"),
    Column("certified_until", "CERTIFIED_UNTIL"),
)


def run(arguments: list[str], command: Command) -> int:
    """Run the verb that the registry's row names.

    Raises: OperatorFault when the cluster refuses, or no controller answers.
    """
    verb = command.words[-1]
    parser = parser_of(command)
    _OPTIONS[verb](parser)
    add_socket(parser)
    options = parser.parse_args(arguments)
    with client_of(options) as client:
        return _VERBS[verb](client, options)


def _list(client: BlockingClient, options: argparse.Namespace) -> int:
    cluster = client.ask(ShowCluster(), ClusterInfo)
    if isinstance(cluster, Rejection):
        raise OperatorFault(cluster.text)
    rows: list[dict[str, Value]] = [
        {
            "id": int(host.host_id),
            "name": host.name,
            "role": host.role,
            "certified_until": moment_words(host.ends_ns) if host.ends_ns else "",
        }
        for host in cluster.hosts
    ]
    show(Listing(columns=HOSTS, rows=rows, empty="no hosts"), form_of(options))
    return 0


def _remove(client: BlockingClient, options: argparse.Namespace) -> int:
    answer = client.do(RemoveHost(options.name))
    if isinstance(answer, Rejection):
        raise OperatorFault(answer.text)
    sys.stderr.write(f"host {options.name} is not in the cluster any more\n")
    return 0


def _remove_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="of the host, as `spur host list` shows it")


_OPTIONS: dict[str, Callable[[argparse.ArgumentParser], None]] = {
    "list": add_forms,
    "remove": _remove_options,
}

_VERBS: dict[str, Callable[[BlockingClient, argparse.Namespace], int]] = {
    "list": _list,
    "remove": _remove,
}
