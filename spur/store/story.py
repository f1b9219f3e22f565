"""The story of a job: each of its events in a sentence for people.

    @tells(JobHeld)
    def tell_job_held(event: JobHeld, job_id: int) -> str: ...

The read model knows where in the log a job's events are; what they say is read there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from sqlalchemy import Connection, select

from spur.events.codec import decode_envelope
from spur.events.crontabs import CronEntryEnded, CronRepeated
from spur.events.declare import Event
from spur.events.envelope import Entry
from spur.events.jobs import (
    ArrayThrottled,
    JobDependencyJudged,
    JobHeld,
    JobPriorityChanged,
    JobPurged,
    JobReasonsStated,
    JobReleased,
    JobRequeued,
    JobSpecChanged,
    JobSubmitted,
    JobTasksSplit,
    JobTextsChanged,
)
from spur.events.runs import (
    JobRelaunched,
    JobStarted,
    NodeCutOff,
    ReportVoided,
    RunEnded,
    RunNotified,
    RunReported,
    RunResumed,
    RunSignalled,
    RunStopped,
    RunSuspended,
)
from spur.events.steps import (
    GuestAdmitted,
    StepEnded,
    StepReported,
    StepSignalled,
    StepStarted,
    StepStopped,
)
from spur.store.tables import job_events, jobs
from spur.values.arrays import format_tasks
from spur.values.hostlist import format_hostlist
from spur.values.states import Hold, NodeShareState, Reach, Reason
from spur.values.steps import EXTERN_STEP
from spur.values.tres import NodeShare, gpu_indexes
from spur.wire.history import ReadStory, StoryLine

__all__ = ["TELLERS", "Place", "story_lines", "story_places", "tells"]

Place = tuple[int, int]
"""Index of an entry, and position among its events."""

Teller = Callable[[Any, int], str]

TELLERS: dict[type[Event], Teller] = {}
"""What puts each event of a job into words."""

T = TypeVar("T", bound=Teller)


def tells(cls: type[Event]) -> Callable[[T], T]:
    """Register what puts an event into words, given whose story it is."""

    def register(teller: T) -> T:
        if cls in TELLERS:
            raise ValueError(f"{cls.__name__} is told twice")
        TELLERS[cls] = teller
        return teller

    return register


def story_places(connection: Connection, query: ReadStory) -> list[Place]:
    """Return where the lines of a story are, and one more when there are more; oldest first."""
    statement = (
        select(job_events.c.log_index, job_events.c.position)
        .join(jobs, jobs.c.job_id == job_events.c.job_id)
        .where(job_events.c.job_id == query.job_id)
        .order_by(job_events.c.log_index, job_events.c.position)
        .offset(query.after)
        .limit(query.limit + 1)
    )
    if query.uids:
        statement = statement.where(jobs.c.uid.in_(query.uids))
    return [(row.log_index, row.position) for row in connection.execute(statement)]


def story_lines(job_id: int, entry: Entry, positions: Sequence[int]) -> list[StoryLine]:
    """Return the lines that some events of an entry make.

    Raises: UnreadableRecord for an entry that this release can't read.
    """
    envelope, events = decode_envelope(entry.body, entry.index)
    return [
        StoryLine(
            index=entry.index,
            position=position,
            time_ns=envelope.time_ns,
            uid=envelope.actor.uid,
            host_role=envelope.actor.host_role,
            command=envelope.command,
            event=envelope.events[position].type,
            words=_words(events[position], job_id),
        )
        for position in positions
    ]


def _words(event: Event, job_id: int) -> str:
    teller = TELLERS.get(type(event))
    return "" if teller is None else teller(event, job_id)


# -- words


_HOLDS = {
    Hold.NONE: "",
    Hold.USER: "held by its user",
    Hold.ADMIN: "held by an operator",
    Hold.MAX_REQUEUE: "held, since it was requeued too often",
    Hold.LAUNCH_FAILURE: "held, since its launch failed",
    Hold.REQUEUE: "held, as the requeue asked",
}


def _then(text: str) -> str:
    return f", {text}" if text else ""


def _run(number: int) -> str:
    return f"run {number}" if number else "the run"


def _share(share: NodeShare) -> str:
    gpus = gpu_indexes(share.gpus)
    with_gpus = f", GPUs {','.join(map(str, gpus))}" if gpus else ""
    return f"{share.node} ({share.cpus} CPUs, {share.memory_mib} MiB{with_gpus})"


SHARES_SHOWN_MAX = 4
"""Nodes that a line tells of one by one."""


@tells(JobSubmitted)
def tell_job_submitted(event: JobSubmitted, job_id: int) -> str:
    """Tell what was asked for."""
    spec, ask = event.spec, event.spec.ask
    limit = "" if spec.time_limit_s is None else f" for {spec.time_limit_s} s"
    tasks = "" if event.tasks is None else f", as tasks {format_tasks(event.tasks)} of an array"
    return (
        f"{spec.name!r} was submitted to {','.join(spec.partitions)}: {ask.tasks} tasks of"
        f" {ask.cpus_per_task} CPUs{limit}{tasks}{_then(_HOLDS[event.hold])}"
    )


@tells(JobTasksSplit)
def tell_job_tasks_split(event: JobTasksSplit, job_id: int) -> str:
    """Tell which tasks went on by themselves."""
    tasks = format_tasks(event.tasks)
    if job_id == event.from_id:
        return f"task {tasks} of the array went on as job {event.job_id}"
    return f"split off array {event.from_id} as task {tasks}"


@tells(JobHeld)
def tell_job_held(event: JobHeld, job_id: int) -> str:
    """Tell of a hold."""
    return _HOLDS[event.hold]


@tells(JobReleased)
def tell_job_released(event: JobReleased, job_id: int) -> str:
    """Tell that a hold was lifted."""
    return "released"


@tells(JobPriorityChanged)
def tell_job_priority_changed(event: JobPriorityChanged, job_id: int) -> str:
    """Tell of a fixed priority."""
    if event.priority is None:
        return "its priority is the scheduler's again"
    return f"its priority was fixed at {event.priority}"


@tells(JobSpecChanged)
def tell_job_spec_changed(event: JobSpecChanged, job_id: int) -> str:
    """Tell what it asks for now."""
    spec = event.spec
    limit = "the default" if spec.time_limit_s is None else f"{spec.time_limit_s} s"
    return (
        f"changed: it is {spec.name!r} in {','.join(spec.partitions)}, with time limit {limit},"
        f" nice {spec.nice}"
    )


@tells(JobTextsChanged)
def tell_job_texts_changed(event: JobTextsChanged, job_id: int) -> str:
    """Tell that there is another text, and not which."""
    return "its comment or its output path was written anew"


@tells(JobDependencyJudged)
def tell_job_dependency_judged(event: JobDependencyJudged, job_id: int) -> str:
    """Tell what became of what it waited for."""
    held = f"{len(event.held)} of its dependencies came to hold" if event.held else ""
    failed = f"{len(event.failed)} of its dependencies can hold no more" if event.failed else ""
    free = "it waits for no other job any more" if event.frees else ""
    return ", ".join(part for part in (held, failed, free) if part)


@tells(ArrayThrottled)
def tell_array_throttled(event: ArrayThrottled, job_id: int) -> str:
    """Tell how many tasks may run at a time."""
    if not event.throttle:
        return "any number of its tasks may run at a time"
    return f"{event.throttle} of its tasks may run at a time"


@tells(JobRequeued)
def tell_job_requeued(event: JobRequeued, job_id: int) -> str:
    """Tell that it waits once more."""
    return f"put back into the queue as run {event.run}{_then(_HOLDS[event.hold])}"


@tells(JobPurged)
def tell_job_purged(event: JobPurged, job_id: int) -> str:
    """Tell that only history knows it now."""
    return "left the controller's memory"


@tells(JobReasonsStated)
def tell_job_reasons_stated(event: JobReasonsStated, job_id: int) -> str:
    """Tell why it waits."""
    reasons = [single.reason for single in event.jobs if single.job_id == job_id]
    if not reasons or reasons[-1] is Reason.NONE:
        return "waits as others of its kind do"
    return f"waits: {reasons[-1]}"


@tells(JobStarted)
def tell_job_started(event: JobStarted, job_id: int) -> str:
    """Tell where it started, and why there."""
    shares = event.shares
    if len(shares) <= SHARES_SHOWN_MAX:
        where = ", ".join(_share(share) for share in shares)
    else:
        names = format_hostlist(share.node for share in shares)
        where = f"{names}, {sum(share.cpus for share in shares)} CPUs"
    why = _then(event.decision.why_these)
    return f"{_run(event.run)} started in {event.partition} on {where}{why}"


@tells(JobRelaunched)
def tell_job_relaunched(event: JobRelaunched, job_id: int) -> str:
    """Tell of another launch."""
    return f"{_run(event.run)} is launched again, as attempt {event.attempt}"


@tells(RunReported)
def tell_run_reported(event: RunReported, job_id: int) -> str:
    """Tell what a node said."""
    node = event.node
    if event.state is NodeShareState.LAUNCHED:
        return f"{node} launched it"
    if event.state is not NodeShareState.ENDED:
        return f"{node} did not launch it"
    memory = ", out of memory" if event.out_of_memory else ""
    return f"{node} says that it ended{_exit(event.exit_code, event.signal)}{memory}"


@tells(ReportVoided)
def tell_report_voided(event: ReportVoided, job_id: int) -> str:
    """Tell of a report that changed nothing."""
    return f"{event.node} reported attempt {event.attempt}, which it does not hold"


@tells(NodeCutOff)
def tell_node_cut_off(event: NodeCutOff, job_id: int) -> str:
    """Tell of a lost node."""
    if event.state is NodeShareState.LOST:
        return f"{event.node} is cut off; whether it still runs there is not known"
    return f"nothing of it lives on {event.node} any more"


@tells(RunStopped)
def tell_run_stopped(event: RunStopped, job_id: int) -> str:
    """Tell how it is going to end."""
    again = ", to wait again" if event.requeue else ""
    why = f" ({event.reason})" if event.reason is not Reason.NONE else ""
    return f"{_run(event.run)} is ended as {event.state}{why}{again}"


@tells(RunSuspended)
def tell_run_suspended(event: RunSuspended, job_id: int) -> str:
    """Tell that it stands still."""
    return f"{_run(event.run)} is suspended"


@tells(CronRepeated)
def tell_cron_repeated(event: CronRepeated, job_id: int) -> str:
    """Tell that the next of a crontab's jobs waits."""
    return f"it follows job {event.from_id}, as its crontab says"


