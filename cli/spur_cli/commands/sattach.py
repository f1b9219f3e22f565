"""`sattach`: listen to a step that runs, and write to its tasks."""

from __future__ import annotations

import re
import signal
import sys

from spur.slurm.wording import SlurmError, error_line, sentence_of
from spur.values.errors import Rejection
from spur.values.hostlist import format_hostlist
from spur.values.ids import JobId
from spur.values.steps import tasks_on
from spur.wire.steps import QuerySteps, StepPage, StepView
from spur_cli.registry import Command
from spur_cli.slurm.guesting import visit
from spur_cli.slurm.listening import Listening
from spur_cli.slurm.session import Session, guarded

__all__ = ["run"]

USAGE = "Usage: sattach [options] <jobid.stepid>\n"


def run(arguments: list[str], command: Command) -> int:
    """Listen until the step ends; return the highest exit code of its tasks."""
    return guarded("sattach", lambda session: _sattach(session, arguments))


def _sattach(session: Session, arguments: list[str]) -> int:
    line, words = session.options(arguments)
    if session.shows_help(line):
        return 0
    job_id, step_id = _named(words)
    found = session.ask(QuerySteps((job_id,), JobId(0), 1000), StepPage)
    rows = () if isinstance(found, Rejection) else found.rows
    step = next((row for row in rows if row.step_id == step_id), None)
    if line.values.get("layout") and step is not None:
        sys.stdout.write(_layout(step))
        return 0
    place = visit(session, job_id, step_id)
    if isinstance(place, Rejection) or step is None:
        sentence = "Invalid job id specified"
        if isinstance(place, Rejection):
            sentence = sentence_of(place)
        raise SlurmError(error_line("sattach", f"Could not get job step info: {sentence}"))
    tasks = tuple(
        tasks_on(step.tasks, at, dealing=step.dealing, plane=step.plane)
        for at in range(len(step.shares))
    )
    # Ctrl-C ends who listens, and no task.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return Listening(session, place.streams(session, tasks), line.values).run()


def _named(words: list[str]) -> tuple[JobId, int]:
    """Return which step is meant. Raises: SlurmError, having shown the usage."""
    if len(words) != 1:
        sys.stdout.write(USAGE)
        raise SlurmError(error_line("sattach", "too many parameters"))
    job, dot, step = words[0].partition(".")
    if not dot:
        sys.stdout.write(USAGE)
        sentence = "Failed to parse stepid from command line options"
        raise SlurmError(error_line("sattach", sentence))
    if not re.fullmatch(r"[0-9]{1,10}", job):
        raise SlurmError(f"sattach: fatal: Bad step specified: {job}")
    if not re.fullmatch(r"[0-9]{1,9}", step):
        sentence = "Could not get job step info: Invalid job id specified"
        raise SlurmError(error_line("sattach", sentence))
    return JobId(int(job)), int(step)


def _layout(step: StepView) -> str:
    """Return where the tasks run."""
    nodes = [share.node for share in step.shares]
    lines = [
        "Job step layout:",
        f"\t{sum(step.tasks)} tasks, {len(nodes)} nodes ({format_hostlist(nodes)})",
        "",
    ]
    for place, node in enumerate(nodes):
        own = tasks_on(step.tasks, place, dealing=step.dealing, plane=step.plane)
        numbers = "".join(f"{task} " for task in own)
        lines.append(f"\tNode {place} ({node}), {len(own)} task(s): {numbers}")
    return "".join(f"{each}\n" for each in lines)
