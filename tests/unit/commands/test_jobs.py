"""Commands about jobs: holds, changes, cancels, signals, requeues."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from spur.commands import jobs as job_commands
from spur.commands import targets as job_targets
from spur.commands.decide import Context, Decision, decide
from spur.projections.dispatch import KillRun, SignalRun
from spur.testing.builders import ADMIN, actor
from spur.testing.hall import SPEC, USER, Hall, placement
from spur.values.arrays import TaskSet, format_tasks
from spur.values.errors import Rejection
from spur.values.ids import JobId, NodeName, PartitionName
from spur.values.states import Hold, JobState, NodeShareState, Phase, Reach, Reason
from spur.wire.declare import Done, Request
from spur.wire.jobs import (
    CancelJob,
    CancelJobs,
    HoldJob,
    JobChanges,
    JobFilter,
    JobPage,
    QueryJobs,
    ReleaseJob,
    RequeueJob,
    SignalJob,
    UpdateJob,
)
from spur.wire.nodes import RegisterNode

OTHER = actor(1002)
TEN = TaskSet(((0, 9, 1),))


@pytest.fixture
def hall() -> Hall:
    """Four nodes that are there."""
    return Hall()


def done(hall: Hall, request: Request, by: Any = USER) -> None:
    """Ask, and be told that it is done."""
    assert hall.cluster.ask(request, by) == Done()


def refused(hall: Hall, request: Request, code: str, *, by: Any = USER) -> str:
    """Ask, and return why it is refused; nothing must have changed."""
    index = hall.state.index
    outcome = hall.cluster.ask(request, by)
    assert isinstance(outcome, Rejection), outcome
    assert (outcome.code, hall.state.index) == (code, index)
    assert outcome.text.endswith("nothing was changed")
    return outcome.text


def rows(hall: Hall) -> list[tuple[int, str, JobState]]:
    """Return every job with its tasks and state."""
    views = (hall.view(job_id) for job_id in hall.state.jobs.sorted_keys())
    return [(v.job_id, format_tasks(v.tasks) if v.tasks else "", v.state) for v in views]


EVERY = {
    "hold": HoldJob(JobId(1), None, Hold.USER),
    "release": ReleaseJob(JobId(1), None),
    "update": UpdateJob(JobId(1), None, JobChanges(name="x")),
    "cancel": CancelJob(JobId(1), None),
    "signal": SignalJob(JobId(1), None, 10, Reach.ALL),
    "requeue": RequeueJob(JobId(1), None, False),
}


@pytest.mark.parametrize("request_", EVERY.values(), ids=EVERY.keys())
def test_a_job_that_never_was_is_unknown(hall: Hall, request_: Request) -> None:
    """Someone mistypes a job id."""
    assert "job 1" in refused(hall, request_, "unknown-job")


@pytest.mark.parametrize("request_", EVERY.values(), ids=EVERY.keys())
def test_another_user_s_job_is_not_touched(hall: Hall, request_: Request) -> None:
    """Someone mistypes a job id, and hits a colleague's job; an operator may do it."""
    job_id = hall.submit(hold=True)
    assert "uid 1001" in refused(hall, request_, "not-owner", by=OTHER)
    outcome = hall.cluster.ask(request_, ADMIN)
    assert not isinstance(outcome, Rejection) or outcome.code == "job-pending"
    assert hall.view(job_id).uid == 1001


@pytest.mark.parametrize("name", ["hold", "release", "update", "cancel", "signal"])
def test_a_job_that_has_ended_can_t_be_changed(hall: Hall, name: str) -> None:
    """Someone comes late."""
    hall.start(hall.submit())
    hall.end(JobId(1))
    refused(hall, EVERY[name], "job-ended")


# -- hold and release


def test_a_held_job_waits_until_it_is_released(hall: Hall) -> None:
    """Someone holds a job, sees why it waits, and lets it go; its age begins anew."""
    job_id = hall.submit()
    since_ns = hall.view(job_id).since_ns
    done(hall, HoldJob(job_id, None, Hold.USER))
    assert hall.view(job_id).reason is Reason.HELD_BY_USER
    assert hall.place(placement(job_id, hall.share("n1"))).refused == 1
    done(hall, ReleaseJob(job_id, None))
    assert hall.view(job_id).reason is Reason.NONE
    assert hall.view(job_id).since_ns > since_ns
    hall.start(job_id)


