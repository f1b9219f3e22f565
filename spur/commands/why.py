"""Why a job waits, for those who ask."""

from __future__ import annotations

from spur.commands.decide import Context, Decision, command
from spur.commands.permissions import Permission, sees_all_jobs
from spur.projections.jobfilters import shown_state
from spur.projections.state import State
from spur.values.errors import Rejection
from spur.values.ids import JobId
from spur.values.states import HOLD_REASONS, Hold, Phase, Reason
from spur.wire.why import ExplainJob, JobExplained

__all__ = ["decide_explain_job"]


@command(ExplainJob, permission=Permission.USER, reads=True)
def decide_explain_job(state: State, request: ExplainJob, context: Context) -> Decision | Rejection:
    """Say of each filter what it makes of the job."""
    job_id = _row_of(state, request)
    if job_id is not None and not sees_all_jobs(state, context.actor):
        job_id = job_id if state.jobs[job_id].uid == context.actor.uid else None
    if job_id is None:
        task = "" if request.task is None else f"_{request.task}"
        return Rejection("unknown-job", f"there is no job {request.job_id}{task}")
    run = state.runs[job_id]
    answer = JobExplained(job_id, shown_state(run), _reason(state, job_id), ())
    if run.phase is Phase.PENDING:
        from spur.scheduling.explain import explain  # the front seldom needs the scheduler's rules

        verdicts = explain(state, job_id, context.now_ns)
        answer = JobExplained(job_id, answer.state, answer.reason, verdicts)
    return Decision((), answer)


def _row_of(state: State, request: ExplainJob) -> JobId | None:
    """Return the row of a job, of a task, or of what waits of an array."""
    members = state.array_jobs.jobs(request.job_id)
    if request.task is not None:
        for member in members:
            tasks = state.jobs[member].tasks
            if tasks is not None and request.task in tasks:
                return member
        return None
    for member in members:
        if state.runs[member].phase is Phase.PENDING:
            return member
    return request.job_id if request.job_id in state.jobs else None


def _reason(state: State, job_id: JobId) -> Reason:
    """Return the reason that squeue shows."""
    job, run = state.jobs[job_id], state.runs[job_id]
    if run.phase is not Phase.PENDING or run.reason is not Reason.NONE:
        return run.reason
    if run.hold is not Hold.NONE:
        return HOLD_REASONS[run.hold]
    row = state.reasons.get((job.spec.partitions[0], state.shared.shape(job.spec.ask)))
    return Reason.NONE if row is None else row.reason
