"""The command spurctld: make a cluster's directories, run one controller, or enrol a host.

    spurctld create DIR=RAFT_ADDRESS,RPC_ADDRESS[,NAME] ...
    spurctld run --dir DIR
    spurctld issue --dir DIR --host NAME --role compute --node NODE --out AGENT_DIR

`run` is the parent of the front, which does the work, and starts it again when it dies. Exit
status: 0 after SIGTERM, 2 for a wrong command line, 70 when the controller contradicts itself, 74
when the disk failed, 78 when it refuses to start. After 70, 74 and 78 a person must look before it
is started again.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from spur.controller.parent import EXIT_DISK, EXIT_REFUSED, supervise

__all__ = ["main"]

LOG = logging.getLogger("spurctld")


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; return the exit status."""
    words = sys.argv[1:] if arguments is None else arguments
    parser = argparse.ArgumentParser(prog="spurctld", description="Spur's controller.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    run = verbs.add_parser("run", help="run the controller of a directory")
    run.add_argument("--dir", type=Path, required=True, help="the controller's directory")
    run.add_argument("--verbose", action="store_true", help="log details")
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(name)s: %(message)s"
    )
    if words[:1] != ["run"]:
        return _prepare(parser, verbs, words)
    options = parser.parse_args(words)
    front = "spur.controller.frontmain"
    command = [sys.executable, "-P", "-m", front, str(options.dir)]
    command += ["--parent", str(os.getpid())]
    return supervise(command + ["--verbose"] * options.verbose)


def _prepare(
    parser: argparse.ArgumentParser,
    verbs: argparse._SubParsersAction[argparse.ArgumentParser],
    words: Sequence[str],
) -> int:
    """Make what `run` runs. The parent of a front stays small: this imports what it takes here."""
    from spur.consensus.faults import DiskFault
    from spur.controller.birth import add_create_verb, give_birth
    from spur.controller.enrol import add_issue_verb, issue
    from spur.values.errors import OperatorFault

    add_create_verb(verbs)
    add_issue_verb(verbs)
    options = parser.parse_args(words)
    try:
        if options.verb == "create":
            genesis, count = give_birth(options.controllers), len(options.controllers)
            sys.stdout.write(f"made cluster {genesis.cluster_id.hex()} of {count} controllers\n")
        else:
            sys.stdout.write(f"{issue(options)}\n")
    except DiskFault as fault:
        LOG.error("%s", fault)
        return EXIT_DISK
    except OperatorFault as fault:
        LOG.error("%s", fault)
        return EXIT_REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main())