def test_holding_twice_is_one_event(hall: Hall) -> None:
    """A script holds what is held already."""
    job_id = hall.submit()
    done(hall, HoldJob(job_id, None, Hold.USER))
    index = hall.state.index
    done(hall, HoldJob(job_id, None, Hold.USER))
    done(hall, ReleaseJob(hall.submit(), None))
    assert hall.state.index == index + 1


def test_an_administrator_s_hold_takes_an_operator_to_set_and_to_lift(hall: Hall) -> None:
    """A user may not lift what an administrator holds, nor weaken it."""
    job_id = hall.submit()
    refused(hall, HoldJob(job_id, None, Hold.ADMIN), "not-permitted")
    done(hall, HoldJob(job_id, None, Hold.ADMIN), ADMIN)
    done(hall, HoldJob(job_id, None, Hold.USER))
    assert hall.view(job_id).hold is Hold.ADMIN
    refused(hall, ReleaseJob(job_id, None), "not-permitted")
    done(hall, ReleaseJob(job_id, None), ADMIN)
    assert hall.view(job_id).hold is Hold.NONE


def test_a_hold_is_a_user_s_or_an_administrator_s(hall: Hall) -> None:
    """A client asks for a hold that only the cluster sets."""
    refused(hall, HoldJob(hall.submit(), None, Hold.MAX_REQUEUE), "invalid-value")


def test_a_running_job_is_held_when_it_waits_again(hall: Hall) -> None:
    """Someone holds a running job: it runs on, and waits held once it is put back."""
    job_id = hall.start(hall.submit())
    done(hall, HoldJob(job_id, None, Hold.USER))
    assert hall.view(job_id).state is JobState.RUNNING
    done(hall, RequeueJob(job_id, None, False))
    hall.end(job_id)
    view = hall.view(job_id)
    assert (view.state, view.run, view.hold) == (JobState.PENDING, 1, Hold.USER)
    assert view.since_ns > view.submit_ns


def test_releasing_a_running_job_leaves_its_wait_as_it_was(hall: Hall) -> None:
    """Someone changes their mind while the job runs."""
    job_id = hall.start(hall.submit())
    since_ns = hall.view(job_id).since_ns
    done(hall, HoldJob(job_id, None, Hold.USER))
    done(hall, ReleaseJob(job_id, None))
    assert hall.view(job_id).since_ns == since_ns


def test_holding_tasks_splits_them_off(hall: Hall) -> None:
    """Someone holds three tasks of an array; the others go on waiting as one row."""
    array = hall.submit(tasks=TEN)
    done(hall, HoldJob(array, TaskSet(((2, 4, 1),)), Hold.USER))
    assert rows(hall) == [(1, "0-1,5-9", JobState.PENDING), (2, "2-4", JobState.PENDING)]
    assert (hall.view(JobId(1)).hold, hall.view(JobId(2)).hold) == (Hold.NONE, Hold.USER)
    done(hall, ReleaseJob(array, None))
    assert hall.view(JobId(2)).hold is Hold.NONE


def test_tasks_that_an_array_lacks_are_unknown(hall: Hall) -> None:
    """Someone holds task 12 of an array of ten."""
    hall.submit(tasks=TEN)
    refused(hall, HoldJob(JobId(1), TaskSet.single(12), Hold.USER), "unknown-job")
    refused(hall, HoldJob(hall.submit(), TaskSet.single(1), Hold.USER), "unknown-job")


# -- update


def test_a_priority_is_fixed_by_an_operator(hall: Hall) -> None:
    """A user asks for priority, an operator gives it, and later gives it back."""
    job_id = hall.submit()
    update = UpdateJob(job_id, None, JobChanges(priority=50))
    refused(hall, update, "not-permitted")
    done(hall, update, ADMIN)
    assert hall.view(job_id).priority == 50
    done(hall, UpdateJob(job_id, None, JobChanges(priority=-1)), ADMIN)
    assert hall.view(job_id).priority is None
    bad = UpdateJob(job_id, None, JobChanges(priority=-2))
    refused(hall, bad, "invalid-value", by=ADMIN)


