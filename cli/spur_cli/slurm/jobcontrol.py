"""Keywords of scontrol that change jobs: hold, release, requeue, update."""

from __future__ import annotations

import os
from collections.abc import Callable

from msgspec.structs import replace

from spur.slurm.jobids import JobName, parse_job_name, split_names
from spur.slurm.jobupdates import JobUpdate, parse_job_update
from spur.slurm.layers import Layer
from spur.slurm.statewords import LIVE_STATES
from spur.slurm.wording import SlurmError, sentence_of
from spur.values.errors import Rejection
from spur.values.states import Hold
from spur.wire.declare import Done, Request
from spur.wire.jobs import HoldJob, JobFilter, ReleaseJob, RequeueJob, UpdateJob
from spur_cli.slurm.nodecontrol import update_nodes
from spur_cli.slurm.people import LocalCalendar
from spur_cli.slurm.queue import Queue, fetch_queue
from spur_cli.slurm.session import Session

__all__ = ["hold", "release", "requeue", "requeue_hold", "update", "user_hold"]

_WORDS = {
    "job-ended": "Job has already finished",
    "wrong-state": "Job is no longer pending execution",
}
"""What scontrol says where other commands say something else."""


def hold(session: Session, line: Layer, words: list[str]) -> int:
    """Keep jobs from starting; an operator's hold is lifted by operators alone."""
    kinds = (Hold.ADMIN, Hold.USER) if os.getuid() == 0 else (Hold.USER,)

    def ask(name: JobName) -> Rejection | None:
        for kind in kinds:
            refused = _do(session, HoldJob(name.job_id, name.tasks, kind))
            if refused is None or refused.code != "not-permitted":
                break
        return refused

    return _for_all(session, "hold", words, ask, ends_with="slurm_suspend error")


def user_hold(session: Session, line: Layer, words: list[str]) -> int:
    """Keep jobs from starting until their owner lets them go."""

    def ask(name: JobName) -> Rejection | None:
        return _do(session, HoldJob(name.job_id, name.tasks, Hold.USER))

    return _for_all(session, "uhold", words, ask, ends_with="slurm_suspend error")


def release(session: Session, line: Layer, words: list[str]) -> int:
    """Lift holds."""

    def ask(name: JobName) -> Rejection | None:
        return _do(session, ReleaseJob(name.job_id, name.tasks))

    return _for_all(session, "release", words, ask, ends_with="slurm_suspend error")


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
        return _do(session, RequeueJob(name.job_id, name.tasks, hold_them))

    return _for_all(session, keyword, names, ask)


def update(session: Session, line: Layer, words: list[str]) -> int:
    """Change what jobs ask for."""
    if not words:
        raise SlurmError("too few arguments for update keyword")
    pairs = _pairs(words)
    keys = {key.lower() for key, _ in pairs}
    if keys & {"nodename", "node"} and not keys & {"jobid", "job"}:
        return update_nodes(session, pairs)
    others = keys & {"partitionname", "reservationname", "reservation"}
    if others and not keys & {"jobid", "job"}:
        raise SlurmError(f"Update of {others.pop()} is not honoured yet", "Request aborted")
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
    asked = parse_job_update(rest, LocalCalendar())
    if asked == JobUpdate(type(asked.changes)(), None):
        raise SlurmError("No changes specified")
    return _for_all(session, "update", texts, lambda name: _update(session, name, asked))


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


def _update(session: Session, name: JobName, asked: JobUpdate) -> Rejection | None:
    changes = asked.changes
    if asked.longer_by_s is not None:
        queue = fetch_queue(session, JobFilter(job_ids=(name.job_id,)))
        if isinstance(queue, Rejection):
            return queue
        if not queue.jobs:
            return Rejection("unknown-job", f"no job has id {name.job_id}")
        limit_s = queue.limit_s(queue.jobs[0])
        if limit_s:
            changes = replace(changes, time_limit_s=max(limit_s + asked.longer_by_s, 60))
    return _do(session, UpdateJob(name.job_id, name.tasks, changes))


# -- shared


def _do(session: Session, request: Request) -> Rejection | None:
    answer = session.ask(request, Done)
    return answer if isinstance(answer, Rejection) else None


def _for_all(
    session: Session,
    keyword: str,
    words: list[str],
    ask: Callable[[JobName], Rejection | None],
    *,
    ends_with: str = "",
) -> int:
    """Ask for each job that is named; what fails does not keep the others from being asked.

    Raises: SlurmError with one line for each failure.
    """
    texts = [text for word in words for text in split_names(word)]
    if not texts:
        raise SlurmError(f"too few arguments for keyword:{keyword}")
    lines: list[str] = []
    last = ""
    for text in texts:
        if text.lower().startswith(("jobname=", "name=")):
            names = _by_name(session, text.partition("=")[2])
        else:
            names = [_parsed(text)]
        for name in names:
            refused = _unknown() if name is None else ask(name)
            if refused is not None:
                last = _WORDS.get(refused.code) or sentence_of(refused)
                shown = text if name is None or "=" not in text else str(name.job_id)
                lines.append(f"{last} for job {shown}")
    if not lines:
        return 0
    if ends_with:
        lines.append(f"{ends_with}: {last}")
    raise SlurmError(*lines)


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
