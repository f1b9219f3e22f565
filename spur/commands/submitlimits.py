"""Limits of QOS and associations on how many jobs wait and run: what is over them is not accepted.

Each task of an array counts as a job. Jobs are counted only where a limit is set.

Source: sacctmgr(1) MaxSubmitJobs, GrpSubmitJobs; what Slurm 22.05 answered.
"""

from __future__ import annotations

from typing import NamedTuple

from spur.projections.jobs import JobRow
from spur.projections.limits import enforced, line_of_job
from spur.projections.state import State
from spur.values.accounts import number_setting
from spur.values.errors import Rejection
from spur.values.jobspec import JobSpec
from spur.values.states import Phase

__all__ = ["refuse_over_submit_limits"]


class _Counts(NamedTuple):
    """Whose jobs a limit counts."""

    code: str
    qos: str
    """Empty for any, as are account and user."""
    accounts: frozenset[str]
    uid: int | None
    most: int


def refuse_over_submit_limits(
    state: State, spec: JobSpec, *, uid: int, come: int
) -> Rejection | None:
    """Return why so many more jobs of a user are too many, or None."""
    if not state.associations.rows or "limits" not in enforced(state):
        return None
    for limit in _limits(state, spec, uid):
        there = sum(
            1 if job.tasks is None else job.tasks.count
            for job_id, job in state.jobs.rows.items()
            if _is_counted(job, limit) and state.runs[job_id].phase is not Phase.ENDED
        )
        if there + come > limit.most:
            return Rejection(
                limit.code,
                f"{there} jobs are there, {come} come and {limit.most} may be; nothing was changed",
            )
    return None


def _is_counted(job: JobRow, limit: _Counts) -> bool:
    spec = job.spec
    return (
        (limit.uid is None or job.uid == limit.uid)
        and (not limit.qos or spec.qos == limit.qos)
        and (not limit.accounts or spec.account in limit.accounts)
    )


def _limits(state: State, spec: JobSpec, uid: int) -> list[_Counts]:
    """Return the limits that count, those of the QOS first."""
    found: list[_Counts] = []
    anyone: frozenset[str] = frozenset()
    own = frozenset((spec.account,))
    qos = state.qos.get(spec.qos)
    rows: tuple[tuple[str, str, frozenset[str], int | None], ...] = (
        ("GrpSubmitJobs", "qos-grp-submit-limit", anyone, None),
        ("MaxSubmitJobsPerAccount", "qos-max-submit-per-account", own, None),
        ("MaxSubmitJobsPerUser", "qos-max-submit-per-user", anyone, uid),
    )
    for setting, code, accounts, user in rows if qos is not None else ():
        most = None if qos is None else number_setting(qos.settings, setting)
        if most is not None:
            found.append(_Counts(code, spec.qos, accounts, user, most))
    line = line_of_job(state, uid, spec, spec.partitions[0])
    for key in line:
        settings = state.associations[key].settings
        most = number_setting(settings, "GrpSubmitJobs")
        if most is not None:
            accounts = _below(state, key[0])
            found.append(
                _Counts("assoc-grp-submit-limit", "", accounts, uid if key[1] else None, most)
            )
    nearest = (number_setting(state.associations[key].settings, "MaxSubmitJobs") for key in line)
    most = next((number for number in nearest if number is not None), None)
    if most is not None:
        found.append(_Counts("assoc-max-submit-limit", "", own, uid, most))
    return found


def _below(state: State, account: str) -> frozenset[str]:
    """Return an account and all below it."""
    found, left = {account}, [account]
    while left:
        for key in state.associations_under.keys(left.pop()):
            if not key[1] and key[0] not in found:
                found.add(key[0])
                left.append(key[0])
    return frozenset(found)