def test_a_waiting_job_can_ask_for_something_else(hall: Hall) -> None:
    """Someone corrects name, partition, limit and start of a job that waits."""
    job_id = hall.submit()
    changes = JobChanges(
        name="better",
        partitions=(PartitionName("debug"),),
        account="astro",
        qos="high",
        time_limit_s=60,
        begin_ns=5,
        nice=3,
        requeue=False,
    )
    done(hall, UpdateJob(job_id, None, changes))
    assert hall.view(job_id).spec == replace(
        SPEC,
        name="better",
        partitions=(PartitionName("debug"),),
        account="astro",
        qos="high",
        time_limit_s=60,
        begin_ns=5,
        nice=3,
        requeue=False,
    )
    index = hall.state.index
    done(hall, UpdateJob(job_id, None, changes))
    assert hall.state.index == index


def test_an_update_to_what_has_no_meaning_is_refused(hall: Hall) -> None:
    """Someone changes a job to an unknown partition, none, a bad nice, a bad limit."""
    job_id = hall.submit()

    def change(changes: JobChanges, code: str) -> None:
        refused(hall, UpdateJob(job_id, None, changes), code)

    change(JobChanges(partitions=(PartitionName("gup"),)), "unknown-partition")
    change(JobChanges(partitions=()), "invalid-value")
    change(JobChanges(nice=-1), "not-permitted")
    change(JobChanges(time_limit_s=-1), "invalid-value")


def test_a_running_job_keeps_what_it_was_placed_by(hall: Hall) -> None:
    """Someone moves a running job: too late. Its name can be changed, its limit shortened."""
    job_id = hall.start(hall.submit())
    moved = UpdateJob(job_id, None, JobChanges(partitions=(PartitionName("debug"),)))
    refused(hall, moved, "wrong-state")
    done(hall, UpdateJob(job_id, None, JobChanges(name="x", time_limit_s=60)))
    view = hall.view(job_id)
    assert view.limit_ns == view.start_ns + 60_000_000_000
    longer = UpdateJob(job_id, None, JobChanges(time_limit_s=7_200))
    refused(hall, longer, "not-permitted")
    done(hall, longer, ADMIN)
    assert hall.view(job_id).limit_ns == view.start_ns + 7_200_000_000_000


# -- cancel


def test_a_cancelled_waiting_job_has_its_record_at_once(hall: Hall) -> None:
    """Someone cancels a job that waits, and then once more."""
    job_id = hall.submit()
    done(hall, CancelJob(job_id, None))
    view = hall.view(job_id)
    assert (view.state, view.completing, view.start_ns) == (JobState.CANCELLED, False, 0)
    assert view.end_ns == hall.state.time_ns
    refused(hall, CancelJob(job_id, None), "job-ended")


def test_a_cancelled_running_job_ends_when_its_nodes_say_so(hall: Hall) -> None:
    """Someone cancels a job on two nodes: each is told to kill it, and frees its own share."""
    job_id = hall.start(hall.submit(), hall.share("n1", gpus=3), hall.share("n2"))
    hall.report("n1", job_id, NodeShareState.LAUNCHED)
    done(hall, CancelJob(job_id, None))
    kills = [effect for effect in hall.cluster.effects if isinstance(effect, KillRun)]
    assert [(kill.node, kill.attempt, kill.state) for kill in kills] == [
        ("n1", 1, JobState.CANCELLED),
        ("n2", 1, JobState.CANCELLED),
    ]
    assert (hall.view(job_id).state, hall.view(job_id).completing) == (JobState.CANCELLED, True)
    refused(hall, CancelJob(job_id, None), "job-ended")
    assert hall.report("n1", job_id, NodeShareState.ENDED, signal=15) == "done"
    allocations = hall.state.allocations
    assert allocations.nodes() == ["n2"]
    assert hall.report("n2", job_id, NodeShareState.VOID) == "done"
    view = hall.view(job_id)
    assert (view.state, view.completing, view.signal) == (JobState.CANCELLED, False, 15)
    assert allocations.nodes() == []


def test_cancelling_tasks_leaves_the_others(hall: Hall) -> None:
    """Someone cancels tasks, of which one runs and the others wait: one record for these."""
    array = hall.submit(tasks=TEN)
    running = hall.start(array, task=3)
    done(hall, CancelJob(array, TaskSet(((2, 5, 1),))))
    assert rows(hall) == [
        (1, "0-1,6-9", JobState.PENDING),
        (2, "3", JobState.CANCELLED),
        (3, "2,4-5", JobState.CANCELLED),
    ]
    assert hall.view(running).completing
    done(hall, CancelJob(array, None))
    assert rows(hall)[0] == (1, "0-1,6-9", JobState.CANCELLED)


