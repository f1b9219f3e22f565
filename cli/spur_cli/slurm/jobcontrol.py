"""Keywords of scontrol that change jobs: hold, release, requeue, update."""

from __future__ import annotations

import os
from collections.abc import Callable

from msgspec.structs import replace

from spur.slurm.columns.jobline import counted_from_ns
from spur.slurm.jobids import JobName, parse_job_name, split_names
from spur.slurm.jobupdates import JobUpdate, parse_job_update
from spur.slurm.layers import Layer
from spur.slurm.mailtypes import mail_content
from spur.slurm.statewords import LIVE_STATES
from spur.slurm.wording import SlurmError, sentence_of
from spur.values.arrays import TaskSet, format_tasks
from spur.values.errors import Rejection
from spur.values.jobspec import encode_options
from spur.values.states import Hold, JobState
from spur.wire.declare import Attachment, Done, Request
from spur.wire.jobs import HoldJob, JobFilter, ReleaseJob, RequeueJob, UpdateJob
from spur_cli.slurm.nodecontrol import update_nodes
from spur_cli.slurm.partitioncontrol import update_partition
from spur_cli.slurm.people import LocalCalendar
from spur_cli.slurm.queue import Queue, fetch_queue, fetch_texts
from spur_cli.slurm.session import Session

__all__ = [
    "done",
    "for_all",
    "hold",
    "release",
    "requeue",
    "requeue_hold",
    "update",
    "user_hold",
]

_WORDS = {
    "invalid-dependency": "Job dependency problem",
    "job-ended": "Job has already finished",
    "wrong-state": "Job is no longer pending execution",
}
"""What scontrol says where other commands say something else."""

_OF_UPDATES = {"not-owner": "Invalid user id"}
"""What it says when it changes a job, but not when it requeues one."""

ROWS_ASKED_MAX = 100
"""Rows of an array that are asked for one by one, so that each has its own verdict."""


def hold(session: Session, line: Layer, words: list[str]) -> int:
    """Keep jobs from starting; an operator's hold is lifted by operators alone."""
    kinds = (Hold.ADMIN, Hold.USER) if os.getuid() == 0 else (Hold.USER,)

    def ask(name: JobName) -> Rejection | None:
        for kind in kinds:
            refused = done(session, HoldJob(name.job_id, name.tasks, kind))
            if refused is None or refused.code != "not-permitted":
                break
        return refused

    return for_all(session, "hold", words, ask, ends_with="slurm_suspend error")


def user_hold(session: Session, line: Layer, words: list[str]) -> int:
    """Keep jobs from starting until their owner lets them go."""

    def ask(name: JobName) -> Rejection | None:
        return done(session, HoldJob(name.job_id, name.tasks, Hold.USER))

    return for_all(session, "uhold", words, ask, ends_with="slurm_suspend error")


def release(session: Session, line: Layer, words: list[str]) -> int:
    """Lift holds."""

    def ask(name: JobName) -> Rejection | None:
        return done(session, ReleaseJob(name.job_id, name.tasks))

    return for_all(session, "release", words, ask, ends_with="slurm_suspend error")


def requeue(session: Session, line: Layer, words: list[str]) -> int:
    """Put jobs back into the queue."""
    return _requeue(session, "requeue", words, hold_them=False)


def requeue_hold(session: Session, line: Layer, words: list[str]) -> int:
    """Put jobs back into the queue, and hold them there."""
    return _requeue(session, "requeuehold", words, hold_them=True)


def _requeue(session: Session, keyword: str, words: list[str], *, hold_them: bool) -> int:
    # "incomplete" limits it to jobs that did not complete; the controller judges the state.
    names = [word for word in words if word.lower() not in ("incomplete", "state=specialexit")]

    def ask(name: JobName) -> Rejection | None:
        if name.offset:
            text = f"component {name.offset} of job {name.whole} is not requeued alone"
            return Rejection("unknown-job", text)
        return done(session, RequeueJob(name.job_id, name.tasks, hold_them))

    return for_all(session, keyword, names, ask)


