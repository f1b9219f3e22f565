"""Runs that stand still: who may stop them, and what becomes of their time."""

from __future__ import annotations

from typing import Any

import pytest

from spur.projections.runrows import ran_ns
from spur.testing.builders import ADMIN
from spur.testing.hall import SPEC, STEP, USER, Hall
from spur.values.errors import Rejection
from spur.values.ids import JobId
from spur.values.states import JobState, NodeShareState, Phase
from spur.wire.declare import Done, Request
from spur.wire.jobs import (
    CancelJob,
    JobChanges,
    JobFilter,
    JobPage,
    JobView,
    QueryJobs,
    RequeueJob,
    ResumeJob,
    SuspendJob,
    UpdateJob,
    page_views,
)
from spur.wire.steps import StartStep

_NS = 1_000_000_000


@pytest.fixture
def hall() -> Hall:
    return Hall()


def done(hall: Hall, request: Request, by: Any = ADMIN) -> None:
    assert hall.cluster.ask(request, by) == Done()


def code(hall: Hall, request: Request, by: Any = ADMIN) -> str:
    """Ask, and return why it is refused; nothing must have changed."""
    index = hall.state.index
    outcome = hall.cluster.ask(request, by)
    assert isinstance(outcome, Rejection), outcome
    assert hall.state.index == index
    return outcome.code


def view(hall: Hall, job_id: JobId) -> JobView:
    page = hall.cluster.ask(QueryJobs(JobFilter(job_ids=(job_id,)), JobId(0), 1))
    assert isinstance(page, JobPage)
    return page_views(page)[0]


def running(hall: Hall) -> JobId:
    """Start a job with a limit of an hour, and let its node say that it runs."""
    job_id = hall.start(hall.submit())
    hall.report("n1", job_id, NodeShareState.LAUNCHED)
    return job_id


def ran_s(hall: Hall, job_id: JobId) -> int:
    started = hall.state.runs[job_id].started
    assert started is not None
    return ran_ns(started, hall.cluster.now_ns) // _NS


def test_time_of_suspension_is_no_time_of_running(hall: Hall) -> None:
    """A job runs 100 s, stands still for 1000 and runs on: its limit comes as much later."""
    job_id = running(hall)
    before = view(hall, job_id)
    hall.cluster.pass_seconds(100)
    done(hall, SuspendJob(job_id, None))
    hall.cluster.pass_seconds(1000)
    stands = view(hall, job_id)
    assert (stands.state, stands.paused, stands.ran_ns // _NS) == (JobState.SUSPENDED, True, 100)
    assert ran_s(hall, job_id) == 100
    done(hall, ResumeJob(job_id, None))
    hall.cluster.pass_seconds(50)
    again = view(hall, job_id)
    assert (again.state, again.paused) == (JobState.RUNNING, False)
    assert (again.limit_ns - before.limit_ns) // _NS == 1000
    assert ran_s(hall, job_id) == 150


def test_a_suspended_job_does_not_reach_its_limit(hall: Hall) -> None:
    """Its limit passes while it stands still; once it goes on it has what was left of it."""
    job_id = running(hall)
    done(hall, SuspendJob(job_id, None))
    hall.cluster.pass_seconds(100_000)
    hall.tick()
    assert hall.state.runs[job_id].phase is Phase.RUNNING
    done(hall, ResumeJob(job_id, None))
    hall.tick()
    assert hall.state.runs[job_id].phase is Phase.RUNNING
    hall.cluster.pass_seconds(100_000)
    hall.tick()
    assert hall.state.runs[job_id].phase is Phase.STOPPING


def test_a_limit_that_is_changed_counts_from_when_it_ran(hall: Hall) -> None:
    """An operator gives more time to a job that was suspended for a while."""
    job_id = running(hall)
    hall.cluster.pass_seconds(100)
    done(hall, SuspendJob(job_id, None))
    hall.cluster.pass_seconds(1000)
    done(hall, UpdateJob(job_id, None, JobChanges(time_limit_s=7200)))
    done(hall, ResumeJob(job_id, None))
    left_ns = view(hall, job_id).limit_ns - hall.cluster.now_ns
    assert round(left_ns / _NS) == 7100


def test_steps_stand_still_with_their_job(hall: Hall) -> None:
    """A step has a limit of its own: it moves too, and no step starts meanwhile."""
    job_id = running(hall)
    step = StartStep(job_id, "s", STEP, 60, bytes(32))
    assert not isinstance(hall.cluster.ask(step, USER), Rejection)
    done(hall, SuspendJob(job_id, None))
    assert code(hall, step, USER) == "step-busy"
    hall.cluster.pass_seconds(1000)
    hall.tick()
    done(hall, ResumeJob(job_id, None))
    hall.tick()
    (row,) = hall.state.steps[job_id].steps
    assert row.stop is None
    assert row.limit_ns > hall.cluster.now_ns


@pytest.mark.parametrize("request_", [CancelJob, RequeueJob], ids=lambda kind: kind.__name__)
def test_a_suspended_job_can_be_ended(hall: Hall, request_: Any) -> None:
    """What stands still is cancelled, or put back: its time until then is kept."""
    job_id = running(hall)
    hall.cluster.pass_seconds(10)
    done(hall, SuspendJob(job_id, None))
    hall.cluster.pass_seconds(10)
    request = request_(job_id, None) if request_ is CancelJob else request_(job_id, None, False)
    done(hall, request, USER)
    assert hall.state.runs[job_id].phase is Phase.STOPPING
    assert ran_s(hall, job_id) == 10


def test_suspending_twice_changes_nothing(hall: Hall) -> None:
    """An operator says it twice, and resumes twice: only the second is no use."""
    job_id = running(hall)
    done(hall, SuspendJob(job_id, None))
    index = hall.state.index
    done(hall, SuspendJob(job_id, None))
    assert hall.state.index == index
    done(hall, ResumeJob(job_id, None))
    assert code(hall, ResumeJob(job_id, None)) == "not-suspended"


@pytest.mark.parametrize("kind", [SuspendJob, ResumeJob], ids=lambda kind: kind.__name__)
def test_only_what_runs_is_suspended_and_by_operators_alone(hall: Hall, kind: Any) -> None:
    """A user tries it on a job of their own; an operator on one that waits, ended, never was."""
    job_id = running(hall)
    assert code(hall, kind(job_id, None), USER) == "not-permitted"
    waits = hall.submit(SPEC)
    assert code(hall, kind(waits, None)) == "job-pending"
    hall.end(job_id)
    assert code(hall, kind(job_id, None)) == "job-ended"
    assert code(hall, kind(JobId(99), None)) == "unknown-job"
