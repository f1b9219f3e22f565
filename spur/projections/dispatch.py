"""What agents must be told of runs, and which rows owe it.

A running run owes a launch to each node that has not answered; a stopping one owes each node that
may have it alive its death. Both are told again by a new leader: an agent acts once on an attempt.
What was changed of a run since its start (suspended or not, its limit) is owed to each node that
has launched it, as long as it runs there: an agent acts once on a change. A signal is owed by no
row; it is delivered at most once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from spur.events.jobs import JobSpecChanged
from spur.events.nodes import NodeRegistered
from spur.events.runs import (
    JobRelaunched,
    JobStarted,
    NodeCutOff,
    RunEnded,
    RunNotified,
    RunReported,
    RunResumed,
    RunSignalled,
    RunStopped,
    RunSuspended,
)
from spur.projections.apply import At
from spur.projections.attachments import launch_attachments, notice_of
from spur.projections.react import Effect, effect, owes, owes_node, reacts, resume_node
from spur.projections.runrows import FINAL
from spur.values.arrays import TaskSet
from spur.values.ids import JobId, NodeName, PartitionName
from spur.values.jobspec import JobSpec
from spur.values.states import JobState, NodeShareState, Phase, Reach
from spur.values.tres import NodeShare

if TYPE_CHECKING:
    from spur.projections.state import State

__all__ = ["KillRun", "LaunchRun", "NotifyRun", "SignalRun", "SteerRun"]


@effect(
    table="runs",
    cleared_by=(
        RunReported,
        NodeCutOff,
        RunStopped,
        JobRelaunched,
        RunEnded,
        JobSpecChanged,
        RunResumed,
    ),
)
class LaunchRun(Effect, frozen=True):
    """Tell a node to launch its part of a run."""

    node: NodeName
    job_id: JobId
    run: int
    attempt: int
    uid: int
    gid: int
    spec: JobSpec
    array_id: JobId
    tasks: TaskSet | None
    attachments: bytes
    """Packed: its own, or those of its array."""
    partition: PartitionName
    shares: tuple[NodeShare, ...]
    """Of all nodes; the first is where the script runs."""
    limit_ns: int


@effect(table="runs", cleared_by=(RunReported, NodeCutOff, RunStopped, RunEnded))
class KillRun(Effect, frozen=True):
    """Tell a node to end, or never to begin, its part of a run, and to report it."""

    node: NodeName
    job_id: JobId
    run: int
    attempt: int
    state: JobState
    """What the run will be recorded as; it decides which warning the processes get."""


@effect(
    table="runs",
    cleared_by=(
        RunSuspended,
        RunResumed,
        JobSpecChanged,
        RunReported,
        NodeCutOff,
        RunStopped,
        JobRelaunched,
        RunEnded,
    ),
)
class SteerRun(Effect, frozen=True):
    """Tell a node how its part of a run is to go on: still or not, and until when."""

    node: NodeName
    job_id: JobId
    run: int
    attempt: int
    paused: bool
    limit_ns: int
    """0 is without limit."""
    index: int
    """The entry that changed it."""


@effect(at_most_once=True)
class NotifyRun(Effect, frozen=True):
    """Say something to a node's part of a run, where a person may read it."""

    node: NodeName
    job_id: JobId
    run: int
    attempt: int
    attachments: bytes
    """Packed: what is said."""


@effect(at_most_once=True)
class SignalRun(Effect, frozen=True):
    """Send a signal to a node's part of a run."""

    node: NodeName
    job_id: JobId
    run: int
    attempt: int
    signal: int
    reach: Reach


def _launches(state: State, job_id: JobId) -> Iterator[LaunchRun]:
    run = state.runs.get(job_id)
    if run is None or run.phase is not Phase.RUNNING or run.started is None:
        return
    job, started = state.jobs[job_id], run.started
    attachments = launch_attachments(state, job_id)
    # The script of a het job runs in its first component.
    spec = replace(job.spec, batch=False) if job.het_offset else job.spec
    for share, share_state in zip(started.shares, started.states, strict=True):
        if share_state == NodeShareState.OWED:
            yield LaunchRun(
                job_id,
                share.node,
                job_id,
                run.number,
                run.attempt,
                job.uid,
                job.gid,
                spec,
                job.array_id,
                job.tasks,
                attachments,
                started.partition,
                started.shares,
                started.limit_ns,
            )


def _kills(state: State, job_id: JobId) -> Iterator[KillRun]:
    run = state.runs.get(job_id)
    if run is None or run.stop is None or run.started is None:
        return
    for share, share_state in zip(run.started.shares, run.started.states, strict=True):
        if share_state not in FINAL:
            yield KillRun(job_id, share.node, job_id, run.number, run.attempt, run.stop.state)


