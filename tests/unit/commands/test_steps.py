"""Steps of running jobs: where they run, what they wait for, and how they end."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from spur.events.declare import Event
from spur.events.steps import StepEnded
from spur.projections.runrows import EndNote
from spur.projections.stepdispatch import KillStep, LaunchStep, LetIn, SignalStep
from spur.testing.builders import ADMIN, CLUSTER, actor
from spur.testing.hall import SPEC, STEP, USER, Hall
from spur.values.errors import Rejection
from spur.values.ids import JobId, NodeName
from spur.values.states import JobState, NodeShareState, Reason
from spur.values.steps import EXTERN_STEP, StepState
from spur.values.tres import GresAsk, Per
from spur.wire.declare import Done
from spur.wire.jobs import CancelJob
from spur.wire.runs import ReportAnswered
from spur.wire.steps import (
    AdmitGuest,
    CancelStep,
    GuestAccepted,
    QuerySteps,
    ReleaseAllocation,
    StartStep,
    StepAccepted,
    StepPage,
)
from spur.wire.steps import (
    SignalStep as SendSignal,
)
from spur.wire.streams import key_digest

LAUNCHED, ENDED, VOID = NodeShareState.LAUNCHED, NodeShareState.ENDED, NodeShareState.VOID
EXACT = replace(STEP, exact=True)


@pytest.fixture
def hall() -> Hall:
    """Four nodes that are there."""
    return Hall()


def running(
    hall: Hall, *, cpus: int = 4, nodes: int = 1, gpus: int = 0, batch: bool = True
) -> JobId:
    """Start a job on the first nodes, each of which launched it."""
    spec = replace(SPEC, batch=batch, ask=replace(SPEC.ask, nodes_min=nodes))
    shares = [hall.share(f"n{number + 1}", cpus=cpus, gpus=gpus) for number in range(nodes)]
    job_id = hall.start(hall.submit(spec), *shares)
    for share in shares:
        hall.report(share.node, job_id, LAUNCHED)
    return job_id


def refused(hall: Hall, request: Any, code: str, *, by: Any = USER) -> str:
    """Ask, and return why it is refused; nothing must have changed."""
    index = hall.state.index
    outcome = hall.cluster.ask(request, by)
    assert isinstance(outcome, Rejection), outcome
    assert (outcome.code, hall.state.index) == (code, index)
    return outcome.text


def start(job_id: JobId, ask: Any = STEP) -> StartStep:
    """Return what srun asks."""
    return StartStep(job_id, "sleep", ask, 0, bytes(32))


def ends_of(hall: Hall, job_id: JobId) -> list[StepEnded]:
    """Return the records of a job's steps."""
    from spur.events.codec import decode_envelope
    from spur.events.envelope import EntryKind

    events: list[Event] = []
    for entry in hall.cluster.entries:
        if entry.kind == EntryKind.EVENTS:
            events += decode_envelope(entry.body, entry.index)[1]
    return [e for e in events if isinstance(e, StepEnded) and e.job_id == job_id]


def told(hall: Hall, kind: type[Any]) -> list[Any]:
    """Return what agents were told of one kind."""
    return [effect for effect in hall.cluster.effects if isinstance(effect, kind)]


# -- one step after the other


def test_cut_off_run_starts_nothing_in_its_successor() -> None:
    """A script lives on where nobody hears it, and its srun is heard after the job runs anew."""
    hall = Hall()
    job_id = hall.submit()
    hall.start(job_id, hall.share("n1"))
    hall.lose("n1")
    hall.start(job_id, hall.share("n2", cpus=4))
    hall.report("n2", job_id, LAUNCHED)
    text = refused(hall, replace(start(job_id), run=0), "job-ended")
    assert text == f"run 0 of job {job_id} has ended; the step was not started"
    for run in (1, None):
        outcome = hall.cluster.ask(replace(start(job_id, EXACT), run=run), USER)
        assert isinstance(outcome, StepAccepted)
        assert outcome.run == 1