def update(session: Session, line: Layer, words: list[str]) -> int:
    """Change what jobs ask for."""
    if not words:
        raise SlurmError("too few arguments for update keyword")
    pairs = _pairs(words)
    keys = {key.lower() for key, _ in pairs}
    if keys & {"nodename", "node"} and not keys & {"jobid", "job"}:
        return update_nodes(session, pairs)
    if keys & {"partitionname", "partition"} and not keys & {"jobid", "job", "jobname", "name"}:
        return update_partition(session, pairs)
    others = keys & {"reservationname", "reservation"}
    if others and not keys & {"jobid", "job"}:
        raise SlurmError(f"Update of {others.pop()} is not honoured yet", "Request aborted")
    if "stepid" in keys:
        raise SlurmError(f"slurm_update error: {_step_sentence(session, pairs)}")
    if keys & {"slurmctlddebug"}:
        from spur_cli.slurm.daemoncontrol import set_debug

        return set_debug(session, line, [value for _, value in pairs[:1]])
    named = [value for key, value in pairs if key.lower() in ("jobid", "job")]
    if named:
        rest = [pair for pair in pairs if pair[0].lower() not in ("jobid", "job")]
        texts = split_names(named[0])
    elif "jobname" in keys:
        rest = [pair for pair in pairs if pair[0].lower() != "jobname"]
        texts = [f"jobname={value}" for key, value in pairs if key.lower() == "jobname"]
    else:
        raise SlurmError(
            "No valid entity in update command",
            'Input line must include "NodeName", "PartitionName", "Reservation", "JobId", or'
            ' "SlurmctldDebug"',
        )
    bare = next((word for word in words if "=" not in word and word not in named), "")
    if bare and bare.lower() not in ("job", "jobid", "resetaccruetime"):
        raise SlurmError(f"Invalid input: {bare}", "Request aborted")
    asked = parse_job_update(rest, LocalCalendar())
    if asked.is_empty:
        raise SlurmError("No changes specified")
    lines: list[str] = []
    for text in texts:
        meant = _names(session, text)
        if not meant:
            lines.append(f"scontrol: error: No jobs with name '{text.partition('=')[2]}'")
        for name in meant:
            lines += _update(session, text if "=" not in text else "", name, asked)
    if lines:
        raise SlurmError(*lines)
    return 0


def _step_sentence(session: Session, pairs: list[tuple[str, str]]) -> str:
    """Return why the limit of a step is not changed."""
    text = next(value for key, value in pairs if key.lower() == "stepid")
    name = _parsed(text.partition(".")[0])
    queue = None if name is None else fetch_queue(session, JobFilter(job_ids=(name.job_id,)))
    is_running = isinstance(queue, Queue) and any(row.start_ns for row in queue.jobs)
    return sentence_of(
        Rejection("unsupported" if is_running else "unknown-job", "steps keep their limits")
    )


def _pairs(words: list[str]) -> list[tuple[str, str]]:
    """Return keys and values; "job 5" means the same as job=5."""
    pairs: list[tuple[str, str]] = []
    queue = list(words)
    while queue:
        key, equals, value = queue.pop(0).partition("=")
        if not equals and key.lower() in ("job", "jobid") and queue:
            value = queue.pop(0)
        pairs.append((key, value))
    return pairs


def _update(session: Session, text: str, name: JobName | None, asked: JobUpdate) -> list[str]:
    """Change one job, or an array row by row; return what went wrong, in lines."""
    if name is None:
        return [f"{_sentence(_unknown())} for job {text}"]
    queue = fetch_queue(session, JobFilter(job_ids=(name.job_id,)))
    if isinstance(queue, Rejection):
        return [f"{_sentence(queue)} for job {text or name.job_id}"]
    rows = queue.jobs
    if not rows and name.tasks is not None:
        return [_no_tasks(name, _sentence(_unknown()))]
    is_array = any(row.array_id == name.job_id for row in rows)
    if not is_array and name.tasks is None:
        refused = _change(session, name, _longer(queue, name, asked))
        return [] if refused is None else [f"{_sentence(refused)} for job {text or name.job_id}"]
    if name.tasks is None and asked.longer_by_s is not None:
        return ["scontrol: error: TimeLimit increment/decrement not supported for job arrays"]
    return _update_array(session, queue, name, asked)


def _update_array(session: Session, queue: Queue, name: JobName, asked: JobUpdate) -> list[str]:
    """Change tasks of an array; when one is refused all are told of, those alike together."""
    meant = [
        row.tasks if name.tasks is None else row.tasks.common(name.tasks)
        for row in queue.jobs
        if row.tasks is not None
    ]
    groups = [tasks for tasks in meant if tasks.ranges]
    if not groups or len(groups) > ROWS_ASKED_MAX:
        groups = [name.tasks or TaskSet(())]
    verdicts: dict[str, list[int]] = {}
    changes = _longer(queue, name, asked)
    for tasks in groups:
        refused = _change(session, JobName(name.job_id, tasks if tasks.ranges else None), changes)
        word = "" if refused is None else _sentence(refused)
        verdicts.setdefault(word, []).extend(tasks)
    if set(verdicts) <= {""}:
        return []
    alike = ((word or "No error", TaskSet.of(tasks)) for word, tasks in verdicts.items())
    ordered = sorted(alike, key=lambda pair: pair[1].first)
    return [f"{name.job_id}_{format_tasks(tasks)}: {word}" for word, tasks in ordered]


def _longer(queue: Queue, name: JobName, asked: JobUpdate) -> JobUpdate:
    """Return the update with the time limit that a difference comes to. Raises: SlurmError."""
    if asked.end_ns is not None and queue.jobs:
        return _ending(queue, asked, asked.end_ns)
    if asked.longer_by_s is None or not queue.jobs:
        return asked
    row = next(
        (
            row
            for row in queue.jobs
            if name.tasks is None or (row.tasks and row.tasks.common(name.tasks).ranges)
        ),
        queue.jobs[0],
    )
    limit_s = queue.limit_s(row)
    if not limit_s:
        return asked
    if limit_s + asked.longer_by_s < 0:
        raise SlurmError(
            "scontrol: error: TimeLimit decrement larger than current time limit "
            f"({-asked.longer_by_s // 60} > {limit_s // 60})"
        )
    changes = replace(asked.changes, time_limit_s=max(limit_s + asked.longer_by_s, 60))
    return asked._replace(changes=changes)


