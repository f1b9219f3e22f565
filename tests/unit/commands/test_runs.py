"""Agents' reports, nodes that are gone, reasons for waiting."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from spur.commands import runs as run_commands
from spur.projections.dispatch import KillRun, LaunchRun
from spur.projections.runrows import PastRun, RunRow
from spur.testing.builders import ADMIN, CLUSTER, SMALL_CONFIG, actor
from spur.testing.hall import SPEC, Hall
from spur.values.errors import Rejection
from spur.values.ids import JobId, NodeName, PartitionName
from spur.values.jobspec import JobSpec, shape_of
from spur.values.states import Hold, JobState, NodeAction, NodeShareState, Phase, Reason
from spur.wire.declare import Done
from spur.wire.jobs import CancelJob, GroupReasonView, JobFilter, JobPage, QueryJobs, RequeueJob
from spur.wire.nodes import UpdateNodes
from spur.wire.runs import ConfirmNodeDead, JobReasonView, ReportRun, StateReasons

LAUNCHED, ENDED, VOID = NodeShareState.LAUNCHED, NodeShareState.ENDED, NodeShareState.VOID
DEAD = NodeShareState.DEAD
SECOND = 1_000_000_000


@pytest.fixture
def hall() -> Hall:
    """Four nodes that are there."""
    return Hall()


def careful() -> Hall:
    """Return a hall that requeues a lost node's jobs only once they are known to be dead."""
    policy = 'name = "hall"\nrequeue_policy = "confirmed"'
    return Hall(SMALL_CONFIG.replace('name = "hall"', policy, 1))


def refused(hall: Hall, request: Any, code: str, *, by: Any = CLUSTER) -> str:
    """Ask, and return why it is refused; nothing must have changed."""
    index = hall.state.index
    outcome = hall.cluster.ask(request, by)
    assert isinstance(outcome, Rejection), outcome
    assert (outcome.code, hall.state.index) == (code, index)
    assert outcome.text.endswith("nothing was changed")
    return outcome.text


def on_two_nodes(hall: Hall, spec: Any = SPEC) -> JobId:
    """Start a job on n1 and n2, both of which launched it."""
    job_id = hall.start(hall.submit(spec), hall.share("n1", cpus=2, gpus=1), hall.share("n2"))
    assert hall.report("n1", job_id, LAUNCHED) == "done"
    assert hall.report("n2", job_id, LAUNCHED) == "done"
    return job_id


# -- one node


@pytest.mark.parametrize(
    ("report", "state", "reason"),
    [
        ({}, JobState.COMPLETED, Reason.NONE),
        ({"exit_code": 3}, JobState.FAILED, Reason.NON_ZERO_EXIT_CODE),
        ({"signal": 11}, JobState.FAILED, Reason.RAISED_SIGNAL),
        ({"out_of_memory": True, "signal": 9}, JobState.OUT_OF_MEMORY, Reason.OUT_OF_MEMORY),
    ],
)
def test_a_script_s_end_is_its_job_s_record(
    hall: Hall, report: dict[str, Any], state: JobState, reason: Reason
) -> None:
    """A script ends well, badly, by a signal, for want of memory."""
    job_id = hall.start(hall.submit())
    hall.report("n1", job_id, LAUNCHED)
    assert hall.report("n1", job_id, ENDED, **report) == "done"
    view = hall.view(job_id)
    assert (view.state, view.reason, view.completing) == (state, reason, False)
    assert (view.exit_code, view.signal) == (report.get("exit_code", 0), report.get("signal", 0))
    assert hall.state.allocations.nodes() == []


def test_an_end_is_dated_by_its_age_within_the_run(hall: Hall) -> None:
    """A report lay in the outbox for a while; another claims an age of years."""
    job_id = hall.start(hall.submit())
    hall.cluster.pass_seconds(60)
    hall.report("n1", job_id, ENDED, age_ns=20 * SECOND)
    assert hall.view(job_id).end_ns == hall.state.time_ns - 20 * SECOND
    job_id = hall.start(hall.submit())
    hall.report("n1", job_id, ENDED, age_ns=10**17)
    assert hall.view(job_id).end_ns == hall.view(job_id).start_ns


