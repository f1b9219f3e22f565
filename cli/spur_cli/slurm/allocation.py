"""An allocation without a script: asked for, waited for, given back."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from spur.slurm.submission import Submission
from spur.slurm.wording import SlurmError, detail_of, error_line, failure_of, sentence_of
from spur.values.errors import Rejection
from spur.values.ids import JobId
from spur.values.states import JobState
from spur.wire.declare import Done
from spur.wire.jobs import (
    CancelJob,
    JobAccepted,
    JobFilter,
    JobPage,
    JobView,
    QueryJobs,
    SubmitJob,
    page_views,
)
from spur.wire.steps import ReleaseAllocation
from spur_cli.slurm.forecasting import partitions_missing
from spur_cli.slurm.session import Session
from spur_cli.slurm.signals import Signals
from spur_cli.slurm.submitting import texts_of

if TYPE_CHECKING:
    from spur_cli.slurm.staying import Staying

__all__ = ["Allocation", "look_up", "obtain", "release"]

Dial = Callable[[], socket.socket]

FIRST_PAUSE_S = 0.004
LONGEST_PAUSE_S = 0.5
"""Between two looks at a job that waits; each pause is half as long again as the one before."""

SAID_AFTER_S = 0.3
"""How long a job may wait before its user is told: most start at once."""


class _Words(NamedTuple):
    """What a command says that waits, each with the number of its job."""

    waiting: tuple[str, ...]
    interrupted: tuple[str, ...]


_WORDS = {
    "srun": _Words(
        ("srun: job {} queued and waiting for resources",),
        (
            "srun: Job allocation {} has been revoked",
            "srun: error: Unable to allocate resources: Job aborted by signal",
        ),
    ),
    "salloc": _Words(
        (
            "salloc: Pending job allocation {}",
            "salloc: job {} queued and waiting for resources",
        ),
        ("salloc: Job allocation {} has been revoked.", "salloc: Job aborted due to signal"),
    ),
}


class Allocation(NamedTuple):
    """A job that runs, and whether it is ours to end."""

    job: JobView
    is_ours: bool
    staying: Staying | None = None
    """What ends it when we are killed."""


def look_up(session: Session, job_id: JobId) -> JobView | None:
    """Return a job's row; None when there is none. Raises: SlurmError without a controller."""
    page = session.ask(QueryJobs(JobFilter(job_ids=(job_id,)), JobId(0), 2), JobPage)
    if isinstance(page, Rejection):
        raise SlurmError(
            error_line(session.program, f"Unable to query job {job_id}: {sentence_of(page)}")
        )
    return next((job for job in page_views(page) if job.job_id == job_id), None)


def obtain(
    session: Session,
    submission: Submission,
    signals: Signals,
    *,
    immediate_s: int | None,
    is_quiet: bool,
    meanwhile: Callable[[], Dial],
) -> Allocation:
    """Submit and wait until the job runs; what is cut short is cancelled.

    `meanwhile` is called once while the cluster looks for a place: it returns how the agent of this
    host is reached.

    Raises: SlurmError when there is no allocation.
    """
    if submission.hold and immediate_s is not None:
        sentence = f"{failure_of(session.program)}: Job dependency problem"
        raise SlurmError(error_line(session.program, sentence))
    answer = session.ask(
        SubmitJob(
            spec=submission.spec,
            tasks=None,
            throttle=0,
            hold=submission.hold,
            priority=submission.priority,
            attachments=texts_of(submission.text),
        ),
        JobAccepted,
        held_with=signals,
    )
    if isinstance(answer, Rejection):
        raise _refused(session, submission, answer)
    dial = meanwhile()
    from spur_cli.slurm.staying import Staying  # as late as what it needs

    staying = Staying(dial, answer.job_id)
    try:
        job = _wait(
            session, answer.job_id, signals, staying, immediate_s=immediate_s, is_quiet=is_quiet
        )
    except SlurmError:
        staying.leave()
        raise
    return Allocation(job, True, staying)


def _refused(session: Session, submission: Submission, answer: Rejection) -> SlurmError:
    program = session.program
    lines = partitions_missing(session, answer, submission.spec)
    if detail_of(answer):
        lines.append(error_line(program, detail_of(answer)))
    lines.append(error_line(program, f"{failure_of(program)}: {sentence_of(answer)}"))
    if answer.code == "unreachable":
        lines.append(f"hint: {answer.text}")
    return SlurmError(*lines)


def _wait(
    session: Session,
    job_id: JobId,
    signals: Signals,
    staying: Staying,
    *,
    immediate_s: int | None,
    is_quiet: bool,
) -> JobView:
    """Look at the job until it runs."""
    words = _WORDS[session.program]
    begun = time.monotonic()
    pause_s = FIRST_PAUSE_S
    is_told = False
    while True:
        job = look_up(session, job_id)
        waited_s = time.monotonic() - begun
        if job is None or job.state not in (JobState.PENDING, JobState.RUNNING):
            sentence = f"{failure_of(session.program)}: Job/step already completing or completed"
            raise SlurmError(
                f"{session.program}: Job has been cancelled", error_line(session.program, sentence)
            )
        if job.state is JobState.RUNNING:
            if is_told:
                _say(f"{session.program}: job {job_id} has been allocated resources")
            return job
        if not is_told and not is_quiet and waited_s >= SAID_AFTER_S:
            _say(*(line.format(job_id) for line in words.waiting))
            is_told = True
        if immediate_s is not None and waited_s >= immediate_s:
            session.ask(CancelJob(job_id, None), Done)
            sentence = "Unable to allocate resources: Requested nodes are busy"
            status = session.exit_status("SLURM_EXIT_IMMEDIATE")
            raise SlurmError(error_line(session.program, sentence), status=status)
        staying.keep()
        if signals.wait(pause_s):
            session.ask(CancelJob(job_id, None), Done)
            raise SlurmError(*(line.format(job_id) for line in words.interrupted))
        pause_s = min(pause_s * 1.5, LONGEST_PAUSE_S)


def _say(*lines: str) -> None:
    sys.stderr.write("".join(f"{line}\n" for line in lines))


def release(session: Session, job_id: JobId, status: int) -> None:
    """Give an allocation back; one that has ended is left as it is."""
    signal = status - 128 if 128 < status < 192 else 0
    answer = session.ask(ReleaseAllocation(job_id, 0 if signal else status, signal), Done)
    if isinstance(answer, Rejection) and answer.code not in ("job-ended", "unknown-job"):
        session.complain(f"Unable to release job {job_id}: {sentence_of(answer)}")
