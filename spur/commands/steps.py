"""Commands about steps: srun starts and ends them, agents report them."""

from __future__ import annotations

from bisect import bisect_right

from spur.commands.decide import Context, Decision, command
from spur.commands.nodes import refuse_agent
from spur.commands.permissions import Permission, may_act_for, sees_all_jobs
from spur.commands.runs import refuse_report
from spur.commands.steplayout import lay_out
from spur.events.runs import ReportVoided, RunStopped
from spur.events.steps import (
    GuestAdmitted,
    StepEnded,
    StepReported,
    StepSignalled,
    StepStarted,
    StepStopped,
)
from spur.projections.agents import is_heard
from spur.projections.runrows import RunRow, StartedRun, is_paused
from spur.projections.state import State
from spur.projections.steprows import OpenStep, StepsRow, ended_state, is_over, step_in
from spur.projections.steps import next_step_id, reported_step
from spur.projections.stepviews import step_view
from spur.values.errors import Rejection
from spur.values.ids import JobId
from spur.values.states import Hold, JobState, NodeShareState, Phase, Reason
from spur.values.steps import EXTERN_STEP, StepState
from spur.wire.declare import Done
from spur.wire.runs import ReportAnswered
from spur.wire.steps import (
    AdmitGuest,
    CancelStep,
    GuestAccepted,
    QuerySteps,
    ReleaseAllocation,
    ReportStep,
    SignalStep,
    StartStep,
    StepAccepted,
    StepPage,
    StepView,
)
from spur.wire.streams import key_digest

__all__ = ["OPEN_STEPS_MAX", "STEPS_MAX"]

STEPS_MAX = 40_000
"""Steps that one run may have. Source: slurm.conf(5) MaxStepCount."""

OPEN_STEPS_MAX = 1_000
"""Steps of one run at a time: they are one row."""

SIGNAL_MAX = 64
"""The highest signal of Linux."""

STEP_ROWS_PER_PAGE_MAX = 1_000


@command(StartStep, permission=Permission.USER)
def decide_start_step(state: State, request: StartStep, context: Context) -> Decision | Rejection:
    """Give a step its part of a running job's allocation."""
    job_id = request.job_id
    found = _running(state, job_id, context)
    if isinstance(found, Rejection):
        return found
    if context.actor.uid != state.jobs[job_id].uid:
        # A step executes what its starter says as the job's user.
        return Rejection(
            "not-permitted", f"only its own user starts steps of job {job_id}; none was started"
        )
    run, started = found
    if request.run not in (None, run.number):
        return Rejection(
            "job-ended", f"run {request.run} of job {job_id} has ended; the step was not started"
        )
    if is_paused(run):
        return Rejection("step-busy", f"job {job_id} is suspended; the step was not started")
    row = state.steps.get(job_id)
    open_steps = () if row is None else row.steps
    step_id = next_step_id(state, job_id)
    for name, limit, needed in (
        ("steps-max", STEPS_MAX, step_id + 1),
        ("open-steps-max", OPEN_STEPS_MAX, len(open_steps) + 1),
    ):
        if needed > limit:
            return Rejection(
                "limit-exceeded", f"{name} is {limit}, and this needs {needed}; it was not started"
            )
    ask = request.ask
    if not _is_sensible(request):
        return Rejection("invalid-value", "a count of the step is negative; it was not started")
    try:
        layout = lay_out(started.shares, open_steps, ask)
    except ValueError as error:
        return Rejection("invalid-value", f"{error}; the step was not started")
    if isinstance(layout, Rejection):
        return layout
    event = StepStarted(
        job_id,
        run.number,
        run.attempt,
        step_id,
        request.name,
        layout.shares,
        layout.tasks,
        ask.dealing,
        max(1, ask.plane),
        ask.cpus_per_task or 1,
        ask.overlaps,
        request.time_limit_s,
        key_digest(request.key),
    )
    return Decision((event,), StepAccepted(run.number, step_id))


