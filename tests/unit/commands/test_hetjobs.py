"""Het jobs: several components that are accepted, started, put back and ended together."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from spur.projections.dispatch import LaunchRun, SignalRun
from spur.testing.builders import ADMIN, CLUSTER, actor
from spur.testing.hall import ASK, SPEC, USER, Hall, het_submission, placement
from spur.values.errors import Rejection
from spur.values.ids import JobId, PartitionName
from spur.values.jobspec import JobSpec
from spur.values.states import Hold, JobState, NodeShareState, Phase, Reach, Reason
from spur.wire.declare import Request
from spur.wire.jobs import (
    CancelJob,
    CancelJobs,
    HoldJob,
    JobAccepted,
    JobChanges,
    JobFilter,
    ReleaseJob,
    RequeueJob,
    ResumeJob,
    SignalJob,
    SuspendJob,
    UpdateJob,
)

OTHER = actor(1002)


TWO = (SPEC, replace(SPEC, ask=replace(ASK, memory_mib=300)))


@pytest.fixture
def hall() -> Hall:
    """Four nodes that are there."""
    return Hall()


def submitted(hall: Hall, *specs: JobSpec, hold: bool = False) -> list[JobId]:
    """Submit a het job; return the ids of its components."""
    outcome = hall.cluster.ask(het_submission(*(specs or TWO), hold=hold), USER)
    assert isinstance(outcome, JobAccepted), outcome
    return [JobId(outcome.job_id + offset) for offset in range(len(specs or TWO))]


def start(hall: Hall, ids: list[JobId]) -> None:
    """Start all components, each on a node of its own."""
    runs = hall.state.runs
    first, *others = (
        placement(job_id, hall.share(f"n{place + 1}"), run=runs[job_id].number)
        for place, job_id in enumerate(ids)
    )
    judged = hall.place(first, *(replace(other, joined=True) for other in others))
    assert judged.refused == 0, judged


def running(hall: Hall, *specs: JobSpec) -> list[JobId]:
    """Submit and start a het job, and let its nodes say that they launched it."""
    ids = submitted(hall, *specs)
    start(hall, ids)
    for place, job_id in enumerate(ids):
        assert hall.report(f"n{place + 1}", job_id, NodeShareState.LAUNCHED) == "done"
    return ids


def states(hall: Hall, ids: list[JobId]) -> list[JobState]:
    """Return the states that the components are shown in."""
    return [hall.view(job_id).state for job_id in ids]


def test_the_components_get_ids_in_a_row_in_one_entry(hall: Hall) -> None:
    """Three components are submitted, and somebody else's job after them."""
    index = hall.state.index
    ids = submitted(hall, *TWO, SPEC)
    assert hall.state.index == index + 1
    views = [hall.view(job_id) for job_id in ids]
    assert [(view.het_id, view.het_offset, view.het_size) for view in views] == [
        (ids[0], 0, 3),
        (ids[0], 1, 3),
        (ids[0], 2, 3),
    ]
    assert hall.submit() == ids[2] + 1


def test_what_is_wrong_with_one_component_refuses_all(hall: Hall) -> None:
    """The second of two components names a partition that is not there."""
    wrong = replace(SPEC, partitions=(PartitionName("nosuch"),))
    outcome = hall.cluster.ask(het_submission(SPEC, wrong), USER)
    assert isinstance(outcome, Rejection)
    assert outcome.code == "unknown-partition"
    assert not len(hall.state.jobs)


@pytest.mark.parametrize("count", [1, 129])
def test_there_are_two_components_to_128(hall: Hall, count: int) -> None:
    """Somebody asks for one component, or for more than Slurm takes."""
    outcome = hall.cluster.ask(het_submission(*[SPEC] * count), USER)
    assert isinstance(outcome, Rejection)
    assert not len(hall.state.jobs)
    assert isinstance(hall.cluster.ask(het_submission(*[SPEC] * 128), USER), JobAccepted)


def test_components_start_together_or_not_at_all(hall: Hall) -> None:
    """A plan would start one component alone, then one where the other's node has no room."""
    ids = submitted(hall)
    share = hall.share("n1")
    alone = hall.place(placement(ids[0], share))
    assert [refusal.code for refusal in alone.refusals] == ["wrong-state"]
    too_much = hall.share("n2", memory_mib=10_000_000)
    judged = hall.place(placement(ids[0], share), replace(placement(ids[1], too_much), joined=True))
    assert [refusal.code for refusal in judged.refusals] == ["does-not-fit"]
    assert not hall.state.allocations.jobs()
    start(hall, ids)
    views = [hall.view(job_id) for job_id in ids]
    assert views[0].start_ns == views[1].start_ns > 0


