"""`spur why JOB`: what each filter of the scheduler says of a waiting job."""

from __future__ import annotations

import sys

from spur.slurm.jobids import parse_job_name
from spur.values.errors import OperatorFault, Rejection
from spur.values.states import Reason
from spur.wire.why import ExplainJob, JobExplained
from spur_cli.arguments import add_forms, add_socket, client_of, form_of, parser_of
from spur_cli.output.result import Column, Listing
from spur_cli.output.show import show
from spur_cli.registry import Command

__all__ = ["run"]

VERDICTS = (
    Column("partition", "PARTITION"),
    Column("filter", "FILTER"),
    Column("asked", "ASKED"),
    Column("available", "AVAILABLE"),
    Column("verdict", "VERDICT"),
)


def run(arguments: list[str], command: Command) -> int:
    """Show every filter with what was asked, what is there, and its verdict.

    Raises: OperatorFault when there is no such job.
    """
    parser = parser_of(command)
    parser.add_argument("job", help="a job id, or a task as 5_2")
    add_socket(parser)
    add_forms(parser)
    options = parser.parse_args(arguments)
    try:
        name = parse_job_name(options.job)
    except ValueError as error:
        raise OperatorFault(str(error)) from error
    task = None if name.tasks is None else name.tasks.first
    with client_of(options) as client:
        told = client.ask(ExplainJob(name.job_id, task), JobExplained)
    if isinstance(told, Rejection):
        is_over = told.code == "unknown-job" and task is None
        hint = f"\nhint: `spur story {name.job_id}` tells of a job that is over" if is_over else ""
        raise OperatorFault(f"{told.text}{hint}")
    rows = [
        {
            "partition": verdict.partition or "any",
            "filter": verdict.filter,
            "asked": verdict.asked,
            "available": verdict.available,
            "verdict": "passes" if verdict.passes else str(verdict.reason),
        }
        for verdict in told.verdicts
    ]
    show(Listing(columns=VERDICTS, rows=rows, empty="it waits for nothing"), form_of(options))
    shown = "" if told.reason is Reason.NONE else f": {told.reason}"
    sys.stderr.write(f"job {told.job_id} is {told.state}{shown}\n")
    if told.verdicts and all(verdict.passes for verdict in told.verdicts):
        sys.stderr.write("there is room for it: it waits for its turn, or for the next cycle\n")
    return 0
