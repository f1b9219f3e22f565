"""Effects about steps as the orders that agents take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spur.projections.cluster import settings_of
from spur.projections.stepdispatch import KillStep, LaunchStep, LetIn, SignalStep
from spur.wire.agents import KillStepOrder, LaunchStepOrder, LetInOrder, SignalStepOrder

if TYPE_CHECKING:
    from spur.projections.state import State

__all__ = ["step_order"]


def step_order(
    state: State, effect: LaunchStep | KillStep | SignalStep | LetIn, index: int
) -> LaunchStepOrder | KillStepOrder | SignalStepOrder | LetInOrder:
    """Return what the effect's node is told; `index` is that of the entry that it follows from."""
    settings = settings_of(state)
    if isinstance(effect, SignalStep):
        return SignalStepOrder(
            effect.node,
            effect.job_id,
            effect.run,
            effect.attempt,
            effect.step_id,
            effect.signal,
            index,
        )
    if isinstance(effect, LetIn):
        return LetInOrder(
            effect.node,
            effect.job_id,
            effect.run,
            effect.attempt,
            effect.step_id,
            effect.key_digest,
        )
    if isinstance(effect, KillStep):
        return KillStepOrder(
            effect.node,
            effect.job_id,
            effect.run,
            effect.attempt,
            effect.step_id,
            effect.state,
            0 if effect.at_once else settings.kill_wait_s,
        )
    step = effect.step
    return LaunchStepOrder(
        effect.node,
        effect.job_id,
        effect.run,
        effect.attempt,
        step.step_id,
        step.name,
        effect.uid,
        effect.gid,
        step.shares,
        step.tasks,
        step.dealing,
        step.plane,
        step.cpus_per_task,
        step.key_digest,
        step.limit_ns,
        settings.name,
        settings.kill_wait_s,
    )
