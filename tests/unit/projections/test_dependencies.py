"""Jobs that wait for others: each kind of condition, its moment, and what shows."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from spur.slurm.dependencies import format_dependency, parse_dependency
from spur.testing.builders import ADMIN, CLUSTER
from spur.testing.floor import Floor
from spur.testing.hall import SPEC, USER, Hall, submission
from spur.values.arrays import TaskSet
from spur.values.config import ConfigFile
from spur.values.errors import Rejection
from spur.values.ids import JobId
from spur.values.jobspec import JobSpec
from spur.values.states import Hold, JobState, Phase, Reason
from spur.wire.cluster import Tick
from spur.wire.declare import Done
from spur.wire.jobs import CancelJob, HoldJob, JobAccepted, JobChanges, ReleaseJob, UpdateJob

THREE = TaskSet(((1, 3, 1),))


@pytest.fixture
def hall() -> Hall:
    return Hall()


def after(text: str, **others: object) -> JobSpec:
    return replace(SPEC, dependency=parse_dependency(text), **others)


def shown(hall: Hall, job_id: JobId) -> tuple[str, str]:
    """Return the reason and what is left to wait for, as squeue shows them."""
    view = hall.view(job_id)
    left = "" if view.dependency is None else format_dependency(view.dependency)
    return view.reason.value, left


def can_start(hall: Hall, job_id: JobId) -> bool:
    try:
        hall.start(job_id)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(
    ("kind", "exit_code", "holds"),
    [
        ("afterany", 3, True),
        ("afterok", 0, True),
        ("afterok", 3, False),
        ("afternotok", 3, True),
        ("afternotok", 0, False),
        ("aftercorr", 0, True),
        ("afterburstbuffer", 3, True),
    ],
)
def test_end_of_another_job_decides(hall: Hall, kind: str, exit_code: int, holds: bool) -> None:
    """A second job waits for how the first ends."""
    first = hall.submit()
    second = hall.submit(after(f"{kind}:{first}"))
    hall.tick()
    assert shown(hall, second) == ("Dependency", f"{kind}:{first}(unfulfilled)")
    hall.start(first)
    hall.tick()
    assert not can_start(hall, second)
    hall.end(first, exit_code=exit_code)
    hall.tick()
    if holds:
        assert shown(hall, second) == ("None", "")
        assert can_start(hall, second)
    else:
        assert shown(hall, second) == ("DependencyNeverSatisfied", f"{kind}:{first}(failed)")
        assert not can_start(hall, second)


def test_start_of_another_job_frees_after_some_minutes(hall: Hall) -> None:
    """A monitor starts two minutes after what it watches."""
    first = hall.submit()
    second = hall.submit(after(f"after:{first}+2"))
    hall.start(first)
    hall.tick(119)
    assert shown(hall, second) == ("Dependency", f"after:{first}+2(unfulfilled)")
    hall.tick(2)
    assert can_start(hall, second)


def test_cancelled_job_counts_as_begun_and_as_not_ok(hall: Hall) -> None:
    """The first job is cancelled while it waits."""
    first = hall.submit()
    begun = hall.submit(after(f"after:{first}"))
    not_ok = hall.submit(after(f"afternotok:{first}"))
    ok = hall.submit(after(f"afterok:{first}"))
    hall.cluster.ask(CancelJob(first, None), USER)
    hall.tick()
    assert shown(hall, begun) == ("None", "")
    assert shown(hall, not_ok) == ("None", "")
    assert shown(hall, ok)[0] == "DependencyNeverSatisfied"


def test_all_or_any_of_several_conditions(hall: Hall) -> None:
    """One job joins two; another takes whichever comes to pass."""
    one, two = hall.submit(), hall.submit()
    both = hall.submit(after(f"afterok:{one}:{two}"))
    either = hall.submit(after(f"afterok:{one}?afterok:{two}"))
    hall.start(one)
    hall.end(one, exit_code=1)
    hall.tick()
    failed = f"afterok:{one}(failed),afterok:{two}(unfulfilled)"
    assert shown(hall, both) == ("DependencyNeverSatisfied", failed)
    assert shown(hall, either) == ("Dependency", failed.replace(",", "?"))
    hall.start(two)
    hall.end(two)
    hall.tick()
    assert shown(hall, both) == ("DependencyNeverSatisfied", f"afterok:{one}(failed)")
    assert can_start(hall, either)


@pytest.mark.parametrize("kind", ["afterok", "after", "afternotok", "aftercorr", "afterany"])
def test_job_that_is_gone_keeps_nobody_waiting(hall: Hall, kind: str) -> None:
    """A number from last week: Slurm lifts such a dependency, whatever its kind."""
    job = hall.submit(after(f"{kind}:99999"))
    hall.tick()
    assert can_start(hall, job)


def test_held_job_is_judged_at_its_release(hall: Hall) -> None:
    """It is held while the other ends and is purged."""
    first = hall.submit()
    second = hall.submit(after(f"afterok:{first}"), hold=True)
    hall.start(first)
    hall.end(first)
    hall.tick()
    assert shown(hall, second) == ("JobHeldUser", f"afterok:{first}(unfulfilled)")
    hall.tick(400)
    assert first not in hall.state.jobs
    hall.cluster.ask(ReleaseJob(second, None), USER)
    hall.tick()
    assert can_start(hall, second)


def test_age_counts_from_when_the_dependency_is_met(hall: Hall) -> None:
    """Nobody gains rank by waiting for a job of his own."""
    first = hall.submit()
    second = hall.submit(after(f"afterany:{first}"))
    hall.start(first)
    hall.tick(60)
    hall.end(first)
    hall.tick()
    assert hall.view(second).since_ns > hall.view(second).submit_ns + 59 * 1_000_000_000


def test_array_is_awaited_as_a_whole_or_by_task(hall: Hall) -> None:
    """Two tasks end well, the third does not; the first leave the state meanwhile."""
    array = hall.submit(tasks=THREE)
    whole = hall.submit(after(f"afterok:{array}"))
    task = hall.submit(after(f"afterok:{array}_1"))
    not_ok = hall.submit(after(f"afternotok:{array}"))
    assert shown(hall, whole)[1] == f"afterok:{array}_*(unfulfilled)"
    hall.end(hall.start(array, task=2), exit_code=1)
    hall.tick(400)
    assert shown(hall, whole)[0] == "Dependency"
    hall.end(hall.start(array, task=1))
    hall.tick()
    assert shown(hall, task) == ("None", "")
    hall.end(hall.start(array, task=3))
    hall.tick()
    assert shown(hall, whole)[0] == "DependencyNeverSatisfied"
    assert shown(hall, not_ok) == ("None", "")


def test_tasks_wait_for_their_counterparts(hall: Hall) -> None:
    """The tasks of a second array go on where those of the first ended well."""
    first = hall.submit(tasks=THREE)
    second = hall.submit(after(f"aftercorr:{first}"), tasks=THREE)
    hall.end(hall.start(first, task=1))
    hall.end(hall.start(first, task=2), exit_code=1)
    hall.tick()
    free = hall.state.array_jobs.single(second, 1)
    failed = hall.state.array_jobs.single(second, 2)
    assert free is not None
    assert failed is not None
    assert shown(hall, free) == ("None", "")
    assert shown(hall, failed)[0] == "DependencyNeverSatisfied"
    assert shown(hall, second)[0] == "Dependency"
    assert can_start(hall, free)
    hall.end(hall.start(first, task=3))
    hall.tick()
    assert shown(hall, second) == ("None", "")


def test_one_of_a_name_at_a_time(hall: Hall) -> None:
    """Nightly jobs wait for the one of the night before, and for no other user's."""
    others = hall.submit(replace(SPEC, name="nightly"), by=ADMIN)
    one, two, three = (hall.submit(after("singleton", name="nightly")) for _ in range(3))
    other = hall.submit(after("singleton", name="weekly"))
    hall.tick()
    assert others
    assert can_start(hall, one)
    assert can_start(hall, other)
    assert shown(hall, two) == ("Dependency", "singleton(unfulfilled)")
    hall.end(one)
    hall.tick()
    assert can_start(hall, two)
    assert not can_start(hall, three)
    hall.cluster.ask(CancelJob(two, None), USER)
    hall.end(two)
    hall.tick()
    assert can_start(hall, three)


