"""Keywords of scontrol that are about jobs as they run or wait: suspend, top, notify and so on."""

from __future__ import annotations

import sys

from spur.slurm.jobids import JobName, parse_job_name, split_names
from spur.slurm.layers import Layer
from spur.slurm.wording import SlurmError, sentence_of
from spur.values.errors import Rejection
from spur.values.ids import JobId
from spur.values.states import JobState
from spur.wire.declare import Attachment
from spur.wire.jobs import JobFilter, NotifyJob, ResumeJob, SuspendJob, TopJobs
from spur_cli.slurm.jobcontrol import done, for_all
from spur_cli.slurm.queue import fetch_queue
from spur_cli.slurm.session import Session

__all__ = ["notify", "resume", "suspend", "top", "wait_job"]

_UNKNOWN = "Unexpected message received"
"""What Slurm says of a job that is not there when it is to be suspended or resumed."""


def suspend(session: Session, line: Layer, words: list[str]) -> int:
    """Let all processes of running jobs stand still."""

    def ask(name: JobName) -> Rejection | None:
        return done(session, SuspendJob(name.job_id, name.tasks))

    return for_all(session, "suspend", words, ask, unknown=_UNKNOWN)


def resume(session: Session, line: Layer, words: list[str]) -> int:
    """Let suspended jobs go on."""

    def ask(name: JobName) -> Rejection | None:
        return done(session, ResumeJob(name.job_id, name.tasks))

    return for_all(session, "resume", words, ask, unknown=_UNKNOWN)


def wait_job(session: Session, line: Layer, words: list[str]) -> int:
    """Say whether the nodes of a job are ready: here they are as soon as it runs."""
    if not words:
        raise SlurmError("too few arguments for keyword:wait_job")
    if len(words) > 1:
        raise SlurmError("too many arguments for keyword:wait_job")
    digits = words[0][: len(words[0]) - len(words[0].lstrip("0123456789"))]
    if not int(digits or "0"):
        raise SlurmError(f"Invalid job_id {words[0]}")
    job_id = JobId(int(digits))
    queue = fetch_queue(session, JobFilter(job_ids=(job_id,)))
    rows = () if isinstance(queue, Rejection) else queue.jobs
    if not any(row.state in (JobState.RUNNING, JobState.SUSPENDED) for row in rows):
        raise SlurmError(f"scontrol: Problem running job {job_id}")
    sys.stderr.write(f"scontrol: Nodes are ready for job {job_id}\n")
    return 0


def top(session: Session, line: Layer, words: list[str]) -> int:
    """Put waiting jobs before the others of their user."""
    if not words:
        raise SlurmError("too few arguments for keyword:top")
    if len(words) > 1:
        raise SlurmError("too many arguments for keyword:top")
    ids = []
    for text in split_names(words[0]):
        try:
            ids.append(parse_job_name(text).job_id)
        except ValueError as error:
            raise SlurmError(f"Invalid job id specified for job {words[0]}") from error
    refused = done(session, TopJobs(tuple(ids)))
    if refused is not None:
        raise SlurmError(f"{sentence_of(refused)} for job {words[0]}")
    return 0


def notify(session: Session, line: Layer, words: list[str]) -> int:
    """Say something to a job."""
    if len(words) < 2:
        raise SlurmError("too few arguments for keyword:notify")
    try:
        name = parse_job_name(words[0])
    except ValueError as error:
        raise SlurmError("job notify failure: Invalid job id specified") from error
    said = " ".join(words[1:]).encode("utf-8", "surrogateescape")
    request = NotifyJob(name.job_id, name.tasks, (Attachment("notice", said),))
    refused = done(session, request)
    if refused is not None:
        raise SlurmError(f"job notify failure: {sentence_of(refused)}")
    return 0