def test_a_report_sent_twice_counts_once(hall: Hall) -> None:
    """Answers were lost, so the agent sends its reports again, under other request ids."""
    job_id = hall.start(hall.submit())
    launched = hall.next_report("n1", job_id, LAUNCHED)
    report = hall.next_report("n1", job_id, ENDED)
    assert [hall.deliver(launched), hall.deliver(report)] == ["done", "done"]
    index = hall.state.index
    assert [hall.deliver(launched), hall.deliver(report)] == ["already", "already"]
    assert hall.state.index == index


def test_a_new_outbox_begins_a_new_sequence(hall: Hall) -> None:
    """The agent's disk was replaced: its reports are counted from one again."""
    first, second = hall.start(hall.submit()), hall.start(hall.submit())
    hall.report("n1", first, LAUNCHED)
    hall.report("n1", first, ENDED)
    anew = replace(hall.next_report("n1", second, ENDED), outbox=b"p" * 16, number=1)
    assert hall.deliver(anew) == "done"
    assert hall.view(second).state is JobState.COMPLETED


def stale(hall: Hall, job_id: JobId, **changes: Any) -> str:
    """Report an end from n1 with some detail of another attempt."""
    return hall.deliver(replace(hall.next_report("n1", job_id, ENDED), **changes))


def test_an_old_attempt_s_report_frees_nothing(hall: Hall) -> None:
    """A node that was thought dead reports the first run while the second runs elsewhere."""
    job_id = hall.start(hall.submit(), hall.share("n1", gpus=1))
    hall.report("n1", job_id, LAUNCHED)
    hall.lose("n1")
    hall.start(job_id, hall.share("n2", gpus=1))
    before = hall.view(job_id)
    assert before.run == 1
    for changes in ({"run": 0, "attempt": 1}, {"run": 1, "attempt": 1}, {"run": 0, "attempt": 2}):
        assert stale(hall, job_id, **changes) == "void"
    assert stale(hall, job_id) == "void"
    assert hall.view(job_id) == before
    assert hall.state.allocations.use(NodeName("n2")).gpus == 1


def test_a_report_of_an_unknown_job_is_void(hall: Hall) -> None:
    """An agent holds a job that was purged long ago; it is told, and the number is taken."""
    assert stale(hall, JobId(77)) == "void"
    assert hall.report("n1", JobId(77), LAUNCHED) == "void"
    assert hall.state.outboxes[NodeName("n1")].number == 2


def test_a_late_word_of_the_launch_changes_nothing(hall: Hall) -> None:
    """Two reports of one launch, and a launch after the end."""
    job_id = hall.start(hall.submit())
    assert hall.report("n1", job_id, LAUNCHED) == "done"
    assert hall.report("n1", job_id, LAUNCHED) == "done"
    assert hall.report("n1", job_id, VOID) == "void"
    assert hall.report("n1", job_id, ENDED) == "done"
    assert hall.report("n1", job_id, LAUNCHED) == "void"


BAD_REPORTS: list[dict[str, Any]] = [
    {"state": NodeShareState.LOST},
    {"outbox": b"short"},
    {"number": 0},
    {"age_ns": -1},
    {"exit_code": 256},
    {"signal": -1},
]


@pytest.mark.parametrize("changes", BAD_REPORTS, ids=str)
def test_a_report_without_meaning_is_refused(hall: Hall, changes: dict[str, Any]) -> None:
    """An agent of another make."""
    job_id = hall.start(hall.submit())
    refused(hall, replace(hall.next_report("n1", job_id, ENDED), **changes), "invalid-value")


