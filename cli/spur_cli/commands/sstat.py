"""`sstat`: what the steps of running jobs use."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from spur.slurm.columns.steps import StepLine, full_name
from spur.slurm.columns.stepstats import DEFAULT_FORMAT, LISTED, PIDS_FORMAT, STAT_FIELDS
from spur.slurm.jobids import split_names
from spur.slurm.sheets import Sheet, UnknownName, helped, parse_sheet
from spur.slurm.wording import SlurmError, error_line, sentence_of
from spur.values.errors import Rejection
from spur.values.ids import JobId
from spur.values.steps import STEP_ID_MAX
from spur.wire.jobs import JobFilter
from spur_cli.registry import Command
from spur_cli.slurm.session import Session, guarded
from spur_cli.slurm.steplist import StepWord, fetch_steps, is_meant, parse_step_word

__all__ = ["run"]

Values = Mapping[str, Any]  # as `Layer.values`


def run(arguments: list[str], command: Command) -> int:
    """Show the steps."""
    return guarded("sstat", lambda session: _sstat(session, arguments))


def _sstat(session: Session, arguments: list[str]) -> int:
    line, words = session.options(arguments)
    if session.shows_help(line):
        return 0
    values = line.values
    if values.get("help_format"):
        sys.stdout.write(helped(LISTED))
        return 0
    asked = _asked([*split_names(values.get("jobs", "")), *words])
    sheet = _sheet(values)
    if not values.get("noheader"):
        sys.stdout.write(sheet.header())
        sys.stdout.flush()
    found = fetch_steps(session, JobFilter(job_ids=tuple(JobId(w.job.job_id) for w in asked)))
    if isinstance(found, Rejection):
        raise SlurmError(error_line("sstat", sentence_of(found)))
    for word in asked:
        steps = list(_steps(word, found, values))
        if not steps:
            session.complain(f"No steps running for job {word.job.job_id}")
        for step in steps:
            if not (session.is_root or step.job.uid == session.own_uid):
                _refuse(step)
                return 0
            sys.stdout.write(sheet.line(step))
    return 0


def _asked(texts: list[str]) -> list[StepWord]:
    if not texts:
        raise SlurmError(error_line("sstat", "You didn't give me any jobs to stat."))
    found = []
    for text in texts:
        try:
            found.append(parse_step_word(text))
        except ValueError:
            raise SlurmError(f"sstat: fatal: Bad job/step specified: {text}") from None
    return found


def _sheet(values: Values) -> Sheet[StepLine]:
    form = values.get("format") or (PIDS_FORMAT if values.get("pidformat") else DEFAULT_FORMAT)
    is_parted = bool(values.get("parsable") or values.get("parsable2"))
    try:
        return parse_sheet(
            form,
            STAT_FIELDS,
            delimiter="|" if is_parted else "",
            ends=is_parted and not values.get("parsable2"),
        )
    except UnknownName as error:
        raise SlurmError(error_line("sstat", f'Invalid field requested: "{error}"')) from None


def _steps(word: StepWord, found: list[StepLine], values: Values) -> Iterator[StepLine]:
    """Yield the steps that a word means: without a number the lowest one, unless all are asked."""
    meant = [step for step in found if is_meant(step, [word])]
    special = sorted((s for s in meant if s.step_id > STEP_ID_MAX), key=lambda s: -s.step_id)
    started = sorted((s for s in meant if s.step_id <= STEP_ID_MAX), key=lambda s: s.step_id)
    if word.step_id is not None or values.get("allsteps"):
        yield from (*special, *started)
    else:
        yield from (started or special[-1:])[:1]


def _refuse(step: StepLine) -> None:
    """Say that somebody else's step is nobody's business."""
    node = step.shares[0].node if step.shares else ""
    sys.stderr.write(
        error_line(
            "sstat",
            "slurm_job_step_stat: there was an error with the request to "
            f"{node} rc = Invalid user id",
        )
        + "\n"
        + error_line(
            "sstat",
            f"problem getting step_layout for StepId={full_name(step)}: Invalid user id",
        )
        + "\n"
    )
