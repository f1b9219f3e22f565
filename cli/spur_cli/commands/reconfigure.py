"""`spur reconfigure`: hand the files to the cluster, which takes them as a whole or not at all."""

from __future__ import annotations

import sys

from spur.values.errors import OperatorFault, Rejection
from spur.wire.cluster import ConfigInfo, Configured, Reconfigure, ShowConfig
from spur_cli.arguments import add_forms, add_socket, client_of, form_of, parser_of
from spur_cli.conffiles import read_config_files
from spur_cli.output.result import Column, Listing
from spur_cli.output.show import show
from spur_cli.registry import Command

__all__ = ["run"]

CHANGES = (
    Column("what", "WHAT"),
    Column("before", "BEFORE"),
    Column("after", "AFTER"),
)


def run(arguments: list[str], command: Command) -> int:
    """Send a file with all that belongs to it, and show what is different now.

    Raises: OperatorFault when the cluster refuses it, with each error's file and line.
    """
    parser = parser_of(command)
    parser.add_argument("file", help="slurm.conf, with what lies beside it, or spur.toml")
    add_socket(parser)
    add_forms(parser)
    options = parser.parse_args(arguments)
    files = read_config_files(options.file)
    with client_of(options) as client:
        taken = client.ask(Reconfigure(files), Configured)
        if isinstance(taken, Rejection):
            raise OperatorFault(f"{options.file} was refused\n{taken.text}")
        present = client.ask(ShowConfig(), ConfigInfo)
    if isinstance(present, Rejection):
        raise OperatorFault(f"the files are in force; what changed can't be shown: {present.text}")
    changes = present.changes if taken.changes and present.index == taken.index else ()
    rows = [{"what": row.what, "before": row.before, "after": row.after} for row in changes]
    show(Listing(columns=CHANGES, rows=rows, empty="nothing changed"), form_of(options))
    if present.index != taken.index:
        sys.stderr.write("somebody changed the configuration again since\n")
    sys.stderr.write(f"{taken.changes} changes; in force since entry {taken.index} of the log\n")
    return 0
