"""Rows of jobs and runs: each event that is not legal in the state it meets is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from spur.events.declare import Event
from spur.events.jobs import (
    JobHeld,
    JobPriorityChanged,
    JobPurged,
    JobReason,
    JobReasonsStated,
    JobReleased,
    JobRequeued,
    JobSpecChanged,
    JobSubmitted,
    JobTasksSplit,
)
from spur.events.runs import (
    JobRelaunched,
    JobStarted,
    NodeCutOff,
    PlacementDecision,
    ReportVoided,
    RunEnded,
    RunReported,
    RunStopped,
)
from spur.projections.apply import ApplyFailed
from spur.projections.digest import state_digest
from spur.projections.invariants import check_invariants
from spur.testing.builders import Cluster
from spur.testing.hall import SPEC, USER, Hall
from spur.values.arrays import TaskSet
from spur.values.ids import JobId, NodeName, PartitionName
from spur.values.states import Hold, JobState, NodeShareState, Reason
from spur.values.tres import NodeShare
from spur.wire.jobs import CancelJob, HoldJob, RequeueJob

N1, N2 = NodeName("n1"), NodeName("n2")
GPU = PartitionName("gpu")
ONE = JobId(1)
DECISION = PlacementDecision(b"", 1, (), (), "")
LAUNCHED, ENDED = NodeShareState.LAUNCHED, NodeShareState.ENDED
VOID, LOST = NodeShareState.VOID, NodeShareState.LOST


def submitted(job_id: int) -> JobSubmitted:
    """Return the event of a submission under this id."""
    return JobSubmitted(
        JobId(job_id), 1001, 1001, SPEC, None, 0, JobId(0), 0, 0, Hold.NONE, None, ()
    )


def started(
    run: int = 0,
    attempt: int = 1,
    shares: tuple[NodeShare, ...] = (NodeShare(N1, 1, 1, 1, b"\1", False),),
) -> JobStarted:
    """Return the event of a start of job 1."""
    return JobStarted(ONE, run, attempt, GPU, shares, 60, DECISION)


def reported(
    state: NodeShareState = ENDED,
    *,
    node: NodeName = N1,
    number: int = 1,
    run: int = 0,
    attempt: int = 1,
) -> RunReported:
    """Return the event of a report about job 1."""
    return RunReported(node, b"o" * 16, number, ONE, run, attempt, state, 0, 0, False, 5)


def ended(run: int = 0, *, unfenced: bool = False) -> RunEnded:
    """Return the event of an end of job 1."""
    return RunEnded(ONE, run, JobState.FAILED, Reason.NONE, 0, 0, 1 << 61, unfenced)


def stopped(*, run: int = 0, requeue: bool = False) -> RunStopped:
    """Return the event of a stop of job 1."""
    return RunStopped(ONE, run, JobState.CANCELLED, Reason.NONE, requeue, Hold.NONE, 0, 0)


def cut_off(state: NodeShareState = LOST, node: NodeName = N1) -> NodeCutOff:
    """Return the event of a lost node of job 1."""
    return NodeCutOff(ONE, 0, node, state, 5)


# -- states that an event may meet


def nothing(hall: Hall) -> None:
    """No job was ever submitted."""


def pending(hall: Hall) -> None:
    """Job 1 waits."""
    hall.submit()


def held(hall: Hall) -> None:
    """Job 1 is held."""
    hall.submit(hold=True)


def array(hall: Hall) -> None:
    """Job 1 is an array of three tasks."""
    hall.submit(tasks=TaskSet(((0, 2, 1),)))


def running(hall: Hall) -> None:
    """Job 1 runs on n1, which has not answered."""
    pending(hall)
    hall.start(ONE)


def launched(hall: Hall) -> None:
    """Job 1 runs on n1, which launched it."""
    running(hall)
    hall.report("n1", ONE, LAUNCHED)


def stopping(hall: Hall) -> None:
    """Job 1 was cancelled and is not dead yet."""
    launched(hall)
    hall.cluster.ask(CancelJob(ONE, None), USER)


def requeueing(hall: Hall) -> None:
    """Job 1 was requeued and is not dead yet."""
    launched(hall)
    hall.cluster.ask(RequeueJob(ONE, None, False), USER)


def over(hall: Hall) -> None:
    """Job 1 has ended."""
    running(hall)
    hall.end(ONE)


ILLEGAL: list[tuple[Callable[[Hall], None], Event, str]] = [
    # -- ids and arrays
    (nothing, submitted(2), "the next is 1"),
    (pending, submitted(1), "the next is 2"),
    (array, JobTasksSplit(JobId(3), ONE, TaskSet.single(1)), "the next is 2"),
    (array, JobTasksSplit(JobId(2), JobId(9), TaskSet.single(1)), "not in the state"),
    (array, JobTasksSplit(JobId(2), ONE, TaskSet.single(7)), "not some, and not all"),
    (array, JobTasksSplit(JobId(2), ONE, TaskSet(((0, 2, 1),))), "not some, and not all"),
    (pending, JobTasksSplit(JobId(2), ONE, TaskSet.single(1)), "is no array"),
    (over, JobTasksSplit(JobId(2), ONE, TaskSet.single(1)), "is ENDED"),
    # -- what is changed about jobs
    (nothing, JobHeld(ONE, Hold.USER), "not in the state"),
    (over, JobHeld(ONE, Hold.USER), "is ENDED"),
    (pending, JobReleased(ONE), "is not held"),
    (over, JobReleased(ONE), "is ENDED"),
    (over, JobPriorityChanged(ONE, 1), "is ENDED"),
    (over, JobSpecChanged(ONE, SPEC), "is ENDED"),
    (running, JobReasonsStated((), (JobReason(ONE, Reason.PRIORITY),)), "is RUNNING"),
    # -- starts
    (nothing, started(), "not in the state"),
    (running, started(attempt=2), "is RUNNING"),
    (over, started(attempt=2), "is ENDED"),
    (held, started(), "is held"),
    (pending, started(run=1), "not its next start"),
    (pending, started(attempt=0), "not its next start"),
    (pending, started(attempt=2), "not its next start"),
    (pending, started(shares=()), "no node, or a node twice"),
    (
        pending,
        started(
            shares=(NodeShare(N1, 1, 1, 1, b"\1", False), NodeShare(N1, 1, 1, 2, b"\1", False))
        ),
        "a node twice",
    ),
    (array, started(), "several tasks"),
    # -- relaunches
    (pending, JobRelaunched(ONE, 0, 1), "is PENDING"),
    (launched, JobRelaunched(ONE, 0, 2), "may live on some node"),
    (running, JobRelaunched(ONE, 0, 2), "may live on some node"),
    (running, JobRelaunched(ONE, 0, 1), "is at attempt 1"),
    (running, JobRelaunched(ONE, 1, 2), "is at run 0"),
    (stopping, JobRelaunched(ONE, 0, 2), "is STOPPING"),
    # -- reports
    (pending, reported(), "not open there"),
    (running, reported(node=N2), "not open there"),
    (running, reported(run=1), "not open there"),
    (running, reported(attempt=2), "not open there"),
    (over, reported(number=9), "not open there"),
    (launched, reported(LAUNCHED, number=9), "not open there"),
    (launched, reported(VOID, number=9), "not open there"),
    (launched, reported(number=1), "was heard before"),
    (launched, ReportVoided(N1, b"o" * 16, 1, ONE, 0, 0), "was heard before"),
    # -- nodes
    (pending, cut_off(), "is PENDING"),
    (running, cut_off(node=N2), "nothing open on node n2"),
    (running, cut_off(state=ENDED), "no way to lose a node"),
    (over, cut_off(), "is ENDED"),
    # -- stops and ends
    (pending, stopped(), "is PENDING"),
    (over, stopped(), "is ENDED"),
    (running, stopped(run=1), "is at run 0"),
    (stopping, stopped(), "is settled"),
    (stopping, stopped(requeue=True), "is settled"),
    (requeueing, stopped(requeue=True), "is settled"),
    (pending, ended(run=1), "is at run 0"),
    (running, ended(), "may live on some node"),
    (launched, ended(unfenced=True), "may live on some node"),
    (over, ended(), "is ENDED"),
    # -- requeues and purges
    (pending, JobRequeued(ONE, 1, Hold.NONE), "is PENDING"),
    (running, JobRequeued(ONE, 1, Hold.NONE), "is RUNNING"),
    (over, JobRequeued(ONE, 0, Hold.NONE), "0 is not next"),
    (over, JobRequeued(ONE, 2, Hold.NONE), "2 is not next"),
    (nothing, JobPurged(ONE), "not in the state"),
    (running, JobPurged(ONE), "is RUNNING"),
]


@pytest.mark.parametrize(
    ("before", "event", "why"),
    ILLEGAL,
    ids=[f"{before.__name__}-{type(event).__name__}-{why}" for before, event, why in ILLEGAL],
)
def test_an_event_that_is_not_legal_changes_nothing(
    before: Callable[[Hall], None], event: Event, why: str
) -> None:
    """A command with a fault decides it; the trial refuses it and leaves no trace."""
    hall = Hall()
    before(hall)
    digest, index = state_digest(hall.state), hall.state.index
    with pytest.raises(ApplyFailed, match=why):
        hall.cluster.record(event)
    assert (state_digest(hall.state), hall.state.index) == (digest, index)
    check_invariants(hall.state)


def test_devices_that_are_held_are_not_given_again() -> None:
    """Two starts of one GPU get past the command: the trial refuses the second."""
    hall = Hall()
    hall.start(hall.submit(), hall.share("n1", gpus=1))
    second = hall.submit()
    event = JobStarted(second, 0, 1, GPU, (NodeShare(N1, 1, 1, 1, b"\1", False),), 60, DECISION)
    with pytest.raises(ApplyFailed, match="GPUs of node 'n1' that are held"):
        hall.cluster.record(event)
    check_invariants(hall.state)


def test_a_purged_job_s_id_is_not_used_again() -> None:
    """The only job ends and is purged; the next gets the next id."""
    hall = Hall()
    hall.end(hall.start(hall.submit()))
    hall.tick(400)
    assert len(hall.state.jobs) == 0
    assert hall.submit() == 2


def test_equal_asks_are_kept_once() -> None:
    """Thousands of jobs ask for the same: their rows share what is equal."""
    hall = Hall()
    first, second = hall.submit(), hall.submit(replace(SPEC, name="other"))
    rows = hall.state.jobs
    assert rows[first].spec.ask is rows[second].spec.ask
    assert rows[first].spec.partitions is rows[second].spec.partitions


def test_the_rows_of_an_array_share_what_is_common() -> None:
    """Tasks that were split off have the array's attachments and throttle, kept once."""
    hall = Hall()
    array_id = hall.submit(tasks=TaskSet(((0, 9, 1),)), throttle=3)
    task = hall.start(array_id)
    state = hall.state
    assert state.jobs[task].attachments == b""
    assert len(state.arrays[array_id].attachments) == 3 * 37
    assert hall.view(task).throttle == 3
    assert state.jobs[task].spec is state.jobs[array_id].spec