@tells(CronEntryEnded)
def tell_cron_entry_ended(event: CronEntryEnded, job_id: int) -> str:
    """Tell that none follows."""
    return "it was the last of its crontab's entry"


@tells(RunNotified)
def tell_run_notified(event: RunNotified, job_id: int) -> str:
    """Tell that something was said."""
    return f"somebody said something to {_run(event.run)}"


@tells(RunResumed)
def tell_run_resumed(event: RunResumed, job_id: int) -> str:
    """Tell that it goes on."""
    return f"{_run(event.run)} goes on"


@tells(RunEnded)
def tell_run_ended(event: RunEnded, job_id: int) -> str:
    """Tell the record of a run."""
    why = f" ({event.reason})" if event.reason is not Reason.NONE else ""
    unfenced = "; a lost node may still have it" if event.unfenced else ""
    how = _exit(event.exit_code, event.signal)
    return f"{_run(event.run)} is recorded as {event.state}{how}{why}{unfenced}"


@tells(RunSignalled)
def tell_run_signalled(event: RunSignalled, job_id: int) -> str:
    """Tell of a signal."""
    whom = {
        Reach.STEPS: "its steps",
        Reach.SCRIPT: "its script",
        Reach.ALL: "its script and its steps",
    }
    return f"signal {event.signal} was sent to {whom[event.reach]}"


