"""Keywords of scontrol that are about jobs as they run: suspend, resume, wait_job."""

from __future__ import annotations

import sys

from spur.slurm.jobids import JobName
from spur.slurm.layers import Layer
from spur.slurm.wording import SlurmError
from spur.values.errors import Rejection
from spur.values.ids import JobId
from spur.values.states import JobState
from spur.wire.jobs import JobFilter, ResumeJob, SuspendJob
from spur_cli.slurm.jobcontrol import done, for_all
from spur_cli.slurm.queue import fetch_queue
from spur_cli.slurm.session import Session

__all__ = ["resume", "suspend", "wait_job"]

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
