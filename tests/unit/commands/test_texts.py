"""Text and script of a job are read by those whose they are, and by nobody else."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from spur.commands.decide import Context, Decision, decide
from spur.events.envelope import Actor
from spur.projections.attachments import unpack_attachments
from spur.testing.builders import ADMIN, actor
from spur.testing.hall import SPEC, USER, Hall
from spur.values.arrays import TaskSet
from spur.values.errors import Rejection
from spur.values.ids import JobId
from spur.values.jobspec import JobText, decode_text, encode_text
from spur.wire.declare import Answer, Attachment, Done, Request
from spur.wire.jobs import JobChanges, UpdateJob
from spur.wire.texts import JobScript, JobTexts, JobTextView, ReadScript, ReadTexts

STRANGER = actor(1002)


@pytest.fixture
def hall() -> Hall:
    return Hall()


def judged(hall: Hall, request: Request, who: Actor) -> Decision | Rejection:
    state = hall.state
    return decide(state, request, Context(now_ns=state.time_ns, index=state.index, actor=who))


def answer(
    hall: Hall, request: Request, who: Actor, contents: Sequence[bytes | None]
) -> tuple[Answer, tuple[bytes, ...]]:
    """Return the answer that these contents make, and the digests that were asked for."""
    decision = judged(hall, request, who)
    assert isinstance(decision, Decision)
    assert decision.finish is not None
    assert len(decision.blobs) == len(contents)
    return decision.finish(contents), decision.blobs


def digest(hall: Hall, packed: bytes, name: str) -> bytes:
    return next(ref.digest for ref in unpack_attachments(packed) if ref.name == name)


def test_owner_and_operator_read_texts_and_others_do_not(hall: Hall) -> None:
    """Ada looks at her jobs and at somebody else's; an administrator looks at both."""
    mine, theirs = hall.submit(), hall.submit(by=STRANGER)
    request = ReadTexts((mine, JobId(999), theirs))
    mine_view = JobTextView(mine, b"a", is_erased=False)
    found, digests = answer(hall, request, USER, [b"a"])
    assert found == JobTexts((mine_view,), 3)
    assert digests == (digest(hall, hall.state.jobs[mine].attachments, "text"),)
    found, _ = answer(hall, request, ADMIN, [b"a", b"b"])
    assert found == JobTexts((mine_view, JobTextView(theirs, b"b", is_erased=False)), 3)


def test_an_erased_text_says_so(hall: Hall) -> None:
    """The text was erased at its owner's wish."""
    job_id = hall.submit()
    found, _ = answer(hall, ReadTexts((job_id,)), USER, [None])
    assert found == JobTexts((JobTextView(job_id, b"", is_erased=True),), 1)
    found, _ = answer(hall, ReadScript(job_id), USER, [None])
    assert found == JobScript(b"", is_erased=True)


def test_a_task_has_the_text_and_script_of_its_array(hall: Hall) -> None:
    """One task of an array runs and has a row of its own."""
    array = hall.submit(tasks=TaskSet(((1, 3, 1),)))
    task = hall.start(array, task=2)
    assert task != array
    packed = hall.state.arrays[array].attachments
    _, digests = answer(hall, ReadTexts((task,)), USER, [b"a"])
    assert digests == (digest(hall, packed, "text"),)
    found, digests = answer(hall, ReadScript(task), USER, [b"#!/bin/sh"])
    assert digests == (digest(hall, packed, "script"),)
    assert found == JobScript(b"#!/bin/sh", is_erased=False)


def test_texts_that_are_too_long_come_in_parts(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts of many jobs are asked for at once, and each is long."""
    monkeypatch.setattr("spur.commands.texts.TEXT_BYTES_MAX", 10)
    jobs = tuple(hall.submit() for _ in range(3))
    found, _ = answer(hall, ReadTexts(jobs), USER, [b"a"])
    assert found == JobTexts((JobTextView(jobs[0], b"a", is_erased=False),), 1)


@pytest.mark.parametrize(
    ("request_of", "who", "code"),
    [
        (lambda _: ReadTexts((JobId(1),) * 1_001), USER, "limit-exceeded"),
        (lambda _: ReadScript(JobId(999)), USER, "unknown-job"),
        (lambda hall: ReadScript(hall.submit()), STRANGER, "not-permitted"),
    ],
)
def test_what_is_refused(hall: Hall, request_of, who: Actor, code: str) -> None:  # type: ignore[no-untyped-def]  # lambdas of a table
    """Somebody asks for too much, for nothing, or for what is not theirs."""
    outcome = judged(hall, request_of(hall), who)
    assert isinstance(outcome, Rejection)
    assert outcome.code == code


def test_an_allocation_has_no_script(hall: Hall) -> None:
    """An operator asks for the script of an interactive job."""
    import msgspec

    from spur.testing.hall import submission
    from spur.wire.jobs import JobAccepted

    request = submission(msgspec.structs.replace(SPEC, batch=False))
    kept = tuple(each for each in request.attachments if each.name == "text")
    outcome = hall.cluster.ask(msgspec.structs.replace(request, attachments=kept), USER)
    assert isinstance(outcome, JobAccepted)
    refused = judged(hall, ReadScript(outcome.job_id), USER)
    assert isinstance(refused, Rejection)
    assert refused.code == "wrong-state"


def test_a_text_is_shown_as_it_was_amended_last(hall: Hall) -> None:
    """A comment was written anew for one task of an array, and an output path for all of it."""
    array = hall.submit(tasks=TaskSet(((1, 3, 1),)))
    path, comment = Attachment("stdout", b"/tmp/%a"), Attachment("comment", b"half done")
    assert hall.cluster.ask(UpdateJob(array, None, JobChanges(), (path,)), USER) == Done()
    task = hall.start(array, task=2)
    assert hall.cluster.ask(UpdateJob(task, None, JobChanges(), (comment,)), USER) == Done()
    text = JobText(b"/home", (b"a.sh",), b"", b"slurm-%j.out", b"", b"")
    contents = [encode_text(text), b"/tmp/%a", b"half done"]
    found, _ = answer(hall, ReadTexts((task,)), USER, contents)
    assert isinstance(found, JobTexts)
    shown = decode_text(found.texts[0].content)
    assert (shown.stdout_path, shown.comment, shown.argv) == (b"/tmp/%a", b"half done", text.argv)
    found, _ = answer(hall, ReadTexts((task,)), USER, [*contents[:2], None])
    assert found == JobTexts((JobTextView(task, b"", is_erased=True),), 1)


@pytest.mark.parametrize(
    ("attachments", "code"),
    [
        ((Attachment("script", b"#!/bin/sh"),), "invalid-value"),
        ((Attachment("comment", b"a"), Attachment("comment", b"b")), "invalid-value"),
        ((Attachment("comment", b"a" * 70_000),), "limit-exceeded"),
        ((Attachment("stdout", b"/" * 5_000),), "limit-exceeded"),
    ],
)
def test_what_no_update_may_hand_in_is_refused(
    hall: Hall, attachments: tuple[Attachment, ...], code: str
) -> None:
    """A client of its own making wants to change a script, or writes a book into a comment."""
    job_id = hall.submit()
    outcome = hall.cluster.ask(UpdateJob(job_id, None, JobChanges(), attachments), USER)
    assert isinstance(outcome, Rejection)
    assert outcome.code == code
