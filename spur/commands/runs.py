"""Commands about runs: agents' reports, nodes that are gone, reasons for waiting."""

from __future__ import annotations

from spur.commands.decide import Context, Decision, command
from spur.commands.nodes import refuse_agent
from spur.commands.permissions import Permission
from spur.events.declare import Event
from spur.events.jobs import GroupReason, JobReason, JobReasonsStated
from spur.events.runs import ReportVoided, RunReported
from spur.projections.agents import is_heard
from spur.projections.cluster import settings_of
from spur.projections.counters import counter
from spur.projections.jobs import REASONS_STATED_COUNTER
from spur.projections.nodes import block_of, is_closed, node_row
from spur.projections.runrows import FINAL, RunRow, position_of_node
from spur.projections.runs import reported_row
from spur.projections.settling import after_node_known, after_node_lost
from spur.projections.state import State
from spur.values.errors import Rejection
from spur.values.states import NodeShareState, Phase
from spur.wire.declare import Done
from spur.wire.runs import ConfirmNodeDead, ReportAnswered, ReportRun, StateReasons
from spur.wire.steps import ReportStep

__all__ = ["OUTBOX_SIZE", "refuse_report"]

OUTBOX_SIZE = 16
"""Bytes that name an agent's outbox."""

REASONS_PERIOD_NS = 1_000_000_000
"""Between two statements of reasons. Source: LOG-CONTRACT 3.7."""

REASONS_JOBS_MAX = 1_000
"""Source: LOG-CONTRACT 3.7."""

REASONS_GROUPS_MAX = 900
"""With the jobs, as many rows as one entry may change."""

DEAD_PER_PART_MAX = 300
"""Runs that one part of a node's confirmed death deals with, five rows each."""

_TOLD_OF_STEPS = (NodeShareState.LAUNCHED, NodeShareState.ENDED, NodeShareState.VOID)
_TOLD_OF_RUNS = (*_TOLD_OF_STEPS, NodeShareState.DEAD)
"""DEAD: it ran there, and the node booted or lost its supervisor."""


@command(ReportRun, permission=Permission.AGENT, remembered=False)
def decide_report_run(state: State, request: ReportRun, context: Context) -> Decision | Rejection:
    """Take a node's report: done, already, or void, which frees nothing."""
    refused = refuse_agent(state, context, request.node) or refuse_report(request)
    if refused is not None:
        return refused
    node, outbox, number = request.node, request.outbox, request.number
    if is_heard(state, node, outbox, number):
        return Decision((), ReportAnswered("already"))
    job_id = request.job_id
    run = state.runs.get(job_id)
    if run is not None and request.state is NodeShareState.LAUNCHED and _is_launched(run, request):
        return Decision((), ReportAnswered("done"))
    end_ns = 0
    if run is not None and run.started is not None and request.state is not NodeShareState.LAUNCHED:
        end_ns = max(run.started.start_ns, context.now_ns - request.age_ns)
    reported = RunReported(
        node,
        outbox,
        number,
        job_id,
        request.run,
        request.attempt,
        request.state,
        request.exit_code,
        request.signal,
        request.out_of_memory,
        end_ns,
    )
    row = None if run is None else reported_row(run, node, reported)
    if row is None:
        voided = ReportVoided(node, outbox, number, job_id, request.run, request.attempt)
        return Decision((voided,), ReportAnswered("void"))
    follows = after_node_known(
        job_id,
        state.jobs[job_id],
        row,
        closed=_is_void_where_closed(state, row),
        now_ns=context.now_ns,
        policy=settings_of(state).requeue_policy,
    )
    return Decision((reported, *follows), ReportAnswered("done"))


def _is_void_where_closed(state: State, run: RunRow) -> bool:
    """Whether a node that launched nothing of the run takes no new jobs any more."""
    started = run.started
    return started is not None and any(
        share_state == NodeShareState.VOID and is_closed(node_row(state, share.node))
        for share, share_state in zip(started.shares, started.states, strict=True)
    )


