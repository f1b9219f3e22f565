"""Mails that jobs ask for: what is to be sent, of which the leader sends what is wanted.

Whether a job wants mail at all is seen by its attachment; about what, and to whom, is in there,
which nobody but the sender reads. No row owes a mail: it is sent at most once.
Source: LOG-CONTRACT 3.4; sbatch(1) --mail-type.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spur.events.jobs import JobDependencyJudged
from spur.events.runs import JobStarted, RunEnded, RunStopped
from spur.projections.apply import At
from spur.projections.attachments import mail_of
from spur.projections.dependencies import never_holds
from spur.projections.jobs import JobRow
from spur.projections.react import Effect, effect, reacts
from spur.projections.runrows import EndNote, PastRun, RunRow, ran_ns
from spur.slurm.mailtypes import spell_subject
from spur.values.ids import JobId
from spur.values.states import JobState, Phase

if TYPE_CHECKING:
    from spur.projections.state import State

__all__ = ["SendMail", "mail_about"]

_NS = 1_000_000_000

_WELL = (JobState.COMPLETED, JobState.CANCELLED, JobState.REQUEUED)
"""Ends that are no failure."""


@effect(at_most_once=True)
class SendMail(Effect, frozen=True):
    """Write to somebody about a job, if that was asked for."""

    job_id: JobId
    uid: int
    kinds: tuple[str, ...]
    """Events; the first that was asked for is written about."""
    subjects: tuple[str, ...]
    """For each of them."""
    is_task: bool
    """About a task of an array, which is written about only where ARRAY_TASKS is asked for."""
    attachments: bytes
    """Packed: about what is written, and to whom."""


@reacts(JobStarted)
def mail_of_start(state: State, at: At, event: JobStarted) -> Iterator[SendMail]:
    """Say that it began; of an array that its first task did, too."""
    packed = mail_of(state, event.job_id)
    run = state.runs.get(event.job_id)
    if not packed or run is None or run.started is None:
        return
    waited_s = (run.started.start_ns - run.since_ns) // _NS
    yield from mail_about(state, event.job_id, ("BEGIN",), packed, waited_s=waited_s)


@reacts(RunEnded)
def mail_of_end(state: State, at: At, event: RunEnded) -> Iterator[SendMail]:
    """Say how it ended; of an array once all of its tasks have."""
    packed = mail_of(state, event.job_id) if event.job_id in state.jobs else b""
    if not packed:
        return
    run = state.runs[event.job_id]
    ended: RunRow | PastRun = run
    kinds: tuple[str, ...] = ("END",) if event.state in _WELL else ("FAIL", "END")
    if run.number != event.run:
        kinds = ("REQUEUE",)
        past = state.past_runs[event.job_id].runs
        ended = next(each for each in past if each.number == event.run)
    ran_s = 0 if ended.started is None else ran_ns(ended.started, event.end_ns) // _NS
    told = _told(event)
    yield from mail_about(state, event.job_id, kinds, packed, ran_s=ran_s, ended=told)


@reacts(RunStopped)
def mail_of_limit(state: State, at: At, event: RunStopped) -> Iterator[SendMail]:
    """Say that its time limit was reached."""
    packed = mail_of(state, event.job_id)
    run = state.runs[event.job_id]
    if packed and event.state is JobState.TIMEOUT and run.started is not None:
        ran_s = ran_ns(run.started, at.time_ns) // _NS
        yield from mail_about(state, event.job_id, ("TIME_LIMIT",), packed, ran_s=ran_s)


@reacts(JobDependencyJudged)
def mail_of_dependency(state: State, at: At, event: JobDependencyJudged) -> Iterator[SendMail]:
    """Say that it will never start."""
    waits = state.dependencies.get(event.job_id)
    packed = mail_of(state, event.job_id)
    if packed and event.failed and waits is not None and never_holds(waits):
        yield from mail_about(state, event.job_id, ("INVALID_DEPEND",), packed)


def _told(event: RunEnded | EndNote) -> str:
    """Return how a run ended: COMPLETED, ExitCode 0."""
    return event.state.value if event.signal else f"{event.state.value}, ExitCode {event.exit_code}"


def mail_about(
    state: State,
    job_id: JobId,
    kinds: tuple[str, ...],
    packed: bytes,
    *,
    waited_s: int | None = None,
    ran_s: int | None = None,
    ended: str = "",
) -> Iterator[SendMail]:
    """Yield the mail about a job, and for a task the one about its array where that is due."""
    job = state.jobs[job_id]

    def mail(called: str, kinds: tuple[str, ...], ended: str, *, is_task: bool) -> SendMail:
        subjects = tuple(
            spell_subject(called, job.spec.name, kind, waited_s=waited_s, ran_s=ran_s, ended=ended)
            for kind in kinds
        )
        return SendMail(None, job_id, job.uid, kinds, subjects, is_task, packed)

    if job.tasks is None:
        yield mail(f"Job_id={job_id}", kinds, ended, is_task=False)
        return
    if job.tasks.is_single:
        called = f"Array Task Job_id={job.array_id}_{job.tasks.first} ({job_id})"
        yield mail(called, kinds, ended, is_task=True)
    whole = _of_array(state, job_id, job, kinds)
    if whole is not None:
        called = f"Array Summary Job_id={job.array_id}_* ({job_id})"
        yield mail(called, whole, _summary(state, job) if ended else "", is_task=False)


def _of_array(
    state: State, job_id: JobId, job: JobRow, kinds: tuple[str, ...]
) -> tuple[str, ...] | None:
    """Return what is to be said of a whole array now; None for nothing."""
    others = [state.runs[each] for each in state.array_jobs.jobs(job.array_id) if each != job_id]
    array = state.arrays[job.array_id]
    if "BEGIN" in kinds:
        began = array.purged or any(run.started is not None or run.number for run in others)
        return None if began else kinds
    if "END" not in kinds or any(run.phase is not Phase.ENDED for run in others):
        return None
    ends = [run.end for run in (*others, state.runs[job_id]) if run.end is not None]
    return ("END",) if all(end.state in _WELL for end in ends) else ("FAIL", "END")


def _summary(state: State, job: JobRow) -> str:
    """Return how the tasks of an array ended together."""
    runs = (state.runs[each] for each in state.array_jobs.jobs(job.array_id))
    ends = [run.end for run in runs if run.end is not None]
    states = {end.state for end in ends}
    codes = [end.exit_code for end in ends]
    word = states.pop().value if len(states) == 1 else "Mixed"
    return f"{word}, ExitCode [{min(codes)}-{max(codes)}]" if codes else word