def test_what_an_agent_that_is_back_still_holds_is_known(hall: Hall) -> None:
    """An agent was killed and lists what lives on its node: that costs no entry, and kills nothing.

    Of an older attempt, and of a job that has ended, it learns that they are void.
    """
    job_id = hall.start(hall.submit())
    hall.report("n1", job_id, LAUNCHED)
    index = hall.state.index
    assert hall.report("n1", job_id, LAUNCHED) == "done"
    assert hall.state.index == index
    old = replace(hall.next_report("n1", job_id, LAUNCHED), attempt=0)
    assert hall.deliver(old) == "void"
    hall.end(job_id)
    assert hall.report("n1", job_id, LAUNCHED) == "void"


@pytest.mark.parametrize(
    ("spec", "may_run_again"),
    [(SPEC, True), (replace(SPEC, requeue=False), False), (replace(SPEC, batch=False), False)],
)
def test_a_run_whose_supervisor_was_lost_failed_with_its_node(
    spec: JobSpec, may_run_again: bool
) -> None:
    """The machine booted while a script ran, or its supervisor was killed: nobody saw its end."""
    hall = careful()
    job_id = hall.start(hall.submit(spec))
    hall.report("n1", job_id, LAUNCHED)
    hall.cluster.pass_seconds(60)
    assert hall.report("n1", job_id, DEAD) == "done"
    run = hall.state.runs[job_id]
    assert hall.state.allocations.nodes() == []
    if may_run_again:
        assert (run.number, run.phase) == (1, Phase.PENDING)
        ended: RunRow | PastRun = hall.state.past_runs[job_id].runs[0]
    else:
        assert run.phase is Phase.ENDED
        ended = run
    end, started = ended.end, ended.started
    assert end is not None
    assert started is not None
    assert (end.state, end.reason, end.unfenced) == (JobState.NODE_FAIL, Reason.NODE_DOWN, False)
    assert end.end_ns - started.start_ns >= 60 * SECOND


def test_a_supervisor_lost_on_one_node_of_two_ends_the_other(hall: Hall) -> None:
    """The second node of a job lost what it ran: the first is told to end."""
    job_id = on_two_nodes(hall)
    assert hall.report("n2", job_id, DEAD) == "done"
    assert hall.state.runs[job_id].phase is Phase.STOPPING
    assert [kill.node for kill in hall.cluster.effects if isinstance(kill, KillRun)] == ["n1"]


def test_an_agent_reports_for_its_own_nodes_alone(hall: Hall) -> None:
    """A compute host that was broken into reports ends of jobs elsewhere."""
    job_id = hall.start(hall.submit(), hall.share("n2"))
    hall.cluster.add_host("n1", "compute")
    host_id = hall.state.host_of_name.key("n1") or 0
    report = hall.next_report("n2", job_id, ENDED)
    refused(hall, report, "not-permitted", by=actor(0, host_role="compute", host_id=host_id))
    refused(hall, report, "not-permitted", by=actor(1001))
    unknown: ReportRun = replace(report, node=NodeName("n9"))
    refused(hall, unknown, "unknown-node")


# -- several nodes


def test_the_first_node_s_end_stops_the_others(hall: Hall) -> None:
    """A script on the first of two nodes ends; the second is told, and reports it dead later."""
    job_id = on_two_nodes(hall)
    hall.cluster.pass_seconds(10)
    hall.report("n1", job_id, ENDED, exit_code=2, age_ns=5 * SECOND)
    kills = [effect for effect in hall.cluster.effects if isinstance(effect, KillRun)]
    assert [kill.node for kill in kills] == ["n2"]
    assert (hall.view(job_id).state, hall.view(job_id).completing) == (JobState.FAILED, True)
    use = hall.state.allocations.use
    assert (use(NodeName("n1")).gpus, use(NodeName("n2")).cpus) == (0, 1)
    hall.cluster.pass_seconds(10)
    hall.report("n2", job_id, ENDED, signal=9)
    view = hall.view(job_id)
    assert (view.state, view.exit_code, view.signal) == (JobState.FAILED, 2, 0)
    assert view.end_ns == hall.state.time_ns