def test_a_step_is_launched_on_its_node_and_ends_there(hall: Hall) -> None:
    """A script calls srun; the node runs the step and says how it ended."""
    job_id = running(hall)
    step_id = hall.start_step(job_id, STEP)
    (launch,) = told(hall, LaunchStep)
    assert (launch.node, launch.uid, launch.step.tasks, step_id) == ("n1", 1001, (1,), 0)
    (view,) = hall.steps(job_id)
    assert (view.step_id, view.name, view.is_stopping) == (0, "sleep", False)
    assert hall.report_step("n1", job_id, step_id, ENDED, exit_code=3) == "done"
    assert hall.steps(job_id) == ()
    (end,) = ends_of(hall, job_id)
    assert (end.state, end.exit_code, end.signal) == (StepState.FAILED, 3, 0)
    assert hall.start_step(job_id, STEP) == 1


def test_a_step_over_two_nodes_ends_with_the_last(hall: Hall) -> None:
    """The first node is done; the record waits for the second and has the worse exit code."""
    job_id = running(hall, nodes=2)
    step_id = hall.start_step(job_id, replace(STEP, tasks=4, nodes_min=2))
    assert hall.steps(job_id)[0].tasks == (2, 2)
    assert hall.report_step("n1", job_id, step_id, ENDED, exit_code=4) == "done"
    assert ends_of(hall, job_id) == []
    assert hall.report_step("n2", job_id, step_id, ENDED) == "done"
    assert [end.exit_code for end in ends_of(hall, job_id)] == [4]


def test_a_report_is_taken_once(hall: Hall) -> None:
    """An answer was lost and the agent says it again; later it reports a step long gone."""
    job_id = running(hall)
    step_id = hall.start_step(job_id, STEP)
    report = hall.next_step_report("n1", job_id, step_id, ENDED)
    assert [hall.deliver(report), hall.deliver(report)] == ["done", "already"]
    assert hall.report_step("n1", job_id, step_id, ENDED) == "void"
    assert hall.report_step("n1", job_id, 7, ENDED) == "void"
    assert len(ends_of(hall, job_id)) == 1


def test_a_node_that_cannot_launch_a_step_ends_it_as_failed(hall: Hall) -> None:
    """The node's disk is full: the step never ran."""
    job_id = running(hall)
    step_id = hall.start_step(job_id, STEP)
    assert hall.report_step("n1", job_id, step_id, VOID) == "done"
    assert [end.state for end in ends_of(hall, job_id)] == [StepState.FAILED]


def test_a_report_without_meaning_is_refused(hall: Hall) -> None:
    """An agent reports a step as lost, under an outbox without a name, from the future."""
    job_id = running(hall)
    report = hall.next_step_report("n1", job_id, hall.start_step(job_id, STEP), ENDED)
    for wrong in (
        replace(report, state=NodeShareState.LOST),
        replace(report, outbox=b""),
        replace(report, age_ns=-1),
        replace(report, signal=128),
    ):
        refused(hall, wrong, "invalid-value", by=CLUSTER)
    refused(hall, report, "not-permitted", by=actor(0, host_role="compute", host_id=9))
    assert hall.cluster.ask(report, CLUSTER) == ReportAnswered("done")


# -- beside each other


def test_a_step_takes_all_that_is_free_and_the_next_is_busy(hall: Hall) -> None:
    """Two srun in the background, neither with --exact: the second waits for the first."""
    job_id = running(hall)
    hall.start_step(job_id, STEP)
    assert hall.steps(job_id)[0].shares[0].cpus == 4
    refused(hall, start(job_id), "step-busy")
    hall.report_step("n1", job_id, 0, ENDED)
    assert hall.start_step(job_id, STEP) == 1


def test_exact_steps_run_beside_each_other_on_cpus_of_their_own(hall: Hall) -> None:
    """Four srun --exact -n1 fill four CPUs; the fifth waits, and one that overlaps does not."""
    job_id = running(hall)
    sets = set()
    for _ in range(4):
        hall.start_step(job_id, EXACT)
        sets.add(hall.steps(job_id)[-1].shares[0].cpu_set)
    assert len(sets) == 4
    refused(hall, start(job_id, EXACT), "step-busy")
    assert hall.start_step(job_id, replace(EXACT, overlaps=True)) == 4
    hall.report_step("n1", job_id, 2, ENDED)
    assert hall.start_step(job_id, EXACT) == 5


