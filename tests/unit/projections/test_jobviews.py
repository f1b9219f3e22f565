"""The queue as rows: filters, slices, and rows that are encoded once per change."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from spur.projections import jobviews
from spur.projections.invariants import check_invariants
from spur.projections.undo import undo_to
from spur.testing.builders import actor
from spur.testing.hall import ASK, NODES, SPEC, USER, Hall
from spur.values.arrays import TaskSet
from spur.values.dependencies import Condition, Dependency, DependencyKind
from spur.values.errors import InvariantBroken, Rejection
from spur.values.ids import JobId, PartitionName
from spur.values.jobspec import shape_of
from spur.values.states import Hold, JobState, NodeShareState, Reason
from spur.wire.jobs import (
    CancelJob,
    HoldJob,
    JobFilter,
    JobPage,
    JobView,
    QueryJobs,
    decode_kind,
    page_views,
    with_own,
)
from spur.wire.registry import decode_answer, encode_answer


@pytest.fixture
def hall() -> Hall:
    """A queue of every kind: ids 1 to 6."""
    hall = Hall()
    hall.start(hall.submit(replace(SPEC, name="runs")), hall.share("n2"))
    hall.submit(replace(SPEC, partitions=(PartitionName("debug"),), account="astro", qos="high"))
    hall.submit(by=actor(1002), hold=True)
    hall.end(hall.start(hall.submit(), hall.share("n3")), exit_code=1)
    hall.submit(tasks=TaskSet(((0, 9, 1),)))
    hall.start(JobId(5), hall.share("n4"), task=4)
    return hall


def page(
    hall: Hall, wanted: JobFilter | None = None, *, after: int = 0, limit: int = 1_000
) -> JobPage:
    """Return a slice of the queue."""
    answer = hall.cluster.ask(QueryJobs(wanted or JobFilter(), JobId(after), limit), USER)
    assert isinstance(answer, JobPage)
    return answer


def views(hall: Hall, wanted: JobFilter | None = None) -> list[JobView]:
    """Return all rows that a filter names, as a client would collect them by twos."""
    found: list[JobView] = []
    after: int | None = 0
    while after is not None:
        answer = page(hall, wanted, after=after, limit=2)
        found += page_views(answer)
        after = answer.next
    return found


GPU, DEBUG = PartitionName("gpu"), PartitionName("debug")
FILTERS: list[tuple[JobFilter, list[int]]] = [
    (JobFilter(), [1, 2, 3, 4, 5, 6]),
    (JobFilter(job_ids=(JobId(4), JobId(2), JobId(99))), [2, 4]),
    (JobFilter(job_ids=(JobId(5),)), [5, 6]),
    (JobFilter(uids=(1002,)), [3]),
    (JobFilter(uids=(1002, 1001), names=("runs",)), [1]),
    (JobFilter(uids=(7,)), []),
    (JobFilter(partitions=(DEBUG,)), [2]),
    (JobFilter(partitions=(GPU, DEBUG), accounts=("astro",)), [2]),
    (JobFilter(qos=("high",)), [2]),
    (JobFilter(states=(JobState.RUNNING,)), [1, 6]),
    (JobFilter(states=(JobState.PENDING, JobState.FAILED)), [2, 3, 4, 5]),
    (JobFilter(states=(JobState.SUSPENDED,), completing=True), []),
    (JobFilter(nodes=(NODES[1], NODES[3])), [1, 6]),
    (JobFilter(nodes=(NODES[1],), states=(JobState.PENDING,)), []),
    (JobFilter(job_ids=(JobId(1), JobId(6)), nodes=(NODES[3],)), [6]),
]


@pytest.mark.parametrize(("wanted", "found"), FILTERS, ids=str)
def test_a_filter_names_the_jobs_that_meet_all_of_it(
    hall: Hall, wanted: JobFilter, found: list[int]
) -> None:
    """People ask for their own jobs, those of a node, of a partition, in a state."""
    assert [view.job_id for view in views(hall, wanted)] == found


def test_rows_say_what_the_state_says(hall: Hall) -> None:
    """Each row of the queue is the job's view, through the wire and back."""
    assert views(hall) == [hall.view(JobId(job_id)) for job_id in range(1, 7)]
    answer = page(hall)
    assert decode_answer(encode_answer(answer)) == answer
    held = views(hall)[2]
    assert (held.state, held.hold, held.reason) == (
        JobState.PENDING,
        Hold.USER,
        Reason.HELD_BY_USER,
    )
    assert held.shape == shape_of(ASK)
    assert views(hall)[0].shape == b""


@pytest.mark.parametrize("limit", [0, 5_001])
def test_a_page_has_a_limited_number_of_rows(hall: Hall, limit: int) -> None:
    """A client asks for all at once."""
    outcome = hall.cluster.ask(QueryJobs(JobFilter(), JobId(0), limit), USER)
    assert isinstance(outcome, Rejection)
    assert outcome.code == "invalid-value"


