"""`spur story`: the life of a job as the log has it: what happened, when, and who asked for it."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping

from spur.client.blocking import BlockingClient
from spur.slurm.jobids import parse_job_name
from spur.values.arrays import TaskSet
from spur.values.errors import OperatorFault, Rejection
from spur.values.ids import JobId
from spur.wire.history import (
    QueryRecords,
    ReadStory,
    RecordFilter,
    RecordPage,
    StoryLine,
    StoryPage,
    decode_job_record,
)
from spur_cli.arguments import add_forms, add_socket, client_of, form_of, parser_of
from spur_cli.output.result import Column, Form, Listing, Value
from spur_cli.output.show import show
from spur_cli.registry import Command
from spur_cli.slurm.people import user_name

__all__ = ["run"]

LINES = 500
"""Lines asked for at a time."""

RECORDS = 1000

COLUMNS = (
    Column("time", "TIME"),
    Column("index", "INDEX", is_right=True),
    Column("event", "EVENT"),
    Column("who", "WHO"),
    Column("words", "WHAT HAPPENED"),
)

_NS = 1_000_000_000


def run(arguments: list[str], command: Command) -> int:
    """Tell the story of one job."""
    parser = parser_of(command)
    parser.add_argument("job", help="a job's number, or a task of an array such as 1505_2")
    add_socket(parser)
    add_forms(parser)
    options = parser.parse_args(arguments)
    _tell(options, parser)
    return 0


def _tell(options: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    try:
        name = parse_job_name(options.job)
    except ValueError as error:
        parser.error(str(error))
    form = form_of(options)
    with client_of(options) as client:
        job_id = name.job_id if name.tasks is None else _raw_id(client, name.job_id, name.tasks)
        rows = [_row(line, form) for line in _lines(client, job_id)]
    if not rows:
        raise OperatorFault(f"no job {options.job} is known, or it is not yours to look at")
    show(Listing(columns=COLUMNS, rows=rows, empty=""), form)


def _raw_id(client: BlockingClient, array_id: JobId, tasks: TaskSet) -> JobId:
    """Return the number of the job that has this task; the array's own when none was split off."""
    after: JobId | None = JobId(0)
    wanted = RecordFilter(job_ids=(array_id,))
    while after is not None:
        page = client.ask(QueryRecords(wanted, after, RECORDS), RecordPage)
        if isinstance(page, Rejection):
            raise OperatorFault(page.text)
        for job in map(decode_job_record, page.rows):
            if job.tasks is not None and tasks.is_within(job.tasks):
                return job.job_id
        after = page.next
    return array_id


def _lines(client: BlockingClient, job_id: JobId) -> Iterator[StoryLine]:
    after, more = 0, True
    while more:
        page = client.ask(ReadStory(job_id, after, LINES), StoryPage)
        if isinstance(page, Rejection):
            raise OperatorFault(page.text)
        yield from page.lines
        after, more = after + len(page.lines), page.more


def _row(line: StoryLine, form: Form) -> Mapping[str, Value]:
    row: dict[str, Value] = {
        "time": _moment(line.time_ns),
        "index": line.index,
        "event": line.event,
        "who": _who(line),
        "words": line.words,
    }
    if form is Form.JSON:
        row |= {"time_ns": line.time_ns, "position": line.position, "command": line.command}
    return row


def _moment(time_ns: int) -> str:
    """Spell a time to the millisecond, in the zone of whoever asks."""
    seconds, rest_ns = divmod(time_ns, _NS)
    clock = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(seconds))
    return f"{clock}.{rest_ns // 1_000_000:03}"


def _who(line: StoryLine) -> str:
    if line.host_role == "cluster":
        return "the cluster"
    return f"{user_name(line.uid)} ({line.host_role})"
