"""The command that submits a het job: several components, accepted all or none."""

from __future__ import annotations

from msgspec.structs import replace

from spur.commands.admission import placed_spec, refuse_submission
from spur.commands.decide import Context, Decision, command
from spur.commands.permissions import Permission
from spur.events.jobs import JobSubmitted
from spur.projections.jobs import next_job_id
from spur.projections.state import State
from spur.values.errors import Rejection
from spur.values.ids import JobId
from spur.values.jobspec import JobSpec
from spur.values.states import Hold
from spur.wire.jobs import HetComponent, JobAccepted, SubmitHetJob, SubmitJob

__all__ = ["COMPONENTS_MAX", "decide_submit_het_job"]

COMPONENTS_MAX = 128
"""Components of one het job. Source: slurm.h MAX_HET_JOB_COMPS."""


@command(SubmitHetJob, permission=Permission.USER, needs_room=True)
def decide_submit_het_job(
    state: State, request: SubmitHetJob, context: Context
) -> Decision | Rejection:
    """Accept all components and give them ids in a row."""
    size = len(request.components)
    if size > COMPONENTS_MAX:
        return Rejection(
            "limit-exceeded",
            f"het-components-max is {COMPONENTS_MAX}, and this needs {size}; nothing was changed",
        )
    if size < 2:
        return _invalid("a het job has two components or more")
    refused = _refuse_places(request)
    if refused is not None:
        return refused
    first = next_job_id(state)
    events: list[JobSubmitted] = []
    for offset, component in enumerate(request.components):
        spec = _admitted(state, request, component, offset, context)
        if isinstance(spec, Rejection):
            return spec
        events.append(
            JobSubmitted(
                JobId(first + offset),
                context.actor.uid,
                context.actor.gid,
                spec,
                None,
                0,
                first,
                offset,
                size,
                Hold.USER if component.hold else Hold.NONE,
                component.priority,
                component.attachments,
            )
        )
    return Decision(tuple(events), JobAccepted(first))


def _refuse_places(request: SubmitHetJob) -> Rejection | None:
    """Return why components cannot share the attachments as they say, or None."""
    taken = sorted(place for each in request.components for place in each.attachments)
    if taken != list(range(len(request.attachments))):
        return _invalid("each attachment belongs to one component")
    if len({each.spec.batch for each in request.components}) != 1:
        return _invalid("all components are of one batch script, or none is")
    return None


def _admitted(
    state: State, request: SubmitHetJob, component: HetComponent, offset: int, context: Context
) -> JobSpec | Rejection:
    """Return a component's spec as the job has it, or why it is not accepted."""
    others = (each.spec.ask for each in request.components if each is not component)
    ask = component.spec.ask
    # No two components share a node, so none gets what another one names.
    names = (ask.nodes_excluded, *(other.nodes_required for other in others))
    ask = replace(ask, nodes_excluded=",".join(name for name in names if name))
    spec = placed_spec(state, replace(component.spec, ask=ask), context)
    if isinstance(spec, Rejection):
        return spec
    own = tuple(request.attachments[place] for place in component.attachments)
    judged = SubmitJob(
        # The script is the first component's alone.
        spec=replace(spec, batch=spec.batch and not offset),
        tasks=None,
        throttle=0,
        hold=component.hold,
        priority=component.priority,
        attachments=own,
    )
    refused = refuse_submission(state, judged, context, come=len(request.components))
    return spec if refused is None else refused


def _invalid(text: str) -> Rejection:
    return Rejection("invalid-value", f"{text}; nothing was changed")
