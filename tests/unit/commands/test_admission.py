"""What a submission must be to be accepted."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from spur.commands import admission
from spur.testing.builders import ADMIN, SMALL_CONFIG, Cluster, actor
from spur.testing.hall import ASK, SPEC, USER, Hall, submission
from spur.values.arrays import TaskSet
from spur.values.config import PartitionState
from spur.values.errors import Rejection
from spur.values.ids import JobId, PartitionName
from spur.values.states import Hold, JobState, Reason
from spur.values.tres import GresAsk, Per
from spur.wire.declare import Attachment
from spur.wire.jobs import JobAccepted, SubmitJob
from spur.wire.partitions import UpdatePartition

GPU = PartitionName("gpu")


@pytest.fixture
def hall() -> Hall:
    """Four nodes that are there."""
    return Hall()


def refused(hall: Hall, request: SubmitJob, code: str, *, by: Any = USER) -> str:
    """Submit, and return why it is refused; nothing must have changed."""
    index = hall.state.index
    outcome = hall.cluster.ask(request, by)
    assert isinstance(outcome, Rejection), outcome
    assert (outcome.code, hall.state.index) == (code, index)
    assert outcome.text.endswith("nothing was changed")
    return outcome.text


def test_a_submission_gets_the_next_id_and_waits(hall: Hall) -> None:
    """Someone submits two scripts."""
    assert (hall.submit(), hall.submit()) == (1, 2)
    view = hall.view(JobId(1))
    assert (view.state, view.reason, view.run) == (JobState.PENDING, Reason.NONE, 0)
    assert (view.uid, view.spec) == (1001, SPEC)


def test_a_job_without_a_partition_goes_to_the_default(hall: Hall) -> None:
    """Nobody names partitions in a small hall."""
    job_id = hall.submit(replace(SPEC, partitions=()))
    assert hall.view(job_id).spec.partitions == ("gpu",)


def test_a_job_submitted_held_waits_to_be_released(hall: Hall) -> None:
    """Someone submits with --hold."""
    view = hall.view(hall.submit(hold=True))
    assert (view.hold, view.reason) == (Hold.USER, Reason.HELD_BY_USER)


def test_without_a_default_a_partition_must_be_named() -> None:
    """A hall has no default partition."""
    hall = Hall(SMALL_CONFIG.replace("default = true\n", ""))
    refused(hall, submission(replace(SPEC, partitions=())), "unknown-partition")


def test_before_the_first_configuration_nothing_is_accepted() -> None:
    """A cluster was born a moment ago."""
    outcome = Cluster().ask(submission(), USER)
    assert isinstance(outcome, Rejection)
    assert outcome.code == "unknown-partition"


def test_an_unknown_partition_is_named(hall: Hall) -> None:
    """Someone mistypes a partition."""
    spec = replace(SPEC, partitions=(GPU, PartitionName("gup")))
    assert "'gup'" in refused(hall, submission(spec), "unknown-partition")


@pytest.mark.parametrize("state", [PartitionState.DRAIN, PartitionState.INACTIVE])
def test_a_partition_that_takes_no_jobs_says_so(hall: Hall, state: PartitionState) -> None:
    """A partition is being emptied."""
    hall.cluster.ask(UpdatePartition(GPU, state))
    assert state in refused(hall, submission(), "partition-closed")


def test_a_partition_that_is_down_queues_jobs(hall: Hall) -> None:
    """A partition is down for an hour; people go on submitting."""
    hall.cluster.ask(UpdatePartition(GPU, PartitionState.DOWN))
    assert hall.submit() == 1


BAD_ASKS: list[dict[str, Any]] = [
    {"nodes_min": 0},
    {"nodes_min": 4, "nodes_max": 2},
    {"tasks": 0},
    {"tasks": 1 << 31},
    {"cpus_per_task": 0},
    {"tasks_per_node": -1},
    {"memory_mib": -2},
    {"memory_per": Per.SOCKET},
    {"gres": (GresAsk("", "", 1, Per.NODE),)},
    {"gres": (GresAsk("gpu", "", 0, Per.NODE),)},
    {"gres": (GresAsk("gpu", "", 1, Per.CPU),)},
]

BAD_SPECS: list[dict[str, Any]] = [
    {"name": "two\nlines"},
    {"account": "a\0b"},
    {"time_limit_s": -1},
    {"begin_ns": -1},
    {"nice": 1 << 31},
]


@pytest.mark.parametrize("changes", BAD_ASKS, ids=str)
def test_an_ask_without_meaning_is_refused(hall: Hall, changes: dict[str, Any]) -> None:
    """A tool computes its options wrongly."""
    spec = replace(SPEC, ask=replace(ASK, **changes))
    refused(hall, submission(spec), "invalid-value")


@pytest.mark.parametrize("changes", BAD_SPECS, ids=str)
def test_a_spec_without_meaning_is_refused(hall: Hall, changes: dict[str, Any]) -> None:
    """A tool passes on what it was given."""
    refused(hall, submission(replace(SPEC, **changes)), "invalid-value")


LONG: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("name-letters-max", {"name": "x" * 1_025}, {}),
    ("list-letters-max", {}, {"features": "x" * 65_537}),
    ("partitions-max", {"partitions": (GPU,) * 65}, {}),
    ("gres-max", {}, {"gres": (GresAsk("gpu", "", 1, Per.NODE),) * 17}),
]


@pytest.mark.parametrize(("name", "spec", "ask"), LONG, ids=[row[0] for row in LONG])
def test_a_spec_over_a_limit_is_refused_by_its_name(
    hall: Hall, name: str, spec: dict[str, Any], ask: dict[str, Any]
) -> None:
    """Someone tries how much can be put in."""
    wanted = replace(SPEC, ask=replace(ASK, **ask), **spec)
    assert refused(hall, submission(wanted), "limit-exceeded").startswith(name)


def test_the_best_nice_takes_an_operator(hall: Hall) -> None:
    """Someone would like to be first."""
    spec = replace(SPEC, nice=-5)
    refused(hall, submission(spec), "not-permitted")
    assert isinstance(hall.cluster.ask(submission(spec), ADMIN), JobAccepted)


def test_a_fixed_priority_takes_an_operator_and_has_a_range(hall: Hall) -> None:
    """Someone would like to be first, another way."""
    refused(hall, submission(priority=9), "not-permitted")
    refused(hall, submission(priority=-2), "invalid-value", by=ADMIN)
    assert isinstance(hall.cluster.ask(submission(priority=9), ADMIN), JobAccepted)
    assert hall.view(JobId(1)).priority == 9


BAD_TASKS = [
    ((5, 1, 1),),
    ((0, 4, 0),),
    ((0, 5, 2),),
    ((0, 4, 1), (4, 6, 1)),
    ((-1, 4, 1),),
    (),
]


@pytest.mark.parametrize("ranges", BAD_TASKS, ids=str)
def test_malformed_tasks_are_refused(hall: Hall, ranges: tuple[tuple[int, int, int], ...]) -> None:
    """A client of another make sends ranges that are none."""
    refused(hall, submission(tasks=TaskSet(ranges)), "invalid-array")


def test_an_array_over_its_largest_index_is_refused(hall: Hall) -> None:
    """MaxArraySize is 1001, so 1000 is the last index."""
    text = refused(hall, submission(tasks=TaskSet(((0, 1_001, 1),))), "invalid-array")
    assert text.startswith("array-size-max")
    assert isinstance(
        hall.cluster.ask(submission(tasks=TaskSet(((0, 1_000, 1),))), USER), JobAccepted
    )


def test_a_throttle_is_a_count_of_an_array(hall: Hall) -> None:
    """A tool sends a throttle without an array, and a negative one."""
    refused(hall, submission(throttle=2), "invalid-value")
    refused(hall, submission(tasks=TaskSet.single(1), throttle=-1), "invalid-value")


def with_attachments(*attachments: tuple[str, bytes], batch: bool = True) -> SubmitJob:
    """Return a submission with just these attachments."""
    named = tuple(Attachment(name, content) for name, content in attachments)
    return replace(submission(replace(SPEC, batch=batch)), attachments=named)


BAD_ATTACHMENTS = [
    (),
    (("script", b" \n\t\n"),),
    (("script", b"#!"), ("script", b"#!")),
    (("script", b"#!"), ("secrets", b"x")),
    (("script", b"#!"), ("text", b"not a text")),
]


@pytest.mark.parametrize("attachments", BAD_ATTACHMENTS, ids=str)
def test_attachments_that_a_job_can_t_have_are_refused(
    hall: Hall, attachments: tuple[tuple[str, bytes], ...]
) -> None:
    """A script is missing, blank, there twice; or something is there that means nothing."""
    refused(hall, with_attachments(*attachments), "invalid-value")


def test_an_allocation_needs_no_script(hall: Hall) -> None:
    """Someone asks for nodes and waits for them."""
    outcome = hall.cluster.ask(with_attachments(batch=False), USER)
    assert isinstance(outcome, JobAccepted)


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("script", admission.SCRIPT_BYTES_MAX),
        ("environment", admission.ENVIRONMENT_BYTES_MAX),
        ("text", admission.TEXT_BYTES_MAX),
    ],
)
def test_an_attachment_over_its_limit_is_refused_by_name(hall: Hall, name: str, size: int) -> None:
    """Someone packs a data set into a script."""
    attachments = {"script": b"#!/bin/sh\n", name: b"x" * (size + 1)}
    text = refused(hall, with_attachments(*attachments.items()), "limit-exceeded")
    assert text.startswith(f"{name}-bytes-max is {size}")


def test_attachments_that_are_alive_are_limited_by_user_and_cluster(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One user's scripts fill their share; an array's script counts once, and goes with it."""
    each = sum(len(attachment.content) for attachment in submission().attachments)
    monkeypatch.setattr(admission, "LIVE_BLOB_BYTES_PER_USER_MAX", 2 * each)
    array = hall.submit(tasks=TaskSet(((0, 9, 1),)))
    hall.start(array, task=3)
    hall.submit()
    text = refused(hall, submission(), "limit-exceeded")
    assert text.startswith("live-blob-bytes-per-user-max")
    assert hall.submit(by=actor(1002)) == 4
    monkeypatch.setattr(admission, "LIVE_BLOB_BYTES_MAX", 3 * each)
    text = refused(hall, submission(), "limit-exceeded", by=actor(1003))
    assert text.startswith("live-blob-bytes-max")


def test_a_full_queue_refuses_by_its_limit() -> None:
    """MaxJobCount is reached."""
    hall = Hall(SMALL_CONFIG.replace('name = "hall"', 'name = "hall"\njob_count_max = 2', 1))
    hall.submit()
    hall.submit()
    assert refused(hall, submission(), "limit-exceeded").startswith("job-count-max is 2")