def test_another_node_s_end_waits_for_the_first(hall: Hall) -> None:
    """The second node's part ends early: the job runs on and holds all of its nodes."""
    job_id = on_two_nodes(hall)
    hall.report("n2", job_id, ENDED, exit_code=1)
    assert hall.view(job_id).state is JobState.RUNNING
    assert hall.state.allocations.use(NodeName("n2")).cpus == 1
    hall.report("n1", job_id, ENDED)
    view = hall.view(job_id)
    assert (view.state, view.completing, view.exit_code) == (JobState.COMPLETED, False, 0)


# -- launches that fail


def test_an_attempt_that_lives_nowhere_is_launched_again(hall: Hall) -> None:
    """Both nodes void a launch: the run keeps its allocation and is launched once more."""
    job_id = hall.start(hall.submit(), hall.share("n1"), hall.share("n2"))
    assert hall.report("n1", job_id, VOID) == "done"
    assert hall.state.runs[job_id].attempt == 1
    assert hall.report("n2", job_id, VOID) == "done"
    run = hall.state.runs[job_id]
    assert (run.phase, run.number, run.attempt) == (Phase.RUNNING, 0, 2)
    launches = [effect for effect in hall.cluster.effects if isinstance(effect, LaunchRun)]
    assert [(launch.node, launch.attempt) for launch in launches] == [
        ("n1", 1),
        ("n2", 1),
        ("n1", 2),
        ("n2", 2),
    ]


def test_a_run_that_never_comes_to_life_is_put_back_held(hall: Hall) -> None:
    """A node voids every launch; after the third, the job waits for somebody to look."""
    job_id = hall.start(hall.submit())
    for _ in range(3):
        assert hall.view(job_id).state is JobState.RUNNING
        hall.report("n1", job_id, VOID)
    view = hall.view(job_id)
    assert (view.state, view.run) == (JobState.PENDING, 1)
    assert (view.hold, view.reason) == (Hold.LAUNCH_FAILURE, Reason.LAUNCH_FAILURE)
    (past,) = hall.state.past_runs[job_id].runs
    assert (past.end.state, past.end.reason) == (JobState.NODE_FAIL, Reason.LAUNCH_FAILURE)


def test_a_launch_that_fails_as_its_node_is_full_goes_elsewhere_at_once(hall: Hall) -> None:
    """The agent says that its spool is full, and then voids the launch; never is the job held."""
    job_id = hall.submit()
    for _ in range(4):
        hall.start(job_id, hall.share("n1"))
        hall.cluster.ask(replace(hall.registration("n1"), fault="spool of n1: full"), CLUSTER)
        hall.report("n1", job_id, VOID)
        view = hall.view(job_id)
        assert (view.state, view.hold) == (JobState.PENDING, Hold.NONE)
        assert hall.state.past_runs[job_id].runs[-1].end.reason is Reason.LAUNCH_FAILURE
        hall.register("n1")
    hall.start(job_id, hall.share("n2"))
    hall.report("n2", job_id, LAUNCHED)
    hall.report("n2", job_id, ENDED)
    assert hall.view(job_id).state is JobState.COMPLETED


@pytest.mark.parametrize("spec", [replace(SPEC, requeue=False), replace(SPEC, batch=False)])
def test_a_job_that_may_not_run_twice_ends_when_it_never_comes_to_life(
    hall: Hall, spec: JobSpec
) -> None:
    """The same, submitted with --no-requeue, or by srun."""
    job_id = hall.start(hall.submit(spec))
    for _ in range(3):
        hall.report("n1", job_id, VOID)
    assert (hall.view(job_id).state, hall.view(job_id).run) == (JobState.NODE_FAIL, 0)


def test_a_launch_that_fails_on_one_node_of_two_ends_the_other(hall: Hall) -> None:
    """One node launched, the other could not."""
    job_id = hall.start(hall.submit(), hall.share("n1"), hall.share("n2"))
    hall.report("n1", job_id, LAUNCHED)
    hall.report("n2", job_id, VOID)
    assert (hall.view(job_id).state, hall.view(job_id).completing) == (JobState.NODE_FAIL, True)
    hall.report("n1", job_id, ENDED, signal=15)
    assert (hall.view(job_id).state, hall.view(job_id).hold) == (
        JobState.PENDING,
        Hold.LAUNCH_FAILURE,
    )


