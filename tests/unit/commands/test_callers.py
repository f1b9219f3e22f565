"""What is said to jobs, and jobs that are put before others."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from spur.commands import callers
from spur.projections.attachments import notice_of, unpack_attachments
from spur.projections.dispatch import NotifyRun
from spur.testing.builders import ADMIN, actor
from spur.testing.hall import SPEC, USER, Hall
from spur.values.errors import Rejection
from spur.values.ids import JobId
from spur.wire.declare import Attachment, Done, Request
from spur.wire.jobs import JobChanges, NotifyJob, TopJobs, UpdateJob

SAID = (Attachment("notice", b"the disk is full"),)


@pytest.fixture
def hall() -> Hall:
    return Hall()


def code(hall: Hall, request: Request, uid: int = 1001) -> str:
    index = hall.state.index
    outcome = hall.cluster.ask(request, actor(uid))
    assert isinstance(outcome, Rejection), outcome
    assert hall.state.index == index
    return outcome.code


def test_a_job_is_told_something_on_its_first_node(hall: Hall) -> None:
    """What was said last is kept as a private text, and told to the node once."""
    job_id = hall.start(hall.submit(), hall.share("n2"), hall.share("n1"))
    before = len(hall.cluster.effects)
    assert hall.cluster.ask(NotifyJob(job_id, None, SAID), USER) == Done()
    (effect,) = hall.cluster.effects[before:]
    assert isinstance(effect, NotifyRun)
    assert (effect.node, effect.attachments) == ("n2", notice_of(hall.state, job_id))
    assert [each.name for each in unpack_attachments(effect.attachments)] == ["notice"]


def test_only_what_runs_hears(hall: Hall) -> None:
    """A job that waits, has ended, never was, or is another's."""
    waits, runs = hall.submit(), hall.start(hall.submit())
    assert code(hall, NotifyJob(waits, None, SAID)) == "job-pending"
    assert code(hall, NotifyJob(runs, None, SAID), 1002) == "not-owner"
    assert code(hall, NotifyJob(JobId(99), None, SAID)) == "unknown-job"
    assert code(hall, NotifyJob(runs, None, ())) == "invalid-value"
    assert code(hall, NotifyJob(runs, None, (Attachment("comment", b""),))) == "invalid-value"
    hall.end(runs)
    assert code(hall, NotifyJob(runs, None, SAID)) == "job-ended"


def order(hall: Hall) -> list[JobId]:
    """Return the waiting jobs as they are tried."""
    from spur.scheduling.priority import queue_key

    state = hall.state
    return sorted(
        state.jobs.rows,
        key=lambda job_id: queue_key(hall.state, job_id, state.jobs[job_id], state.runs[job_id]),
    )


def test_listed_jobs_go_first_and_the_others_keep_their_order(hall: Hall) -> None:
    """Five jobs of one user, two of which were made nicer: the last shall go first."""
    a, b, c, d, e = (hall.submit() for _ in range(5))
    hall.cluster.ask(UpdateJob(b, None, JobChanges(nice=10)))
    assert order(hall) == [a, c, d, e, b]
    assert hall.cluster.ask(TopJobs((e, d)), ADMIN) == Done()
    assert order(hall) == [e, d, a, c, b]
    assert hall.state.jobs[b].spec.nice - hall.state.jobs[a].spec.nice == 10


def test_other_kinds_of_jobs_stay_where_they_are(hall: Hall) -> None:
    """Another user's, another partition's, and one whose priority an operator fixed."""
    other = hall.submit(by=actor(1002))
    elsewhere = hall.submit(replace(SPEC, partitions=("debug",)))
    fixed = hall.submit()
    hall.cluster.ask(UpdateJob(fixed, None, JobChanges(priority=5)))
    first, last = hall.submit(), hall.submit()
    before = {job_id: hall.state.jobs[job_id] for job_id in (other, elsewhere, fixed)}
    assert hall.cluster.ask(TopJobs((last, elsewhere)), ADMIN) == Done()
    assert {job_id: hall.state.jobs[job_id] for job_id in before} == before
    assert hall.state.jobs[first].spec.nice > hall.state.jobs[last].spec.nice


def test_users_may_where_the_site_says_so(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without enable_user_top it takes an operator, whatever the job."""
    mine, theirs = hall.submit(), hall.submit(by=actor(1002))
    assert code(hall, TopJobs((mine,))) == "not-permitted"
    assert code(hall, TopJobs((JobId(99),))) == "not-permitted"
    monkeypatch.setattr(callers, "parameter_of", lambda state, name: "bf_continue,enable_user_top")
    assert hall.cluster.ask(TopJobs((mine,)), USER) == Done()
    assert code(hall, TopJobs((theirs,))) == "not-owner"


def test_a_queue_may_be_too_long_to_be_moved(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    """One entry changes so many rows at most."""
    monkeypatch.setattr(callers, "TOP_JOBS_MAX", 2)
    jobs = [hall.submit() for _ in range(3)]
    assert code(hall, TopJobs((jobs[2],)), 0) == "limit-exceeded"
    assert code(hall, TopJobs((hall.start(jobs[0]),)), 0) == "job-ended"
    assert code(hall, TopJobs((JobId(99),)), 0) == "unknown-job"
