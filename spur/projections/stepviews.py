"""Steps as people and srun are shown them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spur.projections.cluster import settings_of
from spur.projections.steprows import OpenStep, StepsRow
from spur.values.ids import JobId
from spur.values.states import Phase
from spur.wire.steps import StepView

if TYPE_CHECKING:
    from spur.projections.state import State

__all__ = ["step_view"]


def step_view(state: State, job_id: JobId, row: StepsRow, step: OpenStep) -> StepView:
    """Return an open step, with the addresses of its nodes' agents."""
    nodes = (state.nodes.get(share.node) for share in step.shares)
    return StepView(
        job_id,
        row.run,
        row.attempt,
        step.step_id,
        step.name,
        state.jobs[job_id].uid,
        step.stop is not None or state.runs[job_id].phase is not Phase.RUNNING,
        step.shares,
        step.tasks,
        step.dealing,
        step.plane,
        step.cpus_per_task,
        tuple("" if node is None else node.address for node in nodes),
        step.start_ns,
        step.limit_ns,
        settings_of(state).kill_wait_s,
    )