def test_a_node_of_two_that_is_full_does_not_hold_the_job(hall: Hall) -> None:
    """One node launched, the other was full: the job waits for two others."""
    job_id = hall.start(hall.submit(), hall.share("n1"), hall.share("n2"))
    hall.report("n1", job_id, LAUNCHED)
    hall.cluster.ask(replace(hall.registration("n2"), fault="spool of n2: full"), CLUSTER)
    hall.report("n2", job_id, VOID)
    hall.report("n1", job_id, ENDED, signal=15)
    assert (hall.view(job_id).state, hall.view(job_id).hold) == (JobState.PENDING, Hold.NONE)


# -- nodes that are gone


def test_a_lost_node_s_job_waits_again_at_once_under_slurm_s_policy(hall: Hall) -> None:
    """A node is silent for too long; its job is queued again, and the record says what is open."""
    job_id = hall.start(hall.submit())
    hall.report("n1", job_id, LAUNCHED)
    hall.lose("n1")
    view = hall.view(job_id)
    assert (view.state, view.run, view.hold) == (JobState.PENDING, 1, Hold.NONE)
    (past,) = hall.state.past_runs[job_id].runs
    assert (past.end.state, past.end.reason) == (JobState.NODE_FAIL, Reason.NODE_DOWN)
    assert past.end.unfenced
    assert past.end.end_ns == hall.state.time_ns
    assert stale(hall, job_id, run=0, attempt=1) == "void"


def test_a_lost_node_s_job_is_not_run_twice_under_the_confirmed_policy() -> None:
    """The job holds what it had until the node is heard of; then it waits again, fenced."""
    hall = careful()
    job_id = hall.start(hall.submit(), hall.share("n1", gpus=3))
    hall.report("n1", job_id, LAUNCHED)
    hall.lose("n1")
    assert (hall.view(job_id).state, hall.view(job_id).completing) == (JobState.NODE_FAIL, True)
    assert hall.state.allocations.use(NodeName("n1")).gpus == 3
    hall.register("n1", boot_id=b"another boot")
    owed = [effect for effect in hall.cluster.effects if isinstance(effect, KillRun)]
    assert [kill.node for kill in owed] == ["n1", "n1"]
    assert hall.report("n1", job_id, ENDED, signal=9) == "done"
    assert (hall.view(job_id).state, hall.view(job_id).run) == (JobState.PENDING, 1)
    (past,) = hall.state.past_runs[job_id].runs
    assert not past.end.unfenced


def test_a_fenced_node_s_job_waits_again_under_the_confirmed_policy() -> None:
    """An operator cuts the node's power and says so."""
    hall = careful()
    job_id = hall.start(hall.submit())
    confirm = ConfirmNodeDead(NodeName("n1"))
    refused(hall, confirm, "wrong-state", by=ADMIN)
    hall.lose("n1")
    assert hall.view(job_id).completing
    refused(hall, confirm, "not-permitted", by=actor(1001))
    assert hall.cluster.ask(confirm, ADMIN) == Done()
    assert (hall.view(job_id).state, hall.view(job_id).run) == (JobState.PENDING, 1)
    (past,) = hall.state.past_runs[job_id].runs
    assert (past.end.unfenced, past.end.end_ns) == (False, hall.state.time_ns)
    refused(hall, ConfirmNodeDead(NodeName("n9")), "unknown-node", by=ADMIN)


def test_a_fenced_node_with_many_jobs_is_dealt_with_in_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """More jobs were on the node than one entry can deal with."""
    monkeypatch.setattr(run_commands, "DEAD_PER_PART_MAX", 2)
    hall = careful()
    jobs = [hall.start(hall.submit()) for _ in range(5)]
    hall.lose("n1")
    index = hall.state.index
    assert hall.cluster.ask(ConfirmNodeDead(NodeName("n1")), ADMIN) == Done()
    assert hall.state.index == index + 3
    assert [hall.view(job_id).run for job_id in jobs] == [1] * 5


