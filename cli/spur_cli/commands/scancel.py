"""`scancel`: end jobs, or send a signal to what runs of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from spur.slurm.jobids import TASK_MAX, JobName, parse_job_name, split_names
from spur.slurm.layers import Layer, environment_layer
from spur.slurm.options import OPTIONS, Takes
from spur.slurm.optionvalues import SIGNALS
from spur.slurm.statewords import LIVE_STATES, parse_state
from spur.slurm.wording import SlurmError, error_line, error_number, sentence_of
from spur.values.arrays import TaskSet, format_tasks, parse_array
from spur.values.errors import Rejection
from spur.values.hostlist import parse_hostlist
from spur.values.ids import JobId, NodeName, PartitionName
from spur.values.states import JobState, Reach
from spur.values.steps import BATCH_STEP, step_name
from spur.wire.declare import Done
from spur.wire.jobs import CancelJob, CancelJobs, JobFilter, SignalJob
from spur.wire.steps import CancelStep, SignalStep
from spur_cli.registry import Command
from spur_cli.slurm.people import user_id
from spur_cli.slurm.queue import fetch_queue
from spur_cli.slurm.session import Session, guarded
from spur_cli.slurm.steplist import StepWord, parse_step_word

__all__ = ["run"]

SIGKILL = 9

Values = Mapping[str, Any]  # as `Layer.values`

_FILTERS = ("accounts", "names", "nodes", "partitions", "qos", "reservation", "states", "users")


def run(arguments: list[str], command: Command) -> int:
    """End jobs."""
    return guarded("scancel", lambda session: _scancel(session, arguments))


def _scancel(session: Session, arguments: list[str]) -> int:
    line, words = session.options(arguments)
    if session.shows_help(line):
        return 0
    values = {**_environment(session).values, **line.values}
    if "" in words:
        raise SlurmError(error_line("scancel", "Invalid job id "))
    texts = [text for word in words for text in split_names(word)]
    steps = [_step(text) for text in texts if "." in text]
    names = [_name(text) for text in texts if "." not in text]
    has_filter = values.get("me") or any(values.get(field) for field in _FILTERS)
    signal = _signal(values)
    _states(values)
    if values.get("users") == "":
        raise SlurmError(error_line("scancel", "Invalid user name: "))
    if not names and not steps and not has_filter:
        raise SlurmError(error_line("scancel", "No job identification provided"))
    ends = signal in (None, SIGKILL) and not values.get("batch") and not values.get("full")
    status = max([_each_step(session, values, step, signal) for step in steps] or [0])
    if steps and not names and not has_filter:
        return status
    wanted = _filter(values, names)
    if names and (has_filter or values.get("batch")):
        _refuse_unknown(session, names)
    if not has_filter:
        sent = None if ends else signal
        return max([status, *(_each(session, values, name, sent) for name in names)])
    if not names and ends and not values.get("verbose") and not values.get("reservation"):
        return _cancel_all(session, wanted)
    found = _found(session, values, wanted, names)
    if not found and values.get("verbose"):
        session.complain(f"No active jobs match ALL job filters, including: {_told(values)}")
    return max([_each(session, values, name, None if ends else signal) for name in found] or [0])


def _environment(session: Session) -> Layer:
    """Return the options that variables give; a flag is given by T or true. Raises: SlurmError."""
    options = OPTIONS["scancel"]
    environment = dict(session.environment)
    for name in (name for row in options if row.takes is Takes.NOTHING for name in row.environment):
        value = environment.get(name, "true").lower()
        if value not in ("t", "true"):
            if value not in ("f", "false"):
                session.complain(f"Unrecognized {name} value: {environment[name]}")
            del environment[name]
    return environment_layer(environment, options, "scancel")


# -- what is meant


def _name(text: str) -> JobName:
    try:
        return parse_job_name(text)
    except ValueError as error:
        lines = [error_line("scancel", f"Invalid job id {text}")]
        tasks = text.partition("_")[2]
        if tasks.startswith("[") and tasks.endswith("]"):
            wrong = [part for part in tasks[1:-1].split(",") if not _is_range(part)]
            told = [f"_parse_single_range: Invalid range: `{part}'" for part in wrong[:1]]
            lines = [*(error_line("scancel", each) for each in told), *lines]
        raise SlurmError(*lines) from error


def _is_range(text: str) -> bool:
    try:
        parse_array(text, index_max=TASK_MAX)
    except ValueError:
        return False
    return True


def _step(text: str) -> StepWord:
    try:
        return parse_step_word(text)
    except ValueError as error:
        raise SlurmError(error_line("scancel", f"Invalid job id {text}")) from error


def _signal(values: Values) -> int | None:
    text = values.get("signal")
    if text is None:
        return None
    word = text.upper().removeprefix("SIG")
    if word.isascii() and word.isdigit() and 1 <= int(word[:4]) <= 64:
        return int(word)
    if word not in SIGNALS:
        raise SlurmError(f"Unknown job signal: {text}")
    return SIGNALS[word]


def _list(values: Values, field: str) -> tuple[str, ...]:
    return tuple(word for word in values.get(field, "").split(",") if word)


def _states(values: Values) -> tuple[JobState, ...]:
    found: list[JobState] = []
    text = values.get("states")
    for word in () if text is None else text.split(","):
        state = parse_state(word)
        if not isinstance(state, JobState) or state not in LIVE_STATES:
            raise SlurmError(
                f"Invalid job state specified: {text}",
                "Valid job states are PENDING, RUNNING, and SUSPENDED",
            )
        found.append(state)
    return tuple(found) or LIVE_STATES


def _filter(values: Values, names: list[JobName]) -> JobFilter:
    uids = [os.getuid()] if values.get("me") else []
    for name in _list(values, "users"):
        uid = user_id(name)
        if uid is None:
            raise SlurmError(error_line("scancel", f"Invalid user name: {name}"))
        uids.append(uid)
    try:
        nodes = parse_hostlist(values.get("nodes", ""))
    except ValueError as error:
        raise SlurmError(error_line("scancel", f"Invalid node list: {error}")) from error
    return JobFilter(
        job_ids=tuple(name.job_id for name in names),
        uids=tuple(uids),
        partitions=tuple(PartitionName(name) for name in _list(values, "partitions")),
        accounts=_list(values, "accounts"),
        qos=_list(values, "qos"),
        names=_list(values, "names"),
        states=_states(values),
        nodes=tuple(NodeName(name) for name in nodes),
    )


def _told(values: Values) -> str:
    """Return the filters as Slurm tells them."""
    words = {"names": "job_name", "users": "user_name", "partitions": "partition"}
    return "".join(
        f"{words.get(field, field.rstrip('s'))}={values[field]} "
        for field in _FILTERS
        if values.get(field)
    )


def _refuse_unknown(session: Session, names: list[JobName]) -> None:
    """Raises: SlurmError when one of the jobs is none: with a filter Slurm looks at them first."""
    queue = fetch_queue(session, JobFilter(job_ids=tuple(name.job_id for name in names)))
    if isinstance(queue, Rejection):
        raise SlurmError(f"slurm_load_jobs error: {sentence_of(queue)}")
    known = {number for job in queue.jobs for number in (job.job_id, job.array_id, job.het_id)}
    lines = [
        error_line("scancel", f"Kill job error on job id {_shown(name)}: Invalid job id specified")
        for name in names
        if name.job_id not in known
    ]
    if lines:
        raise SlurmError(*lines)


def _found(
    session: Session, values: Values, wanted: JobFilter, names: list[JobName]
) -> list[JobName]:
    """Return the jobs that a filter names, of those that are named."""
    queue = fetch_queue(session, wanted)
    if isinstance(queue, Rejection):
        raise SlurmError(f"slurm_load_jobs error: {sentence_of(queue)}")
    asked = {name.job_id: name.tasks for name in names}
    found: list[JobName] = []
    for job in queue.jobs:
        if values.get("reservation") not in (None, job.spec.ask.reservation):
            continue
        tasks = job.tasks
        limited = asked.get(job.array_id) if job.array_id else None
        if tasks is not None and limited is not None:
            tasks = tasks.common(limited)
            if not tasks.ranges:
                continue
        found.append(JobName(job.array_id or job.job_id, tasks))
    return found


# -- what is done


def _cancel_all(session: Session, wanted: JobFilter) -> int:
    """End all that a filter names and the caller may end, in one request."""
    answer = session.ask(CancelJobs(wanted), Done)
    if isinstance(answer, Rejection):
        raise SlurmError(error_line("scancel", f"Kill job error: {sentence_of(answer)}"))
    return 0


def _each(session: Session, values: Values, name: JobName, signal: int | None) -> int:
    """End or signal one job; return the exit status that it comes to."""
    shown = _shown(name)
    if values.get("verbose"):
        what = "Terminating" if signal is None else f"Signal {signal} to"
        sys.stderr.write(f"scancel: {what} job {shown}\n")
    if signal is None and (values.get("batch") or values.get("full")):
        signal = SIGKILL
    if signal is None:
        answer = session.ask(CancelJob(name.job_id, name.tasks), Done)
    else:
        answer = session.ask(SignalJob(name.job_id, name.tasks, signal, _reach(values)), Done)
    if not isinstance(answer, Rejection):
        return 0
    # That a job is over is what was wanted: Slurm tells it to those who ask for more words.
    is_over = answer.code in ("unknown-job", "job-ended")
    if not is_over or values.get("verbose"):
        session.complain(f"Kill job error on job id {shown}: {sentence_of(answer)}")
    return 0 if is_over else error_number(answer.code) & 0xFF


def _reach(values: Values) -> Reach:
    if values.get("batch"):
        return Reach.SCRIPT
    return Reach.ALL if values.get("full") else Reach.STEPS


def _each_step(session: Session, values: Values, word: StepWord, signal: int | None) -> int:
    """End or signal one step; return the exit status that it comes to."""
    job_id, step_id = word.job.job_id, word.step_id or 0
    shown = f"{_shown(word.job)}.{step_name(step_id)}"
    if values.get("verbose"):
        what = "Terminating" if signal is None else f"Signal {signal} to"
        sys.stderr.write(f"scancel: {what} step {shown}\n")
    if step_id == BATCH_STEP:
        # The batch script is no step of its own to the cluster: its end is that of its job.
        answer = (
            session.ask(CancelJob(job_id, word.job.tasks), Done)
            if signal is None
            else session.ask(SignalJob(job_id, word.job.tasks, signal, Reach.SCRIPT), Done)
        )
    elif signal in (None, SIGKILL):
        answer = session.ask(CancelStep(_own_id(session, word.job), step_id), Done)
    else:
        answer = session.ask(SignalStep(_own_id(session, word.job), step_id, signal), Done)
    if not isinstance(answer, Rejection):
        return 0
    is_unknown = answer.code == "unknown-job" and not _is_known(session, job_id)
    told = shown if is_unknown else _shown(word.job)  # Slurm names a known job alone
    session.complain(f"Kill job error on job step id {told}: {sentence_of(answer)}")
    return 1 if is_unknown else error_number(answer.code) & 0xFF


def _is_known(session: Session, job_id: JobId) -> bool:
    """Whether there is such a job, so that it is a step of it that is missing."""
    queue = fetch_queue(session, JobFilter(job_ids=(job_id,)))
    return not isinstance(queue, Rejection) and bool(queue.kinds)


def _own_id(session: Session, name: JobName) -> JobId:
    """Return the number that a task of an array has for itself."""
    if name.tasks is None:
        return name.job_id
    queue = fetch_queue(session, JobFilter(job_ids=(name.job_id,)))
    for job in () if isinstance(queue, Rejection) else queue.jobs:
        if job.tasks is not None and job.tasks.first in name.tasks:
            return job.job_id
    return name.job_id


def _shown(name: JobName) -> str:
    tasks: TaskSet | None = name.tasks
    if name.offset is not None:
        return f"{name.whole}+{name.offset}"
    if tasks is None:
        return str(name.job_id)
    if tasks.is_single:
        return f"{name.job_id}_{tasks.first}"
    return f"{name.job_id}_[{format_tasks(tasks)}]"
