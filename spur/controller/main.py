"""The command spurctld: make a cluster's directories, or run one controller.

    spurctld create DIR=RAFT_ADDRESS,RPC_ADDRESS ...
    spurctld run --dir DIR
    spurctld issue --dir DIR --host NAME --role compute --node NODE --out AGENT_DIR

Exit status: 0 after SIGTERM, 2 for a wrong command line, 70 when the controller contradicts itself,
74 when the disk failed, 78 when it refuses to start. After 70, 74 and 78 a person must look before
it is started again.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from spur.client.address import parse_tcp_address
from spur.consensus.faults import DiskFault
from spur.controller.birth import NewController, give_birth
from spur.controller.enrol import add_issue_verb, issue
from spur.controller.settings import load_settings
from spur.controller.shell import Controller
from spur.events.codec import UnreadableRecord
from spur.server.process import run_daemon, tune_interpreter
from spur.values.errors import OperatorFault

__all__ = ["main"]

EXIT_OURS = 70
"""EX_SOFTWARE of sysexits(3)."""
EXIT_DISK = 74
"""EX_IOERR."""
EXIT_REFUSED = 78
"""EX_CONFIG."""

LOG = logging.getLogger("spurctld")


def _new_controller(text: str) -> NewController:
    directory, equals, addresses = text.partition("=")
    raft, comma, rpc = addresses.partition(",")
    if not (directory and equals and comma):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not DIR=RAFT_ADDRESS,RPC_ADDRESS, such as"
            " /var/lib/spur=10.0.0.1:6821,10.0.0.1:6816"
        )
    for address in (raft, rpc):
        try:
            parse_tcp_address(address)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error
    return NewController(directory=Path(directory), raft_address=raft, rpc_address=rpc)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="spurctld", description="Spur's controller.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    create = verbs.add_parser("create", help="make a cluster of 1, 3 or 5 controllers")
    create.add_argument(
        "controllers", nargs="+", type=_new_controller, metavar="DIR=RAFT_ADDRESS,RPC_ADDRESS"
    )
    add_issue_verb(verbs)
    run = verbs.add_parser("run", help="run the controller of a directory")
    run.add_argument("--dir", type=Path, required=True, help="the controller's directory")
    run.add_argument("--verbose", action="store_true", help="log details")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; return the exit status."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.DEBUG if getattr(options, "verbose", False) else logging.INFO,
        format="%(asctime)s %(name)s: %(message)s",
    )
    try:
        if options.verb == "create":
            genesis = give_birth(options.controllers)
            count = len(options.controllers)
            sys.stdout.write(f"made cluster {genesis.cluster_id.hex()} of {count} controllers\n")
        elif options.verb == "issue":
            sys.stdout.write(f"{issue(options)}\n")
        else:
            tune_interpreter()
            run_daemon(_run(options.dir))
    except DiskFault as fault:
        LOG.error("%s", fault)
        return EXIT_DISK
    except UnreadableRecord as fault:
        LOG.error(
            "%s; nothing is skipped, so this controller stops: start it with the release that wrote"
            " the entry",
            fault,
        )
        return EXIT_REFUSED
    except OperatorFault as fault:
        LOG.error("%s", fault)
        return EXIT_REFUSED
    except Exception:
        LOG.exception("the controller stops because of a fault of ours")
        return EXIT_OURS
    return 0


async def _run(directory: Path) -> None:
    await Controller(directory, load_settings(directory)).run()


if __name__ == "__main__":
    sys.exit(main())