def test_a_requeued_job_can_still_be_cancelled_for_good(hall: Hall) -> None:
    """Someone requeues a running job and changes their mind before it has stopped."""
    job_id = hall.start(hall.submit())
    done(hall, RequeueJob(job_id, None, False))
    assert hall.view(job_id).state is JobState.REQUEUED
    done(hall, CancelJob(job_id, None))
    hall.end(job_id)
    assert (hall.view(job_id).state, hall.view(job_id).run) == (JobState.CANCELLED, 0)


def test_cancelling_by_filter_ends_what_is_one_s_own(hall: Hall) -> None:
    """Someone cancels all of their jobs by name; a colleague's of the same name stay."""
    first = hall.submit(replace(SPEC, name="sweep"))
    other = hall.submit(replace(SPEC, name="sweep"), by=OTHER)
    kept = hall.submit()
    done(hall, CancelJobs(JobFilter(names=("sweep",))))
    states = [hall.view(job_id).state for job_id in (first, other, kept)]
    assert states == [JobState.CANCELLED, JobState.PENDING, JobState.PENDING]
    done(hall, CancelJobs(JobFilter(names=("nothing",))))


def test_an_empty_filter_cancels_nothing(hall: Hall) -> None:
    """A script forgets its condition."""
    hall.submit()
    refused(hall, CancelJobs(JobFilter()), "invalid-value", by=ADMIN)


@pytest.mark.parametrize("by_filter", [True, False])
def test_a_cancel_that_is_too_big_for_one_entry_is_done_in_parts(
    hall: Hall, monkeypatch: pytest.MonkeyPatch, by_filter: bool
) -> None:
    """Someone cancels more jobs than one entry may change; all end, and they are told once."""
    monkeypatch.setattr(job_targets, "ROWS_PER_PART_MAX", 4)
    monkeypatch.setattr(job_commands, "ROWS_PER_PART_MAX", 4)
    array = hall.submit(tasks=TEN, throttle=0)
    for _ in range(9):
        hall.start(array)
    index = hall.state.index
    request = CancelJobs(JobFilter(uids=(1001,))) if by_filter else CancelJob(array, None)
    done(hall, request)
    assert hall.state.index == index + 3
    assert {hall.view(JobId(job_id)).state for job_id in range(1, 11)} == {JobState.CANCELLED}
    assert {row.phase for row in hall.state.runs.rows.values()} == {Phase.STOPPING, Phase.ENDED}


# -- signal


def test_a_signal_goes_to_every_node_of_a_running_job(hall: Hall) -> None:
    """Someone sends SIGUSR1 to a job on two nodes, then to its script alone."""
    job_id = hall.start(hall.submit(), hall.share("n1"), hall.share("n2"))
    done(hall, SignalJob(job_id, None, 10, Reach.ALL))
    done(hall, SignalJob(job_id, None, 12, Reach.SCRIPT))
    sent = [effect for effect in hall.cluster.effects if isinstance(effect, SignalRun)]
    assert [(signal.node, signal.signal) for signal in sent] == [("n1", 10), ("n2", 10), ("n1", 12)]