def test_memory_is_divided_among_steps(hall: Hall) -> None:
    """The job has 100 MiB: two steps of 60 are not there at once, one of 200 never."""
    job_id = running(hall)
    asks = replace(EXACT, memory_mib=60)
    hall.start_step(job_id, asks)
    refused(hall, start(job_id, asks), "step-busy")
    refused(hall, start(job_id, replace(EXACT, memory_mib=200)), "step-too-large")
    assert hall.start_step(job_id, replace(EXACT, memory_mib=40)) == 1
    per_cpu = replace(EXACT, memory_mib=50, memory_per=Per.CPU)
    refused(hall, start(job_id, per_cpu), "step-busy")


def test_gpus_are_divided_among_steps(hall: Hall) -> None:
    """Two steps of one GPU each get one each; a third waits; one without GPUs does not."""
    job_id = running(hall, gpus=0b110)
    one = replace(EXACT, gres=(GresAsk("gpu", "", 1, Per.NODE),))
    for expected in (0b010, 0b100):
        hall.start_step(job_id, one)
        assert hall.steps(job_id)[-1].shares[0].gpus == expected
    refused(hall, start(job_id, one), "step-busy")
    refused(hall, start(job_id, EXACT), "step-busy")
    hall.start_step(job_id, replace(EXACT, gres=()))
    assert hall.steps(job_id)[-1].shares[0].gpus == 0
    three = replace(EXACT, gres=(GresAsk("gpu", "", 3, Per.NODE),))
    refused(hall, start(job_id, three), "step-unavailable")


def test_gpus_of_the_whole_step_are_spread_over_its_nodes(hall: Hall) -> None:
    """Srun -G 3 in a job with two GPUs on each of two nodes, and one a task."""
    job_id = running(hall, nodes=2, gpus=0b11)
    asked = replace(EXACT, nodes_min=2, tasks=2)
    hall.start_step(job_id, replace(asked, gres=(GresAsk("gpu", "", 3, Per.JOB),)))
    assert [share.gpus for share in hall.steps(job_id)[0].shares] == [0b11, 0b1]
    hall.report_step("n1", job_id, 0, ENDED)
    hall.report_step("n2", job_id, 0, ENDED)
    hall.start_step(job_id, replace(asked, gres=(GresAsk("gpu", "", 1, Per.TASK),)))
    assert [share.gpus for share in hall.steps(job_id)[0].shares] == [0b1, 0b1]
    five = replace(asked, gres=(GresAsk("gpu", "", 5, Per.JOB),))
    refused(hall, start(job_id, five), "step-unavailable")


# -- where