@pytest.mark.parametrize("make", [Hall, careful])
@pytest.mark.parametrize("spec", [replace(SPEC, requeue=False), replace(SPEC, batch=False)])
def test_a_lost_node_s_job_that_may_not_run_twice_ends(make: Any, spec: JobSpec) -> None:
    """A job with --no-requeue or of srun, under either policy: nothing will run again."""
    hall = make()
    job_id = hall.start(hall.submit(spec))
    hall.lose("n1")
    view = hall.view(job_id)
    assert (view.state, view.reason, view.completing) == (
        JobState.NODE_FAIL,
        Reason.NODE_DOWN,
        False,
    )
    end = hall.state.runs[job_id].end
    assert end is not None
    assert end.unfenced


def test_the_other_nodes_of_a_lost_node_s_job_are_told(hall: Hall) -> None:
    """One of two nodes is lost: the other must kill its part before the job waits again."""
    job_id = on_two_nodes(hall)
    hall.lose("n2")
    assert hall.view(job_id).completing
    assert hall.report("n1", job_id, ENDED, signal=15) == "done"
    assert (hall.view(job_id).state, hall.view(job_id).run) == (JobState.PENDING, 1)


def test_a_job_whose_nodes_fail_again_and_again_is_held(hall: Hall) -> None:
    """A job kills its nodes; after the fifth it waits for somebody to look."""
    job_id = hall.submit()
    for _ in range(6):
        assert hall.view(job_id).hold is Hold.NONE
        hall.start(job_id)
        hall.lose("n1")
        hall.register("n1", boot_id=bytes([hall.view(job_id).run]))
    view = hall.view(job_id)
    assert (view.run, view.hold, view.reason) == (6, Hold.MAX_REQUEUE, Reason.MAX_REQUEUE)


def test_a_cancelled_job_on_a_lost_node_ends(hall: Hall) -> None:
    """A node is lost after its job was cancelled, before it said so."""
    job_id = hall.start(hall.submit())
    hall.cluster.ask(CancelJob(job_id, None))
    hall.lose("n1")
    assert (hall.view(job_id).state, hall.view(job_id).completing) == (JobState.CANCELLED, False)


def test_a_node_taken_down_ends_its_jobs(hall: Hall) -> None:
    """An operator takes a node down that still answers: its jobs are killed and wait again."""
    job_id = hall.start(hall.submit())
    hall.cluster.ask(UpdateNodes("n1", NodeAction.DOWN, "smoke"))
    hall.tick()
    assert (hall.view(job_id).state, hall.view(job_id).completing) == (JobState.NODE_FAIL, True)
    assert hall.report("n1", job_id, ENDED, signal=15) == "done"
    assert (hall.view(job_id).state, hall.view(job_id).run) == (JobState.PENDING, 1)


# -- time


def test_a_run_over_its_time_limit_is_stopped(hall: Hall) -> None:
    """A job runs for longer than it asked for."""
    job_id = hall.start(hall.submit(replace(SPEC, time_limit_s=60)))
    hall.report("n1", job_id, LAUNCHED)
    hall.tick(59)
    assert hall.view(job_id).state is JobState.RUNNING
    hall.tick(1)
    view = hall.view(job_id)
    assert (view.state, view.reason, view.completing) == (JobState.TIMEOUT, Reason.TIME_LIMIT, True)
    hall.report("n1", job_id, ENDED, signal=15)
    assert (hall.view(job_id).state, hall.view(job_id).signal) == (JobState.TIMEOUT, 15)


def test_an_ended_job_leaves_the_state_when_it_is_old_enough(hall: Hall) -> None:
    """MinJobAge is 300 s: a job with a past run and an array go, rows and all."""
    job_id = hall.start(hall.submit())
    hall.end(job_id, exit_code=1)
    hall.cluster.ask(RequeueJob(job_id, None, False))
    hall.start(job_id)
    hall.end(job_id)
    hall.tick(299)
    assert job_id in hall.state.jobs
    hall.tick(1)
    state = hall.state
    assert [len(table) for table in (state.jobs, state.runs, state.past_runs)] == [0, 0, 0]