def test_job_ends_that_asked_not_to_wait_for_ever(hall: Hall) -> None:
    """--kill-on-invalid-dep=yes."""
    first = hall.submit()
    second = hall.submit(after(f"afterok:{first}", kill_on_invalid_dependency=True))
    third = hall.submit(after(f"afterok:{second}"))
    hall.start(first)
    hall.end(first, exit_code=1)
    hall.tick()
    view = hall.view(second)
    assert (view.state, view.reason) == (JobState.CANCELLED, Reason.DEPENDENCY_NEVER_SATISFIED)
    assert second not in hall.state.dependencies
    assert shown(hall, third)[0] == "DependencyNeverSatisfied"


def test_dependency_is_changed_and_taken_away(hall: Hall) -> None:
    """`scontrol update` of a job that waits."""
    first, second = hall.submit(), hall.submit()
    new = parse_dependency(f"afterany:{first}")
    hall.cluster.ask(UpdateJob(second, None, JobChanges(dependency=new)), USER)
    assert shown(hall, second)[1] == f"afterany:{first}(unfulfilled)"
    circle = JobChanges(dependency=parse_dependency(f"afterany:{second}"))
    refused = hall.cluster.ask(UpdateJob(first, None, circle), USER)
    assert isinstance(refused, Rejection)
    assert refused.code == "invalid-dependency"
    nothing = JobChanges(dependency=replace(new, conditions=()) if new else None)
    hall.cluster.ask(UpdateJob(second, None, nothing), USER)
    assert can_start(hall, second)
    late = hall.cluster.ask(UpdateJob(second, None, JobChanges(dependency=new)), USER)
    assert isinstance(late, Rejection)
    assert late.code == "wrong-state"