@pytest.mark.parametrize(
    ("changes", "nodes", "tasks"),
    [
        ({"tasks": 3}, ("n1",), (3,)),
        ({"tasks": 5}, ("n1", "n2"), (3, 2)),
        ({"tasks": 0, "nodes_min": 3}, ("n1", "n2", "n3"), (1, 1, 1)),
        ({"tasks": 0, "nodes_min": 2, "tasks_per_node": 2}, ("n1", "n2"), (2, 2)),
        ({"tasks": 2, "nodes_required": "n3"}, ("n3",), (2,)),
        ({"tasks": 2, "nodes_required": "n3", "nodes_min": 2}, ("n1", "n3"), (1, 1)),
        ({"tasks": 2, "nodes_excluded": "n1"}, ("n2",), (2,)),
        ({"tasks": 1, "relative": 2}, ("n3",), (1,)),
        ({"tasks": 2, "cpus_per_task": 4}, ("n1", "n2"), (1, 1)),
        ({"tasks": 8, "overcommits": True}, ("n1",), (8,)),
        ({"tasks": 6, "nodes_min": 2, "plane": 4}, ("n1", "n2"), (4, 2)),
        ({"arbitrary": True, "nodes_required": "n3,n1"}, ("n3", "n1"), (1, 1)),
    ],
)
def test_steps_are_laid_out_as_asked(
    hall: Hall, changes: dict[str, Any], nodes: tuple[str, ...], tasks: tuple[int, ...]
) -> None:
    """A job of three nodes with four CPUs each; srun asks for a part of it."""
    job_id = running(hall, nodes=3)
    hall.start_step(job_id, replace(EXACT, **changes))
    (view,) = hall.steps(job_id)
    assert tuple(share.node for share in view.shares) == nodes
    assert view.tasks == tasks


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"tasks": 13}, "step-too-large"),
        ({"nodes_min": 4}, "step-too-large"),
        ({"tasks": 1, "nodes_min": 2}, "step-too-large"),
        ({"cpus_per_task": 5}, "step-too-large"),
        ({"nodes_required": "n4"}, "step-unavailable"),
        ({"relative": 3}, "step-unavailable"),
        ({"nodes_required": "n[1-"}, "invalid-value"),
        ({"tasks": -1}, "invalid-value"),
        ({"tasks": 1_000_000, "overcommits": True}, "limit-exceeded"),
    ],
)
def test_steps_that_never_fit_are_refused_at_once(
    hall: Hall, changes: dict[str, Any], code: str
) -> None:
    """Too many tasks, nodes that the job does not have: waiting would not help."""
    job_id = running(hall, nodes=3)
    refused(hall, start(job_id, replace(EXACT, **changes)), code)
    hall.start_step(job_id, STEP)
    refused(hall, start(job_id, replace(EXACT, **changes)), code)


# -- who and when


def test_only_the_owner_starts_steps(hall: Hall) -> None:
    """A step executes what its starter says as the job's user, so not even root starts one."""
    job_id = running(hall)
    refused(hall, start(job_id), "not-permitted", by=actor(1002))
    refused(hall, start(job_id), "not-permitted", by=ADMIN)
    refused(hall, start(JobId(99)), "unknown-job")


def test_steps_start_only_while_the_run_goes_on(hall: Hall) -> None:
    """Srun is called for a job that waits, and for one that is being cancelled."""
    waiting = hall.submit()
    refused(hall, start(waiting), "job-pending")
    job_id = running(hall)
    hall.cluster.ask(CancelJob(job_id, None), USER)
    refused(hall, start(job_id), "job-ended")


