"""`spur clock accept`: vouch for the controller's clock after it stepped."""

from __future__ import annotations

import sys

from spur.values.errors import OperatorFault, Rejection
from spur.wire.cluster import AcceptClock
from spur_cli.arguments import add_socket, client_of, parser_of
from spur_cli.registry import Command

__all__ = ["run"]


def run(arguments: list[str], command: Command) -> int:
    """Ask the controller on this host to take its clock as right.

    Raises: OperatorFault when it refuses or no socket is named.
    """
    parser = parser_of(command)
    add_socket(parser)
    options = parser.parse_args(arguments)
    with client_of(options) as client:
        answer = client.do(AcceptClock())
    if isinstance(answer, Rejection):
        raise OperatorFault(f"{answer.text}; the clock was not accepted")
    sys.stderr.write("the controller's clock was accepted\n")
    return 0