def test_hold_shows_before_what_it_waits_for(hall: Hall) -> None:
    """A held job says that it is held."""
    first = hall.submit()
    second = hall.submit(after(f"afterok:{first}"))
    hall.cluster.ask(HoldJob(second, None, Hold.USER), USER)
    assert shown(hall, second)[0] == "JobHeldUser"


def test_throttle_of_an_array_is_changed(hall: Hall) -> None:
    """The file server complains: fewer tasks at a time, and every row says so."""
    array = hall.submit(tasks=THREE)
    hall.cluster.ask(UpdateJob(array, None, JobChanges(throttle=1)), USER)
    assert hall.view(array).throttle == 1
    assert hall.start(array, task=1)
    assert not can_start(hall, array)
    single = hall.submit()
    index = hall.state.index
    # Slurm takes it for a job that is no array, too, and nothing follows.
    assert hall.cluster.ask(UpdateJob(single, None, JobChanges(throttle=1)), USER) == Done()
    assert hall.state.index == index


def test_deadline_ends_what_cannot_be_done_in_time(hall: Hall) -> None:
    """An hour's job must be over in two: it is given up after one, or stopped after two."""
    now_ns = hall.cluster.now_ns
    spec = replace(SPEC, time_limit_s=3_600, deadline_ns=now_ns + 7_200 * 1_000_000_000)
    waits, runs = hall.submit(spec), hall.submit(spec)
    hall.tick(3_500)
    hall.start(runs)
    longer = JobChanges(time_limit_s=90_000)
    hall.cluster.ask(UpdateJob(runs, None, longer), ADMIN)
    hall.tick(150)
    view = hall.view(waits)
    assert (view.state, view.reason) == (JobState.DEADLINE, Reason.DEADLINE)
    assert hall.state.runs[runs].phase is Phase.RUNNING
    hall.tick(3_560)
    assert hall.view(runs).state is JobState.DEADLINE