def test_too_many_open_steps_are_refused(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop starts srun after srun in the background."""
    monkeypatch.setattr("spur.commands.steps.OPEN_STEPS_MAX", 2)
    job_id = running(hall)
    hall.start_step(job_id, EXACT)
    hall.start_step(job_id, EXACT)
    assert "open-steps-max is 2" in refused(hall, start(job_id, EXACT), "limit-exceeded")
    monkeypatch.setattr("spur.commands.steps.STEPS_MAX", 2)
    hall.report_step("n1", job_id, 0, ENDED)
    assert "steps-max is 2" in refused(hall, start(job_id, EXACT), "limit-exceeded")


# -- how they end


def test_a_cancelled_step_is_killed_and_its_job_goes_on(hall: Hall) -> None:
    """Scancel 1.0: the step ends as CANCELLED, the job still runs."""
    job_id = running(hall)
    step_id = hall.start_step(job_id, STEP)
    refused(hall, CancelStep(job_id, step_id), "not-permitted", by=actor(1002))
    assert hall.cluster.ask(CancelStep(job_id, step_id), USER) == Done()
    assert hall.cluster.ask(CancelStep(job_id, step_id), USER) == Done()
    (kill,) = told(hall, KillStep)
    assert (kill.node, kill.state) == ("n1", StepState.CANCELLED)
    assert hall.steps(job_id)[0].is_stopping
    hall.report_step("n1", job_id, step_id, ENDED, signal=15)
    assert [end.state for end in ends_of(hall, job_id)] == [StepState.CANCELLED]
    assert hall.view(job_id).state is JobState.RUNNING
    refused(hall, CancelStep(job_id, step_id), "job-ended")
    refused(hall, CancelStep(job_id, 9), "unknown-job")


def test_a_signal_reaches_each_node_of_the_step_once(hall: Hall) -> None:
    """Scancel -s USR1 1.0 while the first of two nodes is done already."""
    job_id = running(hall, nodes=2)
    step_id = hall.start_step(job_id, replace(STEP, nodes_min=2, tasks=2))
    hall.report_step("n1", job_id, step_id, ENDED)
    assert hall.cluster.ask(SendSignal(job_id, step_id, 10), USER) == Done()
    assert [(s.node, s.step_id, s.signal) for s in told(hall, SignalStep)] == [("n2", 0, 10)]
    refused(hall, SendSignal(job_id, step_id, 65), "invalid-value")


def test_guests_are_let_in_by_the_jobs_own_user_alone(hall: Hall) -> None:
    """Sattach 1.0, sbcast in job 1: by its user, by root, by another; of a step that has ended."""
    job_id = running(hall, nodes=2)
    step_id = hall.start_step(job_id, STEP)
    key = bytes(range(32))
    for who in (USER, actor(0)):
        answer = hall.cluster.ask(AdmitGuest(job_id, step_id, key), who)
        assert isinstance(answer, GuestAccepted)
        assert (answer.run, answer.nodes, len(answer.addresses)) == (0, ("n1",), 1)
    whole = hall.cluster.ask(AdmitGuest(job_id, EXTERN_STEP, key), USER)
    assert isinstance(whole, GuestAccepted)
    assert whole.nodes == ("n1", "n2")
    assert [(e.node, e.step_id, e.key_digest) for e in told(hall, LetIn)] == [
        ("n1", step_id, key_digest(key)),
        ("n1", step_id, key_digest(key)),
        ("n1", EXTERN_STEP, key_digest(key)),
        ("n2", EXTERN_STEP, key_digest(key)),
    ]
    refused(hall, AdmitGuest(job_id, step_id, key), "not-permitted", by=actor(1002))
    refused(hall, AdmitGuest(JobId(99), step_id, key), "unknown-job")
    refused(hall, AdmitGuest(job_id, 7, key), "unknown-job")
    hall.report_step("n1", job_id, step_id, ENDED)
    refused(hall, AdmitGuest(job_id, step_id, key), "job-ended")
    refused(hall, AdmitGuest(hall.submit(), EXTERN_STEP, key), "job-pending")


def test_a_step_over_its_own_limit_is_ended(hall: Hall) -> None:
    """Srun --time=1 in a job of an hour."""
    job_id = running(hall)
    step_id = hall.start_step(job_id, EXACT, time_limit_s=60)
    hall.start_step(job_id, EXACT)
    hall.tick(61)
    assert [kill.step_id for kill in told(hall, KillStep)] == [step_id]
    hall.report_step("n1", job_id, step_id, ENDED, signal=15)
    assert [end.state for end in ends_of(hall, job_id)] == [StepState.TIMEOUT]


def test_steps_end_with_their_run(hall: Hall) -> None:
    """The script ends while srun still runs in the background; the node had killed the step."""
    job_id = running(hall)
    hall.start_step(job_id, EXACT)
    hall.start_step(job_id, EXACT)
    hall.end(job_id)
    assert job_id not in hall.state.steps
    assert hall.report_step("n1", job_id, 0, ENDED) == "void"
    assert hall.view(job_id).state is JobState.COMPLETED


def test_a_step_that_its_stopping_run_takes_along_is_cancelled(hall: Hall) -> None:
    """Scancel 1 while a step runs: the nodes report the step before the run."""
    job_id = running(hall)
    step_id = hall.start_step(job_id, STEP)
    hall.cluster.ask(CancelJob(job_id, None), USER)
    assert hall.report_step("n1", job_id, step_id, ENDED, signal=15) == "done"
    assert [end.state for end in ends_of(hall, job_id)] == [StepState.CANCELLED]
    hall.end(job_id)


def test_a_new_attempt_begins_without_steps(hall: Hall) -> None:
    """Every node refused the launch, but srun was quick: its step is of an attempt that is void."""
    job_id = hall.start(hall.submit(), hall.share("n1", cpus=2))
    hall.start_step(job_id, STEP)
    assert hall.report("n1", job_id, VOID) == "done"
    assert hall.state.runs[job_id].attempt == 2
    assert hall.steps(job_id) == ()
    assert hall.start_step(job_id, STEP) == 1


def test_a_node_that_is_back_is_told_of_its_steps(hall: Hall) -> None:
    """An agent restarts before it heard of a step: it is told again."""
    job_id = running(hall)
    hall.start_step(job_id, STEP)
    hall.cluster.effects.clear()
    hall.register("n1", boot_id=b"again")
    assert [launch.step.step_id for launch in told(hall, LaunchStep)] == [0]


# -- allocations


@pytest.mark.parametrize(
    ("exit_code", "signal", "state", "reason"),
    [
        (0, 0, JobState.COMPLETED, Reason.NONE),
        (3, 0, JobState.FAILED, Reason.NON_ZERO_EXIT_CODE),
        (0, 9, JobState.FAILED, Reason.RAISED_SIGNAL),
    ],
)
def test_an_allocation_ends_as_its_holder_says(
    hall: Hall, exit_code: int, signal: int, state: JobState, reason: Reason
) -> None:
    """Srun is done; that its extern step was then killed says nothing of the job."""
    job_id = running(hall, batch=False)
    assert hall.cluster.ask(ReleaseAllocation(job_id, exit_code, signal), USER) == Done()
    assert hall.report("n1", job_id, ENDED, signal=15) == "done"
    end = hall.state.runs[job_id].end
    assert isinstance(end, EndNote)
    assert (end.state, end.reason, end.exit_code, end.signal) == (state, reason, exit_code, signal)
    refused(hall, ReleaseAllocation(job_id, 0, 0), "job-ended")


@pytest.mark.parametrize(
    ("exit_code", "signal", "state"),
    [(7, 0, StepState.FAILED), (0, 15, StepState.CANCELLED), (0, 0, StepState.COMPLETED)],
)
def test_a_step_that_failed_by_itself_is_no_cancelled_one(
    hall: Hall, exit_code: int, signal: int, state: StepState
) -> None:
    """Srun has seen its task exit and is gone before the node reports the step."""
    job_id = running(hall, batch=False)
    step_id = hall.start_step(job_id, STEP)
    assert hall.cluster.ask(ReleaseAllocation(job_id, exit_code, signal), USER) == Done()
    hall.report_step("n1", job_id, step_id, ENDED, exit_code=exit_code, signal=signal)
    assert [end.state for end in ends_of(hall, job_id)] == [state]


def test_a_batch_job_is_not_released(hall: Hall) -> None:
    """Someone ends another kind of job this way, or another's."""
    job_id = running(hall)
    refused(hall, ReleaseAllocation(job_id, 0, 0), "wrong-state")
    refused(hall, ReleaseAllocation(job_id, 0, 0), "not-permitted", by=actor(1002))
    refused(hall, ReleaseAllocation(hall.submit(), 0, 0), "job-pending")


def test_open_steps_are_shown_in_slices(hall: Hall) -> None:
    """Squeue -s over three jobs, two rows at a time; the agent's address goes with a row."""
    jobs = [running(hall, cpus=2) for _ in range(3)]
    for job_id in jobs:
        hall.start_step(job_id, EXACT)
        hall.start_step(job_id, EXACT)
    outcome = hall.cluster.ask(QuerySteps((), JobId(0), 3), USER)
    assert isinstance(outcome, StepPage)
    assert [(row.job_id, row.step_id) for row in outcome.rows] == [(jobs[0], 0), (jobs[0], 1)]
    rest = hall.cluster.ask(QuerySteps((), outcome.next or JobId(0), 1000), USER)
    assert isinstance(rest, StepPage)
    assert [row.job_id for row in rest.rows] == [jobs[1], jobs[1], jobs[2], jobs[2]]
    assert rest.next is None
    assert rest.rows[0].addresses == ("",)
    refused(hall, QuerySteps((), JobId(0), 0), "invalid-value")
    hall.cluster.ask(replace(hall.registration("n1"), address="n1:6818"), CLUSTER)
    assert hall.steps(jobs[0])[0].addresses == ("n1:6818",)
    assert hall.steps(jobs[0])[0].shares[0].node == NodeName("n1")