def test_a_page_ends_after_so_many_rows_were_looked_at(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A filter that names one job in a long queue: the slices are empty, and go on."""
    monkeypatch.setattr(jobviews, "PAGE_SCAN_MAX", 2)
    wanted = JobFilter(states=(JobState.FAILED,))
    assert page(hall, wanted) == JobPage((), JobId(2), (), 0, 604_800, 300)
    assert [view.job_id for view in views(hall, wanted)] == [4]


def test_a_page_ends_after_so_many_bytes(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs of a thousand nodes are long rows: each page has at least one."""
    monkeypatch.setattr(jobviews, "PAGE_BYTES_MAX", 1)
    assert [len(page_views(page(hall, after=after))) for after in range(7)] == [1] * 6 + [0]


def test_a_page_ends_after_so_many_rows_were_encoded(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first who looks after a restart is served in short slices, the next in long ones."""
    monkeypatch.setattr(jobviews, "PAGE_FRESH_MAX", 2)
    first = page(hall)
    assert (len(page_views(first)), first.next) == (2, JobId(2))
    assert len(page_views(page(hall, after=2))) == 2
    assert [view.job_id for view in page_views(page(hall))] == [1, 2, 3, 4, 5, 6]


def test_what_equal_jobs_share_is_sent_once(hall: Hall) -> None:
    """A loop submits the same script again and again."""
    before = {bytes(kind.common) for kind in page(hall).kinds}
    ids = [hall.submit(), hall.submit(), hall.submit()]
    [kind] = [kind for kind in page(hall).kinds if bytes(kind.common) not in before]
    common, owns = decode_kind(kind)
    assert [own.job_id for own in owns] == ids
    assert with_own(common, owns) == [hall.view(job_id) for job_id in ids]


def test_a_row_is_encoded_once_per_change(hall: Hall) -> None:
    """Many people look at a queue that stands still; then one job changes."""
    first = page(hall)
    kept = dict(hall.state.encoded_views.rows)
    assert page(hall) == first
    assert all(hall.state.encoded_views.rows[job_id] is row for job_id, row in kept.items())
    hall.cluster.ask(HoldJob(JobId(2), None, Hold.USER), USER)
    assert sorted(kept.keys() - hall.state.encoded_views.rows.keys()) == [2]
    assert hall.view(JobId(2)).hold is Hold.USER
    assert page_views(page(hall)) == views(hall)


def test_a_job_that_runs_is_in_one_of_its_partitions(hall: Hall) -> None:
    """Submitted to two partitions, started in one: people who look at the other don't see it."""
    job_id = hall.submit(replace(SPEC, partitions=(DEBUG, GPU)))
    assert hall.view(job_id).partition == ""
    both = [[v.job_id for v in views(hall, JobFilter(partitions=(p,)))] for p in (DEBUG, GPU)]
    assert all(job_id in found for found in both)
    hall.start(job_id)
    assert hall.view(job_id).partition == "gpu"
    assert job_id not in [v.job_id for v in views(hall, JobFilter(partitions=(DEBUG,)))]


def test_an_undone_change_is_not_shown() -> None:
    """A leader shows a row, loses its lead, and takes the tail back."""
    hall = Hall(commits=False)
    job_id = hall.submit()
    before, index = page(hall), hall.state.index
    hall.cluster.ask(CancelJob(job_id, None), USER)
    assert page(hall) != before
    undo_to(hall.state, index)
    check_invariants(hall.state)
    assert page(hall) == before


def test_a_stale_encoded_row_breaks_an_invariant(hall: Hall) -> None:
    """A change that forgot the cache would be found by the checks."""
    page(hall)
    rows = hall.state.encoded_views.rows
    rows[JobId(1)] = rows[JobId(2)]
    with pytest.raises(InvariantBroken, match="encoded row of job 1 is stale"):
        check_invariants(hall.state)


def test_times_of_a_row_follow_its_run(hall: Hall) -> None:
    """A running job has a limit; a stopping one shows since when; an ended one its end."""
    view = hall.view(JobId(1))
    assert (view.limit_ns - view.start_ns, view.end_ns) == (3_600_000_000_000, 0)
    hall.cluster.ask(CancelJob(JobId(1), None), USER)
    assert hall.view(JobId(1)).end_ns == hall.state.time_ns
    hall.report("n2", JobId(1), NodeShareState.ENDED, signal=9)
    view = hall.view(JobId(1))
    assert (view.end_ns, view.signal, view.completing) == (hall.state.time_ns, 9, False)


def test_an_array_that_left_the_state_is_shown_as_none(hall: Hall) -> None:
    """A job waits in vain for an array that failed, and is still there when that is purged."""
    array = hall.submit(tasks=TaskSet(((0, 1, 1),)))
    waits = Dependency(False, (Condition(DependencyKind.AFTER_OK, array, None, 0),))
    never = replace(SPEC, dependency=waits, kill_on_invalid_dependency=False)
    job_id = hall.submit(never)
    hall.cluster.ask(CancelJob(array, None), USER)
    hall.tick()
    (before,) = views(hall, JobFilter(job_ids=(job_id,)))
    hall.tick(100_000)
    (after,) = views(hall, JobFilter(job_ids=(job_id,)))
    assert array not in hall.state.arrays
    assert before.dependency is not None
    assert after.dependency is not None
    assert [before.dependency.conditions[0].is_array, after.dependency.conditions[0].is_array] == [
        True,
        False,
    ]