def _ending(queue: Queue, asked: JobUpdate, end_ns: int) -> JobUpdate:
    """Return the update with the time limit by which a running job ends at a time."""
    row = queue.jobs[0]
    if row.state not in (JobState.RUNNING, JobState.SUSPENDED):
        return asked._replace(unreadable="job-pending")
    limit_s = max(-(-(end_ns - counted_from_ns(row)) // 60_000_000_000) * 60, 60)
    return asked._replace(changes=replace(asked.changes, time_limit_s=limit_s))


def _change(session: Session, name: JobName, asked: JobUpdate) -> Rejection | None:
    if asked.takes_operator and not session.is_root:
        return Rejection("not-permitted", "this takes an operator")
    if asked.unreadable:
        return Rejection(asked.unreadable, "a part of it cannot be")
    attachments = asked.attachments
    if asked.options:
        text = fetch_texts(session, (name.job_id,)).get(name.job_id)
        options = dict(text.options if text is not None else ()) | dict(asked.options)
        attachments += (Attachment("options", encode_options(tuple(options.items()))),)
        if dict(asked.options).keys() & {"mail-type", "mail-user"}:
            mail = mail_content(options.items())
            attachments += (Attachment("mail", mail),) if mail else ()
    return done(session, UpdateJob(name.job_id, name.tasks, asked.changes, attachments))


def _sentence(refused: Rejection) -> str:
    """Return what scontrol says when it changes a job."""
    return _OF_UPDATES.get(refused.code) or _WORDS.get(refused.code) or sentence_of(refused)


# -- shared


def done(session: Session, request: Request) -> Rejection | None:
    """Ask for something; return why it is refused, or None."""
    answer = session.ask(request, Done)
    return answer if isinstance(answer, Rejection) else None


def for_all(
    session: Session,
    keyword: str,
    words: list[str],
    ask: Callable[[JobName], Rejection | None],
    *,
    ends_with: str = "",
    unknown: str = "",
) -> int:
    """Ask for each job that is named; what fails does not keep the others from being asked.

    `unknown` is said of a job that is not there, where that is not the usual.

    Raises: SlurmError with one line for each failure.
    """
    if not words:
        raise SlurmError(f"too few arguments for keyword:{keyword}")
    lines: list[str] = []
    for word in words:
        told, last = _for_word(session, keyword, word, ask, unknown)
        lines += told
        if told and last and ends_with:
            lines.append(f"{ends_with}: {last}")
    if lines:
        raise SlurmError(*lines)
    return 0


def _for_word(
    session: Session,
    keyword: str,
    word: str,
    ask: Callable[[JobName], Rejection | None],
    unknown: str,
) -> tuple[list[str], str]:
    """Ask for each job of one word; return what failed, and how the last went."""
    requeues = keyword in ("requeue", "requeuehold")
    if keyword != "requeuehold" and word.lower().startswith(("jobid=", "job=")):
        word = word.partition("=")[2]
    texts = split_names(word)
    is_name = word.lower().startswith(("jobname=", "name=")) and not requeues
    if not is_name and any(_parsed(text) is None for text in texts):
        texts = [word]
    lines: list[str] = []
    last = ""
    for text in texts:
        for name in _names(session, text) if is_name else [_parsed(text)]:
            refused = _unknown() if name is None else ask(name)
            last = "No error"
            if refused is None:
                continue
            last = _sentence(refused)
            if requeues:
                last = _WORDS.get(refused.code) or sentence_of(refused)
            if unknown and name is not None and refused.code == "unknown-job":
                last = unknown
            if refused.code == "unknown-job" and name is not None and name.tasks is not None:
                lines.append(_no_tasks(name, last))
                last = ""
                continue
            shown = text if name is None or "=" not in text else str(name.job_id)
            lines.append(f"{last} for job {shown}")
    return lines, last


def _no_tasks(name: JobName, sentence: str) -> str:
    """Return what is said of tasks that are none."""
    return f"{name.job_id}_{format_tasks(name.tasks or TaskSet(()))}: {sentence}"


def _names(session: Session, text: str) -> list[JobName | None]:
    """Return what one word names; None for what is no name of a job."""
    if text.lower().startswith(("jobname=", "name=")):
        return _by_name(session, text.partition("=")[2])
    return [_parsed(text)]


def _parsed(text: str) -> JobName | None:
    try:
        return parse_job_name(text)
    except ValueError:
        return None


def _unknown() -> Rejection:
    return Rejection("unknown-job", "this is no job id")


def _by_name(session: Session, name: str) -> list[JobName | None]:
    """Return the jobs of this name that have not ended."""
    queue = fetch_queue(session, JobFilter(names=(name,), states=LIVE_STATES))
    if not isinstance(queue, Queue):
        raise SlurmError(f"slurm_load_jobs error: {sentence_of(queue)}")
    return [JobName(job.array_id or job.job_id, job.tasks) for job in queue.jobs]
