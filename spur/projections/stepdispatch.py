"""What agents must be told of steps, and which rows owe it.

As with runs: an open step owes its launch to each node that has not answered, and one that shall
end its death to each node that may have it alive. Once the run itself stops, its death is the
steps' as well, and nothing more is owed for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spur.events.runs import JobRelaunched, NodeCutOff, RunEnded, RunResumed, RunStopped
from spur.events.steps import (
    GuestAdmitted,
    StepEnded,
    StepReported,
    StepSignalled,
    StepStarted,
    StepStopped,
)
from spur.projections.apply import At
from spur.projections.react import Effect, effect, owes, owes_node, reacts
from spur.projections.runrows import FINAL
from spur.projections.steprows import OpenStep, StepsRow, step_in
from spur.values.ids import JobId, NodeName
from spur.values.states import NodeShareState, Phase
from spur.values.steps import EXTERN_STEP, StepState

if TYPE_CHECKING:
    from spur.projections.state import State

__all__ = ["KillStep", "LaunchStep", "LetIn", "SignalStep"]

_RUN_IS_OVER = (RunStopped, NodeCutOff, JobRelaunched, RunEnded)


@effect(
    table="steps",
    cleared_by=(StepReported, StepStopped, StepEnded, RunResumed, *_RUN_IS_OVER),
)
class LaunchStep(Effect, frozen=True):
    """Tell a node to launch its part of a step. What it executes comes over the step's stream."""

    node: NodeName
    job_id: JobId
    run: int
    attempt: int
    uid: int
    gid: int
    step: OpenStep
    """As it was started; what nodes reported since is left out."""


@effect(table="steps", cleared_by=(StepReported, StepEnded, *_RUN_IS_OVER))
class KillStep(Effect, frozen=True):
    """Tell a node to end, or never to begin, its part of a step, and to report it."""

    node: NodeName
    job_id: JobId
    run: int
    attempt: int
    step_id: int
    state: StepState
    """What the step will be recorded as; it decides which warning the processes get."""
    at_once: bool


@effect(at_most_once=True)
class SignalStep(Effect, frozen=True):
    """Send a signal to a node's part of a step."""

    node: NodeName
    job_id: JobId
    run: int
    attempt: int
    step_id: int
    signal: int


@effect(at_most_once=True)
class LetIn(Effect, frozen=True):
    """Let a guest speak with a node's part of a step, or of a run."""

    node: NodeName
    job_id: JobId
    run: int
    attempt: int
    step_id: int
    key_digest: bytes


def _live(state: State, job_id: JobId) -> StepsRow | None:
    """Return the steps of a run that goes on; None when they owe nothing by themselves."""
    row, run = state.steps.get(job_id), state.runs.get(job_id)
    return row if run is not None and run.phase is Phase.RUNNING else None


def _launches(state: State, job_id: JobId, row: StepsRow, step: OpenStep) -> Iterator[LaunchStep]:
    if step.stop is not None or NodeShareState.OWED not in step.states:
        return
    job = state.jobs[job_id]
    begun = _as_started(step)
    for share, share_state in zip(step.shares, step.states, strict=True):
        if share_state == NodeShareState.OWED:
            yield LaunchStep(
                job_id, share.node, job_id, row.run, row.attempt, job.uid, job.gid, begun
            )


def _as_started(step: OpenStep) -> OpenStep:
    """Return the step without what was reported, so that an effect is the same when told again."""
    return OpenStep(
        step.step_id,
        step.name,
        step.shares,
        step.tasks,
        bytes(len(step.shares)),
        step.dealing,
        step.plane,
        step.cpus_per_task,
        step.overlaps,
        step.key_digest,
        step.start_ns,
        step.limit_ns,
        None,
        False,
        0,
        0,
        0,
        False,
    )


def _kills(job_id: JobId, row: StepsRow, step: OpenStep) -> Iterator[KillStep]:
    if step.stop is None:
        return
    for share, share_state in zip(step.shares, step.states, strict=True):
        if share_state not in FINAL:
            yield KillStep(
                job_id,
                share.node,
                job_id,
                row.run,
                row.attempt,
                step.step_id,
                step.stop,
                step.stops_at_once,
            )


@reacts(StepStarted)
def launches_of_step(state: State, at: At, event: StepStarted) -> Iterator[LaunchStep]:
    """Launch on every node."""
    row = _live(state, event.job_id)
    step = step_in(row, event.step_id)
    if row is not None and step is not None:
        yield from _launches(state, event.job_id, row, step)


@reacts(RunResumed)
def launches_of_resumed(state: State, at: At, event: RunResumed) -> Iterator[LaunchStep]:
    """Say it anew to nodes that have not answered: the limits of the steps have moved."""
    return (owed for owed in _owed(state, event.job_id) if isinstance(owed, LaunchStep))


@reacts(StepStopped)
def kills_of_step(state: State, at: At, event: StepStopped) -> Iterator[KillStep]:
    """Kill wherever it may live."""
    row = _live(state, event.job_id)
    step = step_in(row, event.step_id)
    if row is not None and step is not None:
        yield from _kills(event.job_id, row, step)


@owes_node
def steps_owed_to_node(state: State, node: NodeName) -> Iterator[LaunchStep | KillStep]:
    """Yield the launches and deaths that steps owe to a node."""
    for job_id in state.allocations.jobs_on(node):
        for owed in _owed(state, job_id):
            if owed.node == node:
                yield owed


@reacts(StepSignalled)
def signals_of_step(state: State, at: At, event: StepSignalled) -> Iterator[SignalStep]:
    """Send the signal to every node of the step that may have it alive."""
    row = _live(state, event.job_id)
    step = step_in(row, event.step_id)
    if row is None or step is None:
        return
    for share, share_state in zip(step.shares, step.states, strict=True):
        if share_state not in FINAL:
            yield SignalStep(
                None,
                share.node,
                event.job_id,
                event.run,
                event.attempt,
                event.step_id,
                event.signal,
            )


@reacts(GuestAdmitted)
def guests_let_in(state: State, at: At, event: GuestAdmitted) -> Iterator[LetIn]:
    """Tell every node that has something of it."""
    run = state.runs.get(event.job_id)
    step = step_in(_live(state, event.job_id), event.step_id)
    if event.step_id != EXTERN_STEP:
        shares = () if step is None else step.shares
    else:
        shares = () if run is None or run.started is None else run.started.shares
    for share in shares:
        yield LetIn(
            None,
            share.node,
            event.job_id,
            event.run,
            event.attempt,
            event.step_id,
            event.key_digest,
        )


def _owed(state: State, job_id: JobId) -> Iterator[LaunchStep | KillStep]:
    row = _live(state, job_id)
    for step in () if row is None else row.steps:
        if row is not None:
            yield from _launches(state, job_id, row, step)
            yield from _kills(job_id, row, step)


@owes(LaunchStep)
def step_launches_owed(state: State) -> Iterator[LaunchStep]:
    """Yield every launch that a node has not answered, by job and step."""
    for job_id in state.steps.sorted_keys():
        yield from (owed for owed in _owed(state, job_id) if isinstance(owed, LaunchStep))


@owes(KillStep)
def step_kills_owed(state: State) -> Iterator[KillStep]:
    """Yield every death that is owed, by job and step."""
    for job_id in state.steps.sorted_keys():
        yield from (owed for owed in _owed(state, job_id) if isinstance(owed, KillStep))