def test_a_signal_needs_a_running_job_and_a_number(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Someone signals a job that waits, with a number that is none, and too many at once."""
    array = hall.submit(tasks=TEN)
    refused(hall, SignalJob(array, None, 10, Reach.ALL), "job-pending")
    for number in (0, 65):
        refused(hall, SignalJob(array, None, number, Reach.ALL), "invalid-value")
    monkeypatch.setattr(job_commands, "SIGNALS_MAX", 1)
    hall.start(array)
    hall.start(array)
    refused(hall, SignalJob(array, None, 10, Reach.ALL), "limit-exceeded")
    done(hall, CancelJob(array, None))
    refused(hall, SignalJob(array, None, 10, Reach.ALL), "job-ended")


# -- requeue


def test_a_requeued_running_job_waits_again_once_it_is_dead(hall: Hall) -> None:
    """Someone requeues a running job: the first run has its record, the second waits."""
    job_id = hall.start(hall.submit())
    done(hall, RequeueJob(job_id, None, True))
    done(hall, RequeueJob(job_id, None, True))
    assert (hall.view(job_id).state, hall.view(job_id).completing) == (JobState.REQUEUED, True)
    hall.end(job_id)
    view = hall.view(job_id)
    assert (view.state, view.run, view.hold) == (JobState.PENDING, 1, Hold.REQUEUE)
    (past,) = hall.state.past_runs[job_id].runs
    assert (past.number, past.end.state) == (0, JobState.REQUEUED)
    done(hall, ReleaseJob(job_id, None))
    hall.start(job_id)
    run = hall.state.runs[job_id]
    assert (run.number, run.attempt) == (1, 2)


def test_an_ended_job_can_be_requeued(hall: Hall) -> None:
    """Someone fixes a file and lets the failed job run again."""
    job_id = hall.start(hall.submit())
    hall.end(job_id, exit_code=1)
    done(hall, RequeueJob(job_id, None, False))
    assert (hall.view(job_id).state, hall.view(job_id).run) == (JobState.PENDING, 1)
    hall.start(job_id)
    hall.end(job_id)
    assert hall.view(job_id).state is JobState.COMPLETED
    assert [past.end.state for past in hall.state.past_runs[job_id].runs] == [JobState.FAILED]


def test_a_job_that_waits_is_not_requeued(hall: Hall) -> None:
    """Someone requeues a job that never started."""
    refused(hall, RequeueJob(hall.submit(), None, False), "job-pending")


@pytest.mark.parametrize("spec", [replace(SPEC, requeue=False), replace(SPEC, batch=False)])
def test_a_job_that_may_not_run_twice_is_not_requeued(hall: Hall, spec: Any) -> None:
    """Someone requeues a job submitted with --no-requeue, or an interactive allocation."""
    job_id = hall.start(hall.submit(spec))
    refused(hall, RequeueJob(job_id, None, False), "requeue-disabled")


def test_a_job_has_a_limited_number_of_runs(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop requeues its own job for ever."""
    monkeypatch.setattr(job_commands, "RUNS_MAX", 2)
    job_id = hall.submit()
    done(hall, CancelJob(job_id, None))
    done(hall, RequeueJob(job_id, None, False))
    done(hall, CancelJob(job_id, None))
    text = refused(hall, RequeueJob(job_id, None, False), "limit-exceeded")
    assert text.startswith("runs-max is 2")


def test_tasks_that_ended_together_are_requeued_together(hall: Hall) -> None:
    """Someone cancels a waiting array and wants one of its tasks back: there is one record."""
    array = hall.submit(tasks=TEN)
    done(hall, CancelJob(array, None))
    refused(hall, RequeueJob(array, TaskSet.single(4), False), "wrong-state")
    done(hall, RequeueJob(array, None, False))
    assert rows(hall) == [(1, "0-9", JobState.PENDING)]


def test_a_part_that_lost_its_place_begins_anew(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new leader goes on with a cancel in parts, and does not know where the last one ended."""
    monkeypatch.setattr(job_commands, "ROWS_PER_PART_MAX", 2)
    for _ in range(5):
        hall.submit()
    hall.cluster.ask(CancelJob(JobId(1), None))
    hall.cluster.ask(CancelJob(JobId(2), None))
    request = CancelJobs(JobFilter(uids=(1001,)))
    for resume_after in (0, 2):
        context = Context(
            now_ns=hall.cluster.stamp(),
            index=hall.state.index + 1,
            actor=USER,
            part=2,
            resume_after=resume_after,
        )
        decision = decide(hall.state, request, context)
        assert isinstance(decision, Decision)
        assert (len(decision.events), decision.more, decision.resume_after) == (2, True, 4)


def test_a_compute_host_speaks_for_users_with_a_live_job_there() -> None:
    """A compute host that was broken into asks in the name of users whose jobs run elsewhere."""
    hall = Hall()
    host_id = hall.cluster.add_host("n1", "compute")
    agent = actor(0, host_role="compute", host_id=host_id)
    boot = RegisterNode(NodeName("n1"), b"another boot", 64, 512_000, "gfx942", 8)
    assert hall.cluster.ask(boot, agent) == Done()
    here = hall.start(hall.submit(), hall.share("n1"))
    hall.start(hall.submit(by=OTHER), hall.share("n2"))
    query = QueryJobs(JobFilter(), JobId(0), 10)
    user, other = (actor(uid, host_role="compute", host_id=host_id) for uid in (1001, 1002))
    assert isinstance(hall.cluster.ask(query, user), JobPage)
    assert "no running job" in refused(hall, query, "not-permitted", by=other)
    hall.end(here)
    refused(hall, query, "not-permitted", by=user)
