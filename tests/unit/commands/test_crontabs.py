"""Jobs that come again: one waits, runs, ends, and the next one waits."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from spur.projections.attachments import live_blobs
from spur.slurm.crontab import parse_cron_time
from spur.testing.builders import ADMIN, actor
from spur.testing.hall import SPEC, USER, Hall, submission
from spur.values.config import ConfigFile
from spur.values.errors import Rejection
from spur.values.ids import JobId
from spur.values.states import JobState, Phase
from spur.wire.cluster import Reconfigure
from spur.wire.crontabs import CronAsk, CrontabText, ReadCrontab, SetCrontab
from spur.wire.declare import Attachment, Done
from spur.wire.jobs import CancelJob

TEXT = Attachment("crontab", b"* * * * * look\n")
_NS = 1_000_000_000


@pytest.fixture
def hall(monkeypatch: pytest.MonkeyPatch) -> Hall:
    """A site that has crontabs."""
    from spur.commands import crontabs

    monkeypatch.setattr(crontabs, "parameter_of", lambda state, name: "enable")
    return Hall()


def crontab(*times: str, zone: str = "UTC0") -> SetCrontab:
    attachments = [TEXT]
    asks = []
    for time in times:
        first = len(attachments)
        attachments += submission(SPEC).attachments
        places = tuple(range(first, len(attachments)))
        asks.append(CronAsk(parse_cron_time(time), SPEC, places))
    return SetCrontab(zone, tuple(asks), tuple(attachments))


def waiting(hall: Hall) -> list[tuple[int, int]]:
    """Return the jobs that wait, and in how many seconds each may begin."""
    return [
        (job_id, (hall.state.jobs[job_id].spec.begin_ns - hall.cluster.now_ns) // _NS)
        for job_id in hall.state.jobs.sorted_keys()
        if hall.state.runs[job_id].phase is Phase.PENDING
    ]


def code(hall: Hall, request: SetCrontab | ReadCrontab, uid: int = USER.uid) -> str:
    index = hall.state.index
    outcome = hall.cluster.ask(request, actor(uid))
    assert isinstance(outcome, Rejection), outcome
    assert hall.state.index == index
    return outcome.code


def test_a_job_is_followed_by_the_next(hall: Hall) -> None:
    """Each minute one, equal in all else; none begins before its time."""
    assert hall.cluster.ask(crontab("* * * * *"), USER) == Done()
    ((first, in_s),) = waiting(hall)
    assert 0 < in_s <= 60
    hall.cluster.pass_seconds(in_s + 1)
    hall.end(hall.start(JobId(first)))
    hall.tick()
    ((second, in_s),) = waiting(hall)
    assert second == first + 1
    assert 0 < in_s <= 60
    former, job = hall.state.jobs[JobId(first)], hall.state.jobs[JobId(second)]
    assert replace(job.spec, begin_ns=0) == replace(former.spec, begin_ns=0)
    assert job.attachments == former.attachments
    assert hall.state.runs[JobId(second)].number == 0


def test_one_that_fails_comes_again_and_one_that_is_cancelled_does_not(hall: Hall) -> None:
    """A user takes one entry out of use by cancelling its job."""
    hall.cluster.ask(crontab("* * * * *", "0 * * * *"), USER)
    (each_minute, _), (each_hour, _) = waiting(hall)
    hall.cluster.pass_seconds(61)
    hall.end(hall.start(JobId(each_minute)), exit_code=1)
    hall.cluster.ask(CancelJob(JobId(each_hour), None), USER)
    hall.tick()
    assert len(waiting(hall)) == 1
    assert [entry.job_id for entry in hall.state.crontabs[USER.uid].entries] == [each_hour + 1]


def test_a_new_crontab_takes_the_place_of_the_former(hall: Hall) -> None:
    """What waits is cancelled; what runs ends, for the last time."""
    hall.cluster.ask(crontab("* * * * *", "0 * * * *"), USER)
    (runs, _), (waits, _) = waiting(hall)
    hall.cluster.pass_seconds(61)
    hall.start(JobId(runs))
    hall.cluster.ask(crontab("30 4 * * *"), USER)
    end = hall.state.runs[JobId(waits)].end
    assert end is not None
    assert end.state is JobState.CANCELLED
    hall.end(JobId(runs))
    hall.tick()
    assert [job_id for job_id, _ in waiting(hall)] == [waits + 1]


def test_a_crontab_is_shown_and_removed(hall: Hall) -> None:
    """Its text is an attachment, which nothing keeps once it is gone."""
    before = len(set(live_blobs(hall.state)))
    hall.cluster.ask(crontab("* * * * *"), USER)
    answer = hall.cluster.ask(ReadCrontab(), USER)
    assert isinstance(answer, CrontabText)
    assert answer.is_there
    assert code(hall, ReadCrontab(USER.uid), 1002) == "not-permitted"
    assert hall.cluster.ask(SetCrontab("UTC0", (), (), USER.uid), ADMIN) == Done()
    assert USER.uid not in hall.state.crontabs
    assert waiting(hall) == []
    hall.tick(100_000)
    assert len(set(live_blobs(hall.state))) == before
    gone = hall.cluster.ask(ReadCrontab(), USER)
    assert gone == CrontabText(b"", is_there=False)


def test_entries_are_in_local_time(hall: Hall) -> None:
    """The rule comes with the crontab, and goes into the log."""
    hall.cluster.ask(crontab("0 0 * * *", zone="XXX-5"), USER)
    hall.cluster.ask(crontab("0 0 * * *", zone="UTC0"), actor(1002))
    (_, there_s), (_, here_s) = waiting(hall)
    assert (here_s - there_s) % 86_400 == 5 * 3600


def test_what_cannot_be_is_refused(hall: Hall) -> None:
    """A request may hold anything."""
    good = crontab("* * * * *")
    never = replace(good, entries=(replace(good.entries[0], time=parse_cron_time("0 0 31 2 *")),))
    assert code(hall, never) == "invalid-value"
    assert code(hall, replace(good, zone="nonsense")) == "invalid-value"
    assert code(hall, replace(good, attachments=good.attachments[1:])) == "invalid-value"
    astray = replace(good.entries[0], attachments=(0, 99))
    assert code(hall, replace(good, entries=(astray,))) == "invalid-value"
    assert code(hall, replace(good, uid=1002)) == "not-permitted"
    assert code(hall, replace(good, uid=1002), 0) == "not-permitted"
    many = replace(good, entries=good.entries * 201)
    assert code(hall, many) == "limit-exceeded"
    spec = replace(SPEC, partitions=("nosuch",))
    unknown = replace(good, entries=(replace(good.entries[0], spec=spec),))
    assert code(hall, unknown) == "unknown-partition"


def test_sites_have_crontabs_where_they_say_so() -> None:
    """Slurm has none unless ScronParameters enables them."""
    hall = Hall()
    assert code(hall, crontab("* * * * *")) == "cron-disabled"
    assert isinstance(hall.cluster.ask(Reconfigure((ConfigFile("x", ""),))), Rejection)
