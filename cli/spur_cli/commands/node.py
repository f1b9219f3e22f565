"""`spur node confirm-dead`: vouch that nothing runs any more on nodes that are lost."""

from __future__ import annotations

import sys

from spur.values.errors import OperatorFault, Rejection
from spur.values.hostlist import parse_hostlist
from spur.values.ids import NodeName
from spur.wire.runs import ConfirmNodeDead
from spur_cli.arguments import add_socket, client_of, parser_of
from spur_cli.registry import Command

__all__ = ["run"]


def run(arguments: list[str], command: Command) -> int:
    """Say it of each node that is named; the first that is refused ends it.

    Raises: OperatorFault when a node is heard, is not configured, or the caller is no operator.
    """
    parser = parser_of(command)
    parser.add_argument(
        "nodes", help="one node or a host list, each lost, and switched off or without power"
    )
    add_socket(parser)
    options = parser.parse_args(arguments)
    try:
        names = parse_hostlist(options.nodes)
    except ValueError as error:
        raise OperatorFault(str(error)) from error
    with client_of(options) as client:
        for name in names:
            answer = client.do(ConfirmNodeDead(NodeName(name)))
            if isinstance(answer, Rejection):
                hint = f"; {answer.hint}" if answer.hint else ""
                raise OperatorFault(f"{answer.text}{hint}")
            sys.stderr.write(f"node {name}: nothing runs there any more\n")
    return 0