def test_tasks_that_were_put_back_together_share_their_past() -> None:
    """A waiting array is cancelled and requeued; then one of its tasks starts."""
    hall = Hall()
    array_id = hall.submit(tasks=TaskSet(((0, 9, 1),)))
    hall.cluster.ask(CancelJob(array_id, None), USER)
    hall.cluster.ask(RequeueJob(array_id, None, False), USER)
    task = hall.start(array_id)
    past = hall.state.past_runs
    assert past[task] == past[array_id]
    assert [run.end.state for run in past[task].runs] == [JobState.CANCELLED]


def test_a_story_goes_on_after_a_refused_entry() -> None:
    """The request behind a refused trial is the next entry as if nothing had been."""
    cluster = Cluster()
    with pytest.raises(ApplyFailed):
        cluster.record(submitted(7))
    cluster.record(submitted(1))
    assert cluster.state.jobs.sorted_keys() == [1]


def test_holding_tasks_of_a_held_array_splits_nothing() -> None:
    """The array is held as a whole already, so its row stays one."""
    hall = Hall()
    hall.submit(tasks=TaskSet(((0, 9, 1),)), hold=True)
    hall.cluster.ask(HoldJob(ONE, TaskSet.single(2), Hold.USER), USER)
    assert len(hall.state.jobs) == 1