def test_a_refused_component_leaves_room_for_others_of_the_plan(hall: Hall) -> None:
    """What the first component would have held goes to the next job of the same plan."""
    ids = submitted(hall)
    single = hall.submit()
    share = hall.share("n1", cpus=64)
    judged = hall.place(
        placement(ids[0], share),
        replace(placement(ids[1], hall.share("n2", memory_mib=10_000_000)), joined=True),
        placement(single, share),
    )
    assert (judged.started, judged.refused) == (1, 1)
    assert hall.view(single).state is JobState.RUNNING


def test_the_script_runs_in_the_first_component_alone(hall: Hall) -> None:
    """Both components are launched; the agent of the second is told of no script."""
    ids = submitted(hall)
    start(hall, ids)
    launches = {
        effect.job_id: effect for effect in hall.cluster.effects if isinstance(effect, LaunchRun)
    }
    assert [launches[job_id].spec.batch for job_id in ids] == [True, False]


def test_the_end_of_the_script_ends_all_components(hall: Hall) -> None:
    """The script of the first component ends with 3; the second held its place until then."""
    ids = running(hall)
    hall.end(ids[0], exit_code=3)
    hall.tick()
    assert states(hall, ids) == [JobState.FAILED, JobState.FAILED]
    assert hall.view(ids[1]).completing
    hall.end(ids[1])
    view = hall.view(ids[1])
    assert (view.exit_code, view.reason) == (3, Reason.NON_ZERO_EXIT_CODE)


def test_a_component_that_ends_early_leaves_the_others_alone(hall: Hall) -> None:
    """The second component reaches its own time limit, and the script goes on."""
    ids = running(hall, SPEC, replace(SPEC, time_limit_s=60))
    hall.tick(61)
    hall.end(ids[1])
    hall.tick()
    assert states(hall, ids) == [JobState.RUNNING, JobState.TIMEOUT]
    hall.end(ids[0])
    hall.tick()
    assert states(hall, ids) == [JobState.COMPLETED, JobState.TIMEOUT]


def test_a_lost_node_puts_the_whole_back(hall: Hall) -> None:
    """The second component's node is lost: both wait again, and start together again."""
    ids = running(hall)
    hall.lose("n2")
    hall.tick()
    hall.end(ids[0])
    hall.tick()
    assert [hall.state.runs[job_id].number for job_id in ids] == [1, 1]
    assert states(hall, ids) == [JobState.PENDING, JobState.PENDING]
    hall.register("n2", boot_id=b"again")
    start(hall, ids)
    assert states(hall, ids) == [JobState.RUNNING, JobState.RUNNING]


def test_a_component_that_ended_is_put_back_with_the_others(hall: Hall) -> None:
    """One component is over when an operator requeues the job: it runs again as well."""
    ids = running(hall, SPEC, replace(SPEC, time_limit_s=60))
    hall.tick(61)
    hall.end(ids[1])
    assert not isinstance(hall.cluster.ask(RequeueJob(ids[0], None, False), USER), Rejection)
    hall.end(ids[0])
    hall.tick()
    assert [hall.state.runs[job_id].number for job_id in ids] == [1, 1]
    assert states(hall, ids) == [JobState.PENDING, JobState.PENDING]


def test_a_waiting_component_is_not_cancelled_alone(hall: Hall) -> None:
    """Slurm cancels a waiting het job as a whole."""
    ids = submitted(hall)
    outcome = hall.cluster.ask(CancelJob(ids[1], None), USER)
    assert isinstance(outcome, Rejection)
    assert outcome.code == "het-component"
    hall.cluster.ask(CancelJob(ids[0], None), USER)
    assert states(hall, ids) == [JobState.CANCELLED, JobState.CANCELLED]


def test_a_filter_that_names_a_waiting_component_alone_ends_nothing(hall: Hall) -> None:
    """Jobs named "b" are cancelled; one of a het job's components is called that."""
    ids = submitted(hall, replace(SPEC, name="a"), replace(SPEC, name="b"))
    hall.cluster.ask(CancelJobs(JobFilter(names=("b",))), USER)
    assert states(hall, ids) == [JobState.PENDING, JobState.PENDING]
    hall.cluster.ask(CancelJobs(JobFilter(names=("a",))), USER)
    assert states(hall, ids) == [JobState.CANCELLED, JobState.CANCELLED]


