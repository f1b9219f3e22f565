"""The front as a process: serves one controller's directory until it is told to stop.

    python -m spur.controller.frontmain DIRECTORY

spurctld runs it as its child. Exit status: 0 after SIGTERM, 70 when the controller contradicts
itself, 74 when the disk failed, 78 when it refuses to start.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from spur.consensus.faults import DiskFault
from spur.controller.parent import EXIT_DISK, EXIT_OURS, EXIT_REFUSED
from spur.controller.settings import load_settings
from spur.controller.shell import Controller
from spur.events.codec import UnreadableRecord
from spur.server.process import die_with_parent, run_daemon, tune_interpreter
from spur.values.errors import OperatorFault

__all__ = ["main"]

LOG = logging.getLogger("spurctld")


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve; return the exit status."""
    parser = argparse.ArgumentParser(prog="spurctld front")
    parser.add_argument("directory", type=Path, help="the controller's directory")
    parser.add_argument("--verbose", action="store_true", help="log details")
    parser.add_argument(
        "--parent", type=int, default=0, metavar="PID", help="who started it: end when that ends"
    )
    options = parser.parse_args(arguments)
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.DEBUG if options.verbose else logging.INFO,
        format="%(asctime)s %(name)s: %(message)s",
    )
    if options.parent:
        die_with_parent(options.parent)
    try:
        tune_interpreter()
        run_daemon(_serve(options.directory))
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


async def _serve(directory: Path) -> None:
    await Controller(directory, load_settings(directory)).run()


if __name__ == "__main__":
    sys.exit(main())
