"""`spur clock accept`: vouch for the controller's clock after it stepped."""

from __future__ import annotations

import os
import sys

from spur.client.blocking import BlockingClient
from spur.values.errors import OperatorFault, Rejection
from spur.wire.cluster import AcceptClock
from spur_cli.arguments import parser_of
from spur_cli.registry import Command

__all__ = ["run"]


def run(arguments: list[str], command: Command) -> int:
    """Ask the controller on this host to take its clock as right.

    Raises: OperatorFault when it refuses or no socket is named.
    """
    parser = parser_of(command)
    parser.add_argument(
        "--socket",
        default=os.environ.get("SPUR_SOCKET", ""),
        help="the controller's Unix socket (default: $SPUR_SOCKET)",
    )
    options = parser.parse_args(arguments)
    if not options.socket:
        raise OperatorFault(
            "no controller is named; give --socket PATH or set SPUR_SOCKET; nothing was accepted"
        )
    with BlockingClient([f"unix:{os.path.abspath(options.socket)}"]) as client:
        answer = client.do(AcceptClock())
    if isinstance(answer, Rejection):
        raise OperatorFault(f"{answer.text}; the clock was not accepted")
    sys.stderr.write("the controller's clock was accepted\n")
    return 0
