"""When a job would start, for those who think about submitting it."""

from __future__ import annotations

from msgspec.structs import replace

from spur.commands.admission import placed_spec, refuse_submission
from spur.commands.decide import Context, Decision, command
from spur.commands.permissions import Permission
from spur.projections.jobs import next_job_id
from spur.projections.state import State
from spur.values.errors import Rejection
from spur.values.hostlist import format_hostlist
from spur.wire.forecasts import ForecastJob, JobForecast
from spur.wire.jobs import SubmitJob

__all__ = ["decide_forecast_job"]


@command(ForecastJob, permission=Permission.USER, reads=True)
def decide_forecast_job(
    state: State, request: ForecastJob, context: Context
) -> Decision | Rejection:
    """Estimate the start of a job that would be accepted."""
    spec = placed_spec(state, request.spec, context)
    if isinstance(spec, Rejection):
        return spec
    # What is handed in with a batch job is not needed to tell when it would start.
    judged = SubmitJob(replace(spec, batch=False), None, 0, False, None, ())
    refused = refuse_submission(state, judged, context)
    if refused is not None:
        return refused
    from spur.scheduling.forecast import (
        could_start,
        forecast,
    )  # the front seldom needs the scheduler's rules

    found = forecast(state, spec, context.now_ns)
    if found is None:
        if could_start(state, spec):
            text = "nodes that could do are out of use; nothing was changed"
            return Rejection("does-not-fit", text)
        text = "the partitions' nodes could never run it; nothing was changed"
        return Rejection("nodes-unavailable", text)
    answer = JobForecast(
        next_job_id(state),
        found.start_ns,
        found.partition,
        format_hostlist(found.nodes),
        found.cpus,
    )
    return Decision((), answer)
