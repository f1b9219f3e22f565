"""About which events of jobs mails are to be sent, and what they say."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from spur.projections.mails import SendMail
from spur.testing.builders import ADMIN
from spur.testing.hall import SPEC, USER, Hall, submission
from spur.values.arrays import TaskSet
from spur.values.dependencies import Condition, Dependency, DependencyKind
from spur.values.ids import JobId
from spur.wire.declare import Attachment
from spur.wire.jobs import CancelJob, JobAccepted, JobChanges, RequeueJob, UpdateJob

MAIL = Attachment("mail", b"BEGIN,END\nada@example.org")


class Post:
    """The mails that a hall would send."""

    def __init__(self) -> None:
        self.hall = Hall()
        self._seen = 0

    def submit(self, spec: Any = SPEC, tasks: TaskSet | None = None) -> JobId:
        request = submission(spec, tasks=tasks)
        request = replace(request, attachments=(*request.attachments, MAIL))
        answer = self.hall.cluster.ask(request, USER)
        assert isinstance(answer, JobAccepted)
        return answer.job_id

    def come(self) -> list[str]:
        """Return the kinds and subjects of the mails since the last look."""
        effects = self.hall.cluster.effects
        fresh, self._seen = effects[self._seen :], len(effects)
        return [
            f"{'/'.join(each.kinds)}: {each.subjects[0]}"
            for each in fresh
            if isinstance(each, SendMail)
        ]


@pytest.fixture
def post() -> Post:
    return Post()


def test_a_job_that_asks_for_no_mail_causes_none(post: Post) -> None:
    """Most do not."""
    post.hall.end(post.hall.start(post.hall.submit()))
    assert post.come() == []


def test_begin_and_end_are_told(post: Post) -> None:
    """A job waits five minutes, runs ten, and ends well."""
    hall = post.hall
    job_id = post.submit()
    hall.cluster.pass_seconds(300)
    hall.start(job_id)
    assert post.come() == ["BEGIN: Slurm Job_id=1 Name=train Began, Queued time 00:05:00"]
    hall.cluster.pass_seconds(600)
    hall.end(job_id)
    assert post.come() == [
        "END: Slurm Job_id=1 Name=train Ended, Run time 00:10:00, COMPLETED, ExitCode 0"
    ]


def test_a_failure_is_told_as_one(post: Post) -> None:
    """Who asks for END alone hears of it too."""
    job_id = post.hall.start(post.submit())
    post.come()
    post.hall.end(job_id, exit_code=3)
    assert post.come() == [
        "FAIL/END: Slurm Job_id=1 Name=train Failed, Run time 00:00:00, FAILED, ExitCode 3"
    ]


def test_a_time_limit_is_told_when_it_is_reached(post: Post) -> None:
    """And the end once the nodes say so."""
    hall = post.hall
    job_id = hall.start(post.submit(replace(SPEC, time_limit_s=60)))
    post.come()
    hall.tick(61)
    (told,) = post.come()
    assert told.startswith("TIME_LIMIT: Slurm Job_id=1 Name=train Reached time limit, Run time 00:")
    hall.end(job_id)
    (told,) = post.come()
    assert told.startswith("FAIL/END: ")


def test_a_requeue_is_no_end(post: Post) -> None:
    """A job is put back, and begins once more."""
    hall = post.hall
    job_id = hall.start(post.submit())
    hall.cluster.ask(RequeueJob(job_id, None, False), USER)
    post.come()
    hall.end(job_id)
    (told,) = post.come()
    assert told.startswith("REQUEUE: Slurm Job_id=1 Name=train Requeued, Run time ")
    hall.start(job_id)
    (told,) = post.come()
    assert told.startswith("BEGIN: ")


def test_an_array_is_told_of_as_a_whole(post: Post) -> None:
    """Its first task begins, its last ends; each task is told of for those who want that."""
    hall = post.hall
    array = post.submit(tasks=TaskSet(((1, 2, 1),)))
    first = hall.start(array, task=1)
    told = post.come()
    assert [each.split(" Name")[0] for each in told] == [
        f"BEGIN: Slurm Array Task Job_id=1_1 ({first})",
        f"BEGIN: Slurm Array Summary Job_id=1_* ({first})",
    ]
    second = hall.start(array, task=2)
    assert len(post.come()) == 1
    hall.end(first, exit_code=2)
    assert len(post.come()) == 1
    hall.end(second)
    task, whole = post.come()
    assert task.startswith("END: Slurm Array Task Job_id=1_2")
    assert whole.startswith("FAIL/END: Slurm Array Summary")
    assert whole.endswith(", Mixed, ExitCode [0-2]")


def test_a_dependency_that_never_holds_is_told(post: Post) -> None:
    """What it waits for fails."""
    hall = post.hall
    other = hall.start(hall.submit())
    condition = Condition(DependencyKind.AFTER_OK, other, None, 0)
    post.submit(replace(SPEC, dependency=Dependency(False, (condition,))))
    hall.end(other, exit_code=1)
    hall.tick()
    assert any("Invalid dependency" in told for told in post.come())


def test_mail_can_be_asked_for_later(post: Post) -> None:
    """An update hands in about what, and to whom."""
    job_id = post.hall.submit()
    post.hall.cluster.ask(UpdateJob(job_id, None, JobChanges(), (MAIL,)), ADMIN)
    post.hall.start(job_id)
    assert len(post.come()) == 1


def test_one_that_never_started_ends_too(post: Post) -> None:
    """It is cancelled while it waits: no time of running."""
    job_id = post.submit()
    post.hall.cluster.ask(CancelJob(job_id, None), USER)
    (told,) = post.come()
    assert told.startswith("END: Slurm Job_id=1 Name=train Ended, Run time 00:00:00, CANCELLED")
