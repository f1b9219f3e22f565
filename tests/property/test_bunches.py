"""Lines of squeue that are made together are what they would be one by one."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from spur.slurm.bunches import Bunch, Typesetter
from spur.slurm.columns.jobline import JobLine
from spur.slurm.columns.jobs import BY_LETTER, BY_NAME, DEFAULT_FORMAT, JOB_COLUMNS
from spur.slurm.formats import parse_format, parse_long_format
from spur.slurm.joborder import parse_sort, sorted_bunches
from spur.slurm.timespec import Moment
from spur.testing.hall import SPEC
from spur.values.arrays import TaskSet
from spur.values.ids import JobId, PartitionName
from spur.values.jobspec import JobText
from spur.values.states import Hold, JobState, Reason
from spur.wire.jobs import JobOwn, JobView

LETTERS = "aAbcCDefFgGijKlLmMNpPQStTuUvV"
"""Of --sort."""

EVERYTHING = ",".join(f"{row.name}:.30 " for row in JOB_COLUMNS if row.name)

TEXT = JobText(b"/home/u", (b"run",), b"", b"out.%A.%a", b"%j.err", b"")

NS = 1_000_000_000


class Clock:
    """A clock that shows seconds as they are."""

    def now(self) -> int:
        return 0

    def moment(self, seconds: int) -> Moment:
        return Moment(1970, 1, 1, 0, seconds // 60 % 60, seconds % 60)

    def seconds(self, moment: Moment) -> int:
        return moment.minute * 60 + moment.second


def line(job: JobView, text: JobText | None = None) -> JobLine:
    return JobLine(job, job.tasks, "None", 60, 900 * NS, Clock(), str, str, text, "here")


def job(job_id: int, **changed: object) -> JobView:
    """Return a waiting job."""
    base = JobView(
        job_id=JobId(job_id),
        submit_ns=job_id * NS,
        since_ns=job_id * NS,
        array_id=JobId(0),
        tasks=None,
        throttle=0,
        het_id=JobId(0),
        het_offset=0,
        het_size=0,
        uid=1,
        gid=1,
        spec=SPEC,
        run=0,
        state=JobState.PENDING,
        completing=False,
        reason=Reason.NONE,
        shape=b"",
        hold=Hold.NONE,
        priority=None,
        points=1.0,
        partition=PartitionName(""),
        start_ns=0,
        limit_ns=0,
        end_ns=0,
        exit_code=0,
        signal=0,
        shares=(),
        dependency=None,
    )
    return replace(base, **changed)


@st.composite
def queues(draw: st.DrawFn) -> list[Bunch]:
    """Return equal jobs under interleaved numbers, arrays, and tasks that were split off them."""
    bunches: list[Bunch] = []
    ids = draw(st.lists(st.integers(1, 40), min_size=1, max_size=12, unique=True))
    kinds = draw(st.lists(st.integers(0, 3), min_size=len(ids), max_size=len(ids)))
    for kind in sorted(set(kinds)):
        its_ids = sorted(i for i, its_kind in zip(ids, kinds, strict=True) if its_kind == kind)
        state = JobState.RUNNING if kind == 3 else JobState.PENDING
        start_ns = 100 * NS if kind == 3 else 0
        nice = replace(SPEC, nice=kind % 2)
        jobs = [job(i, spec=nice, state=state, start_ns=start_ns) for i in its_ids]
        owns = [JobOwn(one.job_id, one.submit_ns, one.since_ns) for one in jobs]
        bunches.append(Bunch(line(jobs[0]), owns=owns if len(owns) > 1 else ()))
    array = draw(st.integers(50, 52))
    tasks = draw(st.lists(st.integers(0, 20), min_size=2, max_size=9, unique=True))
    split = draw(st.integers(0, len(tasks) - 1))
    whole = job(array, array_id=JobId(array), tasks=TaskSet.of(tasks[split:]))
    bunches.append(Bunch(line(whole, draw(st.sampled_from([None, TEXT])))).split())
    for number, task in enumerate(tasks[:split]):
        state = draw(st.sampled_from([JobState.PENDING, JobState.RUNNING]))
        off = job(60 + number, array_id=JobId(array), tasks=TaskSet.single(task), state=state)
        bunches.append(Bunch(line(off)).split())
    return draw(st.permutations(bunches))


@settings(deadline=None)
@given(queues(), st.text(st.sampled_from(LETTERS + "-,"), max_size=6), st.sampled_from("dea"))
def test_lines_made_together_are_what_they_are_one_by_one(
    bunches: list[Bunch], sort: str, form: str
) -> None:
    """A long queue of few kinds of jobs, shown in any order and in all columns."""
    if form == "d":
        layout = parse_format(DEFAULT_FORMAT, BY_LETTER)
    elif form == "a":
        layout = parse_format("100%%: %A|%i%%%t", BY_LETTER)
    else:
        layout = parse_long_format(EVERYTHING, BY_NAME)
    keys = parse_sort(sort)
    apart = [single for bunch in bunches for single in bunch.apart()]
    one_by_one = Typesetter(layout).text(sorted_bunches(apart, keys))
    assert Typesetter(layout).text(sorted_bunches(bunches, keys)) == one_by_one
    assert one_by_one == "".join(
        f"{layout.line(bunch.at(place))}\n"
        for bunch, places in sorted_bunches(apart, keys)
        for place in places
    )