def _is_launched(run: RunRow, request: ReportRun) -> bool:
    """Whether the state holds what an agent that is back says of its own: nothing is news."""
    started = run.started
    if started is None or (run.number, run.attempt) != (request.run, request.attempt):
        return False
    position = position_of_node(started, request.node)
    is_open = run.phase in (Phase.RUNNING, Phase.STOPPING)
    return is_open and position is not None and started.states[position] == NodeShareState.LAUNCHED


def refuse_report(request: ReportRun | ReportStep) -> Rejection | None:
    """Return why a report has no meaning, or None."""
    if request.state not in (_TOLD_OF_RUNS if isinstance(request, ReportRun) else _TOLD_OF_STEPS):
        return _malformed(f"a node does not report {request.state.name}")
    if len(request.outbox) != OUTBOX_SIZE:
        return _malformed(f"an outbox is named by {OUTBOX_SIZE} bytes")
    if not 1 <= request.number < 1 << 63:
        return _malformed(f"report {request.number} is not numbered from 1")
    if not 0 <= request.age_ns < 1 << 63:
        return _malformed(f"an end {request.age_ns} ns ago is in the future")
    if not (0 <= request.exit_code <= 255 and 0 <= request.signal <= 127):
        return _malformed(f"exit code {request.exit_code}, signal {request.signal} cannot be")
    return None


def _malformed(text: str) -> Rejection:
    return Rejection("invalid-value", f"{text}; nothing was changed")


@command(ConfirmNodeDead, permission=Permission.OPERATOR, divisible=True)
def decide_confirm_node_dead(
    state: State, request: ConfirmNodeDead, context: Context
) -> Decision | Rejection:
    """Take it that nothing of any run lives on a lost node."""
    node = request.node
    if block_of(state, node) is None:
        return Rejection("unknown-node", f"there is no node {node!r}; nothing was changed")
    row = state.nodes.get(node)
    if row is None or not row.lost_ns:
        return Rejection(
            "wrong-state",
            f"node {node!r} is heard; nothing was changed",
            "to end its jobs, set it down",
        )
    events: list[Event] = []
    dead = 0
    for job_id in state.allocations.jobs_on(node):
        run, started = state.runs[job_id], state.runs[job_id].started
        position = None if started is None else position_of_node(started, node)
        if started is None or position is None or started.states[position] in FINAL:
            continue
        if dead == DEAD_PER_PART_MAX:
            return Decision(tuple(events), Done(), more=True)
        dead += 1
        events += after_node_lost(
            job_id,
            state.jobs[job_id],
            run,
            node,
            state=NodeShareState.DEAD,
            last_seen_ns=row.lost_ns,
            now_ns=context.now_ns,
            policy=settings_of(state).requeue_policy,
        )
    return Decision(tuple(events), Done())


@command(StateReasons, permission=Permission.CLUSTER)
def decide_state_reasons(
    state: State, request: StateReasons, context: Context
) -> Decision | Rejection:
    """Note why jobs wait, at most once a second; jobs that wait no longer are passed over."""
    for name, limit, found in (
        ("reasons-jobs-max", REASONS_JOBS_MAX, len(request.jobs)),
        ("reasons-groups-max", REASONS_GROUPS_MAX, len(request.groups)),
    ):
        if found > limit:
            return Rejection(
                "limit-exceeded", f"{name} is {limit}, and this needs {found}; nothing was changed"
            )
    if context.now_ns - counter(state, REASONS_STATED_COUNTER) < REASONS_PERIOD_NS:
        return Rejection("busy", "reasons were stated less than a second ago; nothing was changed")
    jobs = []
    for single in request.jobs:
        run = state.runs.get(single.job_id)
        if run is not None and run.phase is Phase.PENDING and run.reason is not single.reason:
            jobs.append(JobReason(single.job_id, single.reason))
    groups = []
    for group in request.groups:
        known = state.reasons.get((group.partition, group.shape))
        if known is None or known.reason is not group.reason:
            groups.append(GroupReason(group.partition, group.shape, group.reason))
    if not jobs and not groups:
        return Decision((), Done())
    return Decision((JobReasonsStated(tuple(groups), tuple(jobs)),), Done())