def test_a_min_job_age_of_zero_keeps_ended_jobs() -> None:
    """Slurm purges nothing when MinJobAge is 0."""
    hall = Hall(SMALL_CONFIG.replace('name = "hall"', 'name = "hall"\nmin_job_age_s = 0', 1))
    hall.end(hall.start(hall.submit()))
    hall.tick(10**6)
    assert len(hall.state.jobs) == 1


# -- reasons


def reasons(hall: Hall) -> tuple[list[Reason], tuple[GroupReasonView, ...]]:
    """Return what each row of the queue shows, and what its groups do."""
    page = hall.cluster.ask(QueryJobs(JobFilter(), JobId(0), 100))
    assert isinstance(page, JobPage)
    return [hall.view(job_id).reason for job_id in hall.state.jobs.sorted_keys()], page.reasons


def test_reasons_are_stated_by_group_with_exceptions(hall: Hall) -> None:
    """The scheduler says why jobs of one shape wait, and why one of them does."""
    first, second = hall.submit(), hall.submit()
    running = hall.start(hall.submit())
    group = GroupReasonView(PartitionName("gpu"), shape_of(SPEC.ask), Reason.RESOURCES)
    single = JobReasonView(second, Reason.BEGIN_TIME)
    gone = JobReasonView(running, Reason.BEGIN_TIME)
    statement = StateReasons((group,), (single, gone))
    hall.cluster.pass_seconds(1)
    assert hall.cluster.ask(statement, CLUSTER) == Done()
    assert reasons(hall) == ([Reason.NONE, Reason.BEGIN_TIME, Reason.NONE], (group,))
    hall.start(first)
    refused(hall, statement, "busy")
    hall.cluster.pass_seconds(1)
    index = hall.state.index
    assert hall.cluster.ask(statement, CLUSTER) == Done()
    assert hall.state.index == index
    taken = StateReasons((replace(group, reason=Reason.NONE),), ())
    assert hall.cluster.ask(taken, CLUSTER) == Done()
    assert reasons(hall)[1] == ()


@pytest.mark.parametrize("many", ["jobs", "groups"])
def test_too_many_reasons_are_refused_by_name(hall: Hall, many: str) -> None:
    """A statement over its limits, which the scheduler must cut."""
    group = GroupReasonView(PartitionName("gpu"), b"shape   ", Reason.PRIORITY)
    single = JobReasonView(JobId(1), Reason.PRIORITY)
    statement = (
        StateReasons((), (single,) * 1_001) if many == "jobs" else StateReasons((group,) * 901, ())
    )
    assert refused(hall, statement, "limit-exceeded").startswith(f"reasons-{many}-max")


def test_only_the_cluster_states_reasons(hall: Hall) -> None:
    """A user would like to know better."""
    refused(hall, StateReasons((), ()), "not-permitted", by=ADMIN)


def test_files_that_cannot_be_opened_are_a_failed_launch(hall: Hall) -> None:
    """The script never ran, since its input is not there: Slurm records 0:53."""
    job_id = hall.start(hall.submit())
    hall.report("n1", job_id, NodeShareState.ENDED, signal=53)
    view = hall.view(job_id)
    assert (view.state, view.reason) == (JobState.FAILED, Reason.LAUNCH_FAILURE)
    assert (view.exit_code, view.signal) == (0, 53)


def test_script_killed_with_its_node_has_no_exit_of_its_own(hall: Hall) -> None:
    """An administrator takes the node down; the agent kills what runs there."""
    job_id = hall.start(hall.submit(replace(SPEC, requeue=False)))
    hall.cluster.ask(UpdateNodes("n1", NodeAction.DOWN, "smoke"), ADMIN)
    hall.tick()
    hall.report("n1", job_id, NodeShareState.ENDED, signal=15)
    view = hall.view(job_id)
    assert (view.state, view.exit_code, view.signal) == (JobState.NODE_FAIL, 0, 0)