@tells(StepStarted)
def tell_step_started(event: StepStarted, job_id: int) -> str:
    """Tell of a launch inside the job."""
    nodes = format_hostlist(share.node for share in event.shares)
    tasks = sum(event.tasks)
    return f"step {event.step_id}, {event.name!r}, started {tasks} tasks on {nodes}"


@tells(StepReported)
def tell_step_reported(event: StepReported, job_id: int) -> str:
    """Tell what a node said of a step."""
    if event.state is NodeShareState.LAUNCHED:
        return f"{event.node} launched step {event.step_id}"
    if event.state is not NodeShareState.ENDED:
        return f"{event.node} did not launch step {event.step_id}"
    how = _exit(event.exit_code, event.signal)
    return f"{event.node} says that step {event.step_id} ended{how}"


@tells(StepStopped)
def tell_step_stopped(event: StepStopped, job_id: int) -> str:
    """Tell how a step is going to end."""
    return f"step {event.step_id} is ended as {event.state}"


@tells(StepEnded)
def tell_step_ended(event: StepEnded, job_id: int) -> str:
    """Tell the record of a step."""
    how = _exit(event.exit_code, event.signal)
    return f"step {event.step_id} is recorded as {event.state}{how}"


@tells(GuestAdmitted)
def tell_guest_admitted(event: GuestAdmitted, job_id: int) -> str:
    """Tell who else may speak with its nodes."""
    if event.step_id == EXTERN_STEP:
        return "files may be sent to its nodes"
    return f"one more may speak with step {event.step_id}"


@tells(StepSignalled)
def tell_step_signalled(event: StepSignalled, job_id: int) -> str:
    """Tell of a signal to a step."""
    return f"signal {event.signal} was sent to step {event.step_id}"


def _exit(code: int, signal: int) -> str:
    if signal:
        return f" by signal {signal}"
    return f" with exit code {code}" if code else ""
