"""Commands about what priorities are made of."""

from __future__ import annotations

from spur.commands.decide import Context, Decision, command
from spur.commands.permissions import Permission, sees_all_jobs
from spur.projections.priority import factors_of
from spur.projections.state import State
from spur.values.errors import Rejection
from spur.values.states import Phase
from spur.wire.factors import FactorList, FactorView, JobFactors, QueryFactors

__all__ = ["FACTOR_JOBS_MAX", "decide_query_factors"]

FACTOR_JOBS_MAX = 1_000
"""Jobs that one question about factors may name."""


@command(QueryFactors, permission=Permission.USER, reads=True)
def decide_query_factors(
    state: State, request: QueryFactors, context: Context
) -> Decision | Rejection:
    """Show the factors of jobs that wait, in each of their partitions."""
    if len(request.job_ids) > FACTOR_JOBS_MAX:
        text = f"{len(request.job_ids)} jobs are named; it takes at most {FACTOR_JOBS_MAX}"
        return Rejection("invalid-value", text)
    sees_all, uid = sees_all_jobs(state, context.actor), context.actor.uid
    rows = []
    for job_id in request.job_ids:
        job, run = state.jobs.get(job_id), state.runs.get(job_id)
        if job is None or run is None or run.phase is not Phase.PENDING:
            continue
        if not (sees_all or job.uid == uid):
            continue
        for partition in job.spec.partitions:
            factors = factors_of(state, job.spec, job.uid, partition)
            views = (FactorView(each.name, each.value, each.weight) for each in factors)
            rows.append(JobFactors(job_id, partition, tuple(views)))
    return Decision((), FactorList(tuple(rows)))