def test_running_components_are_cancelled_together_or_alone(hall: Hall) -> None:
    """One running component is cancelled by its own number; then the whole."""
    ids = running(hall)
    hall.cluster.ask(CancelJob(ids[1], None), USER)
    hall.tick()
    assert states(hall, ids) == [JobState.RUNNING, JobState.CANCELLED]
    hall.end(ids[1])
    hall.cluster.ask(CancelJob(ids[0], None), USER)
    hall.end(ids[0])
    hall.tick()
    assert states(hall, ids) == [JobState.CANCELLED, JobState.CANCELLED]


@pytest.mark.parametrize(
    "request_of",
    [
        lambda job_id: HoldJob(job_id, None, Hold.USER),
        lambda job_id: ReleaseJob(job_id, None),
    ],
)
def test_holds_are_of_the_whole(hall: Hall, request_of: Callable[[JobId], Request]) -> None:
    """Holding and releasing the first component holds and releases all."""
    ids = submitted(hall, hold=True)
    make = request_of(ids[0])
    hall.cluster.ask(make, USER)
    holds = {hall.view(job_id).hold for job_id in ids}
    assert holds == {Hold.USER if isinstance(make, HoldJob) else Hold.NONE}


def test_a_signal_reaches_all_components(hall: Hall) -> None:
    """SIGUSR1 for the whole goes to every component's node."""
    ids = running(hall)
    hall.cluster.effects.clear()
    hall.cluster.ask(SignalJob(ids[0], None, 10, Reach.ALL), USER)
    sent = [effect for effect in hall.cluster.effects if isinstance(effect, SignalRun)]
    assert {(effect.node, effect.signal) for effect in sent} == {("n1", 10), ("n2", 10)}


def test_a_component_that_could_not_start_in_time_ends_the_whole(hall: Hall) -> None:
    """One component's deadline passes while all wait: the others would wait for ever."""
    deadline_ns = hall.cluster.now_ns + 3_700_000_000_000
    ids = submitted(hall, SPEC, replace(SPEC, deadline_ns=deadline_ns))
    hall.tick(200)
    hall.tick()
    assert states(hall, ids) == [JobState.DEADLINE, JobState.DEADLINE]


def test_components_leave_the_state_when_all_have_ended(hall: Hall) -> None:
    """One component is over for long while the script runs; then the whole is over for long."""
    ids = running(hall, SPEC, replace(SPEC, time_limit_s=60))
    hall.tick(61)
    hall.end(ids[1])
    hall.tick(1_000)
    assert ids[1] in hall.state.jobs
    hall.end(ids[0])
    hall.tick(1_000)
    assert not len(hall.state.jobs)


def test_others_have_no_say(hall: Hall) -> None:
    """Another user tries to cancel somebody's het job."""
    ids = submitted(hall)
    outcome = hall.cluster.ask(CancelJob(ids[0], None), OTHER)
    assert isinstance(outcome, Rejection)
    assert outcome.code == "not-owner"
    assert not isinstance(hall.cluster.ask(CancelJob(ids[0], None), ADMIN), Rejection)
    assert {hall.state.runs[job_id].phase for job_id in ids} == {Phase.ENDED}
    hall.cluster.ask(CancelJobs(JobFilter(uids=(1001,))), CLUSTER)


def test_an_update_of_the_first_component_is_of_it_alone(hall: Hall) -> None:
    """A time limit is changed by the number of the whole, and then by a component's."""
    ids = submitted(hall)
    for job_id, limit_s in zip(ids, (300, 360), strict=True):
        hall.cluster.ask(UpdateJob(job_id, None, JobChanges(time_limit_s=limit_s)), USER)
    assert [hall.view(job_id).spec.time_limit_s for job_id in ids] == [300, 360]


@pytest.mark.parametrize(
    ("request_of", "code"),
    [
        (lambda job_id: SuspendJob(job_id, None), "het-component"),
        (lambda job_id: ResumeJob(job_id, None), "het-component"),
        (lambda job_id: RequeueJob(job_id, None, False), "not-het-leader"),
    ],
)
def test_what_takes_the_whole(
    hall: Hall, request_of: Callable[[JobId], Request], code: str
) -> None:
    """An operator suspends, resumes or requeues one component."""
    ids = running(hall)
    outcome = hall.cluster.ask(request_of(ids[1]), ADMIN)
    assert isinstance(outcome, Rejection)
    assert outcome.code == code


def test_the_whole_is_suspended_and_goes_on(hall: Hall) -> None:
    """An operator lets both components stand still by the number of the first."""
    ids = running(hall)
    hall.cluster.ask(SuspendJob(ids[0], None), ADMIN)
    assert states(hall, ids) == [JobState.SUSPENDED, JobState.SUSPENDED]
    hall.cluster.ask(ResumeJob(ids[0], None), ADMIN)
    assert states(hall, ids) == [JobState.RUNNING, JobState.RUNNING]