def _is_sensible(request: StartStep) -> bool:
    ask = request.ask
    counts = (
        ask.nodes_min,
        ask.nodes_max,
        ask.tasks,
        ask.tasks_per_node,
        ask.cpus_per_task,
        ask.plane,
        ask.relative or 0,
        ask.memory_mib + 1,
        *(gres.count for gres in ask.gres or ()),
    )
    return all(0 <= count < 1 << 32 for count in counts)


def _running(
    state: State, job_id: JobId, context: Context
) -> tuple[RunRow, StartedRun] | Rejection:
    """Return the run of a job that the caller may use and that goes on, or why there is none."""
    job, run = state.jobs.get(job_id), state.runs.get(job_id)
    if job is None or run is None:
        return Rejection("unknown-job", f"there is no job {job_id}; nothing was changed")
    if not may_act_for(state, context.actor, job.uid):
        return Rejection(
            "not-permitted", f"job {job_id} belongs to uid {job.uid}; nothing was changed"
        )
    if run.phase is Phase.PENDING:
        return Rejection("job-pending", f"job {job_id} has not started; nothing was changed")
    if run.phase is not Phase.RUNNING or run.started is None:
        return Rejection("job-ended", f"job {job_id} has ended; nothing was changed")
    return run, run.started


@command(ReportStep, permission=Permission.AGENT, remembered=False)
def decide_report_step(state: State, request: ReportStep, context: Context) -> Decision | Rejection:
    """Take a node's report about a step: done, already, or void, which frees nothing."""
    refused = refuse_agent(state, context, request.node) or refuse_report(request)
    if refused is not None:
        return refused
    node, outbox, number = request.node, request.outbox, request.number
    if is_heard(state, node, outbox, number):
        return Decision((), ReportAnswered("already"))
    job_id, step_id = request.job_id, request.step_id
    open_step = step_in(state.steps.get(job_id), step_id)
    end_ns = 0
    if open_step is not None and request.state is not NodeShareState.LAUNCHED:
        end_ns = max(open_step.start_ns, context.now_ns - request.age_ns)
    reported = StepReported(
        node,
        outbox,
        number,
        job_id,
        request.run,
        request.attempt,
        step_id,
        request.state,
        request.exit_code,
        request.signal,
        request.out_of_memory,
        end_ns,
    )
    row = reported_step(state, reported)
    step = step_in(row, step_id)
    if row is None or step is None:
        voided = ReportVoided(node, outbox, number, job_id, request.run, request.attempt)
        return Decision((voided,), ReportAnswered("void"))
    if not is_over(step):
        return Decision((reported,), ReportAnswered("done"))
    ended = _ended(job_id, row, step, state.runs[job_id])
    return Decision((reported, ended), ReportAnswered("done"))


def _ended(job_id: JobId, row: StepsRow, step: OpenStep, run: RunRow) -> StepEnded:
    """Return the record of a step whose nodes have all reported it."""
    kind = ended_state(step)
    if run.stop is not None and step.stop is None and kind is StepState.FAILED:
        # Its run was stopped and took it along, unless its holder let it go after the step's end.
        is_released = run.stop.state in (JobState.COMPLETED, JobState.FAILED)
        if step.signal or not is_released:
            kind = StepState.CANCELLED
    return StepEnded(job_id, row.run, step.step_id, kind, step.exit_code, step.signal, step.end_ns)


@command(CancelStep, permission=Permission.USER)
def decide_cancel_step(state: State, request: CancelStep, context: Context) -> Decision | Rejection:
    """End a step; one that ends already is left to end as it does."""
    found = _open(state, request.job_id, request.step_id, context)
    if isinstance(found, Rejection):
        return found
    row, step = found
    if step.stop is not None:
        return Decision((), Done())
    stopped = StepStopped(
        request.job_id, row.run, step.step_id, StepState.CANCELLED, request.at_once
    )
    return Decision((stopped,), Done())


@command(SignalStep, permission=Permission.USER)
def decide_signal_step(state: State, request: SignalStep, context: Context) -> Decision | Rejection:
    """Send a signal to a step."""
    if not 1 <= request.signal <= SIGNAL_MAX:
        return Rejection(
            "invalid-value",
            f"signal {request.signal} is not from 1 to {SIGNAL_MAX}; nothing was changed",
        )
    found = _open(state, request.job_id, request.step_id, context)
    if isinstance(found, Rejection):
        return found
    row, step = found
    signalled = StepSignalled(request.job_id, row.run, row.attempt, step.step_id, request.signal)
    return Decision((signalled,), Done())