def test_a_job_that_could_never_make_it_ends_now_and_stays_for_a_while(hall: Hall) -> None:
    """An hour's job must be over in a minute: its owner hears of it, and not from nothing."""
    spec = replace(SPEC, deadline_ns=hall.cluster.now_ns + 60 * 1_000_000_000)
    waits, held = hall.submit(spec), hall.submit(spec, hold=True)
    hall.tick(1)
    assert hall.view(waits).state is JobState.DEADLINE
    assert hall.view(waits).end_ns > hall.view(waits).submit_ns
    assert hall.view(held).state is JobState.PENDING
    hall.tick(30)
    assert hall.view(waits).state is JobState.DEADLINE
    hall.cluster.ask(ReleaseJob(held, None), USER)
    hall.tick(1)
    assert hall.view(held).state is JobState.DEADLINE


def test_deadline_in_the_past_is_refused(hall: Hall) -> None:
    """Somebody mistypes the year."""
    with pytest.raises(ValueError, match="deadline is over"):
        hall.submit(replace(SPEC, deadline_ns=1))


def test_cancelled_job_shows_what_kept_it(hall: Hall) -> None:
    """It was held when it was cancelled, as Slurm goes on to show."""
    job_id = hall.submit(hold=True)
    hall.cluster.ask(CancelJob(job_id, None), USER)
    view = hall.view(job_id)
    assert (view.state, view.reason) == (JobState.CANCELLED, Reason.HELD_BY_USER)


SITE = """\
ClusterName=hall
SlurmctldHost=ctl
{}
NodeName=n[1-4] CPUs=64 RealMemory=512000
PartitionName=gpu Nodes=n[1-4] Default=YES
"""


@pytest.mark.parametrize(
    ("line", "own", "ends"),
    [
        ("", None, False),
        ("SchedulerParameters=bf_continue,kill_invalid_depend", None, True),
        ("DependencyParameters=kill_invalid_depend", None, True),
        ("DependencyParameters=kill_invalid_depend", False, False),
        ("", True, True),
    ],
)
def test_a_site_ends_what_can_never_start(line: str, own: bool | None, ends: bool) -> None:
    """The site says so for all jobs, and one of them says otherwise."""
    floor = Floor(ConfigFile("slurm.conf", SITE.format(line)))
    first = floor.submit(partitions="gpu")
    spec = replace(floor.state.jobs[first].spec, dependency=parse_dependency(f"afterok:{first}"))
    asked = submission(replace(spec, kill_on_invalid_dependency=own))
    accepted = floor.cluster.ask(asked, USER)
    assert isinstance(accepted, JobAccepted)
    floor.cluster.ask(CancelJob(first, None), ADMIN)
    floor.cluster.ask(Tick(), CLUSTER)
    assert (floor.state.runs[accepted.job_id].phase is Phase.ENDED) is ends


def test_a_later_job_of_the_name_that_runs_already_is_waited_for(hall: Hall) -> None:
    """A singleton was held while a job of the same name came, and started."""
    one = hall.submit(after("singleton", name="nightly"), hold=True)
    two = hall.submit(replace(SPEC, name="nightly"))
    three = hall.submit(replace(SPEC, name="nightly"), hold=True)
    hall.start(two)
    hall.cluster.ask(ReleaseJob(one, None), USER)
    hall.tick()
    assert shown(hall, one) == ("Dependency", "singleton(unfulfilled)")
    assert not can_start(hall, one)
    hall.end(two)
    hall.tick()
    assert can_start(hall, one)
    assert hall.view(three).hold is Hold.USER