def _steers(state: State, job_id: JobId) -> Iterator[SteerRun]:
    run = state.runs.get(job_id)
    if run is None or run.phase is not Phase.RUNNING or run.started is None:
        return
    started, course = run.started, run.started.course
    for share, share_state in zip(started.shares, started.states, strict=True):
        if course is not None and share_state == NodeShareState.LAUNCHED:
            yield SteerRun(
                job_id,
                share.node,
                job_id,
                run.number,
                run.attempt,
                course.paused,
                started.limit_ns,
                course.index,
            )


@reacts(JobStarted)
def launches_of_start(state: State, at: At, event: JobStarted) -> Iterator[LaunchRun]:
    """Launch on every node."""
    return _launches(state, event.job_id)


@reacts(JobRelaunched)
def launches_of_relaunch(state: State, at: At, event: JobRelaunched) -> Iterator[LaunchRun]:
    """Launch the new attempt on every node."""
    return _launches(state, event.job_id)


@reacts(JobSpecChanged)
@reacts(RunResumed)
def launches_of_change(
    state: State, at: At, event: JobSpecChanged | RunResumed
) -> Iterator[LaunchRun]:
    """Say it anew to nodes that have not answered; one that acted already acts no second time."""
    return _launches(state, event.job_id)


@reacts(RunSuspended)
@reacts(RunResumed)
def steers_of_turn(state: State, at: At, event: RunSuspended | RunResumed) -> Iterator[SteerRun]:
    """Stop or continue it wherever it was launched."""
    return _steers(state, event.job_id)


@reacts(JobSpecChanged)
def steers_of_change(state: State, at: At, event: JobSpecChanged) -> Iterator[SteerRun]:
    """Say a new limit wherever it was launched."""
    return (steer for steer in _steers(state, event.job_id) if steer.index == at.index)


@reacts(RunReported)
def steers_of_launch(state: State, at: At, event: RunReported) -> Iterator[SteerRun]:
    """Say what was changed before the node had launched it."""
    if event.state is not NodeShareState.LAUNCHED:
        return iter(())
    return (steer for steer in _steers(state, event.job_id) if steer.node == event.node)


@reacts(RunStopped)
def kills_of_stop(state: State, at: At, event: RunStopped) -> Iterator[KillRun]:
    """Kill wherever it may live."""
    return _kills(state, event.job_id)


@reacts(NodeRegistered)
def owed_to_registered(state: State, at: At, event: NodeRegistered) -> list[Effect]:
    """Tell an agent that is back what it may not have heard."""
    return resume_node(state, event.node)


@owes_node
def owed_to_node(state: State, node: NodeName) -> Iterator[LaunchRun | KillRun | SteerRun]:
    """Yield the launches, changes and deaths that runs owe to a node."""
    for job_id in state.allocations.jobs_on(node):
        yield from (launch for launch in _launches(state, job_id) if launch.node == node)
        yield from (steer for steer in _steers(state, job_id) if steer.node == node)
        yield from (kill for kill in _kills(state, job_id) if kill.node == node)


@reacts(RunSignalled)
def signals(state: State, at: At, event: RunSignalled) -> Iterator[SignalRun]:
    """Send the signal to every node, or to the batch script's alone."""
    run = state.runs.get(event.job_id)
    if run is None or run.phase is not Phase.RUNNING or run.started is None:
        return
    shares = run.started.shares[:1] if event.reach is Reach.SCRIPT else run.started.shares
    for share in shares:
        yield SignalRun(
            None,
            share.node,
            event.job_id,
            event.run,
            event.attempt,
            event.signal,
            event.reach,
        )


@reacts(RunNotified)
def notices(state: State, at: At, event: RunNotified) -> Iterator[NotifyRun]:
    """Say it where the script runs, or the first task of a step."""
    run = state.runs.get(event.job_id)
    if run is None or run.phase is not Phase.RUNNING or run.started is None:
        return
    node, said = run.started.shares[0].node, notice_of(state, event.job_id)
    yield NotifyRun(None, node, event.job_id, event.run, event.attempt, said)


@owes(LaunchRun)
def launches_owed(state: State) -> Iterator[LaunchRun]:
    """Yield every launch that a node has not answered, by job."""
    for job_id in state.allocations.jobs():
        yield from _launches(state, job_id)


@owes(KillRun)
def kills_owed(state: State) -> Iterator[KillRun]:
    """Yield every death that is owed, by job."""
    for job_id in state.allocations.jobs():
        yield from _kills(state, job_id)


@owes(SteerRun)
def steers_owed(state: State) -> Iterator[SteerRun]:
    """Yield what was changed of runs since their start, by job."""
    for job_id in state.allocations.jobs():
        yield from _steers(state, job_id)