@command(AdmitGuest, permission=Permission.USER)
def decide_admit_guest(state: State, request: AdmitGuest, context: Context) -> Decision | Rejection:
    """Let one more speak with the nodes of a step, or of a run."""
    job_id, step_id = request.job_id, request.step_id
    found = _running(state, job_id, context)
    if isinstance(found, Rejection):
        return found
    if context.actor.uid not in (0, state.jobs[job_id].uid):
        # A guest writes to the tasks' input, and files, as the job's user.
        return Rejection(
            "not-permitted", f"only its own user speaks with the steps of job {job_id}"
        )
    run, started = found
    shares = started.shares
    if step_id != EXTERN_STEP:
        opened = _open(state, job_id, step_id, context)
        if isinstance(opened, Rejection):
            return opened
        shares = opened[1].shares
    admitted = GuestAdmitted(job_id, run.number, run.attempt, step_id, key_digest(request.key))
    nodes = tuple(share.node for share in shares)
    known = (state.nodes.get(node) for node in nodes)
    addresses = tuple("" if node is None else node.address for node in known)
    return Decision((admitted,), GuestAccepted(run.number, nodes, addresses))


def _open(
    state: State, job_id: JobId, step_id: int, context: Context
) -> tuple[StepsRow, OpenStep] | Rejection:
    """Return an open step that the caller may act on, or why there is none."""
    found = _running(state, job_id, context)
    if isinstance(found, Rejection):
        return found
    row = state.steps.get(job_id)
    step = step_in(row, step_id)
    if row is not None and step is not None:
        return row, step
    if row is not None and step_id < row.next_id:
        return Rejection("job-ended", f"step {job_id}.{step_id} has ended; nothing was changed")
    return Rejection("unknown-job", f"there is no step {job_id}.{step_id}; nothing was changed")


@command(ReleaseAllocation, permission=Permission.USER)
def decide_release_allocation(
    state: State, request: ReleaseAllocation, context: Context
) -> Decision | Rejection:
    """End an allocation whose holder is done with it."""
    job_id = request.job_id
    found = _running(state, job_id, context)
    if isinstance(found, Rejection):
        return found
    if state.jobs[job_id].spec.batch:
        return Rejection(
            "wrong-state",
            f"job {job_id} ends with its script; nothing was changed",
            "to end it before, cancel it",
        )
    run, _ = found
    kind, reason = JobState.COMPLETED, Reason.NONE
    if request.signal:
        kind, reason = JobState.FAILED, Reason.RAISED_SIGNAL
    elif request.exit_code:
        kind, reason = JobState.FAILED, Reason.NON_ZERO_EXIT_CODE
    stopped = RunStopped(
        job_id, run.number, kind, reason, False, Hold.NONE, request.exit_code, request.signal
    )
    return Decision((stopped,), Done())


@command(QuerySteps, permission=Permission.USER, reads=True)
def decide_query_steps(state: State, request: QuerySteps, context: Context) -> Decision | Rejection:
    """Show the open steps of a slice of the jobs."""
    if not 1 <= request.limit <= STEP_ROWS_PER_PAGE_MAX:
        return Rejection(
            "invalid-value", f"a limit of {request.limit}; it is from 1 to {STEP_ROWS_PER_PAGE_MAX}"
        )
    wanted = sorted(set(request.job_ids)) or state.steps.sorted_keys()
    rows: list[StepView] = []
    sees_all, uid = sees_all_jobs(state, context.actor), context.actor.uid
    for job_id in wanted[bisect_right(wanted, request.after) :]:
        row = state.steps.get(job_id)
        if row is None or not row.steps or not (sees_all or state.jobs[job_id].uid == uid):
            continue
        if rows and len(rows) + len(row.steps) > request.limit:
            return Decision((), StepPage(tuple(rows), rows[-1].job_id))
        rows.extend(step_view(state, job_id, row, step) for step in row.steps)
    return Decision((), StepPage(tuple(rows), None))
